"""Tests of scripts/lib that need neither a guest nor a simulator: `python3 scripts/lib/quick_test.py`."""

import ast
import collections
import gzip
import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import built
import comments
import places
import report_terms
from bench import profiles, rtl_trace
from bench.common import chosen, geometric_mean, on_processors
from places import LIB, REPO
from rtl import tap
from study import parallel_text
from suites.commands import write_specs
from suites.common import read_table
from suites.spec import joined

# Scripts that are called by their users, each with what asks it for help.
SCRIPTS = [["fleet"], ["study"], ["study", "parallel"], ["run-spec"], ["profile"], ["rtl"], ["dev"], ["test"], ["fuzz"], ["fuzz-input"],
           ["bench"], ["bench", "functional"], ["bench", "profiles"], ["bench", "programs"], ["bench", "samplers"], ["bench", "soak"],
           ["bench", "timing"]]
# Modules that are programs, and that only other programs and tests call.
PROGRAMS = ["bench.sampling", "bench.what_if", "fleet.test", "suites", "suites.test"]


def constants(path: Path) -> dict[str, Any]:
    """Returns what a Python file assigns to its names outside of functions, where that is a literal. The file is not executed."""
    found: dict[str, Any] = {}
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                continue
    return found


def crates_with_features(*selection: str) -> set[str]:
    """Returns the crates, with versions and features, that cargo builds for a selection of packages."""
    tree = subprocess.run(["cargo", "tree", *selection, "--prefix", "none", "--format", "{p}|{f}"],
                          cwd=REPO, check=True, capture_output=True, text=True).stdout
    return {re.sub(r" \(.*?\)", "", line) for line in tree.splitlines()}


class Wheel(unittest.TestCase):
    """The wheel that the Python tests install."""

    def test_it_is_made_of_what_the_tests_have_built(self) -> None:
        wheel = crates_with_features("--package", "tipsim-python", "--features", "as-in-tests", "--edges", "normal,build")
        built_anew = wheel - crates_with_features("--workspace", "--edges", "normal,build,dev")
        self.assertEqual([line.split()[0] for line in built_anew], ["tipsim-python"],
                         f"emulator/python/Cargo.toml, as-in-tests: the workspace has other features of {sorted(built_anew)}")


class Modules(unittest.TestCase):
    """The modules of scripts/lib, and the scripts that run them."""

    def test_each_can_be_imported_and_says_what_it_is_for(self) -> None:
        names = {found.name for found in pkgutil.walk_packages([str(LIB)])}
        self.assertIn("fleet.task", names)
        # The first of these runs another module. The second is a program that is copied into the stand-ins for SPEC CPU.
        for name in sorted(names - {"__main__", "suites.test.standin_runcpu"}):
            self.assertTrue(importlib.import_module(name).__doc__, name)

    def test_scripts_answer_through_a_link_and_in_another_folder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # A folder with modules of these names, which are not the ones that are meant.
            for name in ["fleet", "study", "suites", "bench", "places"]:
                (Path(folder) / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
            (Path(folder) / "clone").symlink_to(REPO)
            for name, *part in SCRIPTS:
                link = Path(folder) / f"link-to-{name}"
                if not link.exists():
                    link.symlink_to(REPO / "scripts" / name)
                for script in [link, Path("clone/scripts") / name]:
                    self.answers([str(script), *part, "--help"], folder)
            for module in PROGRAMS:
                self.answers([*places.program(module), "--help"], folder)

    def answers(self, command: list[str], folder: str) -> None:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        self.assertIn("usage", done.stdout.lower(), command)


class Terms(unittest.TestCase):
    """The terms of a report are the same ones wherever Python has them."""

    def test_the_package_draws_with_the_same_names_and_colours(self) -> None:
        plot = constants(REPO / "emulator/python/tipsim/plot.py")
        self.assertEqual(dict(plot["CATEGORIES"].values()), report_terms.CATEGORY_COLOURS)
        self.assertEqual(plot["COLOURS"], {"oracle": "black", **report_terms.PROFILER_COLOURS})

    def test_every_profiler_and_category_has_all_that_is_said_of_it(self) -> None:
        self.assertEqual(list(report_terms.SHORT_NAMES), report_terms.PROFILERS)
        self.assertEqual(list(report_terms.PROFILER_COLOURS), report_terms.PROFILERS)
        self.assertLess(set(report_terms.PROFILER_NAMES), set(report_terms.PROFILERS))
        self.assertEqual(len(report_terms.PAGE_COLOURS), len(report_terms.CATEGORY_COLOURS))

    def test_the_parallel_study_has_every_component_of_a_speedup_stack(self) -> None:
        source = (REPO / "emulator/crates/profile/src/speedup.rs").read_text()
        listed = source[source.index("pub const ALL"):]
        names = re.findall(r"Self::(\w+),", listed[:listed.index("];")])
        components = [re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in names]
        self.assertEqual(list(parallel_text.COMPONENTS), components)
        self.assertEqual(list(parallel_text.IN_WORDS), components)


class Benchmarks(unittest.TestCase):
    """What the measurements share."""

    def test_only_names_that_are_known_can_be_chosen(self) -> None:
        self.assertEqual(chosen("bench", None, ["sort", "chase"]), ["sort", "chase"])
        self.assertEqual(chosen("bench", "chase,sort", ["sort", "chase"]), ["chase", "sort"])
        with self.assertRaisesRegex(SystemExit, "bench: --only: expected some of sort, chase; found boot"):
            chosen("bench", "boot,sort", ["sort", "chase"])

    def test_means_and_times(self) -> None:
        self.assertAlmostEqual(geometric_mean([2, 8]), 4)
        seconds, done = on_processors(["sh", "-c", "cat; echo said; echo error >&2; seq 300000 >&2; exit 3"])
        self.assertGreater(seconds, 0)
        self.assertEqual((done.returncode, done.stderr[:8]), (3, "error\n1\n"))


def rob(
    *, commits: dict[int, int] | None = None, head: dict[int, int] | None = None, dispatched: tuple[int, ...] = (), flags: int = 0,
) -> bytes:
    """Returns a record of a trace of the RTL: addresses of slots by bank, addresses that are dispatched, and further flags."""
    commits, head = commits or {}, head or {}
    for bank in commits:
        flags |= 0x11 << bank
    for bank in head:
        flags |= 1 << 8 + bank
    flags |= (1 << len(dispatched)) - 1 << 12
    row = [(commits | head)[bank] for bank in sorted(commits | head)]
    return flags.to_bytes(8, "little") + b"".join(address.to_bytes(4, "little") for address in (*row, *dispatched))


class RtlTraces(unittest.TestCase):
    A, B, C, D = (0x8000_0000 + 4 * n for n in range(4))

    def test_each_cycle_belongs_to_an_instruction(self) -> None:
        records = [
            rob(head={0: 0x1_0000}),                                    # the boot ROM
            rob(head={0: self.A, 1: self.B}),                           # A holds the ROB up
            rob(commits={0: self.A, 1: self.B}, head={0: self.A, 1: self.B}),
            rob(),                                                      # until C comes
            rob(head={2: self.C}),
            rob(commits={2: self.C}, head={2: self.C}, flags=1 << 27),  # a mispredicted branch
            rob(), rob(dispatched=(self.A,)), rob(),                    # what is dispatched is of the wrong path
            rob(dispatched=(self.D,)),                                  # in the ROB from the next cycle on
            rob(commits={3: self.D}, head={3: self.D}, flags=1 << 22),  # flushes
            rob(),
            rob(head={0: self.B}, flags=1 << 32),                       # shows the row that is rolled back
        ]
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory) / "a.tr.gz"
            trace.write_bytes(gzip.compress(b"BOOMTR1\4" + b"".join(records)))
            found = rtl_trace.oracle(rtl_trace.cycles(trace), range(self.A, self.D + 4))
            self.assertEqual(found.instructions, {self.A: 1.5, self.B: 0.5, self.C: 7, self.D: 3})
            self.assertEqual(found.states, {"Execution": 3, "Stall": 2, "Front-end": 1, "Mispredict": 4, "Misc. flush": 2})
            self.assertEqual(found.path, [self.A, self.B, self.C, self.D])
            for damaged in (b"", b"BOOMTR1", b"BOOMTR1\x09", b"BOOMTR2\4" + records[0], b"BOOMTR1\4" + records[0][:-1], b"BOOMTR1\4abc"):
                trace = Path(directory) / "b.tr"
                trace.write_bytes(damaged)
                with self.assertRaises(rtl_trace.TraceError):
                    list(rtl_trace.cycles(trace))

    def test_profiles_are_compared_by_the_share_that_is_elsewhere(self) -> None:
        self.assertEqual(profiles.error({self.A: 3, self.B: 1}, {self.A: 1, self.C: 1}), 50)
        loop = [self.A, self.B, self.C, self.A, self.B, self.D]
        self.assertEqual(profiles.blocks(loop), {self.A: self.A, self.B: self.A, self.C: self.C, self.D: self.D})


class Taps(unittest.TestCase):
    """The tap of a tile of BOOM, of which the Verilog says how large it is."""

    def tile(self, folder: Path, link: str = "") -> None:
        names = [f"auto_out_{name}" for name in (*tap.FROM_TILE, "e_valid")]
        inputs = [f"auto_out_{name}" for name in tap.TO_TILE]
        ports = ",\n".join(["  input         clock", "                reset", f"  output [{63}:0] {names[0]}", *names[1:],
                            f"  input  [3:0] {inputs[0]}", *inputs[1:], "  input [31:0] auto_reset_vector_in"])
        (folder / "BoomTile.sv").write_text(f"module BoomTile(\n{ports}{link}\n);\nendmodule\n")
        banks = ", ".join(f"io_enq_valids_{bank}" for bank in range(3))
        rows = "\n".join(f"  reg         rob_val{of}_{row};" for of in ("", "_1", "_2") for row in range(4))
        (folder / "Rob.sv").write_text(f"module Rob(\n  input clock, {banks}\n);\n{rows}\nendmodule\n")
        targets = "\n".join(f"  reg  [39:0]  pcs_{number};" for number in range(5))
        (folder / "FetchTargetQueue.sv").write_text(f"module FetchTargetQueue(\n  input clock\n);\n{targets}\nendmodule\n")

    def test_sizes_are_those_of_the_verilog(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.tile(folder)
            tile = tap.read(folder)
            self.assertEqual((tile.prefix, tile.banks, tile.rows, tile.targets), ("auto_out_", 3, 4, 5))
            text = tap.module(tile)
            for line in ("  assign head = {valid2[tile.core.rob.com_idx], valid1[tile.core.rob.com_idx], valid0[tile.core.rob.com_idx]};",
                         f"  wire [3:0] valid1 = {{{', '.join(f'tile.core.rob.rob_val_1_{row}' for row in (3, 2, 1, 0))}}};",
                         "    .auto_out_c_ready(c_ready[3:0]),", f"    .auto_reset_vector_in({tap.RESET_VECTOR})"):
                self.assertIn(line, text.splitlines())

    def test_other_verilog_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with self.assertRaisesRegex(tap.TapError, "expected BoomTile.sv"):
                tap.read(folder)
            self.tile(folder, ",\n  output other_a_valid")
            with self.assertRaisesRegex(tap.TapError, "expected one TileLink port.*found 2, 3, 4 and 5"):
                tap.read(folder)


class Comments(unittest.TestCase):
    """The check of comments."""

    def test_what_begins_anew_is_looked_at(self) -> None:
        text = ["/// Reads it.", "/// Of course.", "///", "/// As above.", "/// # Errors", "/// As of the other.", "/// Bytes,"]
        self.assertEqual([line for line, _ in comments.faults(text)], [4, 6, 7])
        self.assertEqual([line for line, _ in comments.faults(["fn f() {", "    // Those of before."])], [2])


class Specs(unittest.TestCase):
    """The run specs of SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0."""

    def test_they_are_as_the_tables_of_programs_say(self) -> None:
        write_specs(check=True)

    def test_all_programs_of_spec_cpu_2026_have_one(self) -> None:
        kinds = collections.Counter(row["kind"] for row in read_table(REPO / "workloads/spec2026"))
        self.assertEqual(kinds, {"intrate": 14, "fprate": 12, "intspeed": 13, "fpspeed": 13})


class SuitesCommands(unittest.TestCase):
    """What a run of a suite's program executes."""

    def test_commands_that_do_not_wait_become_one(self) -> None:
        commands = joined(["true", "echo first &", "exit 3 &", "true &", "wait", "true", "wait", "exit 4 &"])
        self.assertEqual(commands[::2], ["true", "true"])
        ends = [subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False) for command in commands]
        self.assertEqual([(end.returncode, end.stdout) for end in ends], [(0, ""), (3, "first\n"), (0, ""), (4, "")])

    def test_sampled_is_handed_on_as_a_setting(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # A clone in which nothing is built: the guest, cargo and the simulator are scripts.
            clone = Path(folder)
            built = {"guest-sw/build": "echo guest", "bin/cargo": "true", "target/release/tipsim": 'printf "%s\\n" "$@"'}
            for name, command in built.items():
                (clone / name).parent.mkdir(parents=True, exist_ok=True)
                (clone / name).write_text(f"#!/bin/sh\n{command}\n")
                (clone / name).chmod(0o755)
            (clone / "scripts/lib").mkdir(parents=True)
            (clone / "scripts/lib/toolchain.sh").write_text("need_toolchain() { :; }\n")
            shutil.copy(REPO / "scripts/run-spec", clone / "scripts")
            (clone / "one.toml").touch()
            done = subprocess.run([clone / "scripts/run-spec", clone / "one.toml", "--sampled", "--out", "a folder"],
                                  env={"PATH": f"{clone / 'bin'}:{os.environ['PATH']}"}, check=True, capture_output=True, text=True)
            self.assertEqual(done.stdout.splitlines()[4:], ["--set", 'run.sampling.scheme="systematic"', "--out", "a folder"])


class Built(unittest.TestCase):
    """What cargo has built, in the cache, and a fresh clone that takes it."""

    def test_a_clone_builds_what_differs(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            first, second, kept = (Path(directory) / name for name in ["first", "second", "cache/kept"])
            needs = 'below = { path = "../below" }\nside = { path = "../side" }'
            for name, needed, text in [("below", "", "pub const N: u8 = 1;"), ("side", "", "pub const N: u8 = 2;"),
                                       ("above", needs, "pub use below::N; pub use side::N as M;"),
                                       ("place", "", 'pub const PLACE: &str = env!("CARGO_MANIFEST_DIR");')]:
                (first / name / "src").mkdir(parents=True)
                (first / name / "src/lib.rs").write_text(text)
                (first / name / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nedition = "2024"\n[dependencies]\n{needed}\n')
            (first / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["below", "side", "above", "place"]\n')
            (first / ".gitignore").write_text("target\n")
            for command in (["init", "--quiet"], ["add", "."]):
                subprocess.run(["git", *command], check=True, cwd=first)
            self.assertEqual(compiled(first), {"below", "side", "above", "place"})
            built.keep(first, first / "target", kept)
            shutil.copytree(first, second, ignore=shutil.ignore_patterns("target"), copy_function=shutil.copy)
            shutil.rmtree(first)
            (second / "side/src/lib.rs").write_text("pub const N: u8 = 3;")
            # The clone is older than what was kept.
            for file in second.rglob("*.*"):
                os.utime(file, (1, 1))
            self.assertTrue(built.restore(second / "target", kept))
            built.give_times(second, second / "target")
            self.assertEqual(compiled(second), {"side", "above", "place"})
            # The next clone is as the first was, and not as the second, whose builds it has.
            built.keep(second, second / "target", kept)
            (second / "side/src/lib.rs").write_text("pub const N: u8 = 2;")
            shutil.rmtree(second / "target")
            built.restore(second / "target", kept)
            built.give_times(second, second / "target")
            self.assertEqual(compiled(second), {"side", "above", "place"}, "what has the path in it is always new")

    def test_a_target_directory_with_builds_is_left_alone(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            target, kept = Path(directory) / "target", Path(directory) / "kept"
            self.assertFalse(built.restore(target, kept))
            (target / "debug").mkdir(parents=True)
            (kept / "deps").mkdir(parents=True)
            self.assertFalse(built.restore(target, kept))
            self.assertEqual(list((target / "debug").iterdir()), [])


def compiled(workspace: Path) -> set[str]:
    """Builds a workspace. Returns the names of the packages that were compiled, and not taken as they were."""
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    command = ["cargo", "build", "--workspace", "--offline", "--message-format=json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=workspace, env=environment)
    messages = map(json.loads, done.stdout.splitlines())
    return {message["target"]["name"] for message in messages if message["reason"] == "compiler-artifact" and not message["fresh"]}


if __name__ == "__main__":
    unittest.main()
