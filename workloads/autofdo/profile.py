#!/usr/bin/env python3
"""Branch stacks as a sample profile for clang (-fprofile-sample-use), as AutoFDO makes one of LBR records.

usage: perf script -F brstack | profile.py PROGRAM > PROGRAM.prof

PROGRAM is a static executable with line tables (-gline-tables-only -fdebug-info-for-profiling). Needs llvm-symbolizer.
"""

import collections
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

# A line, counted from the first of its function, and the discriminator.
Place = tuple[int, int]
# The source and the target of a branch.
Branch = tuple[int, int]


def base_discriminator(raw: int) -> int:
    """What tells instructions of a line apart, of what the line table has (LLVM's DILocation: a prefix code)."""
    if raw & 1:
        return 0
    raw >>= 1
    return raw >> 1 & 0xFE0 | raw & 0x1F if raw & 0x20 else raw & 0x1F


class Body:
    """Samples of a function, or of one inlined into another: by line offset and discriminator."""

    def __init__(self) -> None:
        self.lines: collections.Counter[Place] = collections.Counter()
        self.calls: dict[Place, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.inlined: dict[tuple[Place, str], Body] = {}

    def total(self) -> int:
        return sum(self.lines.values()) + sum(body.total() for body in self.inlined.values())

    def write(self, indent: str) -> None:
        for place in sorted({*self.lines, *(place for place, _ in self.inlined)}):
            name = f"{place[0]}.{place[1]}" if place[1] else f"{place[0]}"
            if place in self.lines:
                calls = "".join(f" {callee}:{n}" for callee, n in self.calls[place].most_common())
                print(f"{indent}{name}: {self.lines[place]}{calls}")
            for (at, callee), body in self.inlined.items():
                if at == place:
                    print(f"{indent}{name}: {callee}:{body.total()}")
                    body.write(indent + " ")


def stacks(lines: Iterable[str]) -> Iterator[list[Branch]]:
    """Of each sample: (source, target) of its branches, youngest first."""
    for line in lines:
        words = [word for word in line.split() if word.startswith("0x")]
        yield [(int(source, 16), int(target, 16)) for source, target, *_ in (word.split("/") for word in words)]


def code_of(program: str) -> tuple[int, bytes]:
    """The executable segment of a 64-bit ELF file: its address and bytes."""
    elf = pathlib.Path(program).read_bytes()
    (offset,), (size, count) = struct.unpack_from("<Q", elf, 32), struct.unpack_from("<HH", elf, 54)
    for n in range(count):
        kind, flags, at, address, _, length = struct.unpack_from("<IIQQQQ", elf, offset + n * size)
        if kind == 1 and flags & 1:
            return address, elf[at : at + length]
    sys.exit(f"{program}: expected an executable segment, found none")


def symbolize(program: str, addresses: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
    """The frames of each address, innermost first."""
    tool = os.environ.get("LLVM_SYMBOLIZER", "llvm-symbolizer")
    command = [tool, f"--obj={program}", "--output-style=JSON", "--inlines"]
    asked = "".join(f"{address:#x}\n" for address in addresses)
    said = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {int(at["Address"], 16): at.get("Symbol", []) for at in map(json.loads, said.splitlines())}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    program = sys.argv[1]
    start, code = code_of(program)
    executed: collections.Counter[int] = collections.Counter()
    branches: collections.Counter[Branch] = collections.Counter()
    for stack in stacks(sys.stdin):
        branches.update(stack)
        # Between the target of one branch and the source of the next, the program ran straight on.
        for (source, _), (_, target) in itertools.pairwise(stack):
            at = target
            while start <= at <= source and at - start + 2 <= len(code):
                executed[at] += 1
                at += 4 if code[at - start] & 3 == 3 else 2
    frames = symbolize(program, [*executed, *(target for _, target in branches)])
    entered: collections.Counter[str] = collections.Counter()
    callee_of: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for (source, target), n in branches.items():
        outermost = frames.get(target, [])[-1:]
        if outermost and int(outermost[0]["StartAddress"] or "0", 16) == target:
            entered[outermost[0]["FunctionName"]] += n
            callee_of[source][outermost[0]["FunctionName"]] += n
    functions: dict[str, Body] = collections.defaultdict(Body)
    for address, n in executed.items():
        chain = frames.get(address) or []
        # Code that the compiler has of no line, and functions without line tables.
        if not chain or not all(frame["Line"] and frame["StartLine"] for frame in chain):
            continue
        body = functions[chain[-1]["FunctionName"]]
        for frame, inner in zip(reversed(chain), [*reversed(chain[:-1]), None], strict=True):
            discriminator = base_discriminator(frame.get("Discriminator", 0))
            place = (frame["Line"] - frame["StartLine"] & 0xFFFF, discriminator)
            if inner is None:
                # A line is executed as often as the most frequent of its instructions.
                body.lines[place] = max(body.lines[place], n)
                body.calls[place].update(callee_of[address])
            else:
                body = body.inlined.setdefault((place, inner["FunctionName"]), Body())
    for name, body in sorted(functions.items(), key=lambda item: -item[1].total()):
        print(f"{name}:{body.total()}:{entered[name]}")
        body.write(" ")


main()
