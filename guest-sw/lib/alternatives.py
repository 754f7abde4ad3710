"""Makes the links of update-alternatives in a folder of unpacked packages, as the packages' postinst scripts ask for.

Usage: alternatives.py ROOT < TEXT, the postinst scripts one after another. Nothing of them is executed: arguments that are
variables are left out. Of several alternatives the one of highest priority is taken, as dpkg does.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator


def requests(text: str) -> Iterator[tuple[str, str, int]]:
    """(link, target, priority) of each `update-alternatives --install`, with its slave links."""
    text = text.replace("\\\n", " ")
    for command in re.findall(r"update-alternatives\b[^\n;&|]*--install\s+([^\n;&|]*)", text):
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            continue
        if len(words) < 4 or not words[3].isdigit():
            continue
        priority = int(words[3])
        yield words[0], words[2], priority
        for at, word in enumerate(words[4:], 4):
            if word == "--slave" and len(words) > at + 3:
                yield words[at + 1], words[at + 3], priority


def main() -> None:
    root = sys.argv[1]

    def inside(path: str) -> str:
        return os.path.join(root, path.lstrip("/"))

    best: dict[str, tuple[int, str]] = {}
    for link, target, priority in requests(sys.stdin.read()):
        plain = link.startswith("/") and target.startswith("/") and "$" not in link + target
        if plain and os.path.exists(inside(target)) and (link not in best or best[link][0] < priority):
            best[link] = (priority, target)
    for link, (_, target) in sorted(best.items()):
        path = inside(link)
        if os.path.lexists(path):
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        folder = os.path.dirname(os.path.realpath(path))
        os.symlink(os.path.relpath(os.path.realpath(inside(target)), folder), path)
        print(f"{link} -> {target}")


main()
