"""Sampled simulation beside the truth: programs of the study, timed from end to end.

Each program is run twice: with units of 10,000 instructions that follow each other without a gap, so that every instruction is timed, and
sampled as its user would. `tipsim schemes` says what each scheme would have said of the first run, by units that it adds up: the error by
chance, and how often intervals hold. The second run also says how far the state in which units begin is off, by units that it times twice.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any

from bench.common import add_paths, chosen
from bench.sampling_curves import curves
from places import REPO

STUDY = REPO / "workloads" / "study"
# Instructions of a unit of the run that times everything.
GRAIN = 10_000
# Keys of that run's plan.
EVERYTHING = [f"every={GRAIN}", f"unit={GRAIN}", "warm_up=0", "check=0"]
# Instructions of an interval whose basic blocks are counted, for schemes that choose units by these.
INTERVAL = 50_000
# What `tipsim schemes` tries: instructions of units, parts of the program that are in units, in per cent, and a number of units.
SCHEMES = ["--unit", "50k,1M", "--budget", "0.01,0.03,0.1,0.3,1,2.5,10", "--units", "30"]
CONFIDENCES = {"holds_95": "95 %", "holds_99_7": "99.7 %"}
# Instructions whose shares are compared, and the share of a process from which on a function's is.
HOTTEST = 20
LEAST_SHARE = 0.001
# A row of the results, or what a plan does to a program.
Row = dict[str, Any]


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


def tried(args: argparse.Namespace, name: str, everything: pathlib.Path) -> list[Row]:
    """Returns what each scheme would have said of a program, over seeds."""
    phases: pathlib.Path = args.out / f"{name}-phases"
    if not (args.reuse and (phases / "phases.json").exists()):
        print(f"{name}, phases …", file=sys.stderr, flush=True)
        command = [args.tipsim, "phases", STUDY / f"{name}.toml", "--interval", str(INTERVAL), "--out", phases]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"{name}, schemes …", file=sys.stderr, flush=True)
    command = [args.tipsim, "schemes", everything, "--phases", phases, *SCHEMES, "--seeds", str(args.seeds), "--json"]
    command += ["--choosing-seeds", str(args.choosing_seeds)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    trials: list[Row] = json.loads(found.stdout)["trials"]
    return trials


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
    everything = run(args, name, "all", *(f"run.sampling.{key}" for key in EVERYTHING))
    sampled = run(args, name, "sampled", 'run.sampling.scheme="systematic"', *args.set)
    found = json.loads((everything / "units.json").read_text())
    instructions, cycles = sum(found["instructions"]), sum(found["cycles"])
    truth = cycles / instructions
    of_sample = json.loads((sampled / "run.json").read_text())
    sampling = of_sample["sampling"]
    return {
        "program": name,
        "instructions": instructions,
        "cycles": cycles,
        "sampled": {
            "plan": sampling["plan"],
            "units": sampling["units"],
            "error": sampling["cpi"]["value"] / truth - 1,
            "state": state_error(sampling),
            "within_95": sampling["cpi"]["within_95"]["half_width"] / truth,
            "host_seconds": of_sample["host_seconds"] + of_sample["functional"]["host_seconds"],
            "all_host_seconds": json.loads((everything / "run.json").read_text())["host_seconds"],
        },
        "profile": compared_profiles(everything, sampled),
        "schemes": tried(args, name, everything) if args.seeds else [],
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
    return "\n".join(lines + schemes_text(rows))


def of_schemes(rows: list[Row]) -> list[Row]:
    """Returns what each scheme says of all programs that are long enough, by unit and part or number of units."""
    known: dict[tuple[Any, ...], list[Row]] = {}
    for trial in (trial for row in rows for trial in row["schemes"]):
        size = trial["budget"] if trial["budget"] is not None else f"{trial['asked']} units"
        known.setdefault((trial["unit"], trial["scheme"], size), []).append(trial)
    summary = []
    for (unit, scheme, size), trials in known.items():
        holds = {key: [trial[key] for trial in trials if trial[key] is not None] for key in CONFIDENCES}
        summary.append({
            "scheme": scheme,
            "unit": unit,
            "size": size,
            "programs": len(trials),
            "timed": statistics.fmean(trial["timed"] for trial in trials),
            "mean_error": statistics.fmean(trial["mean_error"] for trial in trials),
            "largest_mean_error": max(trial["mean_error"] for trial in trials),
            "largest_error": max(trial["largest_error"] for trial in trials),
            "seeds": max(trial["seeds"] for trial in trials),
        } | {key: statistics.fmean(held) if held else None for key, held in holds.items()})
    return summary


def schemes_text(rows: list[Row]) -> list[str]:
    """What schemes say of all programs, as lines of a table."""
    summary = of_schemes(rows)
    if not summary:
        return []
    lines = ["", f"{'unit':>9}{'scheme':>13}{'programs':>10}{'timed':>9}{'mean':>8}{'program':>9}{'largest':>9}"
             + "".join(f"{name + ' holds':>14}" for name in CONFIDENCES.values()) + f"{'seeds':>7}"]
    for row in summary:
        holds = "".join(f"{'–' if row[key] is None else format(100 * row[key], '.1f') + '%':>14}" for key in CONFIDENCES)
        size = f"  ({row['size']})" if isinstance(row["size"], str) else ""
        lines.append(f"{row['unit'] / 1000:8.0f}k{row['scheme']:>13}{row['programs']:10d}{100 * row['timed']:8.2f}%"
                     f"{100 * row['mean_error']:7.2f}%{100 * row['largest_mean_error']:8.2f}%{100 * row['largest_error']:8.2f}%"
                     f"{holds}{row['seeds']:7d}{size}")
    return lines


def main() -> None:
    programs = sorted(path.stem for path in STUDY.glob("*.toml") if path.stem != "common")
    parser = argparse.ArgumentParser(prog="workloads/sampling/run", description=__doc__, epilog="""
The first table has the sampled run of each program: its error against the run that times everything, its interval, how far the state in
which units begin is off by units that were timed twice (more of them: --set run.sampling.check=8), and that interval.
"20 instr." is the sum of the
differences of the shares of the 20 hottest instructions of the program's hottest process, "function" the largest difference of a
function's share. The second table has what each scheme would have said of the programs, by units that are added up from those of the run
that times everything: "mean" is the error over seeds and programs, "program" the mean error of the worst program, "largest" that of any
seed. It is what chance alone does. curves.html in the folder of results has the errors over the part that is timed. A program takes some
ten minutes, most of them for schemes that choose units (fewer with --choosing-seeds 5).
Example: workloads/sampling/run --only xz,perl""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these programs of workloads/study")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                        help="a key of the sampled run, e.g. run.sampling.every=1000000")
    parser.add_argument("--reuse", action="store_true", help="take runs that are in the folder of results already")
    parser.add_argument("--seeds", metavar="N", type=int, default=1000, help="seeds of each scheme; 0: no second table [default: 1000]")
    parser.add_argument("--choosing-seeds", metavar="N", type=int, default=20,
                        help="seeds of schemes that choose units by what is executed [default: 20]")
    add_paths(parser, "tipsim", "out")
    args = parser.parse_args()
    rows = [judged(args, name) for name in chosen(parser.prog, args.only, programs)]
    if args.seeds:
        (args.out / "curves.html").write_text(curves(of_schemes(rows)))
    print(json.dumps(rows, indent=2) if args.format == "json" else text(rows))


if __name__ == "__main__":
    main()
