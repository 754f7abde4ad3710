"""A per-cycle trace of the ROB of BOOM's RTL, and the profile that an Oracle makes of it.

The file has "BOOMTR1", a byte with the number W of banks (at most 4), and a record for each cycle: 64 flags, then a 32-bit address for
each slot of the ROB's head row that is valid or commits, the oldest bank first, then one for each slot that is dispatched. All is
little-endian. Flags: bits 0-3 commits (with what is no instruction of the program), 4-7 commits an instruction, 8-11 the head row's slot
is valid, 12-15 dispatched, each by bank; 22 a flush; 26 an exception; 27 a branch resolves as mispredicted; 32 the
ROB rolls back. Other bits are not read here; scripts/rtl, which writes such traces, has 23-25 the kind of flush, 28-29 the ROB's state,
48-54 the index of its head, and 55-61 that of the mispredicted branch.
"""

import dataclasses
import gzip
import pathlib
import struct
from collections import Counter
from collections.abc import Iterator

MAGIC = b"BOOMTR1"
# Cycles after a mispredicted branch has resolved in which wrong instructions may still be dispatched.
WRONG_PATH = 3
EXECUTION, STALL, FRONT_END, MISPREDICT, FLUSH = STATES = ("Execution", "Stall", "Front-end", "Mispredict", "Misc. flush")


class TraceError(Exception):
    """The file is no trace, or a damaged one."""


@dataclasses.dataclass
class Cycle:
    """What the ROB does in a cycle."""

    commits: list[int]
    # The valid slots of the head row.
    head: list[int]
    dispatches: bool
    flushes: bool
    mispredicts: bool
    rolls_back: bool


@dataclasses.dataclass
class Profile:
    """Cycles by instruction and by state, from the first instruction of the program that reaches the ROB's head on."""

    instructions: dict[int, float] = dataclasses.field(default_factory=dict)
    states: Counter[str] = dataclasses.field(default_factory=Counter)
    # Instructions in the order in which they commit.
    path: list[int] = dataclasses.field(default_factory=list)

    def add(self, address: int, cycles: float) -> None:
        """Charges cycles to an instruction."""
        self.instructions[address] = self.instructions.get(address, 0) + cycles


def cycles(path: pathlib.Path) -> Iterator[Cycle]:
    """Reads a trace, which may be compressed by gzip."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise TraceError(f"{path}: {error}") from error
    if not data.startswith(MAGIC) or len(data) <= len(MAGIC):
        raise TraceError(f"{path}: expected a trace that begins with {MAGIC.decode()}, found {data[:len(MAGIC)]!r}")
    banks = data[len(MAGIC)]
    if not 1 <= banks <= 4:
        raise TraceError(f"{path}: expected 1 to 4 banks, found {banks}")
    at = len(MAGIC) + 1
    while at < len(data):
        if at + 8 > len(data):
            raise TraceError(f"{path}: ends within a record, at byte {at}")
        flags = int.from_bytes(data[at:at + 8], "little")
        shown = [bank for bank in range(banks) if flags >> bank & 1 or flags >> 8 + bank & 1]
        dispatched = (flags >> 12 & 15).bit_count()
        end = at + 8 + 4 * (len(shown) + dispatched)
        if end > len(data):
            raise TraceError(f"{path}: ends within a record, at byte {at}")
        addresses = struct.unpack_from(f"<{len(shown)}I", data, at + 8)
        of_bank = dict(zip(shown, addresses, strict=True))
        yield Cycle(
            commits=[of_bank[bank] for bank in shown if flags >> bank & 1 and flags >> 4 + bank & 1],
            head=[of_bank[bank] for bank in shown if flags >> 8 + bank & 1],
            dispatches=dispatched > 0,
            flushes=bool(flags >> 22 & 1 or flags >> 26 & 1),
            mispredicts=bool(flags >> 27 & 1),
            rolls_back=bool(flags >> 32 & 1),
        )
        at = end


def oracle(trace: Iterator[Cycle], program: range) -> Profile:
    """Returns the time-proportional profile of a trace (Gottschall, Eeckhout and Jahre, TIP, MICRO 2021, section 3).

    A cycle belongs to the instructions that commit, in equal parts; if none does, to the oldest one in the ROB; if the ROB is empty because
    of a misprediction or a flush, to the instruction that committed last, which caused it; and otherwise to the next instruction that
    comes to the ROB.
    """
    found = Profile()
    # Cycles of an empty ROB for the next instruction that comes.
    drained = 0
    cause, since = FRONT_END, 0
    last: int | None = None
    begun = False
    for number, cycle in enumerate(trace):
        begun = begun or any(address in program for address in cycle.head)
        if not begun:
            continue
        if cycle.mispredicts or cycle.flushes:
            cause, since = FLUSH if cycle.flushes else MISPREDICT, number
        is_empty = not cycle.head or cycle.rolls_back
        if drained and not is_empty:
            found.add(cycle.head[0], drained)
            drained = 0
        if cycle.commits:
            for address in cycle.commits:
                found.add(address, 1 / len(cycle.commits))
            found.states[EXECUTION] += 1
            found.path += cycle.commits
            last = cycle.commits[-1]
        elif not is_empty:
            found.add(cycle.head[0], 1)
            found.states[STALL] += 1
        elif cause == FRONT_END or last is None:
            drained += 1
            found.states[FRONT_END] += 1
        else:
            found.add(last, 1)
            found.states[cause] += 1
        # The ROB has what is dispatched from the next cycle on.
        if cycle.dispatches and number > since + WRONG_PATH:
            cause = FRONT_END
    return found
