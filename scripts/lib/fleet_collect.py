"""All results of a fleet in one file: a row for each task, as JSON and as a table."""

import pathlib

from fleet_state import read_json, write_json, write_text

COLUMNS = ["tip", "nci", "lci", "dispatch", "software"]


def profile_of(folder, process="all"):
    """What a run's report says of a process: the error of each sampler by level, and the cycle stack, as shares. Of several harts, the first."""
    report = read_json(pathlib.Path(folder) / "report.json") or {}
    found = next((p for p in report.get("processes", []) if p["name"] == process), None)
    if found is None:
        return {"errors": {}, "cycle_stack": {}}
    samplers = [column["name"] for column in report["columns"]]
    errors = {name: {level: values["error"] for level, values in of.items() if isinstance(values, dict) and "error" in values}
              for name, of in zip(samplers, found["errors"]) if of}
    return {"errors": errors, "cycle_stack": dict(zip(report["categories"], found["stack"]))}


def rows(fleet, process=None):
    """One row for each task, in the order of the matrix."""
    results = fleet.results()
    found = []
    for task, asked in fleet.tasks.items():
        result = results.get(task)
        row = {"task": task, "spec": asked["spec"], "axes": asked["axes"], **(result or {"status": "missing"})}
        if process and row["status"] == "done":
            row |= profile_of(fleet.folder / "tasks" / task, process)
        found.append(row)
    return found


def counts(found):
    by_status = {}
    for row in found:
        by_status[row["status"]] = by_status.get(row["status"], 0) + 1
    return by_status


def unequal(found):
    """Groups of tasks that differ in nothing but their repetition, with different results."""
    groups = {}
    for row in found:
        if row["status"] == "done" and "repeat" in row["axes"]:
            key = tuple((axis, value) for axis, value in row["axes"].items() if axis != "repeat")
            groups.setdefault(key, []).append(row)
    same = ["instructions", "cycles", "errors"]
    return [[row["task"] for row in group] for group in groups.values() if any(row[key] != group[0][key] for row in group for key in same)]


def table(header, lines):
    """Columns as wide as what is in them; the first to the left, numbers to the right."""
    widths = [max(len(line[n]) for line in [header, *lines]) for n in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) if n < 2 else cell.rjust(width) for n, (cell, width) in enumerate(zip(line, widths))).rstrip()
                     for line in [header, *lines]) + "\n"


def number(value, form):
    return "–" if value is None else format(value, form)


def text(found):
    """The table: percent of the cycles that each profiler gave to the wrong instruction."""
    lines = []
    for row in found:
        errors = [row.get("errors", {}).get(name, {}).get("instruction") for name in COLUMNS]
        lines.append([row["task"], row["status"], number(row.get("ipc"), ".3f"), number(row.get("cycles"), ","), number(row.get("instructions"), ","),
                      number(row.get("host_seconds"), ".1f"), number(row.get("mips"), ".1f"), number(row.get("peak_memory_mb"), ".0f"),
                      *[number(error and 100 * error, ".1f") for error in errors]])
    header = ["task", "status", "IPC", "cycles", "instructions", "seconds", "MIPS", "MB", *[f"{name} %" for name in COLUMNS]]
    return table(header, lines)


def problems(found):
    """Lines about what is not as it should be."""
    lines = []
    for row in found:
        if row["status"] in ["failed", "lost"]:
            lines.append(f"{row['task']}: {row['status']}: {row['reason']}")
            lines += [f"  | {line}" for line in row.get("console", [])[-4:]]
    lines += [f"the same task, different results: {', '.join(group)}" for group in unequal(found)]
    return lines


def collect(fleet, process=None):
    """Writes fleet.json and fleet.txt; the rows."""
    found = rows(fleet, process)
    written = {"id": fleet.matrix["id"], "asked": fleet.matrix["asked"], "commit": fleet.matrix["commit"], "process": process or "all",
               "counts": counts(found), "unequal_repetitions": unequal(found), "tasks": found}
    write_json(fleet.folder / "fleet.json", written)
    words = "\n".join(problems(found))
    write_text(fleet.folder / "fleet.txt", text(found) + (f"\n{words}\n" if words else ""))
    return found
