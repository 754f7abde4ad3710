"""Speed of the timing core: every workload with nothing recorded, with all profilers, and with the trace too."""

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.common import add_paths, chosen, geometric_mean
from places import REPO

BENCH = REPO / "workloads" / "bench"
PERL = "d=root/usr; $d/lib/ld-linux-riscv64-lp64d.so.1 --library-path $d/lib/riscv64-linux-gnu $d/bin/perl " \
    "-I$d/lib/riscv64-linux-gnu/perl-base interpreter.pl"
MODES: dict[str, list[str]] = {
    "none": ["record.trace=false", "record.profilers=false"],
    "profilers": ["record.trace=false"],
    "trace": [],
}
PARTS = ["front_end", "rename_and_issue", "execute", "memory", "records", "hand_over", "profilers", "other"]
# Numbers of a run by name; the time per instruction is a table of the simulator's parts.
Figures = dict[str, Any]


def workloads(args: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Name, and the settings of its run."""
    yield "boot", ["run.boot=timing", "run.region=run", "run.command='true'"]
    for name in ["integer", "matrix", "chase", "sort"]:
        yield name, [f"run.command=./{name}", f"run.files=['{compile_program(name, args.out)}']"]
    script = BENCH / "interpreter.pl"
    yield "interpreter", [f"run.command={PERL}", f"run.files=['{script}', '{args.debian}']"]


def compile_program(name: str, out: pathlib.Path) -> pathlib.Path:
    program = out / "programs" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    include = REPO / "guest-sw" / "tools"
    subprocess.run(["riscv64-linux-gnu-gcc", "-O2", "-g", "-static", "-Wall", "-Wextra", "-I", include,
                    "-o", program, BENCH / f"{name}.c"], check=True)
    return program


def run(args: argparse.Namespace, name: str, mode: str, settings: list[str]) -> Figures:
    """One run; what run.json says of it."""
    out = args.out / name / mode
    command = [args.tipsim, "run", BENCH / "bench.toml", "--guest-dir", args.guest, "--out", out, "--self-profile"]
    if args.core:
        command += ["--set", f"core.preset={args.core}"]
    for setting in settings + MODES[mode]:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {name}, {mode}: exit status {done.returncode}\n{done.stderr}see {out}/console.log")
    report = json.loads((out / "run.json").read_text())
    if name != "boot" and "checksum" not in (out / "console.log").read_text():
        sys.exit(f"bench: {name}, {mode}: the program did not finish: see {out}/console.log")
    (out / "trace.tip").unlink(missing_ok=True)
    return {
        "instructions": report["instructions"],
        "cycles": report["cycles"],
        "seconds": report["host_seconds"],
        "peak_memory_mb": report["peak_memory_mb"],
        "ns": report["host_ns_per_instruction"],
    }


def median(runs: list[Figures]) -> Figures:
    """The run of median time, as rates."""
    runs = sorted(runs, key=lambda r: r["seconds"])
    middle = runs[len(runs) // 2]
    return {
        "mips": middle["instructions"] / middle["seconds"] / 1e6,
        "mcycles_per_s": middle["cycles"] / middle["seconds"] / 1e6,
        "ns_per_instruction": middle["ns"],
        "peak_memory_mb": middle["peak_memory_mb"],
        "instructions": middle["instructions"],
        "cycles": middle["cycles"],
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench timing", description=__doc__, epilog="""
Workloads: boot (Linux to the command, under the timing core), and after a functional boot: integer (CoreMark-like),
matrix (doubles), chase (pointers, 64 MiB), sort (qsort), interpreter (Debian's perl).
Parts of the host's processor time are those of the hart's thread and the core's, sampled by themselves; the profilers
and the trace have a thread too.
Example: scripts/bench timing --only sort,interpreter --repeat 3""",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text",
                        help="json: the last line is everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these workloads")
    parser.add_argument("--mode", metavar="NAME,…", default=",".join(MODES), help="these of none, profilers, trace")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="the median of N runs (default: 1)")
    parser.add_argument("--core", help="core preset (default: boom-4w)")
    add_paths(parser, "tipsim", "guest", "debian", "out")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    modes = args.mode.split(",")
    if not set(modes) <= MODES.keys() or args.repeat < 1:
        sys.exit(f"bench: expected --mode of {', '.join(MODES)} and --repeat of at least 1")
    settings_of = dict(workloads(args))

    head = f"{'workload':12} {'recorded':10} {'M inst':>7} {'IPC':>5} {'MIPS':>6} {'Mcyc/s':>7}   host ns per instruction: "
    print(head + " ".join(f"{part.replace('_and_', '+'):>12}" for part in PARTS) + "  peak MB", flush=True)
    results = {}
    for name in chosen("bench", args.only, settings_of):
        runs: dict[str, list[Figures]] = {mode: [] for mode in modes}
        # In turn, so that a noisy minute of the host hits all modes.
        for _ in range(args.repeat):
            for mode in modes:
                runs[mode].append(run(args, name, mode, settings_of[name]))
        results[name] = {mode: median(runs[mode]) for mode in modes}
        for mode, r in results[name].items():
            parts = " ".join(f"{r['ns_per_instruction'].get(part, 0):12.1f}" for part in PARTS)
            print(f"{name:12} {mode:10} {r['instructions'] / 1e6:7.1f} {r['instructions'] / r['cycles']:5.2f} "
                  f"{r['mips']:6.2f} {r['mcycles_per_s']:7.2f}   {'':24} {parts}  {r['peak_memory_mb']:7.0f}",
                  flush=True)
    mean = {key: {mode: geometric_mean(r[mode][key] for r in results.values()) for mode in modes}
            for key in ["mips", "mcycles_per_s"]}
    for mode in modes:
        print(f"{'geomean':12} {mode:10} {'':13} {mean['mips'][mode]:6.2f} {mean['mcycles_per_s'][mode]:7.2f}")
    if args.format == "json":
        print(json.dumps({"geomean_mips": mean["mips"], "geomean_mcycles_per_s": mean["mcycles_per_s"],
                          "workloads": results}))


if __name__ == "__main__":
    main()
