"""Writes a folder as an archive that Linux takes for an initial RAM file system (cpio, newc)."""

import os
import pathlib
import stat
from typing import BinaryIO

MAGIC = b"070701"
# Names and contents begin at multiples of so many bytes.
ALIGNMENT = 4
TRAILER = "TRAILER!!!"


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT)


def entry(number: int, name: str, mode: int, content: bytes, when: int) -> bytes:
    """Returns a file's header, name and content. All files are root's, and none has a second name."""
    encoded = os.fsencode(name) + b"\0"
    fields = [number, mode, 0, 0, 1, when, len(content), 0, 0, 0, 0, len(encoded), 0]
    header = MAGIC + b"".join(b"%08x" % value for value in fields)
    return padded(header + encoded) + padded(content)


def archive(root: pathlib.Path, out: BinaryIO) -> None:
    """Appends all folders, files and symbolic links below `root`, and nothing else. A file of several names becomes several files."""
    number = 0
    for folder, folders, files in os.walk(root):
        links = [name for name in folders if (pathlib.Path(folder) / name).is_symlink()]
        for name in sorted({*folders, *files, *links}):
            path = pathlib.Path(folder) / name
            about = path.lstat()
            number += 1
            if stat.S_ISLNK(about.st_mode):
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(about.st_mode):
                content = path.read_bytes()
            elif stat.S_ISDIR(about.st_mode):
                content = b""
            else:
                continue
            out.write(entry(number, str(path.relative_to(root)), about.st_mode, content, int(about.st_mtime)))
    out.write(entry(0, TRAILER, 0, b"", 0))
