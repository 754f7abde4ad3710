"""Speed of several harts beside that of one, with nothing recorded, with all profilers, and with the trace too."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass

from bench.common import add_paths, chosen, geometric_mean
from bench.timing import MODES
from places import REPO

SOURCES = REPO / "workloads" / "sampling"
# What each program is called with; `%d` is the number of threads, of which each has a hart.
PROGRAMS = {"stencil": "./stencil %d 128 300", "bank": "./bank %d 600"}
HARTS = [1, 2, 4, 8]
MAX_HARTS = 16


@dataclass
class Timed:
    """What a run says of its command."""

    instructions: int
    cycles: int
    mips: float


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench harts", description=__doc__, epilog="""
Programs, of which all threads together do the same work however many there are: stencil (a barrier and a sum under a lock after each
pass over a grid), bank (tasks from a queue, sorting, and moves between accounts under 64 locks).
Columns: instructions and cycles of the command; `speed-up`, cycles with one hart over cycles with so many; MIPS, instructions of all
harts together by the host's time; `beside one`, these MIPS over those with one hart and the same recording.
Example: scripts/bench harts --only stencil --harts 1,4 --mode none --repeat 3""",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["text", "json"], default="text",
                        help="json: the last line is everything as JSON")
    parser.add_argument("--only", metavar="NAME,…", help="these programs")
    parser.add_argument("--harts", metavar="N,…", default=",".join(map(str, HARTS)),
                        help=f"numbers of harts, 1 to {MAX_HARTS} (default: {','.join(map(str, HARTS))})")
    parser.add_argument("--mode", metavar="NAME,…", default=",".join(MODES), help="these of none, profilers, trace")
    parser.add_argument("--threads", choices=["auto", "one", "two"], default="auto", help="run.threads (default: auto)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="the run of median speed of N (default: 1)")
    parser.add_argument("--core", help="core preset (default: boom-4w)")
    add_paths(parser, "tipsim", "guest", "out")
    return parser.parse_args()


def numbers_of_harts(text: str) -> list[int]:
    """Reads `--harts`."""
    numbers = [int(number) if number.isdigit() else 0 for number in text.split(",")]
    if not all(1 <= number <= MAX_HARTS for number in numbers):
        sys.exit(f"bench: --harts: expected numbers from 1 to {MAX_HARTS}, found {text}")
    return numbers


def compile_program(name: str, out: pathlib.Path) -> pathlib.Path:
    program = out / "programs" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["riscv64-linux-gnu-gcc", "-O2", "-g", "-static", "-pthread", "-o", program, SOURCES / f"{name}.c"], check=True)
    return program


def run(args: argparse.Namespace, program: pathlib.Path, harts: int, mode: str) -> Timed:
    """Runs a program with as many threads as harts."""
    out = args.out / program.name / f"{harts}-{mode}"
    settings = [f"guest.harts={harts}", f"run.command={PROGRAMS[program.name] % harts}", f"run.files=['{program}']",
                f"run.threads={args.threads}", *MODES[mode]]
    if args.core:
        settings.append(f"core.preset={args.core}")
    command = [args.tipsim, "run", REPO / "workloads" / "bench" / "bench.toml", "--guest-dir", args.guest, "--out", out]
    command += [argument for setting in settings for argument in ("--set", setting)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {program.name} on {harts} harts, {mode}: exit status {done.returncode}\n{done.stderr}see {out}/console.log")
    described = json.loads((out / "run.json").read_text())
    (out / "trace.tip").unlink(missing_ok=True)
    region = described["regions"]
    return Timed(region["instructions"], region["cycles"], described["mips"])


def median(runs: list[Timed]) -> Timed:
    """Returns the run of median speed."""
    middle = statistics.median_low(run.mips for run in runs)
    return next(run for run in runs if run.mips == middle)


def main() -> None:
    args = arguments()
    modes, harts = args.mode.split(","), numbers_of_harts(args.harts)
    if not set(modes) <= MODES.keys() or args.repeat < 1:
        sys.exit(f"bench: expected --mode of {', '.join(MODES)} and --repeat of at least 1")
    programs = [compile_program(name, args.out) for name in chosen("bench", args.only, PROGRAMS)]

    print(f"{'program':10} {'recorded':10} {'harts':>5} {'M inst':>7} {'M cycles':>8} {'speed-up':>8} {'MIPS':>6} {'beside one':>10}",
          flush=True)
    results: dict[str, dict[str, dict[int, Timed]]] = {}
    for program in programs:
        runs: dict[tuple[str, int], list[Timed]] = {(mode, number): [] for mode in modes for number in harts}
        # In turn, so that a noisy minute of the host hits all of them.
        for _ in range(args.repeat):
            for (mode, number), of_kind in runs.items():
                of_kind.append(run(args, program, number, mode))
        results[program.name] = {mode: {number: median(runs[mode, number]) for number in harts} for mode in modes}
        for mode, of_mode in results[program.name].items():
            one = of_mode.get(1)
            for number, timed in of_mode.items():
                speed_up = f"{one.cycles / timed.cycles:.2f}" if one else "-"
                beside = f"{timed.mips / one.mips:.2f}" if one else "-"
                print(f"{program.name:10} {mode:10} {number:5} {timed.instructions / 1e6:7.1f} {timed.cycles / 1e6:8.2f} {speed_up:>8} "
                      f"{timed.mips:6.2f} {beside:>10}", flush=True)
    beside_one = {mode: {number: geometric_mean(of[mode][number].mips / of[mode][1].mips for of in results.values()) for number in harts}
                  for mode in modes if 1 in harts}
    for mode, means in beside_one.items():
        for number, mean in means.items():
            print(f"{'geomean':10} {mode:10} {number:5} {'':7} {'':8} {'':8} {'':6} {mean:10.2f}")
    if args.format == "json":
        programs_as_json = {name: {mode: {number: asdict(timed) for number, timed in of_mode.items()} for mode, of_mode in of.items()}
                            for name, of in results.items()}
        print(json.dumps({"beside_one_hart": beside_one, "programs": programs_as_json}))


if __name__ == "__main__":
    main()
