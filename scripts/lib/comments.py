#!/usr/bin/env python3
"""Finds comments of Rust code that cannot be read alone.

A comment is read by itself, in an editor's hover or in rustdoc. This script lists comments that begin with a pronoun or with a
word that only goes on with another sentence ("The same", "Those", "Its", "Of", ...), and lines of documentation that end
in a comma: at an item's end, the sentence would go on at the next item. It exits with 1 if there are any.

    scripts/lib/comments.py                   all Rust files of the repository
    scripts/lib/comments.py emulator/crates/isa
"""

import re
import subprocess
import sys
from collections.abc import Iterator

from places import REPO

BEGINS = re.compile(
    r"//[/!]?\s+(The same|Those|That of|That is|This one|Of|As|Nor|And|Or|So|Then|Its|Their|It|They|These)\b"
)
COMMENT = re.compile(r"//[/!]?(\s|$)")


HEADING = re.compile(r"//[/!]\s+#+ ")


def is_break(line: str) -> bool:
    """Whether the next line begins anew: after an empty line, and after a heading such as `# Errors`."""
    line = line.strip()
    return line in ("//", "///", "//!") or bool(HEADING.match(line))


def faults(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Line numbers and what is wrong there."""
    for at, line in enumerate(map(str.strip, lines)):
        if not COMMENT.match(line):
            continue
        before = lines[at - 1].strip() if at else ""
        goes_on = COMMENT.match(before) and not is_break(before)
        if not goes_on and (found := BEGINS.match(line)):
            yield at + 1, f"begins with {found.group(1)!r}: {line}"
        if line.startswith("///") and line.endswith(","):
            yield at + 1, f"ends in a comma: {line}"


def main() -> int:
    listed = subprocess.run(
        ["git", "-C", str(REPO), "ls-files", "-z", "--", *(sys.argv[1:] or ["*.rs"])],
        check=True, capture_output=True, text=True,
    )
    count = 0
    for name in sorted(filter(None, listed.stdout.split("\0"))):
        if not name.endswith(".rs"):
            continue
        for line, fault in faults((REPO / name).read_text(encoding="utf-8").split("\n")):
            print(f"{name}:{line}: {fault}")
            count += 1
    print(f"{count} comments that cannot be read alone", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
