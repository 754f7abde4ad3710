"""Curves of a fleet: what a run took, its IPC and the counters asked for, against a parameter that was varied."""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

from fleet.state import Axes

UNITS = {"": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30}
# Axes that are no parameters of the machine or the program.
NO_PARAMETER = ["spec", "seed", "repeat"]
# A row is a task of a fleet, with what its result.json says if there is one.
Row = dict[str, Any]
# A point has the parameter's value, then the mean, the least and the most of what was found with it.
Point = tuple[float, float, float, float]


class Line(TypedDict):
    """A combination of the parameters that do not vary along a curve."""

    name: str
    points: list[Point]


class Curve(TypedDict):
    """A metric of a program, along a parameter; `values` are those of the parameter, each as it was written."""

    program: str
    metric: str
    along: str
    values: list[tuple[float, str]]
    lines: list[Line]


def parameters(axes: Axes) -> Axes:
    """What was varied of a task, by name."""
    return {axis: value for axis, value in axes.items() if axis not in NO_PARAMETER}


def value_of(text: str | int) -> float | None:
    """Number of a parameter's value, be it a count or a size such as 64K; None for other texts."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(text))
    if not match or match[2].lower() not in UNITS:
        return None
    return float(match[1]) * (1 << UNITS[match[2].lower()])


def values_by_axis(rows: list[Row]) -> dict[str, list[str | int]]:
    """Different values of each parameter, in the order of the matrix."""
    found: dict[str, dict[str | int, None]] = {}
    for row in rows:
        for axis, value in parameters(row["axes"]).items():
            found.setdefault(axis, {})[value] = None
    return {axis: list(values) for axis, values in found.items()}


def numeric_axes(rows: list[Row]) -> dict[str, list[str | int]]:
    """Parameters with at least two values, all of them numbers."""
    return {axis: values for axis, values in values_by_axis(rows).items()
            if len(values) > 1 and all(value_of(value) is not None for value in values)}


def chosen_axis(rows: list[Row], asked: str | None = None) -> str | None:
    """The parameter along the curves: the one asked for, else the one with the most values; None if there is none."""
    axes = numeric_axes(rows)
    if asked is None:
        return max(axes, key=lambda axis: len(axes[axis]), default=None)
    return asked if asked in axes else None


def words(axis: str, value: str | int) -> str:
    return str(value) if axis == "preset" else f"{axis} = {value}"


def metrics(shown: Iterable[str] = ()) -> dict[str, Callable[[Row], float | None]]:
    """Names of what is drawn, with what yields it of a row."""
    def counter(name: str) -> Callable[[Row], float | None]:
        return lambda row: row.get("counters", {}).get(name)

    return {"elapsed cycles": elapsed, "IPC": lambda row: row["ipc"], **{name: counter(name) for name in shown}}


def elapsed(row: Row) -> float | None:
    """Cycles from the begin of the region to its end; of a run that has no report, the cycles of all that was timed."""
    return row.get("elapsed_cycles") or row.get("cycles")


def curves(rows: list[Row], shown: Iterable[str] = (), along: str | None = None) -> list[Curve]:
    """Curves by program and metric: a line for each combination of the other parameters, with points over seeds and repetitions; and each
    value as it was written."""
    axis = chosen_axis(rows, along)
    if axis is None:
        return []
    done = [row for row in rows if row["status"] == "done" and axis in row["axes"]]
    numbers = {value: number for value in numeric_axes(rows)[axis] if (number := value_of(value)) is not None}
    found: list[Curve] = []
    for program in dict.fromkeys(row["spec"] for row in done):
        for metric, of in metrics(shown).items():
            lines: dict[str, dict[str | int, list[float]]] = {}
            for row in done:
                value = of(row)
                if row["spec"] == program and value is not None:
                    others = ", ".join(words(other, own) for other, own in parameters(row["axes"]).items() if other != axis)
                    lines.setdefault(others, {}).setdefault(row["axes"][axis], []).append(value)
            if lines:
                drawn: list[Line] = [
                    {"name": name,
                     "points": sorted((numbers[value], sum(own) / len(own), min(own), max(own)) for value, own in by_value.items())}
                    for name, by_value in lines.items()]
                written = {value for by_value in lines.values() for value in by_value}
                found.append({"program": program, "metric": metric, "along": axis,
                              "values": sorted((numbers[value], str(value)) for value in written), "lines": drawn})
    return found
