"""A fleet as one page: a row for each program and each value of what was varied, with what the runs found and links to their reports; and
curves."""

import html
import math
import statistics
import urllib.parse
from collections.abc import Collection, Iterable, Sequence

from fleet.curves import NO_PARAMETER, Curve, Row, elapsed, parameters, values_by_axis, words
from fleet.plot import figure
from fleet.progress import plural
from fleet.state import Axes, Fleet, FleetError, write_text
from pages import POLICY
from report_terms import PAGE_COLOURS

# The variables --c0, --c1, … of the style on a light and on a dark background: the colours of categories, and of a figure's lines.
LIGHT, DARK = (" ".join(f"--c{number}: {colour};" for number, colour in enumerate(theme)) for theme in zip(*PAGE_COLOURS, strict=True))
COLOURS = f"""
:root {{ color-scheme: light dark; --page: #f6f5f2; --card: #fff; --ink: #1d1c1a; --muted: #6d6a64; --line: #e2dfd8;
  --worse: #d1495b; --better: #1e7d5a; --link: #1f5f8b;
  {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ --page: #15161a; --card: #1d1f24; --ink: #e8e6e1; --muted: #9a978f; --line: #32353c;
  --worse: #f07a88; --better: #43b084; --link: #7ab8e6;
  {DARK} }} }}
"""
STYLE = """\
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 1560px; padding: 0 1.5rem; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin: 1.5rem 0 .5rem; }
p { color: var(--muted); max-width: 60rem; overflow-wrap: anywhere; } a { color: var(--link); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .5rem 1rem 1rem; margin: 1rem 0; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
table.all { width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left; vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; } thead th { white-space: normal; vertical-align: bottom; }
tbody th { min-width: 6rem; max-width: 18rem; overflow-wrap: anywhere; position: sticky; left: 0; background: var(--card); }
td.value { min-width: 3rem; max-width: 12rem; overflow-wrap: anywhere; } td.stack { min-width: 7rem; width: 16rem; }
td.why { overflow-wrap: anywhere; }
td.links a { display: inline-block; margin-right: .5rem; }
.muted { color: var(--muted); } .worse { color: var(--worse); } .better { color: var(--better); }
td svg { display: block; width: 100%; height: 14px; margin-top: .35rem; }
ul.key { list-style: none; padding: 0; margin: .5rem 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .87rem; }
ul.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
div.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem 2rem; }
figure { margin: 0; min-width: 0; max-width: 46rem; } figcaption { font-weight: 600; overflow-wrap: anywhere; }
svg.curve { display: block; width: 100%; height: auto; } svg.curve text { fill: var(--muted); font-size: 12px; }
svg.curve .axis { fill: var(--ink); }
svg.curve .grid { stroke: var(--line); }
"""


def label(axes: Axes) -> str:
    """A point of the matrix: what is no program and no repetition of an experiment."""
    return ", ".join(words(axis, value) for axis, value in parameters(axes).items()) or "as in the spec"


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


class Cell:
    """The runs of a program at a point of the matrix: means over seeds and repetitions."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.done = [row for row in rows if row["status"] == "done"]
        self.ipc = mean([row["ipc"] for row in self.done])
        self.cycles = mean([elapsed(row) for row in self.done])
        self.ms = mean([row.get("elapsed_ms") for row in self.done])
        self.instructions = mean([row.get("region_instructions") or row["instructions"] for row in self.done])
        names = {name for row in self.done for name in row["cycle_stack"]}
        order: list[str] = next((list(row["cycle_stack"]) for row in self.done if row["cycle_stack"]), [])
        self.stack = {name: statistics.fmean(row["cycle_stack"].get(name, 0) for row in self.done) for name in order if name in names}

    def errors(self, sampler: str, level: str) -> list[float]:
        return [error for row in self.done if (error := row["errors"].get(sampler, {}).get(level)) is not None]

    def counter(self, name: str) -> float | None:
        return mean([row.get("counters", {}).get(name) for row in self.done])


def difference(value: float | None, base: float | None, form: str, more_is_better: bool, unit: str = "") -> str:
    """A difference as a line of its own, coloured by whether it is for the better."""
    if value is None or base is None or f"{value - base:{form}}" in [f"{0:{form}}", f"{-0.0:{form}}"]:
        return ""
    good = (value > base) == more_is_better
    return f'<div class="{"better" if good else "worse"}">{value - base:{form}}{unit}</div>'


def bar(stack: dict[str, float]) -> str:
    """A cycle stack as a bar."""
    at, parts = 0.0, []
    for number, (name, share) in enumerate(stack.items()):
        parts.append(f'<rect x="{at * 100:.3f}" width="{share * 100:.3f}" height="10" fill="var(--c{number % len(PAGE_COLOURS)})">'
                     f"<title>{html.escape(name)}: {share * 100:.1f} %</title></rect>")
        at += share
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none">{"".join(parts)}</svg>'


def number_cell(*parts: str) -> str:
    return f'<td class="number">{"".join(parts)}</td>'


def ratio(value: float | None, base: float | None, more_is_better: bool) -> str:
    """The difference to the base in percent of the base."""
    return difference(100 * value / base, 100, "+.1f", more_is_better, " %") if value and base else ""


def result_cells(cell: Cell, base: Cell | None, samplers: Sequence[str], level: str, shown: Sequence[str]) -> str:
    """What the runs of a row found, number by number."""
    against = base if base is not cell else None
    if cell.ipc is None:
        return number_cell("–") * (2 + len(samplers) + len(shown)) + "<td></td>"
    milliseconds = f"{cell.ms:,.3f} ms" if cell.ms is not None else ""
    cycles = ratio(cell.cycles, against.cycles if against else None, False)
    parts = [f'<td class="number" title="{milliseconds}"><b>{cell.cycles:,.0f}</b>{cycles}</td>',
             number_cell(f"{cell.ipc:.3f}", ratio(cell.ipc, against.ipc if against else None, True))]
    for sampler in samplers:
        errors = cell.errors(sampler, level)
        if not errors:
            parts.append(number_cell("–"))
            continue
        spread = f" ± {50 * (max(errors) - min(errors)):.1f}" if max(errors) > min(errors) else ""
        own, other = statistics.fmean(errors), mean(against.errors(sampler, level)) if against else None
        parts.append(number_cell(f"{100 * own:.1f}{spread}", difference(100 * own, other and 100 * other, "+.1f", False)))
    for name in shown:
        count = cell.counter(name)
        per_thousand = 1000 * count / cell.instructions if count is not None and cell.instructions else None
        rate = "" if per_thousand is None else f'<div class="muted">{per_thousand:.3g} / 1000</div>'
        parts.append(number_cell("–" if count is None else f"{count:,.0f}", rate))
    return "".join(parts) + f'<td class="stack">{bar(cell.stack) if cell.stack else ""}</td>'


def link(fleet: Fleet, place: str, words_shown: str) -> str:
    """A link to a file in the fleet's folder, if the file is there."""
    if not (fleet.folder / place).exists():
        return html.escape(words_shown)
    return f'<a href="{html.escape(urllib.parse.quote(place))}">{html.escape(words_shown)}</a>'


def report_links(fleet: Fleet, cell: Cell) -> str:
    """Links to the report of each run of a row, by what tells the runs apart."""
    links = []
    for row in cell.done:
        own = ", ".join(f"{axis} {row['axes'][axis]}" for axis in NO_PARAMETER[1:] if axis in row["axes"]) or "report"
        links.append(link(fleet, f"tasks/{row['task']}/report.html", own))
    return f'<td class="links">{"".join(links)}</td>'


def failures(fleet: Fleet, cell: Cell, columns: int) -> str:
    """A row for each run without a result, with the reason."""
    found = []
    for row in cell.rows:
        if row["status"] != "done":
            name = link(fleet, f"failed/{row['task']}/terminal.txt", row["task"])
            said = row["status"] + (f": {row['reason']}" if "reason" in row else "") if row["status"] != "missing" else "not run yet"
            found.append(f'<tr><th></th><td class="why worse" colspan="{columns - 1}">{name}: {html.escape(said)}</td></tr>')
    return "".join(found)


def cells(rows: list[Row]) -> tuple[dict[tuple[str, str], Cell], list[str], list[str]]:
    """Cells by program and point, the points, and the programs."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["spec"], label(row["axes"])), []).append(row)
    found = {place: Cell(group) for place, group in grouped.items()}
    return found, list(dict.fromkeys(point for _, point in found)), list(dict.fromkeys(program for program, _ in found))


def table(
    fleet: Fleet,
    found: dict[tuple[str, str], Cell],
    points: list[str],
    programs: list[str],
    base: str,
    samplers: Sequence[str],
    level: str,
    shown: Sequence[str],
    axes: Collection[str],
) -> str:
    """All rows, program by program."""
    heads = ["elapsed cycles", "IPC", *[f"{name} %" for name in samplers], *shown]

    def broken(name: str) -> str:
        return html.escape(name).replace(".", ".<wbr>")

    head = "".join([f"<th>{words_of}</th>" for words_of in ["program", *map(broken, axes), "report"]]
                   + [f'<th class="number">{broken(name)}</th>' for name in heads] + ["<th>cycle stack</th>"])
    columns = 1 + len(axes) + len(heads) + 2
    body = []
    for program in programs:
        for point in points:
            cell = found.get((program, point))
            if cell is None:
                continue
            own = cell.rows[0]["axes"]
            values = "".join(f'<td class="value">{html.escape(str(own.get(axis, "")))}</td>' for axis in axes)
            mark = " <span class=muted>(base)</span>" if point == base else ""
            body.append(f"<tr><th>{html.escape(program)}{mark}</th>{values}"
                        f"{report_links(fleet, cell)}{result_cells(cell, found.get((program, base)), samplers, level, shown)}</tr>"
                        f"{failures(fleet, cell, columns)}")
    return f'<div class="wide"><table class="all"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def summary(found: dict[tuple[str, str], Cell], points: list[str], programs: list[str], base: str) -> str:
    """Geometric means of speed and IPC against the base, over the programs that have both."""
    if len(programs) < 2 or len(points) < 2:
        return ""
    lines = []
    for point in points:
        pairs = [(found[p, point], found[p, base]) for p in programs if (p, point) in found and (p, base) in found]
        speeds = [math.log(against.cycles / own.cycles) for own, against in pairs if own.cycles and against.cycles]
        ratios = [math.log(own.ipc / against.ipc) for own, against in pairs if own.ipc and against.ipc]
        shown = [f"× {math.exp(statistics.fmean(values)):.3f}" if values and point != base else "base" if values else "–"
                 for values in [speeds, ratios]]
        lines.append(f"<tr><th>{html.escape(point)}</th>{''.join(map(number_cell, shown))}</tr>")
    return ('<section><h2>Geometric means over the programs</h2><div class="wide"><table><thead><tr><th></th><th class="number">speed</th>'
            f'<th class="number">IPC</th></tr></thead><tbody>{"".join(lines)}</tbody></table></div></section>')


def plots(curves: Sequence[Curve], programs: list[str]) -> str:
    """The curves, each with its title."""
    if not curves:
        return ""

    def title(curve: Curve) -> str:
        return f"{curve['program']}: {curve['metric']}" if len(programs) > 1 else curve["metric"]

    figures = "".join(figure(curve, title(curve)) for curve in curves)
    return f'<section><h2>Against {html.escape(curves[0]["along"])}</h2><div class="curves">{figures}</div></section>'


def page(
    fleet: Fleet,
    rows: list[Row],
    curves: Sequence[Curve] = (),
    base: str | None = None,
    samplers: Sequence[str] = ("tip", "nci"),
    level: str = "instruction",
    shown: Sequence[str] = (),
) -> None:
    """Writes fleet.html."""
    found, points, programs = cells(rows)
    base = base or points[0]
    if base not in points:
        raise FleetError(f"--base: expected one of {'; '.join(points)}; found {base}")
    known = {name for row in rows for name in row.get("errors", {})}
    unknown = [sampler for sampler in samplers if known and sampler not in known]
    if unknown:
        raise FleetError(f"--sampler: expected some of {', '.join(sorted(known))}; found {unknown[0]}")
    categories: dict[str, float] = next((cell.stack for cell in found.values() if cell.stack), {})
    key = "".join(f'<li><i style="background: var(--c{number % len(PAGE_COLOURS)})"></i>{html.escape(name)}</li>'
                  for number, name in enumerate(categories))
    done = sum(row["status"] == "done" for row in rows)
    counters = "Counters: how often in the region, and in 1000 of its instructions." if shown else ""
    write_text(fleet.folder / "fleet.html", f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
{POLICY}
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fleet: {html.escape(', '.join(programs))}</title><style>{COLOURS}{STYLE}</style></head><body>
<h1>{plural(len(programs), "program")}, {plural(len(points), "point")}: {done} of {plural(len(rows), "run")} done</h1>
<p>Elapsed cycles of the region; instructions per elapsed cycle; the error of profilers, by {html.escape(level)}: percent of the cycles
that they give to the wrong one; where the cycles went. {counters} Means over seeds and repetitions, ± half of the range. Coloured: the
difference to <b>{html.escape(base)}</b>, in percent of its cycles and its IPC and in points of its errors.
tipsim {html.escape(str(fleet.matrix['commit'] or fleet.matrix['asked']['tipsim'][:12]))}.</p>
{plots(curves, programs)}
<section><h2>Runs</h2><ul class="key">{key}</ul>
{table(fleet, found, points, programs, base, samplers, level, shown, values_by_axis(rows))}</section>
{summary(found, points, programs, base)}
</body></html>
""")
