"""Sampled simulation beside the truth: programs of the study, timed from end to end.

Each program is run twice: with units of 10,000 instructions that follow each other without a gap, so that every instruction is timed, and
sampled as its user would. From the units of the first run follows, without another simulation, what any sample of them would have said: the
error by chance, and how often intervals hold. The second run also says how far the state in which units begin is off, by units that
it times twice.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any

from bench.common import add_paths, chosen
from places import REPO

STUDY = REPO / "workloads" / "study"
# Instructions of a unit of the run that times everything.
GRAIN = 10_000
# Plans that are tried on the units of that run: instructions of a unit, and of an interval with one unit.
PLANS = [(20_000, 1_000_000), (50_000, 1_000_000), (50_000, 2_000_000), (50_000, 4_000_000), (100_000, 4_000_000), (100_000, 10_000_000),
         (1_000_000, 60_000_000)]
# Offsets of the first unit that are tried of each plan.
OFFSETS = 200
# Confidence of the intervals.
CONFIDENCES = [0.95, 0.997]
# Instructions whose shares are compared, and the share of a process from which on a function's is.
HOTTEST = 20
LEAST_SHARE = 0.001
# A row of the results, or what a plan does to a program.
Row = dict[str, Any]


class Units:
    """The units of a run that times everything: sums of instructions and cycles before each."""

    def __init__(self, instructions: list[int], cycles: list[int]) -> None:
        self.instructions, self.cycles = [0], [0]
        for count, taken in zip(instructions, cycles, strict=True):
            self.instructions.append(self.instructions[-1] + count)
            self.cycles.append(self.cycles[-1] + taken)

    def sample(self, unit: int, every: int, offset: int) -> list[tuple[int, int]]:
        """Returns instructions and cycles of the units of a systematic sample, all three in units of this run."""
        starts = range(offset, len(self.cycles) - unit, every)
        return [(self.instructions[at + unit] - self.instructions[at], self.cycles[at + unit] - self.cycles[at]) for at in starts]

    def cpi(self) -> float:
        """Returns the cycles for each instruction of all units."""
        return self.cycles[-1] / self.instructions[-1]


def estimate(sample: list[tuple[int, int]]) -> tuple[float, float]:
    """Returns the cycles for each instruction, and the standard error, of a sample: the ratio of sums that tipsim reports."""
    instructions, cycles = (sum(column) for column in zip(*sample, strict=True))
    ratio = cycles / instructions
    squares = sum((taken - ratio * count) ** 2 for count, taken in sample)
    count = len(sample)
    return ratio, (squares / (count - 1) / count) ** 0.5 / (instructions / count)


def tried(units: Units, unit: int, every: int) -> Row | None:
    """Returns what systematic samples of a plan would have said, over offsets; None if the program is too short for two units."""
    size, step = unit // GRAIN, every // GRAIN
    stride = max(1, (step - size) // OFFSETS)
    samples = [units.sample(size, step, offset) for offset in range(0, step - size + 1, stride)]
    samples = [sample for sample in samples if len(sample) > 1]
    if not samples:
        return None
    truth = units.cpi()
    errors, holds = [], [0] * len(CONFIDENCES)
    for sample in samples:
        ratio, error = estimate(sample)
        errors.append(abs(ratio / truth - 1))
        for at, confidence in enumerate(CONFIDENCES):
            holds[at] += abs(ratio - truth) <= error * statistics.NormalDist().inv_cdf(0.5 + confidence / 2)
    return {
        "unit": unit,
        "every": every,
        "units": statistics.fmean(len(sample) for sample in samples),
        "samples": len(samples),
        "mean_error": statistics.fmean(errors),
        "largest_error": max(errors),
        "intervals_hold": {str(confidence): held / len(samples) for confidence, held in zip(CONFIDENCES, holds, strict=True)},
    }


def run(args: argparse.Namespace, name: str, kind: str, *settings: str) -> pathlib.Path:
    """Runs a program of the study with settings; returns the folder of its results."""
    out: pathlib.Path = args.out / f"{name}-{kind}"
    if args.reuse and (out / "units.json").exists():
        return out
    print(f"{name}, {kind} …", file=sys.stderr, flush=True)
    command = [args.tipsim, "run", STUDY / f"{name}.toml", "--out", out]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def compared_profiles(everything: pathlib.Path, sampled: pathlib.Path) -> Row:
    """Returns how far shares of the program's hottest code are off in the sampled run, and how often their margins hold."""
    whole, part = (json.loads((out / "report.json").read_text()) for out in (everything, sampled))
    command = max(whole["processes"][1:], key=lambda process: process["cycles"])["command"]

    def shares(report: Row, table: str, *names: str) -> dict[tuple[str, ...], Row]:
        processes = [at for at, process in enumerate(report["processes"]) if at > 0 and process["command"] == command]
        hottest = max(processes, key=lambda at: report["processes"][at]["cycles"])
        modules = [module["path"] for module in report["modules"]]
        rows = [row for row in report[table] if row["process"] == hottest]
        return {tuple(str(modules[row[name]] if name == "module" else row[name]) for name in names): row for row in rows}

    truth, found = (shares(report, "instructions", "label", "text") for report in (whole, part))
    hottest = sorted(truth, key=lambda key: -truth[key]["share"])[:HOTTEST]
    off = [abs(truth[key]["share"] - found[key]["share"] if key in found else truth[key]["share"]) for key in hottest]
    truth, found = (shares(report, "functions", "name", "module") for report in (whole, part))
    known = [key for key in truth if truth[key]["share"] >= LEAST_SHARE and key in found]
    errors = {key: abs(truth[key]["share"] - found[key]["share"]) for key in known}
    margins = {key: found[key]["margins"]["share"] for key in known}
    return {
        "hottest_instructions_off": sum(off),
        "functions": len(known),
        "largest_function_error": max(errors.values()),
        "margins_hold": {which: sum(errors[key] <= margins[key][which] for key in known) for which in ("within_95", "within_99_7")},
    }


def state_error(sampling: Row) -> Row | None:
    """Returns how far the state in which units begin is off, and its margin, if enough units were timed twice."""
    if "state" not in sampling:
        return None
    ratio = sampling["state"]["ratio"]
    return {"error": ratio["value"] - 1, "within_95": ratio["within_95"]["half_width"], "units": sampling["state"]["units"]}


def judged(args: argparse.Namespace, name: str) -> Row:
    """Runs a program and returns its row."""
    everything = run(args, name, "all", f"run.sampling.every={GRAIN}", f"run.sampling.unit={GRAIN}", "run.sampling.warm_up=0")
    sampled = run(args, name, "sampled", 'run.sampling.scheme="systematic"', *args.set)
    found = json.loads((everything / "units.json").read_text())
    units = Units(found["instructions"], found["cycles"])
    of_sample = json.loads((sampled / "run.json").read_text())
    sampling = of_sample["sampling"]
    plans = [tried(units, unit, every) for unit, every in PLANS]
    return {
        "program": name,
        "instructions": units.instructions[-1],
        "cycles": units.cycles[-1],
        "sampled": {
            "plan": sampling["plan"],
            "units": sampling["units"],
            "error": sampling["cpi"]["value"] / units.cpi() - 1,
            "state": state_error(sampling),
            "within_95": sampling["cpi"]["within_95"]["half_width"] / units.cpi(),
            "host_seconds": of_sample["host_seconds"] + of_sample["functional"]["host_seconds"],
            "all_host_seconds": json.loads((everything / "run.json").read_text())["host_seconds"],
        },
        "profile": compared_profiles(everything, sampled),
        "plans": [plan for plan in plans if plan],
    }


def state_text(state: Row | None) -> str:
    if state is None:
        return f"{'–':>9}{'':>9}"
    return f"{100 * state['error']:+8.2f}%{'±':>3}{100 * state['within_95']:5.2f}%"


def text(rows: list[Row]) -> str:
    """The results as two tables."""
    lines = [f"{'program':<18}{'M instr.':>9}{'CPI':>7}{'units':>7}{'error':>9}{'95 %':>9}{'state':>9}{'95 %':>9}"
             f"{'20 instr.':>11}{'function':>10}{'host':>8}"]
    for row in rows:
        sampled, profile = row["sampled"], row["profile"]
        lines.append(
            f"{row['program']:<18}{row['instructions'] / 1e6:9.0f}{row['cycles'] / row['instructions']:7.3f}{sampled['units']:7d}"
            f"{100 * sampled['error']:+8.2f}%{'±':>3}{100 * sampled['within_95']:5.2f}%"
            f"{state_text(sampled['state'])}"
            f"{100 * profile['hottest_instructions_off']:10.2f}%{100 * profile['largest_function_error']:9.2f}%"
            f"{sampled['host_seconds']:7.1f}s"
        )
    errors = [abs(row["sampled"]["error"]) for row in rows]
    states = [abs(row["sampled"]["state"]["error"]) for row in rows if row["sampled"]["state"]]
    of_state = f"; state {100 * statistics.fmean(states):.2f} % in the mean, {100 * max(states):.2f} % at most" if states else ""
    lines.append(f"mean |error| {100 * statistics.fmean(errors):.2f} %, largest {100 * max(errors):.2f} %{of_state}")
    off = [row["profile"]["hottest_instructions_off"] for row in rows]
    functions = sum(row["profile"]["functions"] for row in rows)
    held = [sum(row["profile"]["margins_hold"][which] for row in rows) for which in ("within_95", "within_99_7")]
    lines.append(f"shares of the {HOTTEST} hottest instructions off by {100 * statistics.fmean(off):.2f} % of the profile in the mean, "
                 f"{100 * max(off):.2f} % at most")
    lines.append(f"margins of {functions} functions: that of 95 % holds for {100 * held[0] / functions:.1f} %, "
                 f"that of 99.7 % for {100 * held[1] / functions:.1f} %")
    lines.append("")
    lines.append(f"{'unit':>9}{'every':>10}{'share':>8}{'mean':>8}{'largest':>9}{'95 % holds':>12}{'99.7 % holds':>14}")
    for unit, every in PLANS:
        plans = [plan for row in rows for plan in row["plans"] if (plan["unit"], plan["every"]) == (unit, every)]
        if plans:
            holds = [100 * statistics.fmean(plan["intervals_hold"][str(confidence)] for plan in plans) for confidence in CONFIDENCES]
            lines.append(
                f"{unit / 1000:8.0f}k{every / 1e6:9.0f}M{100 * unit / every:7.2f}%"
                f"{100 * statistics.fmean(plan['mean_error'] for plan in plans):7.2f}%"
                f"{100 * max(plan['largest_error'] for plan in plans):8.2f}%{holds[0]:11.1f}%{holds[1]:13.1f}%"
            )
    return "\n".join(lines)


def main() -> None:
    programs = sorted(path.stem for path in STUDY.glob("*.toml") if path.stem != "common")
    parser = argparse.ArgumentParser(prog="workloads/sampling/run", description=__doc__, epilog="""
The first table has the sampled run of each program: its error against the run that times everything, its interval, how far the state in
which units begin is off by units that were timed twice (more of them: --set run.sampling.check=8), and that interval.
"20 instr." is the sum of the
differences of the shares of the 20 hottest instructions of the program's hottest process, "function" the largest difference of a
function's share. The second table has systematic
samples of the units of that run, over 200 places of the first unit, in the mean of the programs: what chance alone does. A program takes
some three minutes.
Example: workloads/sampling/run --only xz,perl""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these programs of workloads/study")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                        help="a key of the sampled run, e.g. run.sampling.every=1000000")
    parser.add_argument("--reuse", action="store_true", help="take runs that are in the folder of results already")
    add_paths(parser, "tipsim", "out")
    args = parser.parse_args()
    rows = [judged(args, name) for name in chosen(parser.prog, args.only, programs)]
    print(json.dumps(rows, indent=2) if args.format == "json" else text(rows))


if __name__ == "__main__":
    main()
