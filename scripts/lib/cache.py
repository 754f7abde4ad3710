"""The cache of guests, builds and tools, which scripts and `tipsim` share."""

import os
import pathlib


def folder() -> pathlib.Path:
    user = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("TIPSIM_CACHE") or pathlib.Path(user) / "tipsim").absolute()


def guest_built_last() -> pathlib.Path:
    """The guest that tipsim takes if it is told no other; it may not be there."""
    return folder() / "guest/latest"
