"""Run specs as tipsim reads them: with what they are built on."""

import hashlib
import pathlib
import tomllib
from typing import Any

from fleet.state import FleetError

# More is a circle, which tipsim tells of.
MOST_BASES = 16


def sha256(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
