"""The study's numbers: what of a program's run is kept, and what all programs together say."""

import hashlib
import json
import math
import pathlib
import re
import statistics
from typing import Any

from report_terms import CLASSES, EXECUTION, LEVELS, PROFILERS, TEA_PROFILERS

# The rates of perf that each program is sampled at.
RATES = ["100Hz", "1kHz", "4kHz", "20kHz"]
# The groups of programs, as their run specs name them.
GROUPS = ["integer", "floating-point", "parallel"]

# Largest errors of its 27 programs (TIP, MICRO 2021, section 5); the means are in every report.
PUBLISHED_MAX = {"instruction": {"nci": 0.21, "tip": 0.05}, "block": {"lci": 0.561}}
# What a sample of TIP and of a PEBS-like unit is at 4 kHz (section 3.2): bytes with perf's metadata.
SAMPLE_BYTES = {"tip": 88, "nci": 56}
# One record of the published Oracle's stream: bytes per cycle.
ORACLE_BYTES = 64
# Characters of a result that is kept as it is.
LONGEST_RESULT = 1000
# Samples of a published run: 4 kHz for five minutes, about what SPEC CPU2017's reference inputs take at 3.2 GHz.
PUBLISHED_SAMPLES = 1_200_000


# What is kept of a program's run, as `program` gathers it.
Program = dict[str, Any]
# What study.json says: the programs, and what they say together.
Study = dict[str, Any]
# Indices of the samplers in a report by profiler, mode and period.
Columns = dict[tuple[str, str, int], list[int]]


def split(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Bias and chance of (samples, error) at several rates: error² = bias² + chance/samples, through the two densest.

    With so few samples that most instructions have none, an error grows more slowly, and the bias comes out too large.
    """
    (n2, e2), (n1, e1) = sorted(points)[-2:]
    chance = max(0.0, (e2 * e2 - e1 * e1) / (1 / n2 - 1 / n1))
    return math.sqrt(max(0.0, e1 * e1 - chance / n1)), chance


def interval(values: list[float]) -> tuple[float, float | None]:
    """Mean and the half-width of its 95 % confidence interval (Student's t)."""
    t = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    return mean, t.get(len(values), 2.2) * statistics.stdev(values) / math.sqrt(len(values))


def columns(report: dict[str, Any]) -> Columns:
    """Indices of the report's samplers by profiler, mode and period."""
    found: Columns = {}
    for index, column in enumerate(report["columns"]):
        schedule = column["schedule"]
        mode = "periodic" if schedule["random"] is None else "random"
        found.setdefault((column["profiler"], mode, schedule["period"]), []).append(index)
    return found


def rate_periods(clock_hz: float) -> dict[str, int]:
    """Cycles between samples at each rate."""
    units = {"Hz": 1, "kHz": 1000}

    def hertz(rate: str) -> int:
        number, unit = re.findall(r"(\d+)(k?Hz)", rate)[0]
        return int(number) * units[unit]

    return {rate: round(clock_hz / hertz(rate)) for rate in RATES}


def errors_of(process: dict[str, Any], found: Columns, periods: dict[str, int]) -> dict[str, Any]:
    """By profiler and level: the densest error, bias and chance by mode, and what each rate and mode leaves."""
    result: dict[str, Any] = {}
    at_rates = set(periods.values())
    for profiler in PROFILERS:
        of_profiler: dict[str, Any] = {}
        for level in LEVELS:
            def read(index: int, level: str = level) -> dict[str, float]:
                return process["errors"][index][level]

            entry: dict[str, Any] = {}
            for mode in ["periodic", "random"]:
                dense = sorted(p for who, m, p in found if (who, m) == (profiler, mode) and p not in at_rates)
                if len(dense) < 2:
                    continue
                first = [found[profiler, mode, period][0] for period in dense]
                left, chance = split([(process["samples"][index], read(index)["error"]) for index in first])
                entry[mode] = {"error": read(first[0])["error"], "noise": read(first[0])["sampling"], "bias": left,
                               "published_length": math.sqrt(left * left + chance / PUBLISHED_SAMPLES),
                               "rates": {}}
                for rate, period in periods.items():
                    indices = found.get((profiler, mode, period), [])
                    if not indices:
                        continue
                    mean, half = interval([read(index)["error"] for index in indices])
                    entry[mode]["rates"][rate] = {
                        "error": mean, "half_width": half, "repeats": len(indices),
                        "noise": statistics.fmean(read(index)["sampling"] for index in indices),
                        "samples": statistics.fmean(process["samples"][index] for index in indices)}
            if entry:
                of_profiler[level] = entry
        if of_profiler:
            result[profiler] = of_profiler
    return result


def program(folder: pathlib.Path) -> Program:
    """What is kept of a program's run in `folder` (with run.json and report.json)."""
    run = json.loads((folder / "run.json").read_text())
    report = json.loads((folder / "report.json").read_text())
    everything = report["processes"][0]
    clock_hz = run["core"]["clock"]["mhz"] * 1e6
    found = columns(report)
    regions = run["regions"]
    totals = report["totals"]
    named = set(run["spec"]["guest"]["packages"])
    packages = [line.split()[:2] for line in run.get("packages") or []]
    top_down: dict[str, float] = next((p["shares"] for p in report["top_down"]["processes"] if p["process"] == 0), {})
    largest = max(report["processes"][1:], key=lambda p: p["cycles"], default=None)
    # Events are counted by process.
    tea = next((p for p in report["tea"]["processes"] if largest and p["name"] == largest["name"]), None)
    return {
        "name": run["name"],
        "about": run["spec"]["about"],
        "packages": {name: version for name, version in packages if name in named},
        "core": run["core"]["name"],
        "clock_hz": clock_hz,
        "cycles": totals["cycles"],
        "idle_cycles": totals["idle"],
        "instructions": totals["instructions"],
        "ipc": totals["ipc"],
        "region_instructions": regions["instructions"],
        "region_cycles": regions["cycles"],
        "largest_process": largest and {"name": largest["name"], "share": largest["share"]},
        "class": everything["class"],
        "stack": dict(zip(report["categories"], everything["stack"], strict=True)),
        "published": published(report, "mean"),
        "published_below": published(report, "below"),
        "errors": errors_of(everything, found, rate_periods(clock_hz)),
        "top_down": {key: top_down.get(key, 0.0) for key in
                     ["retiring", "bad_speculation", "frontend", "backend", "backend.memory", "backend.core"]},
        "tea": tea and {name: tea["errors"][name] for name in TEA_PROFILERS if name in tea["errors"]},
        "mips": run["mips"],
        "host_seconds": run["host_seconds"],
        "peak_memory_mb": run["peak_memory_mb"],
        "trace_bytes": run["trace"] and run["trace"]["bytes"],
        "commit": (json.loads(fleet.read_text()) if (fleet := folder / "result.json").exists() else {}).get("commit"),
        # What the command left in its working folder.
        "result": result_text(folder / "files"),
    }


def published(report: dict[str, Any], key: str) -> dict[str, Any]:
    """The published mean errors by profiler and level, as far as there are any: each a "mean", or what it is "below"."""
    found = {column["profiler"]: column["published"] for column in report["columns"]}
    return {who: {level: value[key] for level, value in of.items() if value and key in value} for who, of in found.items()}


def result_text(folder: pathlib.Path) -> str | None:
    """What the program printed for comparison with another machine; of a long text its checksum."""
    path = folder / "result.txt"
    if not path.exists():
        return None
    text = path.read_text(errors="replace")
    return text if len(text) <= LONGEST_RESULT else f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def summary(programs: list[Program]) -> dict[str, Any]:
    """Mean and largest error of a run of published length by level and profiler: of all programs, by group, by class."""
    sets = {"all": programs}
    sets |= {group: [p for p in programs if p["about"].get("group") == group] for group in GROUPS}
    sets |= {name: [p for p in programs if p["class"] == name] for name in CLASSES}
    result: dict[str, dict[str, Any]] = {}
    for name, members in sets.items():
        result[name] = {"programs": len(members)}
        for level in LEVELS if members else []:
            rows = {}
            for profiler in PROFILERS:
                values = [(p["errors"][profiler][level]["periodic"]["published_length"], p["name"])
                          for p in members if profiler in p["errors"]]
                if values:
                    largest = max(values)
                    rows[profiler] = {"mean": statistics.fmean(v for v, _ in values), "max": largest[0],
                                      "max_program": largest[1],
                                      "published": members[0]["published"][profiler].get(level),
                                      "published_below": members[0]["published_below"][profiler].get(level),
                                      "published_max": PUBLISHED_MAX.get(level, {}).get(profiler)}
            result[name][level] = rows
    return result


def correlations(programs: list[Program]) -> dict[str, float]:
    """Of each profiler's bias by instruction with the share of cycles that commit; of three programs and more."""
    if len(programs) < 3:
        return {}
    shares = [p["stack"][EXECUTION] for p in programs]
    biases = {who: [p["errors"][who]["instruction"]["periodic"]["bias"] for p in programs] for who in PROFILERS}
    return {who: statistics.correlation(shares, values) for who, values in biases.items() if len(set(values)) > 1}


def exceptions(programs: list[Program]) -> list[dict[str, Any]]:
    """Programs in which the published order of profilers does not hold, with the two errors."""
    found = []
    for p in programs:
        error = {who: p["errors"][who]["instruction"]["periodic"]["published_length"] for who in p["errors"]}
        pairs = [("tip", "tip-ilp"), ("tip-ilp", "nci"), ("nci", "lci"), ("nci", "dispatch"), ("nci", "software")]
        for better, worse in pairs:
            if error[better] >= error[worse]:
                found.append({"program": p["name"], "expected": f"{better} < {worse}",
                              "found": [error[better], error[worse]]})
    return found
