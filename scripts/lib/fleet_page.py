"""A fleet as one page: a row for each program, a column for each core, in the cells what the runs found."""

import html
import math
import statistics

from fleet_progress import plural
from fleet_state import FleetError, write_text

STYLE = """
:root { color-scheme: light dark; --page: #f6f5f2; --card: #fff; --ink: #1d1c1a; --muted: #6d6a64; --line: #e2dfd8; --worse: #d1495b; --better: #1e7d5a;
  --c0: #3f9c6b; --c1: #e0a83a; --c2: #d3603f; --c3: #a8567c; --c4: #4c84b8; --c5: #7a5cb8; --c6: #8b8780; }
@media (prefers-color-scheme: dark) { :root { --page: #15161a; --card: #1d1f24; --ink: #e8e6e1; --muted: #9a978f; --line: #32353c; --worse: #f07a88;
  --better: #43b084; --c0: #4fb381; --c1: #e8b754; --c2: #e2775a; --c3: #c07799; --c4: #6a9fd0; --c5: #9a80d4; --c6: #86837d; } }
body { margin: 2rem; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } p { color: var(--muted); max-width: 60rem; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; background: var(--card); font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .5rem .7rem; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--card); } tbody th { position: sticky; left: 0; background: var(--card); }
td { min-width: 11rem; } td b { font-size: 1.15rem; } td div { white-space: nowrap; } .muted { color: var(--muted); }
.worse { color: var(--worse); } .better { color: var(--better); }
svg { display: block; width: 100%; height: 14px; margin-top: .35rem; }
ul.key { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; } ul.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
"""


def label(axes):
    """A column: what is no program and no repetition of an experiment."""
    own = {axis: value for axis, value in axes.items() if axis not in ["spec", "seed", "repeat"]}
    return ", ".join(str(value) if axis == "preset" else f"{axis} = {value}" for axis, value in own.items()) or "as in the spec"


def mean(values):
    values = [value for value in values if value is not None]
    return statistics.fmean(values) if values else None


class Cell:
    """The runs of a program on a core: means over seeds and repetitions."""

    def __init__(self, rows):
        self.rows = rows
        self.done = [row for row in rows if row["status"] == "done"]
        self.ipc = mean([row["ipc"] for row in self.done])
        names = {name for row in self.done for name in row["cycle_stack"]}
        order = next((list(row["cycle_stack"]) for row in self.done if row["cycle_stack"]), [])
        self.stack = {name: mean([row["cycle_stack"].get(name, 0) for row in self.done]) for name in order if name in names}

    def errors(self, sampler, level):
        return [error for row in self.done if (error := row["errors"].get(sampler, {}).get(level)) is not None]


def difference(value, base, form, more_is_better):
    """A difference, coloured by whether it is for the better."""
    if value is None or base is None or f"{value - base:{form}}" in [f"{0:{form}}", f"{-0.0:{form}}"]:
        return ""
    good = (value > base) == more_is_better
    return f' <span class="{"better" if good else "worse"}">{value - base:{form}}</span>'


def bar(stack):
    """A cycle stack as a bar."""
    at, parts = 0, []
    for number, (name, share) in enumerate(stack.items()):
        parts.append(f'<rect x="{at * 100:.3f}" width="{share * 100:.3f}" height="10" fill="var(--c{number % 7})">'
                     f"<title>{html.escape(name)}: {share * 100:.1f} %</title></rect>")
        at += share
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none">{"".join(parts)}</svg>'


def cell_html(cell, base, samplers, level):
    if cell is None:
        return '<td class="muted">–</td>'
    parts = []
    missing = [row for row in cell.rows if row["status"] != "done"]
    if missing:
        words = missing[0].get("reason", "not run yet")
        parts.append(f'<div class="worse" title="{html.escape(words)}">{len(missing)} of {len(cell.rows)} {html.escape(missing[0]["status"])}</div>')
    if cell.ipc is not None:
        relative = base and base.ipc and cell is not base and difference(100 * cell.ipc / base.ipc, 100, "+.1f", True)
        cycles = mean([row["cycles"] for row in cell.done])
        parts.append(f'<div title="{cycles:,.0f} cycles"><b>{cell.ipc:.3f}</b> IPC{f"{relative} %" if relative else ""}</div>')
    for sampler in samplers:
        errors = cell.errors(sampler, level)
        if errors:
            spread = f" ± {50 * (max(errors) - min(errors)):.1f}" if max(errors) > min(errors) else ""
            against = mean(base.errors(sampler, level)) if base and cell is not base else None
            delta = difference(100 * mean(errors), against and 100 * against, "+.1f", False)
            parts.append(f"<div>{html.escape(sampler)} {100 * mean(errors):.1f}{spread} %{delta}</div>")
    return f"<td>{''.join(parts)}{bar(cell.stack) if cell.stack else ''}</td>"


def cells(rows):
    """Cells by program and column, and the columns."""
    grouped = {}
    for row in rows:
        grouped.setdefault((row["spec"], label(row["axes"])), []).append(row)
    found = {place: Cell(group) for place, group in grouped.items()}
    return found, list(dict.fromkeys(column for _, column in found)), list(dict.fromkeys(program for program, _ in found))


def summary(found, columns, programs, base):
    """Geometric means of IPC against the base column, over the programs that have both."""
    parts = []
    for column in columns:
        pairs = [(found[p, column].ipc, found[p, base].ipc) for p in programs if (p, column) in found and (p, base) in found]
        ratios = [math.log(own / against) for own, against in pairs if own and against]
        words = f"× {math.exp(statistics.fmean(ratios)):.3f} IPC" if ratios else "–"
        parts.append(f"<td>{words if column != base else 'base'}</td>")
    return f"<tr><th>geometric mean</th>{''.join(parts)}</tr>"


def page(fleet, rows, base=None, samplers=("tip", "nci"), level="instruction"):
    """Writes fleet.html."""
    found, columns, programs = cells(rows)
    base = base or columns[0]
    if base not in columns:
        raise FleetError(f"--base: expected one of {'; '.join(columns)}; found {base}")
    known = {name for row in rows for name in row.get("errors", {})}
    unknown = [sampler for sampler in samplers if known and sampler not in known]
    if unknown:
        raise FleetError(f"--sampler: expected some of {', '.join(sorted(known))}; found {unknown[0]}")
    head = "".join(f"<th>{html.escape(column)}{' <span class=muted>(base)</span>' if column == base else ''}</th>" for column in columns)
    body = "".join(f"<tr><th>{html.escape(program)}</th>" + "".join(
        cell_html(found.get((program, column)), found.get((program, base)), samplers, level) for column in columns) + "</tr>" for program in programs)
    categories = next((cell.stack for cell in found.values() if cell.stack), {})
    key = "".join(f'<li><i style="background: var(--c{number % 7})"></i>{html.escape(name)}</li>' for number, name in enumerate(categories))
    done = sum(row["status"] == "done" for row in rows)
    write_text(fleet.folder / "fleet.html", f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<title>Fleet: {html.escape(', '.join(programs))}</title><style>{STYLE}</style></head><body>
<h1>{plural(len(programs), "program")}, {plural(len(columns), "column")}: {done} of {plural(len(rows), "run")} done</h1>
<p>In each cell: instructions per cycle; the error of profilers, by {html.escape(level)}: share of the cycles that they give to the wrong one;
where the cycles went. Means over seeds and repetitions, ± half of the range. Coloured: the difference to <b>{html.escape(base)}</b>, in percent of its
IPC and in points of its errors. tipsim {html.escape(str(fleet.matrix['commit'] or fleet.matrix['asked']['tipsim'][:12]))}.</p>
<ul class="key">{key}</ul>
<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}{summary(found, columns, programs, base)}</tbody></table></div>
</body></html>
""")
