"""The runs of a study: a fleet of its specs, as far as they are not there yet."""

import argparse
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable

from places import REPO


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how the runs are made."""
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of all specs, as of tipsim run")
    parser.add_argument("--engine", choices=["local", "slurm"], default="local", help="this machine (the default), or a cluster")
    parser.add_argument("--jobs", type=int, metavar="N", help="programs at once at most")
    parser.add_argument("--tipsim", type=pathlib.Path, metavar="FILE", help="this simulator: build nothing")
    parser.add_argument("--guest-dir", type=pathlib.Path, metavar="DIR", help="this guest, with --tipsim")


def run(args: argparse.Namespace, specs: Iterable[pathlib.Path], out: pathlib.Path, only: Iterable[str] = (), vary: str = "") -> bool:
    """Runs the specs, each with every value that `vary` (KEY=V1,V2) names, or the tasks `only`; returns whether all went well."""
    command = [REPO / "scripts/fleet", "run", *specs, "--out", out, "--engine", args.engine]
    if vary:
        command += ["--vary", vary]
    if only:
        command += ["--only", ",".join(only)]
    for option in ["jobs", "tipsim", "guest_dir"]:
        value = getattr(args, option)
        if value is not None:
            command += [f"--{option.replace('_', '-')}", str(value)]
    for assignment in args.set:
        command += ["--set", assignment]
    # Figures need no names from elsewhere.
    environment = {"TIPSIM_DEBUG_MIRROR": "none", **os.environ}
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode in [2, 130]:
        sys.exit(done.returncode)
    return done.returncode == 0
