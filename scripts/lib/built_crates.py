"""Other people's crates, built once for several clones: continuous integration begins from a fresh one each time.

`python3 scripts/lib/built_crates.py restore` copies what the cache has into the target directory of a clone that has built nothing, and
`... keep` copies what a clone has built into the cache. What is kept is bound to the compiler, the versions of crates and the profiles.
The workspace's own crates are never kept: clones differ in them.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from places import REPO

# What cargo puts into a target directory beside final programs, by unit: a folder for each or files with the unit's hash in their names.
FOLDERS = (".fingerprint", "build")
FILES = "deps"


def key() -> str:
    """Returns what identifies builds that can stand for each other."""
    compiler = subprocess.run(["rustc", "-vV"], check=True, capture_output=True).stdout
    flags = "".join(f"{name}={os.environ.get(name)}\n" for name in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CC", "CFLAGS"))
    parts = [compiler, flags.encode(), (REPO / "Cargo.lock").read_bytes(), (REPO / "Cargo.toml").read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def own_crates() -> set[str]:
    """Returns the names of the workspace's packages."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=REPO).stdout)
    return {package["name"] for package in metadata["packages"]}


def copy_crates(source: Path, into: Path, own: set[str]) -> int:
    """Copies what was built of all crates but the own ones. Returns their number."""
    units = set()
    for folder in FOLDERS:
        for unit in sorted((source / folder).iterdir()):
            name, _, unit_hash = unit.name.rpartition("-")
            if name in own:
                continue
            units.add(unit_hash)
            shutil.copytree(unit, into / folder / unit.name, symlinks=True)
    (into / FILES).mkdir(parents=True)
    for file in sorted((source / FILES).iterdir()):
        if file.stem.rpartition("-")[2] in units:
            shutil.copy2(file, into / FILES / file.name)
    return len(units)


def stored() -> Path:
    """Returns where the cache has builds like this clone's, if it has them."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tipsim"
    return Path(os.environ.get("TIPSIM_CACHE", caches)) / "built-crates" / key()


def transfer(source: Path, into: Path) -> None:
    """Copies builds to where there are none. What is half copied is never found there."""
    if into.exists() or not source.exists():
        return
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".copying-") as half:
        try:
            count = copy_crates(source, Path(half) / "copy", own_crates())
            (Path(half) / "copy").rename(into)
        except OSError as error:
            # Another clone may have taken the place, or the disk is full: crates are built again then.
            print(f"built_crates: {error}")
            return
    print(f"built_crates: {count} builds of other people's crates from {source}")


def restore(target: Path) -> None:
    """Copies what the cache has into a target directory in which nothing was built."""
    transfer(stored(), target / "debug")


def keep(target: Path) -> None:
    """Copies what a target directory has into the cache, in the place of older builds."""
    kept = stored()
    transfer(target / "debug", kept)
    for older in set(kept.parent.iterdir()) - {kept} if kept.exists() else ():
        shutil.rmtree(older, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Keeps other people's crates, built, for the next fresh clone.")
    parser.add_argument("what", choices=["restore", "keep"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target"))
    parser.add_argument("--target", type=Path, default=target, help="target directory of cargo")
    arguments = parser.parse_args()
    {"restore": restore, "keep": keep}[arguments.what](arguments.target)


if __name__ == "__main__":
    main()
