"""What scripts/study parallel found, as tables, sentences, and a page with curves."""

import html
import pathlib
import statistics
import textwrap
from typing import Any

from fleet.curves import Curve
from fleet.page import COLOURS, STYLE
from fleet.plot import figure
from pages import POLICY
from report_terms import LEVEL_NAMES, LEVELS, PROFILER_NAMES, PROFILERS, SHORT_NAMES
from study.readme import BEGIN, END

# Components of a speed-up stack, as `tipsim report` names them, with what a column has room for.
COMPONENTS = {"base": "base", "shared-cache": "LLC", "memory": "memory", "other-harts": "others", "stores": "stores", "spinning": "spin",
              "kernel": "kernel", "kernel-spinning": "k. spin", "ready": "ready", "locks": "locks", "other-waits": "waits",
              "serial": "serial", "imbalance": "imbal.", "no-thread": "no thr.", "idle": "idle"}
IN_WORDS = {"base": "more work and worse private caches", "shared-cache": "loads from the last-level cache",
            "memory": "loads from memory", "other-harts": "lines of other harts", "stores": "full store queues",
            "spinning": "loops that only wait", "kernel": "the kernel", "kernel-spinning": "loops of the kernel that only wait",
            "ready": "threads that are ready and do not run", "locks": "waiting for locks, conditions and barriers",
            "other-waits": "other waits", "serial": "serial parts", "imbalance": "uneven work", "no-thread": "too few threads",
            "idle": "idle harts of which nothing is known"}
# An error that grew by so much is told.
GROWN = 0.01


def runs_of(study: dict[str, Any], number: int) -> list[tuple[str, dict[str, Any]]]:
    """Returns the name of each program that ran on a number of harts, and its run."""
    return [(p["name"], p["runs"][str(number)]) for p in study["programs"] if str(number) in p["runs"]]


def error(run: dict[str, Any], who: str, level: str) -> float:
    found: float = run["errors"][who][level]["error"]
    return found


def several(study: dict[str, Any]) -> list[int]:
    """Returns the numbers of harts above one that any program ran on."""
    return [number for number in study["harts"] if number > 1 and runs_of(study, number)]


def same_result(program: dict[str, Any]) -> str:
    """Returns whether the program wrote the same on all numbers of harts."""
    first = program["runs"]["1"]["result"]
    if first is None:
        return "none"
    other = [number for number, run in program["runs"].items() if run["result"] != first]
    return "the same" if not other else "differs: " + ", ".join(other)


def scaling_table(study: dict[str, Any]) -> list[str]:
    most = several(study)[-1:]
    columns = [f"{number:>7}" for number in several(study)]
    lines = ["Speed-up by number of harts: elapsed cycles of one hart over those of so many; instructions on one hart and on the most",
             f"{'Program':12}{'shape':30}{'M instr.':>9}{'M':>8}{''.join(columns)}  result"]
    for p in study["programs"]:
        last = p["runs"].get(str(most[0])) if most else None
        cells = "".join(f"{p['runs'][str(n)]['speedup']:7.2f}" if str(n) in p["runs"] else f"{'–':>7}" for n in several(study))
        lines.append(f"{p['name']:12}{p['about']['shape']:30}{p['runs']['1']['instructions'] / 1e6:9.1f}"
                     + (f"{last['instructions'] / 1e6:8.1f}" if last else f"{'–':>8}") + cells + f"  {same_result(p)}")
    means = "".join(f"{statistics.geometric_mean(run['speedup'] for _, run in runs_of(study, n)):7.2f}" for n in several(study))
    return [*lines, f"{'geometric mean':59}{means}"]


def stack_table(study: dict[str, Any], number: int) -> list[str]:
    rows = runs_of(study, number)
    used = [c for c in COMPONENTS if any(abs(run["lost"][c]) >= 0.005 for _, run in rows)]
    lines = [f"Where {number} harts go: the speed-up, and what takes the rest, in harts (speed-up stack; all together {number})",
             f"{'Program':12}{'speed-up':>9}" + "".join(f"{COMPONENTS[c]:>9}" for c in used)]
    return lines + [f"{name:12}{run['speedup']:9.2f}" + "".join(f"{run['lost'][c]:9.2f}" for c in used) for name, run in rows]


def error_table(study: dict[str, Any], level: str) -> list[str]:
    lines = [f"Error by {LEVEL_NAMES[level]} and number of harts, %, mean of the programs, a sample every 199 cycles of each hart",
             f"{'harts':12}" + "".join(f"{SHORT_NAMES[who]:>8}" for who in PROFILERS)]
    for number in study["harts"]:
        rows = runs_of(study, number)
        if rows:
            means = [statistics.fmean(error(run, who, level) for _, run in rows) for who in PROFILERS]
            lines.append(f"{number:<12}" + "".join(f"{100 * mean:8.1f}" for mean in means))
    return lines


def program_error_table(study: dict[str, Any]) -> list[str]:
    lines = ["Error by instruction of each program, %, by number of harts",
             f"{'Program':12}{'harts':>6}" + "".join(f"{SHORT_NAMES[who]:>8}" for who in PROFILERS)]
    for p in study["programs"]:
        for number, run in p["runs"].items():
            lines.append(f"{p['name'] if number == '1' else '':12}{number:>6}"
                         + "".join(f"{100 * error(run, who, 'instruction'):8.1f}" for who in PROFILERS))
    return lines


def words(study: dict[str, Any]) -> dict[str, str]:
    """Returns sentences about the scaling and about the errors, with figures of these runs."""
    most = several(study)[-1]
    rows = runs_of(study, most)
    by_speedup = sorted(rows, key=lambda row: -row[1]["speedup"])
    (best, fastest), (worst, slowest) = by_speedup[0], by_speedup[-1]
    lost = {c: statistics.fmean(run["lost"][c] for _, run in rows) for c in COMPONENTS}
    largest = sorted(lost, key=lambda c: -lost[c])[:3]
    scaling = (f"On {most} harts {best} is the fastest, {fastest['speedup']:.2f} times one hart, and {worst} the slowest, "
               f"{slowest['speedup']:.2f} times. In the mean of the programs " + ", ".join(
                   f"{IN_WORDS[c]} {'takes' if c in ['base', 'locks', 'kernel', 'imbalance'] else 'take'} {lost[c]:.2f}" for c in largest)
               + f" of the {most} harts.")
    changes = {who: {name: error(run, who, "instruction") - error(one, who, "instruction")
                     for (name, run), (_, one) in zip(rows, [r for r in runs_of(study, 1) if r[0] in dict(rows)], strict=True)}
               for who in PROFILER_NAMES}
    parts = []
    for who, change in changes.items():
        name = max(change, key=lambda name: change[name])
        grew = sum(value > GROWN for value in change.values())
        fell = sum(value < -GROWN for value in change.values())
        parts.append(f"{PROFILER_NAMES[who]} {100 * statistics.fmean(change.values()):+.1f} points in the mean (more by over a point in "
                     f"{grew} of {len(change)} programs, less in {fell}; the most {100 * change[name]:+.1f}, {name})")
    errors = f"From one hart to {most}, the error by instruction changes: " + "; ".join(parts) + "."
    return {"scaling": scaling, "errors": errors}


def blocks(study: dict[str, Any]) -> list[list[str]]:
    """Returns all tables, each followed by what is said of it."""
    said = words(study) if several(study) else {}

    def sentence(key: str) -> list[str]:
        return textwrap.wrap(said[key], 138) if key in said else []

    found = [scaling_table(study), sentence("scaling")] if said else []
    found += [stack_table(study, number) for number in several(study)]
    found += [error_table(study, level) for level in LEVELS] + [sentence("errors"), program_error_table(study)]
    if study["missing"]:
        found.append(textwrap.wrap("Not run, or failed (scripts/fleet status has the reason): " + ", ".join(study["missing"]), 138))
    return [block for block in found if block]


def text(study: dict[str, Any]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks(study)) + "\n"


def write_tables(readme: pathlib.Path, study: dict[str, Any]) -> None:
    """Writes the tables between the marks of a README."""
    before, rest = readme.read_text().split(BEGIN)
    fenced = ["\n".join(["```text", *block, "```"] if "  " in block[-1] else block) for block in blocks(study)]
    readme.write_text(before + BEGIN + "\n\n".join(fenced) + "\n" + END + rest.split(END)[1])


def curve(study: dict[str, Any], metric: str, lines: dict[str, list[tuple[int, float]]]) -> Curve:
    numbers = sorted({number for points in lines.values() for number, _ in points})
    return {"program": f"{len(study['programs'])} programs", "metric": metric, "along": "harts",
            "values": [(float(number), str(number)) for number in numbers],
            "lines": [{"name": name, "points": [(float(number), value, value, value) for number, value in points]}
                      for name, points in lines.items()]}


def page(study: dict[str, Any]) -> str:
    """Returns a page of HTML that needs no network: curves of speed-up and of errors, and every table."""
    speedups = {p["name"]: [(int(number), run.get("speedup", 1.0)) for number, run in p["runs"].items()] for p in study["programs"]}
    figures = [figure(curve(study, "times one hart", speedups), "Speed-up")]
    for level in LEVELS:
        errors = {SHORT_NAMES[who]: [(number, 100 * statistics.fmean(error(run, who, level) for _, run in runs_of(study, number)))
                                     for number in study["harts"] if runs_of(study, number)] for who in PROFILERS}
        figures.append(figure(curve(study, "% error", errors), f"Error by {LEVEL_NAMES[level]}, %, mean of the programs"))
    body = (f"<h1>Programs with threads on {', '.join(map(str, study['harts']))} harts</h1>"
            f"<section><div class=\"curves\">{''.join(figures)}</div></section><pre>{html.escape(text(study))}</pre>")
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">{POLICY}<title>Parallel programs</title>'
            f"<style>{COLOURS}{STYLE}pre{{overflow-x:auto;font-size:12px}}</style></head><body>{body}</body></html>\n")
