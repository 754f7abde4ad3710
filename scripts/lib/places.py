"""Where things are: this clone, the programs of scripts/lib, and the cache of guests, builds and tools, which `tipsim` shares."""

import os
import pathlib
import sys

# The folder of all Python modules of the scripts, and the clone that it is in. A symbolic link to either makes no difference.
LIB = pathlib.Path(__file__).resolve().parent
REPO = LIB.parents[1]


def program(module: str) -> list[str]:
    """Returns the command that runs a module of this folder, such as `fleet.task`, from whatever folder it is started in."""
    return [sys.executable, str(LIB), module]


def cache() -> pathlib.Path:
    """Returns the folder of the cache."""
    user = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("TIPSIM_CACHE") or pathlib.Path(user) / "tipsim").absolute()


def guest_built_last() -> pathlib.Path:
    """Returns the guest that `tipsim` takes if it is told no other; it may not be there."""
    return cache() / "guest/latest"
