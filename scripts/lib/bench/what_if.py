"""Gains that `tipsim what-if` predicts, beside those of programs that were changed so."""

import argparse
import json
import pathlib
import subprocess
import sys
from typing import Any

from bench.common import add_paths, chosen
from places import REPO

PAIRS = REPO / "workloads" / "what-if"
FLAGS = ["-O2", "-g1", "-static", "-march=rv64gc", "-Wall", "-Wextra", "-I", str(REPO / "guest-sw" / "tools")]
# A row of the table: the gain of a change that was made to a program, and the gain that was predicted.
Row = dict[str, Any]


def build(source: pathlib.Path, out: pathlib.Path, *flags: str) -> pathlib.Path:
    out.mkdir(parents=True, exist_ok=True)
    program = out / source.stem
    subprocess.run(["riscv64-linux-gnu-gcc", *FLAGS, *flags, "-o", program, source], check=True)
    return program


def profile(args: argparse.Namespace, program: pathlib.Path, out: pathlib.Path) -> tuple[int, str]:
    """Cycles of the program, and what it prints."""
    subprocess.run([args.tipsim, "profile", "--marked", "--out", out, "--", program], check=True, stdout=subprocess.PIPE)
    processes = json.loads((out / "report.json").read_text())["processes"]
    cycles = sum(process["cycles"] for process in processes if process["name"] == program.name)
    return cycles, (out / "console.log").read_text().split()[-1]


def pairs(args: argparse.Namespace, source: pathlib.Path) -> list[Row]:
    """What is predicted first, and what it is: for the version after the change, and for a branchless one, if there is that."""
    out = args.out / source.stem
    before, result = profile(args, build(source, out / "bin-before"), out / "before")
    command = [args.tipsim, "what-if", out / "before", "--most", "1", "--process", source.stem]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    trial = json.loads((out / "before" / "run.json").read_text())["what_if"]["trials"][0]
    afters = [("AFTER", "", trial)]
    if "AFTER_SELECT" in source.read_text():
        afters.append(("AFTER_SELECT", " (select)", trial.get("select", {})))
    rows = []
    for flag, name, predicted in afters:
        after, same = profile(args, build(source, out / f"bin-{flag}", f"-D{flag}"), out / flag.lower())
        if result != same:
            sys.exit(f"what-if: {source.stem}: {result} before and {same} with {flag}: not the same program")
        rows.append({
            "pair": source.stem + name,
            "cycles_before": before,
            "cycles_after": after,
            "gain": 1 - after / before,
            "predicted": predicted["gain"],
            "cause": trial["cause"],
            "where": f"{len(trial['instructions'])} {trial['kind']} of {trial['function']}",
            "lost": trial["lost"],
        })
    return rows


def is_off(row: Row, bound: float) -> bool:
    """The prediction is further from the gain than so many per cent of it; of a select, than so many per cent of half of all cycles, if
    that is more: the instructions that it takes besides are not in the prediction."""
    least = 0.5 if row["pair"].endswith("(select)") else 0.0
    return abs(row["predicted"] - row["gain"]) > bound / 100 * max(abs(row["gain"]), least)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workloads/what-if/run", description=__doc__, epilog="""
The programs are those of workloads/what-if, each in a version before and one after the change (-DAFTER, or without a branch:
-DAFTER_SELECT, which the select in the place of the branch predicts); what is tried is what the
tool finds first by itself. Gain is the share of the cycles of its work that it takes less.
Example: workloads/what-if/run --only chain,miss""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these pairs")
    parser.add_argument("--bound", type=float, metavar="PERCENT",
                        help="fail if a prediction is further from the gain, relative to it (of a select, to half of all cycles, if the "
                             "gain is less)")
    add_paths(parser, "tipsim", "out")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    sources = {path.stem: path for path in sorted(PAIRS.glob("*.c"))}
    args.tipsim, args.out = args.tipsim.resolve(), args.out.resolve()
    rows = []
    for name in chosen("what-if", args.only, sources):
        print(f"what-if: {name}", file=sys.stderr, flush=True)
        rows += pairs(args, sources[name])
    if args.format == "json":
        print(json.dumps(rows, indent=2))
    else:
        print(f"{'pair':20}{'before':>10}{'after':>10}{'gain':>9}{'predicted':>11}{'off':>8}{'lost':>9}  tried")
        for row in rows:
            off = row["predicted"] / row["gain"] - 1
            print(f"{row['pair']:20}{row['cycles_before'] / 1e6:>8.2f} M{row['cycles_after'] / 1e6:>8.2f} M{row['gain']:>9.1%}"
                  f"{row['predicted']:>11.1%}{off:>+8.1%}{row['lost']:>9.1%}  {row['cause']}: {row['where']}")
    bad = [row["pair"] for row in rows if args.bound and is_off(row, args.bound)]
    if bad:
        sys.exit(f"what-if: further than {args.bound:g} % from the gain: {', '.join(bad)}")


if __name__ == "__main__":
    main()
