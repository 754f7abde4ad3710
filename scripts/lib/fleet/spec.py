"""What the tasks of a fleet are of: run specs as tipsim reads them, with what they are built on, and runs that stored their units."""

import hashlib
import pathlib
import tomllib
from typing import Any

from fleet.state import FleetError

# More is a circle, which tipsim tells of.
MOST_BASES = 16
# What a sampled run with run.sampling.store = true has: all that a core was told, and the units as the run found them.
STORED_UNITS = "stored-units.bin"
UNITS = "units.json"


def sha256(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_stored_run(path: pathlib.Path) -> bool:
    """It is the folder of a run, whose stored units are timed on each core; else a run spec."""
    return path.is_dir()


def content_and_checksum(path: pathlib.Path) -> tuple[dict[str, Any], str]:
    """A spec's content, and a checksum of what its results follow from. The content of a run that stored its units is empty."""
    if not is_stored_run(path):
        return with_bases(path)
    missing = next((name for name in [STORED_UNITS, UNITS] if not (path / name).is_file()), None)
    if missing:
        raise FleetError(f"{path}: expected a run spec, or the folder of a run with run.sampling.store = true, found no {missing} in it")
    # The cycles of all units. That the stored units are those of the run is checked by tipsim.
    return {}, sha256(path / UNITS)


def with_bases(path: pathlib.Path) -> tuple[dict[str, Any], str]:
    """A spec's content over that of its bases, as tipsim reads it, and a checksum of all these files."""
    content: dict[str, Any] = {}
    checksums: list[str] = []
    at: pathlib.Path | None = path
    while at and len(checksums) <= MOST_BASES:
        try:
            found = tomllib.loads(at.read_text())
        except OSError as error:
            raise FleetError(f"{at}: {error.strerror}") from None
        except ValueError as error:
            raise FleetError(f"{at}: expected TOML, found an error: {error}") from None
        checksums.append(sha256(at))
        at = at.parent / found.pop("base") if "base" in found else None
        content = merged(content, found)
    checksum = checksums[0] if len(checksums) == 1 else hashlib.sha256("".join(checksums).encode()).hexdigest()
    return content, checksum


def merged(own: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """Tables are merged, all else is the own."""
    both = {key: merged(own[key], base[key]) for key in own.keys() & base.keys()
            if isinstance(own[key], dict) and isinstance(base[key], dict)}
    return base | own | both
