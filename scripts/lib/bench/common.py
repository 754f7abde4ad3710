"""What several measurements need: the paths that scripts give them, the choice of some parts, a mean, and time on processors."""

import argparse
import math
import pathlib
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence


def add_paths(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds an option for each path, such as `--tipsim`, which scripts give and `--help` does not show."""
    for name in names:
        parser.add_argument(f"--{name}", type=pathlib.Path, help=argparse.SUPPRESS)


def chosen(program: str, only: str | None, known: Iterable[str]) -> list[str]:
    """Returns the names in the option `--only`, in their order, or all that are known; exits if one is not known."""
    names = list(known)
    if not only:
        return names
    asked = only.split(",")
    unknown = sorted(set(asked) - set(names))
    if unknown:
        sys.exit(f"{program}: --only: expected some of {', '.join(names)}; found {', '.join(unknown)}")
    return asked


def geometric_mean(values: Iterable[float]) -> float:
    """Returns the geometric mean of positive numbers."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


def on_processors(command: Sequence[str | pathlib.Path]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Runs a command without input and output; returns the seconds that all its threads together took on processors, and how it ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime), done
