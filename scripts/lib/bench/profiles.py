"""Our Oracle's profile of programs beside the one that a per-cycle trace of BOOM's RTL gives of the same binary.

Without files: of the programs in workloads/programs, whose profiles by the RTL of MegaBoom are kept there (rtl-mega.json).
"""

import argparse
import bisect
import dataclasses
import hashlib
import itertools
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench.common import add_paths
from bench.programs import PROGRAMS, build
from bench.rtl_trace import EXECUTION, FLUSH, FRONT_END, MISPREDICT, STALL, STATES, Profile, TraceError, cycles, oracle

# Categories of our cycle stacks by what the RTL's trace tells apart.
CATEGORIES = {
    "Execution": EXECUTION, "ALU stall": STALL, "Load stall": STALL, "Store stall": STALL, "Front-end": FRONT_END, "Mispredict": MISPREDICT,
    "Misc. flush": FLUSH,
}
# Share of our cycles in instructions beyond those that the report lists from which on it is said.
BEYOND = 0.001
PT_LOAD, SHT_SYMTAB, STT_FUNC = 1, 2, 2


@dataclasses.dataclass
class Program:
    """Where an ELF file's code is, and its functions."""

    code: range
    starts: list[int]
    names: list[str]
    # Tells what is loaded.
    digest: str

    def function(self, address: int) -> str:
        """Returns the name of the function that an address is in."""
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 and address in self.code else "?"


def read_program(path: pathlib.Path) -> Program:
    """Reads an ELF file."""
    try:
        return program_of(path, path.read_bytes())
    except (struct.error, IndexError, ValueError) as problem:
        sys.exit(f"bench: {path}: a damaged ELF file ({problem})")


def program_of(path: pathlib.Path, data: bytes) -> Program:
    """Returns the program in the bytes of an ELF file."""
    if data[:5] != b"\x7fELF\x02":
        sys.exit(f"bench: {path}: expected a 64-bit ELF file")
    segments, sections = struct.unpack_from("<QQ", data, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", data, 54)
    low, high = [], []
    loaded = hashlib.sha256()
    for number in range(segment_count):
        kind, _, offset, address, _, in_file, size = struct.unpack_from("<IIQQQQQ", data, segments + number * segment_size)
        if kind == PT_LOAD:
            loaded.update(struct.pack("<Q", address) + data[offset:offset + in_file])
            low.append(address)
            high.append(address + size)
    if not low:
        sys.exit(f"bench: {path}: has no segment to load")
    functions: dict[int, str] = {}
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + number * section_size) for number in range(section_count)]
    for header in headers:
        if header[1] != SHT_SYMTAB:
            continue
        names = headers[header[6]][4]
        for at in range(header[4], header[4] + header[5], 24):
            name, info, _, index, value = struct.unpack_from("<IBBHQ", data, at)
            label = data[names + name:data.index(0, names + name)].decode(errors="replace")
            # Assembler code has symbols without a type.
            if index != 0 and label and not label.startswith("$") and info & 15 in (0, STT_FUNC):
                functions.setdefault(value, label)
    starts = sorted(functions)
    return Program(range(min(low), max(high)), starts, [functions[start] for start in starts], loaded.hexdigest())


def blocks(path: list[int]) -> dict[int, int]:
    """Returns the first instruction of each one's basic block: as far as instructions always followed each other."""
    after: dict[int, set[int]] = defaultdict(set)
    before: dict[int, set[int]] = defaultdict(set)
    for one, two in itertools.pairwise(path):
        after[one].add(two)
        before[two].add(one)
    first: dict[int, int] = {}
    for address in sorted(after.keys() | before.keys()):
        previous = before[address]
        joins = len(previous) == 1 and all(len(after[one]) == 1 and one < address and one in first for one in previous)
        first[address] = first[next(iter(previous))] if joins else address
    return first


@dataclasses.dataclass
class Reference:
    """What the RTL says of a program."""

    # What was loaded.
    digest: str
    retired: int
    states: dict[str, int]
    # By address of an instruction: its cycles, and the first instruction of its block.
    instructions: dict[int, float]
    blocks: dict[int, int]


def reference_of(program: Program, trace: pathlib.Path) -> Reference:
    """Returns what a trace says of a program."""
    found: Profile = oracle(cycles(trace), program.code)
    if not found.path:
        raise TraceError(f"{trace}: no instruction of the program commits")
    states = {state: found.states[state] for state in STATES}
    return Reference(program.digest, len(found.path), states, found.instructions, blocks(found.path))


def as_json(reference: Reference) -> str:
    """Returns a reference as one line. Addresses are as far from the one before as the row says, and blocks begin that far before them."""
    rows, before = [], 0
    for address, own in sorted(reference.instructions.items()):
        rows.append([address - before, round(own, 1), address - reference.blocks.get(address, address)])
        before = address
    whole = {"digest": reference.digest, "retired": reference.retired, "states": reference.states, "instructions": rows}
    return json.dumps(whole, separators=(",", ":"))


def kept(path: pathlib.Path) -> dict[str, Reference]:
    """Returns the references in a file, by program."""
    references = {}
    for name, of in json.loads(path.read_text()).items():
        addresses = list(itertools.accumulate(distance for distance, _, _ in of["instructions"]))
        rows = list(zip(addresses, of["instructions"], strict=True))
        references[name] = Reference(of["digest"], of["retired"], of["states"], {address: own for address, (_, own, _) in rows},
                                     {address: address - into for address, (_, _, into) in rows})
    return references


def keep(path: pathlib.Path, references: Mapping[str, Reference]) -> None:
    """Writes references to a file, a line a program."""
    lines = [f"{json.dumps(name)}: {as_json(reference)}" for name, reference in sorted(references.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def error(reference: Mapping[Any, float], ours: Mapping[Any, float]) -> float:
    """Returns the share of the cycles that ours gives to others than the reference does, in percent."""
    whole, own = sum(reference.values()), sum(ours.values())
    names = reference.keys() | ours.keys()
    return 50 * sum(abs(reference.get(name, 0) / whole - ours.get(name, 0) / own) for name in names)


def grouped(profile: Mapping[int, float], group: Mapping[int, Any]) -> dict[Any, float]:
    """Returns the sums of cycles by group."""
    sums: dict[Any, float] = defaultdict(float)
    for address, own in profile.items():
        sums[group.get(address, address)] += own
    return sums


def compared(tipsim: pathlib.Path, core: str, elf: pathlib.Path, program: Program, reference: Reference) -> dict[str, Any]:
    """Runs a program and compares its profile with the RTL's."""
    with tempfile.TemporaryDirectory() as out:
        command: list[str | pathlib.Path] = [tipsim, "exec", "--mode", "timing", "--core", core, "--out", out, elf]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        report = pathlib.Path(out, "report.json")
        if not report.is_file():
            sys.exit(f"bench: {elf}: exit status {done.returncode}\n{done.stderr}")
        found = json.loads(report.read_text())
    rows = [row for row in found["instructions"] if int(row["pc"], 16) in program.code]
    ours = {int(row["pc"], 16): row["cycles"] for row in rows}
    texts = {int(row["pc"], 16): row["text"] for row in rows}
    if not ours:
        sys.exit(f"bench: {elf}: the report lists none of its instructions")
    whole = found["processes"][0]
    states: dict[str, float] = defaultdict(float)
    for category, share in zip(found["categories"], whole["stack"], strict=True):
        states[CATEGORIES[category]] += share
    rtl = reference.instructions
    all_cycles = sum(reference.states.values())
    rtl_states = {state: reference.states[state] / all_cycles for state in STATES}
    addresses = rtl.keys() | ours.keys()
    functions = {address: program.function(address) for address in addresses}
    apart = sorted(addresses, key=lambda address: -abs(rtl.get(address, 0) - ours.get(address, 0)))
    return {
        "program": elf.stem,
        "instructions": {"rtl": reference.retired, "ours": found["totals"]["instructions"]},
        "cycles": {"rtl": all_cycles, "ours": whole["cycles"]},
        # The report has the most expensive instructions alone.
        "beyond_report": max(0, 1 - sum(ours.values()) / whole["cycles"]),
        "error": {
            "cycles": 100 * (whole["cycles"] / all_cycles - 1),
            "instruction": error(rtl, ours),
            "block": error(*(grouped(profile, reference.blocks) for profile in (rtl, ours))),
            "function": error(*(grouped(profile, functions) for profile in (rtl, ours))),
        },
        "states": {state: {"rtl": rtl_states[state], "ours": states[state]} for state in STATES},
        "states_overlap": 100 * sum(min(rtl_states[state], states[state]) for state in STATES),
        "apart": [
            {"address": address, "function": functions[address], "text": texts.get(address, ""), "rtl": rtl.get(address, 0),
             "ours": ours.get(address, 0)}
            for address in apart
        ],
    }


def write(found: dict[str, Any], rows: int) -> None:
    """Prints a comparison."""
    cycle, error_of = found["cycles"], found["error"]
    print(f"{found['program']}: {cycle['rtl']:,} cycles of the RTL, {cycle['ours']:,.0f} of ours ({error_of['cycles']:+.1f} %)")
    if abs(found["instructions"]["rtl"] - found["instructions"]["ours"]) > found["instructions"]["rtl"] // 100:
        print(f"  not the same path: {found['instructions']['rtl']:,} instructions of the RTL, {found['instructions']['ours']:,} of ours")
    if found["beyond_report"] > BEYOND:
        beyond = 100 * found["beyond_report"]
        print(f"  {beyond:.1f} % of our cycles are of instructions that the report does not list: errors are without them")
    levels = ", ".join(f"{error_of[level]:.1f} % by {level}" for level in ("instruction", "block", "function"))
    print(f"  profile differs by {levels}; states overlap by {found['states_overlap']:.1f} %")
    states = (f"{state} {100 * own['rtl']:.1f} % RTL, {100 * own['ours']:.1f} % ours" for state, own in found["states"].items())
    print("  " + "; ".join(states))
    for row in found["apart"][:rows]:
        more = row["ours"] - row["rtl"]
        print(f"  {row['address']:#x} {row['function'][:24]:24} {row['text'][:28]:28} {row['rtl']:>10.0f} {row['ours']:>10.0f}"
              f" {more:>+9.0f} {100 * more / cycle['rtl']:>+6.2f} %")


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench profiles", description=__doc__, epilog="""
The trace is of BOOM with the preset's parameters, one record for each cycle from reset on; scripts/lib/bench/rtl_trace.py
has the format. Its profile is made by the rules of the TIP paper's Oracle. Errors are shares of the cycles that we give to
other instructions, basic blocks or functions.
Examples:
  scripts/bench profiles
  scripts/bench profiles multiply.elf multiply.mega.tr.gz --core rtl-mega""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="ELF TRACE",
                        help="a program, and a trace of the same binary (scripts/rtl); then others")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FILE", help="write what the traces say to FILE, and compare nothing")
    parser.add_argument("--core", default="rtl-mega", help="core preset (default: rtl-mega)")
    parser.add_argument("--rows", type=int, default=8, metavar="N", help="show so many of the instructions that differ most (default: 8)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: everything as JSON")
    add_paths(parser, "tipsim", "out")
    return parser.parse_args()


def means(found: Iterable[dict[str, Any]]) -> None:
    """Prints the means of several comparisons."""
    all_found = list(found)
    levels = ("instruction", "block", "function")
    mean = {level: sum(one["error"][level] for one in all_found) / len(all_found) for level in levels}
    most = {level: max(one["error"][level] for one in all_found) for level in levels}
    each = (f"{mean[level]:.1f} % (at most {most[level]:.1f}) by {level}" for level in levels)
    print(f"mean of {len(all_found)} programs: " + ", ".join(each))


def asked_for(args: argparse.Namespace) -> Iterator[tuple[pathlib.Path, Program, Reference]]:
    """Returns programs, each with what the RTL says of it: of the files, or of the kept ones."""
    for elf, trace in zip(args.files[::2], args.files[1::2], strict=True):
        program = read_program(elf)
        yield elf, program, reference_of(program, trace)
    if args.files:
        return
    for name, reference in kept(PROGRAMS / "rtl-mega.json").items():
        elf = build(name, args.out)
        program = read_program(elf)
        if program.digest == reference.digest:
            yield elf, program, reference
        else:
            print(f"{name}: this compiler makes another program of it than the one that the RTL executed; not compared", file=sys.stderr)


def main() -> None:
    """Compares what is asked for."""
    args = arguments()
    if len(args.files) % 2:
        sys.exit(f"bench: expected a program and a trace, found {args.files[-1]} alone")
    found = []
    try:
        if args.keep:
            keep(args.keep, {elf.stem: reference for elf, _, reference in asked_for(args)})
            return
        for elf, program, reference in asked_for(args):
            found.append(compared(args.tipsim, args.core, elf, program, reference))
            if args.format == "text":
                write(found[-1], args.rows)
    except (OSError, TraceError) as problem:
        sys.exit(f"bench: {problem}")
    if args.format == "json":
        print(json.dumps(found, indent=2))
    elif len(found) > 1:
        means(found)


if __name__ == "__main__":
    main()
