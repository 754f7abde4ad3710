"""Curves of a fleet: what a run took, its IPC and the counters asked for, against a parameter that was varied."""

import re

UNITS = {"": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30}
# Axes that are no parameters of the machine or the program.
NO_PARAMETER = ["spec", "seed", "repeat"]


def parameters(axes):
    """What was varied of a task, by name."""
    return {axis: value for axis, value in axes.items() if axis not in NO_PARAMETER}


def value_of(text):
    """Number of a parameter's value, be it a count or a size such as 64K; None for other texts."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(text))
    if not match or match[2].lower() not in UNITS:
        return None
    return float(match[1]) * (1 << UNITS[match[2].lower()])


def values_by_axis(rows):
    """Different values of each parameter, in the order of the matrix."""
    found = {}
    for row in rows:
        for axis, value in parameters(row["axes"]).items():
            found.setdefault(axis, {})[value] = None
    return {axis: list(values) for axis, values in found.items()}


def numeric_axes(rows):
    """Parameters with at least two values, all of them numbers."""
    return {axis: values for axis, values in values_by_axis(rows).items()
            if len(values) > 1 and all(value_of(value) is not None for value in values)}


def chosen_axis(rows, asked=None):
    """The parameter along the curves: the one asked for, else the one with the most values; None if there is none."""
    axes = numeric_axes(rows)
    if asked is None:
        return max(axes, key=lambda axis: len(axes[axis]), default=None)
    return asked if asked in axes else None


def words(axis, value):
    return str(value) if axis == "preset" else f"{axis} = {value}"


def metrics(shown=()):
    """Names of what is drawn, with what yields it of a row."""
    counter = lambda name: lambda row: row.get("counters", {}).get(name)
    return {"elapsed cycles": elapsed, "IPC": lambda row: row["ipc"], **{name: counter(name) for name in shown}}


def elapsed(row):
    """Cycles from the begin of the region to its end; of a run that has no report, the cycles of all that was timed."""
    return row.get("elapsed_cycles") or row.get("cycles")


def curves(rows, shown=(), along=None):
    """Curves by program and metric: a line for each combination of the other parameters, with points [value, mean, least, most] over seeds and
    repetitions; and each value as it was written."""
    axis = chosen_axis(rows, along)
    if axis is None:
        return []
    done = [row for row in rows if row["status"] == "done" and axis in row["axes"]]
    found = []
    for program in dict.fromkeys(row["spec"] for row in done):
        for metric, of in metrics(shown).items():
            lines = {}
            for row in done:
                value = of(row)
                if row["spec"] == program and value is not None:
                    others = ", ".join(words(other, own) for other, own in parameters(row["axes"]).items() if other != axis)
                    lines.setdefault(others, {}).setdefault(row["axes"][axis], []).append(value)
            points = lambda by_value: sorted([value_of(text), sum(own) / len(own), min(own), max(own)] for text, own in by_value.items())
            if lines:
                written = {text: value_of(text) for by_value in lines.values() for text in by_value}
                found.append({"program": program, "metric": metric, "along": axis,
                              "values": sorted(([value, text] for text, value in written.items())),
                              "lines": [{"name": name, "points": points(by_value)} for name, by_value in lines.items()]})
    return found
