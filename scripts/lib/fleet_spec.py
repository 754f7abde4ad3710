"""Run specs as tipsim reads them: with what they are built on."""

import hashlib
import tomllib

from fleet_state import FleetError

# More is a circle, which tipsim tells of.
MOST_BASES = 16


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def with_bases(path):
    """A spec's content over that of its bases, as tipsim reads it, and a checksum of all these files."""
    content, checksums = {}, []
    while path and len(checksums) <= MOST_BASES:
        try:
            found = tomllib.loads(path.read_text())
        except OSError as error:
            raise FleetError(f"{path}: {error.strerror}") from None
        except ValueError as error:
            raise FleetError(f"{path}: expected TOML, found an error: {error}") from None
        checksums.append(sha256(path))
        path = path.parent / found.pop("base") if "base" in found else None
        content = merged(content, found)
    checksum = checksums[0] if len(checksums) == 1 else hashlib.sha256("".join(checksums).encode()).hexdigest()
    return content, checksum


def merged(own, base):
    """Tables are merged, all else is the own."""
    both = {key: merged(own[key], base[key]) for key in own.keys() & base.keys()
            if isinstance(own[key], dict) and isinstance(base[key], dict)}
    return base | own | both
