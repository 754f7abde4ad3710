"""Where `guest-sw/build` leaves its guests."""

import os
import pathlib


def built_last():
    """The guest that tipsim takes if it is told no other; it may not be there."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("TIPSIM_CACHE") or f"{user}/tipsim") / "guest/latest"
