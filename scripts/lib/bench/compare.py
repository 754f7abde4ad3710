"""Runs one command with two simulators in turn, and prints the ratio of their times on the processor."""

import statistics
import sys

from bench.common import on_processors

ROUNDS = 5


def busy(command: list[str]) -> float:
    """Seconds on the processor, of all threads."""
    seconds, done = on_processors(command)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    return seconds


def main() -> None:
    base, this, *arguments = sys.argv[1:]
    ratios = []
    for round_number in range(ROUNDS):
        first, second = busy([base, *arguments]), busy([this, *arguments])
        ratios.append(first / second)
        print(f"{round_number + 1}: base {first:.2f} s, this {second:.2f} s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
