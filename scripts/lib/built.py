"""What cargo has built, kept for the next fresh clone: continuous integration begins from one each time.

`python3 scripts/lib/built.py keep` copies what a clone has built into the cache, and `... restore` copies it into the target
directory of a clone that has built nothing. Cargo then decides what must be built again: it compares a file's time with the time of what
was built from the file. A fresh clone's files are all new, so `restore` gives each file whose content is what it was at `keep` the time
that it had there.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from places import REPO

# Programs with these in them have the clone's own path in them, and must be built again in another clone.
PLACES = re.compile(rb"CARGO_(MANIFEST_DIR|TARGET_TMPDIR|BIN_EXE)")

# Builds of older compilers, crates and profiles stay among the newer ones. A cache beyond this size is left out, so all is built anew.
LARGEST = 8 << 30

# The file with the contents and times of the sources, beside what was built from them.
SOURCES = "sources.json"

# Not worth a copy: what incremental builds share, and what keeps other processes of cargo out.
IGNORED = ("incremental", ".cargo-lock")


def contents(clone: Path) -> dict[str, str | None]:
    """Returns for each source file of a clone a hash, or `None` if more than its content decides what is built from it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True, cwd=clone).stdout
    found: dict[str, str | None] = {}
    for name in names.split("\0"):
        if name and (clone / name).is_file():
            content = (clone / name).read_bytes()
            found[name] = None if PLACES.search(content) else hashlib.sha256(content).hexdigest()
    return found


def stored(name: str = "built") -> Path:
    """Returns where the cache has what was built under a name: by default, that of clones in which all tests are built."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tipsim"
    return Path(os.environ.get("TIPSIM_CACHE", caches)) / name


def give_times(clone: Path, target: Path) -> None:
    """Gives a clone's files the times that they had at `keep`, if they are as they were then, and the present time if not.

    A clone may be older than what was kept, and its files with it. For a clone that has built nothing since.
    """
    kept = json.loads((target / "debug" / SOURCES).read_text())
    for name, content in contents(clone).items():
        then = kept.get(name, {})
        is_same = content is not None and then.get("content") == content
        time_ns = then["time_ns"] if is_same else time.time_ns()
        os.utime(clone / name, ns=(time_ns, time_ns))


def copy(source: Path, into: Path) -> None:
    """Copies a folder to where there is none: whole, or not at all."""
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".copying-") as half:
        shutil.copytree(source, Path(half) / "copy", symlinks=True, ignore=shutil.ignore_patterns(*IGNORED))
        (Path(half) / "copy").rename(into)


def restore(target: Path, kept: Path) -> bool:
    """Copies what the cache has into a target directory in which nothing was built. Returns whether there is any."""
    built = target / "debug"
    if built.exists() or not kept.exists():
        return False
    try:
        copy(kept, built)
    except OSError as error:
        # Another clone may have put newer builds into the cache meanwhile, or the disk is full: all is built again then.
        print(f"built: {error}")
        return False
    print(f"built: took what is in {kept}")
    return True


def keep(clone: Path, target: Path, kept: Path) -> None:
    """Copies what a target directory has into the cache, in the place of what is there."""
    built = target / "debug"
    sources = {name: {"content": content, "time_ns": (clone / name).stat().st_mtime_ns} for name, content in contents(clone).items()}
    (built / SOURCES).write_text(json.dumps(sources))
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".older-") as older:
            if kept.exists():
                kept.rename(Path(older) / "debug")
        if sum(path.lstat().st_size for path in built.rglob("*")) < LARGEST:
            copy(built, kept)
    except OSError as error:
        print(f"built: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Keeps what cargo has built for the next fresh clone.")
    parser.add_argument("what", choices=["restore", "keep"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target"))
    parser.add_argument("--target", type=Path, default=target, help="target directory of cargo")
    arguments = parser.parse_args()
    if arguments.what == "keep":
        keep(REPO, arguments.target, stored())
    elif restore(arguments.target, stored()):
        give_times(REPO, arguments.target)


if __name__ == "__main__":
    main()
