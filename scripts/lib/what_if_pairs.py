"""Gains that `tipsim what-if` predicts, beside those of programs that were changed so."""

import argparse
import json
import pathlib
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]
PAIRS = REPO / "workloads" / "what-if"
FLAGS = ["-O2", "-g1", "-static", "-march=rv64gc", "-Wall", "-Wextra", "-I", REPO / "guest-sw" / "tools"]


def build(source, out, *flags):
    out.mkdir(parents=True, exist_ok=True)
    program = out / source.stem
    subprocess.run(["riscv64-linux-gnu-gcc", *FLAGS, *flags, "-o", program, source], check=True)
    return program


def profile(args, program, out):
    """Cycles of the program, and what it prints."""
    subprocess.run([args.tipsim, "profile", "--marked", "--out", out, "--", program], check=True, stdout=subprocess.PIPE)
    processes = json.loads((out / "report.json").read_text())["processes"]
    cycles = sum(process["cycles"] for process in processes if process["name"] == program.name)
    return cycles, (out / "console.log").read_text().split()[-1]


def pair(args, source):
    """What is predicted first, and what it is."""
    out = args.out / source.stem
    before, result = profile(args, build(source, out / "bin-before"), out / "before")
    after, same = profile(args, build(source, out / "bin-after", "-DAFTER"), out / "after")
    if result != same:
        sys.exit(f"what-if: {source.stem}: {result} before and {same} after: not the same program")
    command = [args.tipsim, "what-if", out / "before", "--most", "1", "--process", source.stem]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    trial = json.loads((out / "before" / "run.json").read_text())["what_if"]["trials"][0]
    return {
        "pair": source.stem,
        "cycles_before": before,
        "cycles_after": after,
        "gain": 1 - after / before,
        "predicted": trial["gain"],
        "cause": trial["cause"],
        "where": f"{len(trial['instructions'])} {trial['kind']} of {trial['function']}",
        "lost": trial["lost"],
    }


def arguments():
    parser = argparse.ArgumentParser(prog="workloads/what-if/run", description=__doc__, epilog="""
The programs are those of workloads/what-if, each in a version before and one after the change (-DAFTER); what is tried is what the
tool finds first by itself. Gain is the share of the cycles of its work that it takes less.
Example: workloads/what-if/run --only chain,miss""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these pairs")
    parser.add_argument("--bound", type=float, metavar="PERCENT", help="fail if a prediction is further from the gain, relative to it")
    for name in ["tipsim", "out"]:
        parser.add_argument(f"--{name}", type=pathlib.Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = arguments()
    sources = {path.stem: path for path in sorted(PAIRS.glob("*.c"))}
    only = args.only.split(",") if args.only else list(sources)
    unknown = set(only) - set(sources)
    if unknown:
        sys.exit(f"what-if: --only: expected some of {', '.join(sources)}; found {', '.join(sorted(unknown))}")
    args.tipsim, args.out = args.tipsim.resolve(), args.out.resolve()
    rows = []
    for name in only:
        print(f"what-if: {name}", file=sys.stderr, flush=True)
        rows.append(pair(args, sources[name]))
    if args.format == "json":
        print(json.dumps(rows, indent=2))
    else:
        print(f"{'pair':12}{'before':>10}{'after':>10}{'gain':>9}{'predicted':>11}{'off':>8}{'lost':>9}  tried")
        for row in rows:
            off = row["predicted"] / row["gain"] - 1
            print(f"{row['pair']:12}{row['cycles_before'] / 1e6:>8.2f} M{row['cycles_after'] / 1e6:>8.2f} M{row['gain']:>9.1%}"
                  f"{row['predicted']:>11.1%}{off:>+8.1%}{row['lost']:>9.1%}  {row['cause']}: {row['where']}")
    bad = [row["pair"] for row in rows if args.bound and abs(row["predicted"] / row["gain"] - 1) > args.bound / 100]
    if bad:
        sys.exit(f"what-if: further than {args.bound:g} % from the gain: {', '.join(bad)}")


if __name__ == "__main__":
    main()
