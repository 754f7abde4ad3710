"""Figures, as the published evaluation of TIP (MICRO'21) has them, of one's own runs. One call each.

Every function draws into `ax` (a new figure without) and gives the axes. Needs `tipsim[plot]`: matplotlib and pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import pyarrow

from .report import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = list[dict[str, Any]]
Runs = Run | Sequence[Run]

CATEGORIES = {
    "execution": ("Execution", "#2ca02c"),
    "alu_stall": ("ALU stall", "#98df8a"),
    "load_stall": ("Load stall", "#1f77b4"),
    "store_stall": ("Store stall", "#aec7e8"),
    "front_end": ("Front-end", "#ffbb78"),
    "mispredict": ("Mispredict", "#d62728"),
    "misc_flush": ("Misc. flush", "#9467bd"),
}
"""The categories of a cycle stack: what they are called, and their colours. The pages of scripts/study have the same ones."""

COLOURS = {
    "oracle": "black",
    "software": "#8c564b",
    "dispatch": "#d62728",
    "dispatch-op": "#ff9896",
    "lci": "#e377c2",
    "nci": "#ff7f0e",
    "nci-ilp": "#bcbd22",
    "tip-ilp": "#17becf",
    "tip": "#1f77b4",
}
"""Colours of the profilers. The pages of scripts/study have the same ones."""

STAGES = {"fetch_cycle": "tab:gray", "decode": "tab:olive", "dispatch": "tab:cyan", "issue": "tab:orange", "complete": "tab:green"}
"""Stages of an instruction, and their colours: each lasts until the next that is known, the last until commit."""


def cycle_stacks(runs: Runs, processes: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """Cycle stacks (figure 7): of the processes of a run with 1 % of its cycles or more, or of several runs as a whole."""
    bars = [(label, row) for label, run, wanted in _groups(runs, processes) for row in _rows(run.processes()) if row["process"] == wanted]
    axes = _axes(ax)
    bottom = [0.0] * len(bars)
    for name, (label, colour) in CATEGORIES.items():
        heights = [100 * row[name] for _, row in bars]
        axes.bar(range(len(bars)), heights, 0.7, bottom, color=colour, label=label)
        bottom = [low + high for low, high in zip(bottom, heights)]
    _name_groups(axes, [f"{label}\n({row['class']})" for label, row in bars])
    axes.set_ylabel("Share of cycles (%)")
    return _finish(axes, "Cycle stacks")


def errors(
    runs: Runs,
    level: str = "instruction",
    processes: Iterable[str] | None = None,
    profilers: Iterable[str] | None = None,
    published: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """The error of each profiler by function (figure 8), basic block (figure 9) or instruction (figures 1 and 10).

    Of processes of a run as in `cycle_stacks`, or of several runs; beside them the published means. Each profiler is the run's first
    sampler of it. With profilers `nci`, `nci-ilp`, `tip-ilp` and `tip`: what it brings to split a sample among all that commit
    together (figure 11).
    """
    _check_level(level)
    found: list[tuple[str, dict[str, float]]] = []
    means: dict[str, float] = {}
    names: list[str] = []
    for label, run, wanted in _groups(runs, processes):
        columns = {c["name"]: c for c in _samplers(run, profilers) if c["primary"]}
        names += [c["profiler"] for c in columns.values() if c["profiler"] not in names]
        # Some are published as a bound, not as a mean.
        means |= {c["profiler"]: at["mean"] for c in columns.values() if (at := c["published"][level]) and "mean" in at}
        rows = [row for row in _errors(run, level) if row["process"] == wanted and row["sampler"] in columns]
        found.append((label, {row["profiler"]: 100 * row["error"] for row in rows}))
    if published and means:
        found.append(("published\nmean", {name: 100 * mean for name, mean in means.items()}))
    axes = _axes(ax)
    _grouped(axes, found, names)
    axes.set_ylabel(f"Error by {level} (% of cycles)")
    return _finish(axes, f"Error by {level}")


def errors_by_period(
    runs: Runs,
    level: str = "instruction",
    process: str = "all",
    profilers: Iterable[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The error of each profiler against its sampling period: of a run with samplers at several periods, or of several runs.

    Periodic samplers are lines, random ones dashed; where several have one period, their mean. In grey: what so few samples would
    give with a perfect rule.
    """
    points: dict[tuple[str, bool], dict[int, list[float]]] = {}
    perfect: dict[int, list[float]] = {}
    for run in _runs(runs):
        columns = {c["name"]: c for c in _samplers(run, profilers)}
        for row in _errors(run, level):
            if row["process"] != process or row["sampler"] not in columns:
                continue
            random = columns[row["sampler"]]["schedule"]["random"] is not None
            points.setdefault((row["profiler"], random), {}).setdefault(row["period"], []).append(100 * row["error"])
            perfect.setdefault(row["period"], []).append(100 * row["sampling_error"])
    axes = _axes(ax)
    mean = lambda values: [sum(values[period]) / len(values[period]) for period in sorted(values)]
    for (profiler, random), values in points.items():
        label = f"{profiler}, random" if random else profiler
        axes.plot(sorted(values), mean(values), "o--" if random else "o-", color=COLOURS.get(profiler), label=label)
    axes.plot(sorted(perfect), mean(perfect), ":", color="tab:gray", label="samples alone")
    axes.set_xscale("log")
    axes.set_xlabel("Sampling period (cycles)")
    axes.set_ylabel(f"Error by {level} (% of cycles)")
    axes.set_ylim(bottom=0)
    return _finish(axes, f"Error against sampling period, {process}")


def function_profile(
    run: Run, function: str, process: str | None = None, profilers: Iterable[str] | None = None, most: int = 25, ax: Axes | None = None
) -> Axes:
    """The instructions of a function, by address, as the Oracle and each profiler see them: the `most` expensive of those in the report."""
    rows = _of_function(run, function, process)
    rows = sorted(sorted(rows, key=lambda row: -row["oracle"])[:most], key=lambda row: row["pc"])
    columns = [c for c in _samplers(run, profilers) if c["primary"]]
    # The columns of samplers are behind all others, in the order of the report.
    names = dict(zip([c["name"] for c in run.report["columns"]], list(rows[0])[-len(run.report["columns"]):]))
    shares = lambda row: {c["profiler"]: 100 * row[names[c["name"]]] for c in columns}
    found = [(f"{row['pc']:x}: {row['instruction']}", {"oracle": 100 * row["oracle"]} | shares(row)) for row in rows]
    axes = _axes(ax, width=0.45 * len(found) + 3)
    _grouped(axes, found, ["oracle", *(c["profiler"] for c in columns)])
    axes.set_ylabel("Share of the process (%)")
    return _finish(axes, f"Instructions of {_short(function, 60)}")


def instruction_stacks(run: Run, function: str, process: str | None = None, ax: Axes | None = None) -> Axes:
    """Cycle stacks of a function's instructions, by address."""
    rows = sorted(_of_function(run, function, process), key=lambda row: -row["pc"])
    axes = _axes(ax, height=LINE * len(rows) + 1.5)
    left = [0.0] * len(rows)
    for name, (label, colour) in CATEGORIES.items():
        widths = [100 * row[name] for row in rows]
        axes.barh(range(len(rows)), widths, 0.8, left, color=colour, label=label)
        left = [low + wide for low, wide in zip(left, widths)]
    axes.set_yticks(range(len(rows)), [f"{_place(row['label'])}  {row['instruction']}" for row in rows], family="monospace", fontsize="small")
    axes.margins(y=0.01)
    axes.set_xlabel("Share of the process (%)")
    return _finish(axes, f"Instructions of {_short(function, 60)}")


def difference(before: Run, after: Run, process: str | None = None, most: int = 10, ax: Axes | None = None) -> Axes:
    """Cycle stacks of functions before a change (left bars) and after it: of those whose cycles changed most, in the process, or all."""
    stacks = [_function_cycles(run, process) for run in (before, after)]
    nothing = dict.fromkeys(CATEGORIES, 0.0)
    total = lambda side, name: sum(stacks[side].get(name, nothing).values())
    names = sorted({*stacks[0], *stacks[1]}, key=lambda name: -abs(total(1, name) - total(0, name)))[:most]
    axes = _axes(ax, width=0.7 * len(names) + 3)
    for side, at in ((0, -0.2), (1, 0.2)):
        bottom = [0.0] * len(names)
        for category, (label, colour) in CATEGORIES.items():
            heights = [stacks[side].get(name, nothing)[category] / 1e6 for name in names]
            axes.bar([n + at for n in range(len(names))], heights, 0.36, bottom, color=colour, label=None if side else label)
            bottom = [low + high for low, high in zip(bottom, heights)]
    _name_groups(axes, [_short(name, 40) for name in names])
    axes.set_ylabel("Cycles (millions)")
    return _finish(axes, f"{before.folder.name} and {after.folder.name}")


def pipeline(records: Any, ax: Axes | None = None) -> Axes:
    """Records as a pipeline: each instruction a line, from its first stage to its commit, by cycles after the first of them. Any table of
    Arrow with rows of `records`."""
    rows = _rows(records)
    first = min((row[name] for row in rows for name in STAGES if row[name] is not None), default=0)
    axes = _axes(ax, height=LINE * len(rows) + 1.5)
    seen: set[str] = set()
    for line, row in enumerate(rows):
        stages = [(name, row[name] - first) for name in STAGES if row[name] is not None]
        ends = [start for _, start in stages[1:]] + [row["commit"] + 1 - first]
        for (name, start), end in zip(stages, ends):
            label = None if name in seen else name.removesuffix("_cycle")
            axes.barh(line, max(end - start, 0), 0.8, start, color=STAGES[name], label=label)
            seen.add(name)
    axes.set_yticks(range(len(rows)), [row["instruction"] for row in rows], family="monospace", fontsize="small")
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlabel(f"Cycle after {first:,}")
    return _finish(axes, "Pipeline")


def _rows(table: Any) -> Rows:
    return pyarrow.table(table).to_pylist()


def _runs(runs: Runs) -> list[Run]:
    return [runs] if isinstance(runs, Run) else list(runs)


def _groups(runs: Runs, processes: Iterable[str] | None) -> list[tuple[str, Run, str]]:
    """What has a bar each: label, run and process."""
    if isinstance(runs, Run):
        wanted = processes or [row["name"] for row in runs.report["processes"] if row["share"] >= 0.01]
        return [(name, runs, name) for name in wanted]
    wanted = list(processes or ["all"])
    return [(run.folder.name if len(wanted) == 1 else f"{run.folder.name}, {name}", run, name) for run in runs for name in wanted]


def _samplers(run: Run, profilers: Iterable[str] | None) -> Rows:
    """The run's samplers, but for what the guest measured."""
    wanted = None if profilers is None else list(profilers)
    found = [c for c in run.report["columns"] if c["profiler"] and (wanted is None or c["profiler"] in wanted)]
    if not found:
        known = dict.fromkeys(c["profiler"] for c in run.report["columns"] if c["profiler"])
        raise ValueError(f"{run.folder}: profilers: expected some of {', '.join(known) or 'none'}, found {', '.join(wanted or ['none'])}")
    return found


def _check_level(level: str) -> None:
    levels = ["function", "block", "instruction"]
    if level not in levels:
        raise ValueError(f"level: expected one of {', '.join(levels)}, found {level}")


def _errors(run: Run, level: str) -> Rows:
    _check_level(level)
    return [row for row in _rows(run.errors()) if row["level"] == level]


def _of_function(run: Run, function: str, process: str | None) -> Rows:
    rows = [row for row in _rows(run.instructions()) if row["function"] == function and process in (None, row["process"])]
    if not rows:
        raise ValueError(f"{run.folder}: function: expected one whose instructions are in the report, found {function}")
    # Of several processes that have it, the one that spends most in it.
    first = max({row["process"] for row in rows}, key=lambda name: sum(row["cycles"] for row in rows if row["process"] == name))
    return [row for row in rows if row["process"] == first]


def _function_cycles(run: Run, process: str | None) -> dict[str, dict[str, float]]:
    """Cycles of each function by category."""
    total = {row["process"]: row["cycles"] for row in _rows(run.processes())}
    found: dict[str, dict[str, float]] = {}
    for row in _rows(run.functions()):
        if process in (None, row["process"]):
            stack = found.setdefault(row["function"], dict.fromkeys(CATEGORIES, 0.0))
            for category in CATEGORIES:
                stack[category] += row[category] * total[row["process"]]
    return found


LINE = 0.2
"""Inches that a line of small text takes."""

MOST_INCHES = 100.0
"""More is no figure: matplotlib's limit is 2^16 pixels."""


def _axes(ax: Axes | None, width: float = 0.0, height: float = 0.0) -> Axes:
    """Axes of a new figure, which is as wide and high as what is in it, if that is more than usual; or those that are given."""
    if ax is not None:
        return ax
    usual = plt.rcParams["figure.figsize"]
    size = [min(max(least, wanted), MOST_INCHES) for least, wanted in zip(usual, (width, height))]
    return plt.subplots(layout="constrained", figsize=size)[1]


def _short(name: str, width: int) -> str:
    """A function's name as the report's text has it: what is too long loses the arguments of its templates, then its parameters, then its
    end."""
    for brackets in ("<>", "()"):
        if len(name) <= width:
            return name
        name = _without(name, *brackets)
    return name if len(name) <= width else name[: width - 1] + "…"


def _without(name: str, opening: str, closing: str) -> str:
    """The name with an ellipsis for what is between these brackets."""
    short, depth = "", 0
    for at, letter in enumerate(name):
        # `operator<<`, `operator->`, and the one pair of parentheses that is a name.
        is_name = short.rstrip(opening + closing).endswith("operator") or name.startswith("(anonymous", at)
        if letter == opening and not (depth == 0 and is_name):
            if depth == 0:
                short += opening if name.startswith(closing, at + 1) else opening + "…"
            depth += 1
        elif letter == closing and depth > 0 and name[at - 1] != "-":
            depth -= 1
        if depth == 0:
            short += letter
    return short


def _place(label: str) -> str:
    """The label of an instruction, `function+0x12`, with a short function."""
    function, plus, distance = label.rpartition("+")
    return f"{_short(function, 30)}{plus}{distance}" if plus else _short(label, 30)


def _grouped(axes: Axes, groups: list[tuple[str, dict[str, float]]], names: list[str]) -> None:
    width = 0.8 / max(len(names), 1)
    for number, name in enumerate(names):
        present = [(at, values[name]) for at, (_, values) in enumerate(groups) if name in values]
        places = [at - 0.4 + (number + 0.5) * width for at, _ in present]
        axes.bar(places, [value for _, value in present], 0.9 * width, color=COLOURS.get(name), label=name)
    _name_groups(axes, [label for label, _ in groups])


def _name_groups(axes: Axes, labels: list[str]) -> None:
    turned = max(map(len, labels), default=0) * len(labels) > 60
    axes.set_xticks(range(len(labels)), labels, rotation=40 if turned else 0, ha="right" if turned else "center")


def _finish(axes: Axes, title: str) -> Axes:
    axes.set_title(title)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return axes
