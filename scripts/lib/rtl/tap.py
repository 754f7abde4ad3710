"""The tap: a module in SystemVerilog that has a tile of BOOM in it, and shows what a test bench needs of the tile's inside.

All of its ports are 64 bits wide, so that one test bench serves tiles of any size. What differs between tiles is read from the Verilog
that the user's generator has written (BOOM v3 by Chisel and CIRCT): the tile's ports, the banks and rows of the ROB, the entries of the
fetch target queue.
"""

import dataclasses
import pathlib
import re
from collections.abc import Mapping

# Where a tile starts: the test bench has its first instructions there.
RESET_VECTOR = 0x10000
# Signals of TileLink (SiFive TileLink Specification 1.8, section 3) that the test bench reads and writes, by who drives them.
FROM_TILE = (
    "a_valid", "a_bits_opcode", "a_bits_size", "a_bits_source", "a_bits_address", "a_bits_mask", "a_bits_data",
    "c_valid", "c_bits_opcode", "c_bits_size", "c_bits_source", "c_bits_address", "c_bits_data", "d_ready",
)
TO_TILE = (
    "a_ready", "c_ready", "d_valid", "d_bits_opcode", "d_bits_param", "d_bits_size", "d_bits_source", "d_bits_sink", "d_bits_data",
    "e_ready",
)
# Signals of the ROB in one bit or field, by their name in the tap.
OF_ROB = {
    "flush": "io_flush_valid", "flush_kind": "io_flush_bits_flush_typ", "exception": "io_com_xcpt_valid",
    "mispredict": "io_brupdate_b2_mispredict", "mispredicted": "io_brupdate_b2_uop_rob_idx", "state": "rob_state", "head_row": "rob_head",
    "tail_row": "rob_tail",
}


class TapError(Exception):
    """The Verilog is not that of a tile of BOOM v3."""


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of a module."""

    name: str
    is_input: bool
    width: int


@dataclasses.dataclass(frozen=True)
class Tile:
    """What tiles of BOOM differ in."""

    ports: tuple[Port, ...]
    # What the names of the signals of the tile's TileLink port begin with.
    prefix: str
    banks: int
    rows: int
    targets: int


def source(folder: pathlib.Path, module: str) -> str:
    """Returns the text of a module, which has a file of its own."""
    for suffix in (".sv", ".v"):
        path = folder / f"{module}{suffix}"
        if path.is_file():
            return path.read_text(errors="replace")
    raise TapError(f"{folder}: expected {module}.sv, the module of that name as Chisel's generator writes it; not found")


def ports(text: str, module: str) -> tuple[Port, ...]:
    """Returns the ports of a module. One without a direction has that of the one before, and its width."""
    header = re.search(rf"^module {module}\s*\((.*?)\);", text, re.DOTALL | re.MULTILINE)
    if not header:
        raise TapError(f"expected a module {module} with a list of ports")
    found, is_input, width = [], True, 1
    for declaration in re.sub(r"//[^\n]*", "", header[1]).split(","):
        match = re.fullmatch(r"\s*(input|output)?\s*(?:wire|logic)?\s*(?:\[(\d+):0\])?\s*(\w+)\s*", declaration)
        if not match:
            raise TapError(f"{module}: expected a port, found {declaration.strip()!r}")
        if match[1]:
            is_input, width = match[1] == "input", 1
        if match[2]:
            width = int(match[2]) + 1
        found.append(Port(match[3], is_input, width))
    return tuple(found)


def registers(text: str, pattern: str) -> int:
    """Returns how many registers have a name that matches."""
    return len(set(re.findall(rf"^\s*reg\s+(?:\[\d+:0\])?\s*({pattern});", text, re.MULTILINE)))


def read(folder: pathlib.Path) -> Tile:
    """Reads what a folder of generated Verilog says of its tile."""
    of_tile = ports(source(folder, "BoomTile"), "BoomTile")
    rob = source(folder, "Rob")
    prefixes = [port.name.removesuffix("a_valid") for port in of_tile if port.name.endswith("_a_valid") and not port.is_input]
    banks = len({port.name for port in ports(rob, "Rob") if re.fullmatch(r"io_enq_valids_\d+", port.name)})
    rows = registers(rob, r"rob_val_\d+")
    targets = registers(source(folder, "FetchTargetQueue"), r"pcs_\d+")
    if len(prefixes) != 1 or not 1 <= banks <= 4 or not 2 <= rows <= 64 or not 2 <= targets <= 64:
        raise TapError(f"{folder}: expected one TileLink port, 1 to 4 banks of the ROB, 2 to 64 rows and fetch targets; found "
                       f"{len(prefixes)}, {banks}, {rows} and {targets}: not a tile of BOOM v3")
    return Tile(of_tile, prefixes[0], banks, rows, targets)


def of_all_banks(tile: Tile, signal: str) -> str:
    """Returns the bits of a signal that each bank has, with that of bank 0 as the lowest. `{}` stands for the bank."""
    return "{" + ", ".join(signal.format(bank) for bank in reversed(range(tile.banks))) + "}"


def tied(port: Port) -> str:
    """Returns what an input has that the test bench does not drive: no interrupt, hart 0, and where the tile starts."""
    return str(RESET_VECTOR) if "reset_vector" in port.name else "0"


def module(tile: Tile) -> str:
    """Returns the tap of a tile."""
    rob = "tile.core.rob"
    shown: dict[str, str] = {name: f"{tile.prefix}{name}" for name in FROM_TILE}
    signals: dict[str, str] = {
        "commits": of_all_banks(tile, f"{rob}.io_commit_valids_{{}}"),
        "retires": of_all_banks(tile, f"{rob}.io_commit_arch_valids_{{}}"),
        "dispatches": of_all_banks(tile, f"{rob}.io_enq_valids_{{}}"),
        "head": of_all_banks(tile, f"valid{{}}[{rob}.com_idx]"),
        "mscratch": "tile.core.csr.reg_mscratch",
        **{name: f"{rob}.{signal}" for name, signal in OF_ROB.items()},
    }
    for bank in range(tile.banks):
        micro_op = f"{rob}.io_enq_uops_{bank}_"
        signals[f"index{bank}"] = f"{micro_op}rob_idx"
        # A micro-op has only the low bits of its address; the fetch target queue has the address of its packet.
        signals[f"pc{bank}"] = f"({{targets[{micro_op}ftq_idx][39:6], 6'd0}} | {micro_op}pc_lob) - ({micro_op}edge_inst ? 2 : 0)"
    for bank in range(tile.banks, 4):
        signals[f"index{bank}"] = signals[f"pc{bank}"] = "0"
    return "\n".join(lines(tile, shown, signals)) + "\n"


def lines(tile: Tile, shown: Mapping[str, str], signals: Mapping[str, str]) -> list[str]:
    """Returns the lines of the tap: `shown` are ports of the tile, `signals` what is inside."""
    known = {port.name: port for port in tile.ports}
    driven = {f"{tile.prefix}{name}": name for name in TO_TILE}
    missing = [name for name in (*driven, *shown.values()) if name not in known]
    if missing:
        raise TapError(f"BoomTile: expected the port {missing[0]}, found none of that name")
    declared = ["input clock", "input reset", *(f"input [63:0] {name}" for name in TO_TILE),
                *(f"output [63:0] {name}" for name in (*shown, *signals))]
    connected = [".clock(clock)", ".reset(reset)"]
    wires = []
    for port in tile.ports:
        if port.name in ("clock", "reset"):
            continue
        if port.name in driven:
            connected.append(f".{port.name}({driven[port.name]}[{port.width - 1}:0])")
        elif port.is_input:
            connected.append(f".{port.name}({tied(port)})")
        elif port.name in shown.values():
            wires.append(f"  wire [{port.width - 1}:0] {port.name};")
            connected.append(f".{port.name}({port.name})")
    found = ["module tap(", ",\n".join(f"  {port}" for port in declared), ");", *wires]
    found += ["  BoomTile tile(", ",\n".join(f"    {port}" for port in connected), "  );"]
    found.append(f"  wire [39:0] targets [0:{tile.targets - 1}];")
    found += [f"  assign targets[{number}] = tile.frontend.ftq.pcs_{number};" for number in range(tile.targets)]
    for bank in range(tile.banks):
        # The first bank's registers have the row's number alone.
        of_bank = f"{bank}_" if bank else ""
        valid = ", ".join(f"tile.core.rob.rob_val_{of_bank}{row}" for row in reversed(range(tile.rows)))
        found.append(f"  wire [{tile.rows - 1}:0] valid{bank} = {{{valid}}};")
    found += [f"  assign {name} = {signal};" for name, signal in {**shown, **signals}.items()]
    return [*found, "endmodule"]
