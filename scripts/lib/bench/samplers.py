"""What samplers cost a whole run: a boot of Linux under the timing core with 1, 16 and 100 of them, in turn."""

import argparse
import json
import statistics
import sys

from bench.common import add_paths, on_processors
from places import REPO

DENSE = 'period = 199'
PERF = 'frequency = "4kHz"'
MORE = 'frequency = ["100Hz", "1kHz", "10kHz", "20kHz", "100kHz"], mode = ["periodic", "random"]'
USER_AND_KERNEL = 'frequency = ["4kHz", "20kHz"], privilege = ["user", "kernel"]'
SAMPLERS = {
    1: [("tip", PERF)],
    16: [("all", DENSE), ("all", PERF)],
    # As the bench "replay": every profiler on twelve clocks, and TIP in single privileges.
    100: [("all", DENSE), ("all", PERF), ("all", MORE), ("tip", USER_AND_KERNEL)],
}


def run(args: argparse.Namespace, count: int) -> dict[str, float]:
    """One run: its seconds by the clock, and all its threads' on processors."""
    out = args.out / str(count)
    tables = ", ".join(f'{{ profiler = "{profiler}", {rest} }}' for profiler, rest in SAMPLERS[count])
    settings = ["run.boot=timing", "run.region=run", "run.command='true'", "record.trace=false", f"sampler=[{tables}]"]
    command = [args.tipsim, "run", REPO / "workloads" / "bench" / "bench.toml", "--guest-dir", args.guest, "--out", out]
    for setting in settings:
        command += ["--set", setting]
    seconds, done = on_processors(command)
    if done.returncode != 0:
        sys.exit(f"bench: {count} samplers: exit status {done.returncode}\n{done.stderr}see {out}/console.log")
    report = json.loads((out / "run.json").read_text())
    found = len(report["fingerprint"]) - 1  # The Oracle's is there too.
    if found != count:
        sys.exit(f"bench: expected {count} samplers, found {found} in {out}/run.json")
    return {"seconds": report["host_seconds"], "cpu_seconds": seconds, "instructions": report["instructions"]}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench samplers", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds; medians are printed (default: 5)")
    parser.add_argument("--format", choices=["text", "json"], default="text",
                        help="json: the last line is everything as JSON")
    add_paths(parser, "tipsim", "guest", "out")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    rounds = [{count: run(args, count) for count in SAMPLERS} for _ in range(args.repeat)]
    results = {}
    print(f"{'samplers':>8} {'seconds':>8} {'MIPS':>6} {'against 1':>10} {'CPU s':>7} {'against 1':>10}")
    for count in SAMPLERS:
        middle = {key: statistics.median(r[count][key] for r in rounds) for key in ["seconds", "cpu_seconds"]}
        ratio = {key: statistics.median(r[count][key] / r[1][key] for r in rounds) for key in middle}
        mips = rounds[0][count]["instructions"] / middle["seconds"] / 1e6
        results[count] = {**middle, "mips": mips, "ratio": ratio["seconds"], "cpu_ratio": ratio["cpu_seconds"]}
        print(f"{count:8} {middle['seconds']:8.2f} {mips:6.2f} {ratio['seconds']:9.3f}x {middle['cpu_seconds']:7.2f} "
              f"{ratio['cpu_seconds']:9.3f}x")
    if args.format == "json":
        print(json.dumps(results))


if __name__ == "__main__":
    main()
