"""Runs bare-metal programs on the RTL of a tile of BOOM, and writes a per-cycle trace of its ROB for each."""

import argparse
import concurrent.futures
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from places import cache
from rtl import tap

TESTBENCH = pathlib.Path(__file__).with_name("testbench.cpp")

# What the test bench is told, in its order: option, default and meaning.
NUMBERS = (
    ("l2-latency", 6, "cycles from a request to the L2's first 8 bytes"),
    ("l2-kib", 512, "size of the L2"),
    ("l2-ways", 8, "ways of the L2"),
    ("memory-latency", 93, "cycles from a request to memory's first 8 bytes"),
    ("memory-cycles", 8, "cycles from line to line of memory"),
    ("max-cycles", 100_000_000, "cycles; a program that takes more fails"),
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/rtl", description=__doc__, epilog="""
DIR has the Verilog of a tile of BOOM v3, one file for each module, as Chisel's generator (CIRCT) writes it: BoomTile.sv, Rob.sv and so on,
with the memories that they name. The simulation is built once, by Verilator, which takes some minutes for a MegaBoom, and is kept in the
cache. Behind the tile is a model of an L2 cache and of a memory that answers in order; the defaults are those of the presets rtl-mega and
rtl-large. A program ends when it writes to its symbol tohost; those of workloads/programs tell what they took, too.
NAME.tr.gz is the trace (format: scripts/lib/bench/rtl_trace.py). `scripts/bench profiles NAME.elf NAME.tr.gz` compares it with our Oracle.
Examples:
  scripts/rtl ~/boom/rtl out/bench/programs/median.elf
  scripts/rtl ~/boom/rtl --memory-latency 160 --no-trace --format json a.elf b.elf""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verilog", type=pathlib.Path, metavar="DIR", help="the generated Verilog")
    parser.add_argument("programs", nargs="+", type=pathlib.Path, metavar="ELF", help="programs for machine mode, at 0x80000000")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/rtl"), metavar="DIR", help="for traces (default: out/rtl)")
    for name, default, meaning in NUMBERS:
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{meaning} (default: {default})")
    parser.add_argument("--no-trace", action="store_true", help="counts alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="programs at once (default: one a processor)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: all counts as JSON")
    return parser.parse_args()


def simulation(verilog: pathlib.Path) -> pathlib.Path:
    """Returns the simulation of a tile, which it builds if the cache does not have it."""
    tile = tap.read(verilog)
    files = sorted(path for path in verilog.iterdir() if path.suffix in (".sv", ".v"))
    text = tap.module(tile)
    version = subprocess.run(["verilator", "--version"], capture_output=True, text=True, check=True).stdout
    content = hashlib.sha256("\0".join([text, version, TESTBENCH.read_text()]).encode())
    for path in files:
        content.update(path.name.encode() + b"\0" + path.read_bytes())
    built = cache() / "rtl" / content.hexdigest()[:16]
    if built.exists():
        return built
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent, prefix=".building-") as name:
        folder = pathlib.Path(name)
        (folder / "tap.sv").write_text(text)
        indices = 1 << (tile.banks - 1).bit_length()
        command: list[str | pathlib.Path] = [
            "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3", "--x-assign", "fast", "--x-initial", "fast",
            "--noassert", "-DSYNTHESIS", "-Wno-fatal", "-Wno-lint", "--no-timing", "--top-module", "tap", "--output-split", "40000",
            "--output-split-cfuncs", "4000", "-CFLAGS", f"-DBANKS={tile.banks} -DINDICES={indices}",
            "-MAKEFLAGS", "OPT_FAST=-O2 OPT_SLOW=-O0 OPT_GLOBAL=-O1", "-Mdir", folder / "obj", "-y", verilog.resolve(),
            folder / "tap.sv", TESTBENCH,
        ]
        print(f"rtl: building the simulation of a tile with {tile.banks} banks and {tile.rows} rows of the ROB; some minutes",
              file=sys.stderr, flush=True)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            sys.exit("\n".join([*done.stdout.splitlines()[-30:], f"rtl: Verilator cannot build the Verilog in {verilog}, see above"]))
        shutil.move(folder / "obj" / "Vtap", built)
    return built


def numbers(args: argparse.Namespace) -> list[int]:
    """Returns what the test bench is told."""
    return [getattr(args, name.replace("-", "_")) for name, _, _ in NUMBERS]


def run(args: argparse.Namespace, program: pathlib.Path, binary: pathlib.Path) -> dict[str, Any]:
    """Runs a program; returns what was counted."""
    trace = args.out / f"{program.stem}.tr"
    command: list[str | pathlib.Path] = [binary, *map(str, numbers(args)), program, *([] if args.no_trace else [trace])]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"program": program.stem, "error": done.stderr.strip() or f"exit status {done.returncode}"}
        if not args.no_trace:
            with open(trace, "rb") as whole, gzip.open(f"{trace}.gz.partial", "wb", 6) as packed:
                shutil.copyfileobj(whole, packed)
            pathlib.Path(f"{trace}.gz.partial").rename(f"{trace}.gz")
    finally:
        trace.unlink(missing_ok=True)
    return {"program": program.stem, **json.loads(done.stdout)}


def write(found: dict[str, Any]) -> None:
    """Prints a line of a program."""
    if "error" in found:
        print(found["error"], file=sys.stderr, flush=True)
        return
    text = f"{found['program']:14} {found['all_cycles']:>11,} cycles from reset"
    if "cycles" in found:
        text += (f"; measured: {found['cycles']:,} cycles, {found['retired']:,} instructions, {found['dispatched']:,} dispatched, "
                 f"{found['mispredicted']:,} mispredicted")
    print(text, flush=True)


def main() -> None:
    args = arguments()
    names = [program.stem for program in args.programs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"rtl: expected programs of different names, found {twice[0]} twice: their traces would be one file")
    if min(*numbers(args), args.jobs) < 1 or args.l2_kib * 16 % args.l2_ways:
        sys.exit("rtl: expected numbers above 0, and an L2 of whole sets")
    try:
        binary = simulation(args.verilog)
        args.out.mkdir(parents=True, exist_ok=True)
    except (OSError, tap.TapError, subprocess.CalledProcessError) as problem:
        sys.exit(f"rtl: {problem}")
    all_found = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for found in pool.map(lambda program: run(args, program, binary), args.programs):
            all_found.append(found)
            if args.format == "text":
                write(found)
    if args.format == "json":
        print(json.dumps(all_found, indent=2))
    if any("error" in found for found in all_found):
        sys.exit(1)


if __name__ == "__main__":
    main()
