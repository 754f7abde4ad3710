"""Whole programs on the timing core, beside what they took on BOOM's RTL."""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.common import add_paths, chosen
from places import REPO

PROGRAMS = REPO / "workloads" / "programs"
FLAGS = ["-O2", "-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany", "-ffreestanding", "-fno-pic", "-no-pie", "-nostdlib",
         "-static", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra", "-Wl,--build-id=none"]


def measured() -> Iterator[tuple[str, str, tuple[int, int, int]]]:
    """Program, core, and what the RTL took."""
    with open(PROGRAMS / "programs.csv", newline="") as file:
        for row in csv.DictReader(file):
            yield row["program"], row["core"], (int(row["cycles"]), int(row["instructions"]), int(row["result"]))


def build(name: str, out: pathlib.Path) -> pathlib.Path:
    elf = out / f"{name}.elf"
    elf.parent.mkdir(parents=True, exist_ok=True)
    sources = [PROGRAMS / file for file in ["start.S", f"{name}.c", "library.c"]]
    subprocess.run(["riscv64-linux-gnu-gcc", *FLAGS, "-T", PROGRAMS / "link.ld", "-o", elf, *sources], check=True)
    return elf


def run(tipsim: pathlib.Path, elf: pathlib.Path, core: str) -> tuple[int, int, int]:
    """Cycles, instructions and result."""
    signature = elf.with_suffix(".signature")
    subprocess.run([tipsim, "exec", "--mode", "timing", "--core", f"rtl-{core}", "--signature", signature,
                    "--signature-granularity", "8", elf], check=True)
    cycles, instructions, result = (int(word, 16) for word in signature.read_text().split()[:3])
    return cycles, instructions, result


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench programs", description=__doc__, epilog="""
The programs are those of workloads/programs, each called once with cold caches, on the presets rtl-mega and rtl-large.
The error is that of cycles per instruction: another compiler may make other instructions of them.
Example: scripts/bench programs --only qsort,copy""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these programs")
    parser.add_argument("--bound", type=float, metavar="PERCENT", help="fail if a core's mean error is larger")
    add_paths(parser, "tipsim", "out")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    rows = list(measured())
    names = chosen("bench", args.only, sorted({name for name, _, _ in rows}))
    rows = [row for row in rows if row[0] in names]
    text = args.format == "text"
    if text:
        print(f"{'program':14} {'core':6} {'instructions':>12} {'RTL cycles':>11} {'our cycles':>11} {'error':>8}")
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for name, core, (rtl, expected, result) in rows:
        cycles, instructions, ours = run(args.tipsim, build(name, args.out), core)
        if ours != result:
            sys.exit(f"bench: {name}: expected the result {result}, found {ours}")
        error = (cycles / instructions) / (rtl / expected) - 1
        results.setdefault(core, {})[name] = {"rtl_cycles": rtl, "rtl_instructions": expected, "cycles": cycles,
                                              "instructions": instructions, "error": error}
        if text:
            print(f"{name:14} {core:6} {instructions:12} {rtl:11} {cycles:11} {error:+8.1%}"
                  f"{'' if instructions == expected else '  (other instructions)'}", flush=True)
    summary: dict[str, dict[str, Any]] = {}
    for core, programs in results.items():
        errors = [abs(program["error"]) for program in programs.values()]
        summary[core] = {"mean_abs_error": statistics.fmean(errors), "max_abs_error": max(errors),
                         "programs": programs}
        if text:
            print(f"{core}: mean |error| {statistics.fmean(errors):.2%}, max {max(errors):.1%}")
    if not text:
        print(json.dumps(summary))
    worst = max(core["mean_abs_error"] for core in summary.values())
    if args.bound is not None and 100 * worst > args.bound:
        sys.exit(f"bench: expected a mean error of at most {args.bound} %, found {worst:.2%}")


if __name__ == "__main__":
    main()
