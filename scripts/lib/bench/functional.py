"""Speed of functional mode beside QEMU's system mode: the same bare-metal programs on both, in turn."""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.common import add_paths, chosen, geometric_mean
from places import REPO

SOURCES = REPO / "workloads" / "functional"
PROGRAMS = ["hash", "sort", "matrix", "chase", "interpreter"]
QEMU = ["qemu-system-riscv64", "-M", "virt", "-m", "64M", "-display", "none", "-monitor", "none", "-serial", "stdio", "-bios"]


def compile_program(name: str, args: argparse.Namespace) -> pathlib.Path:
    program = args.out / "functional" / (name + ("-sv39" if args.sv39 else ""))
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["riscv64-linux-gnu-gcc", "-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany", "-O2", "-ffreestanding",
                    "-fno-builtin", "-fno-pic", "-no-pie", "-static", "-nostdlib", "-nostartfiles", "-Wall", "-Wextra",
                    "-Wl,--build-id=none,--no-warn-rwx-segments", *(["-DSV39"] if args.sv39 else []),
                    "-T", SOURCES / "link.ld", "-o", program, SOURCES / "start.S", SOURCES / f"{name}.c"], check=True)
    return program


def timed(command: Sequence[str | pathlib.Path]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Wall-clock seconds, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"bench: {command[0]}: exit status {done.returncode}\n{done.stderr}")
    return seconds, done


def measure(program: pathlib.Path, args: argparse.Namespace) -> tuple[int, float, float]:
    """The best of some runs of both, in turn: seconds, results, instructions."""
    best: dict[str, tuple[float, str]] = {}
    instructions = 0
    for _ in range(args.repeat):
        for machine, command in [("tipsim", [args.tipsim, "exec", "--memory", "64M", "--stats", program]), ("qemu", [*QEMU, program])]:
            seconds, done = timed(command)
            if machine == "tipsim":
                instructions = int(re.findall(r"(\d+) instructions", done.stderr)[0])
            result = done.stdout.strip()
            best[machine] = (min(seconds, best[machine][0] if machine in best else math.inf), result)
    if best["tipsim"][1] != best["qemu"][1]:
        sys.exit(f"bench: {program}: tipsim printed {best['tipsim'][1]}, QEMU {best['qemu'][1]}")
    return instructions, best["tipsim"][0], best["qemu"][0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench functional", description=__doc__, epilog="""
Programs (workloads/functional): hash, sort, matrix (doubles), chase (pointers, 8 MiB), interpreter (bytecode).
Instructions are tipsim's count; each time is the best of the runs, less that of an empty program.
Example: scripts/bench functional --sv39 --only matrix""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: the last line is the geometric means as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these programs")
    parser.add_argument("--sv39", action="store_true", help="in supervisor mode, under translation")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="the best of N runs (default: 3)")
    add_paths(parser, "tipsim", "out")
    args = parser.parse_args()
    programs = chosen("bench", args.only, PROGRAMS)
    if args.repeat < 1:
        sys.exit(f"bench: --repeat {args.repeat}: expected at least 1")

    _, *start = measure(compile_program("empty", args), args)
    print(f"start-up: tipsim {start[0]:.3f} s, QEMU {start[1]:.3f} s")
    print(f"{'program':12} {'M inst':>7} {'tipsim MIPS':>12} {'QEMU MIPS':>10} {'ratio':>6}", flush=True)
    rates = []
    for name in programs:
        instructions, *seconds = measure(compile_program(name, args), args)
        ours, theirs = (instructions / max(s - empty, 1e-3) / 1e6 for s, empty in zip(seconds, start, strict=True))
        rates.append((ours, theirs))
        print(f"{name:12} {instructions / 1e6:7.0f} {ours:12.0f} {theirs:10.0f} {ours / theirs:6.2f}", flush=True)
    ours, theirs = map(geometric_mean, zip(*rates, strict=True))
    print(f"{'geo. mean':12} {'':7} {ours:12.0f} {theirs:10.0f} {ours / theirs:6.2f}")
    if args.format == "json":
        print(json.dumps({"tipsim_mips": ours, "qemu_mips": theirs, "ratio": ours / theirs}))


if __name__ == "__main__":
    main()
