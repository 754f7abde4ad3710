"""All results of a fleet in one file: a row for each task, as JSON and as a table."""

import difflib
import pathlib
from collections.abc import Sequence
from typing import Any

from fleet.curves import Curve, Row, chosen_axis, curves, elapsed, numeric_axes
from fleet.state import Fleet, FleetError, read_json, write_json, write_text

COLUMNS = ["tip", "nci", "lci", "dispatch", "software"]
# What report.json says of a run.
Report = dict[str, Any]


def report_of(folder: pathlib.Path) -> Report:
    return read_json(pathlib.Path(folder) / "report.json") or {}


def profile_of(report: Report, process: str = "all") -> dict[str, Any]:
    """What a run's report says of a process: the error of each sampler by level, and the cycle stack, as shares; of several harts, all
    together."""
    found = next((p for p in report.get("processes", []) if p["name"] == process), None)
    if found is None:
        return {"errors": {}, "cycle_stack": {}}
    samplers = [column["name"] for column in report["columns"]]
    errors = {name: {level: values["error"] for level, values in of.items() if isinstance(values, dict) and "error" in values}
              for name, of in zip(samplers, found["errors"], strict=True) if of}
    return {"errors": errors, "cycle_stack": dict(zip(report["categories"], found["stack"], strict=True))}


def region_of(report: Report) -> dict[str, Any]:
    """How long the region of a run's report took, its instructions, and its instructions per elapsed cycle."""
    totals = report.get("totals") or {}
    took = totals.get("elapsed") or {}
    if not took.get("cycles"):
        return {}
    return {"elapsed_cycles": took["cycles"], "elapsed_ms": took.get("ms"), "region_instructions": totals["instructions"],
            "ipc": totals["instructions"] / took["cycles"]}


def retimed_of(run: dict[str, Any]) -> dict[str, Any]:
    """What a run's stored units say of another core: estimates of its region's cycles while the hart is awake, how many times the cycles of
    the run they took, and the interval for 95 % of seeds. Nothing of a task that is a run."""
    retimed = run.get("retimed")
    if not retimed:
        return {}
    sampling, ratio = run["sampling"], retimed.get("cycles_ratio") or {}
    point = sampling.get("point") or {}
    # The report's own elapsed time has what lay between the units, as it was on the core of the run.
    return {"elapsed_cycles": round(point["cycles"]) if point else None, "elapsed_ms": None,
            "region_instructions": sampling["instructions"], "ipc": 1 / point["cpi"] if point else None, "cycles_ratio": ratio.get("value"),
            "cycles_ratio_within_95": (ratio.get("within_95") or {}).get("half_width")}


def with_counters(fleet: Fleet, found: list[Row], shown: Sequence[str]) -> list[str]:
    """Adds the counters asked for to the rows of tasks that are done, and returns their names as the core has them."""
    counted = {row["task"]: (report_of(fleet.folder / "tasks" / row["task"]).get("counters") or {}).get("events", {})
               for row in found if row["status"] == "done"} if shown else {}
    known = dict.fromkeys(name for events in counted.values() for name in events)
    names = [name.upper() for name in shown]
    for asked, name in zip(shown, names, strict=True):
        if known and name not in known:
            nearest = difflib.get_close_matches(name.replace("_", "."), known, 1, 0) or list(known)
            raise FleetError(f"--show {asked}: expected events that the runs counted (tipsim core events lists them; some are counted only "
                             f"with record.counters = true), such as {nearest[0]}")
    for row in found:
        if row["task"] in counted:
            row["counters"] = {name: counted[row["task"]].get(name) for name in names}
    return names


def rows(fleet: Fleet, process: str | None = None) -> list[Row]:
    """One row for each task, in the order of the matrix."""
    results = fleet.results()
    found = []
    for task, asked in fleet.tasks.items():
        result = results.get(task)
        row = {"task": task, "spec": asked["spec"], "axes": asked["axes"], **(result or {"status": "missing"})}
        if process and row["status"] == "done":
            row |= profile_of(report_of(fleet.folder / "tasks" / task), process)
        found.append(row)
    return found


def counts(found: list[Row]) -> dict[str, int]:
    by_status: dict[str, int] = {}
    for row in found:
        by_status[row["status"]] = by_status.get(row["status"], 0) + 1
    return by_status


def unequal(found: list[Row]) -> list[list[str]]:
    """Groups of tasks that differ in nothing but their repetition, with different results."""
    groups: dict[tuple[tuple[str, str | int], ...], list[Row]] = {}
    for row in found:
        if row["status"] == "done" and "repeat" in row["axes"]:
            key = tuple((axis, value) for axis, value in row["axes"].items() if axis != "repeat")
            groups.setdefault(key, []).append(row)
    same = ["instructions", "cycles", "errors"]
    return [[row["task"] for row in group] for group in groups.values()
            if any(row[key] != group[0][key] for row in group for key in same)]


def table(header: list[str], lines: list[list[str]]) -> str:
    """Columns as wide as what is in them; the first to the left, numbers to the right."""
    widths = [max(len(line[n]) for line in [header, *lines]) for n in range(len(header))]
    rows_of_cells = [[cell.ljust(width) if n < 2 else cell.rjust(width) for n, (cell, width) in enumerate(zip(line, widths, strict=True))]
                     for line in [header, *lines]]
    return "".join("  ".join(cells).rstrip() + "\n" for cells in rows_of_cells)


def number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def text(found: list[Row], shown: Sequence[str] = ()) -> str:
    """The table: percent of the cycles that each profiler gave to the wrong instruction, and the counters asked for; of stored units,
    how many times the cycles of their run they took."""
    lines = []
    retimes = any("cycles_ratio" in row for row in found)
    for row in found:
        ratio = [number(row.get("cycles_ratio"), ".4f"), number(row.get("cycles_ratio_within_95"), ".4f")]
        errors = [row.get("errors", {}).get(name, {}).get("instruction") for name in COLUMNS]
        lines.append([row["task"], row["status"], number(row.get("ipc"), ".3f"), number(elapsed(row), ","),
                      number(row.get("region_instructions") or row.get("instructions"), ","),
                      *(ratio if retimes else []),
                      number(row.get("host_seconds"), ".1f"), number(row.get("mips"), ".1f"), number(row.get("peak_memory_mb"), ".0f"),
                      *[number(error and 100 * error, ".1f") for error in errors],
                      *[number(row.get("counters", {}).get(name), ",") for name in shown]])
    of_run = ["of the run", "± 95 %"] if retimes else []
    error_names = [f"{name} %" for name in COLUMNS]
    header = ["task", "status", "IPC", "cycles", "instructions", *of_run, "seconds", "MIPS", "MB", *error_names, *shown]
    return table(header, lines)


def stacks(found: list[Row]) -> str:
    """The table of cycle stacks in percent; empty if no run has one."""
    names = list(dict.fromkeys(name for row in found for name in row.get("cycle_stack", {})))
    lines = [[row["task"], row["status"], *[number(100 * row["cycle_stack"].get(name, 0), ".1f") for name in names]]
             for row in found if row.get("cycle_stack")]
    return f"\n{table(['task', 'status', *[f'{name} %' for name in names]], lines)}" if lines else ""


def problems(found: list[Row]) -> list[str]:
    """Lines about what is not as it should be."""
    lines = []
    for row in found:
        if row["status"] in ["failed", "lost"]:
            lines.append(f"{row['task']}: {row['status']}: {row['reason']}")
            lines += [f"  | {line}" for line in row.get("console", [])[-4:]]
    lines += [f"the same task, different results: {', '.join(group)}" for group in unequal(found)]
    return lines


def collect(
    fleet: Fleet, process: str | None = None, shown: Sequence[str] = (), along: str | None = None
) -> tuple[list[Row], list[str], list[Curve]]:
    """Writes fleet.json and fleet.txt; the rows, the names of the counters asked for, and the curves."""
    found = rows(fleet, process)
    names = with_counters(fleet, found, shown)
    if along is not None and chosen_axis(found, along) is None:
        raise FleetError(f"--along {along}: expected a parameter with two or more values that are numbers; "
                         f"found {', '.join(numeric_axes(found)) or 'none'}")
    drawn = curves(found, names, along)
    written = {"id": fleet.matrix["id"], "asked": fleet.matrix["asked"], "commit": fleet.matrix["commit"], "process": process or "all",
               "counts": counts(found), "unequal_repetitions": unequal(found), "tasks": found, "curves": drawn}
    write_json(fleet.folder / "fleet.json", written)
    words = "\n".join(problems(found))
    write_text(fleet.folder / "fleet.txt", text(found, names) + stacks(found) + (f"\n{words}\n" if words else ""))
    return found, names, drawn
