"""What all suites need: the table of programs, errors, commands with a log, files of the host for the guest."""

import argparse
import contextlib
import csv
import dataclasses
import fcntl
import hashlib
import pathlib
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from places import REPO

LOG_LINES = 20
# Of an ELF file: the architecture, and the segment that names a dynamic linker.
EM_RISCV, PT_INTERP = 243, 3
# A program of a suite, as programs.csv has it.
Row = dict[str, str]


class BadTree(Exception):
    """Something is missing or wrong in what the user gave. `status` is the exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass
class Prepared:
    """A program that is ready to run."""

    title: str
    # Given to the guest as it is; commands run in it.
    folder: pathlib.Path
    commands: list[str]
    # Run after the commands, outside the region: programs of the suite that make output comparable.
    afterwards: list[str]
    environment: dict[str, str]
    # Commands of the host that compare the output, in the folder that the guest left: [command, file that it writes].
    checks: list[str]
    # The program narrows the region itself; otherwise each command is one.
    marks_itself: bool = False


class Suite(Protocol):
    """What a suite has: the module parsec, or an edition of SPEC CPU."""

    TITLE: str
    SIZES: list[str]

    def memory(self, row: Row, /) -> str:
        """The memory that the guest needs for a program."""

    def find_tree(self, arguments: argparse.Namespace, /) -> pathlib.Path:
        """The user's copy of the suite."""

    def prepare(self, tree: pathlib.Path, row: Row, size: str, threads: int, cache: pathlib.Path, /) -> Prepared:
        """Builds a program and sets up its input."""

    def check(self, prepared: dict[str, Any], results: pathlib.Path, /) -> None:
        """Compares the output of a run with the suite's."""


def say(text: object) -> None:
    print(f"run-spec: {text}", file=sys.stderr, flush=True)


def read_table(folder: pathlib.Path) -> list[Row]:
    with open(folder / "programs.csv", newline="") as file:
        return list(csv.DictReader(file))


def expect(path: pathlib.Path, what: str) -> pathlib.Path:
    """`what` must be at `path`."""
    if not path.exists():
        raise BadTree(f"{path}: expected {what}, found nothing")
    return path


def key_of(*parts: object) -> str:
    """A short name for what something is made of."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def need_commands(packages: dict[str, str]) -> None:
    """Commands of the host; Debian's packages of those that are missing are installed."""
    missing = [package for command, package in packages.items() if shutil.which(command) is None]
    if missing:
        toolchain = REPO / "scripts/lib/toolchain.sh"
        subprocess.run(["bash", "-c", 'set -euo pipefail; . "$0"; install_packages "$@"', toolchain, *missing], stdin=subprocess.DEVNULL)
    for command, package in packages.items():
        if shutil.which(command) is None:
            raise BadTree(f"{command}: expected on the path, found nothing; Debian's package is {package}")


def need_cross_compilers(*kinds: str) -> None:
    need_commands({f"riscv64-linux-gnu-{kind}": f"{kind}-riscv64-linux-gnu" for kind in kinds})


def last_lines(text: str) -> str:
    return "\n".join(f"  | {line}" for line in text.splitlines()[-LOG_LINES:])


def logged(what: str, script: str, folder: pathlib.Path, log: pathlib.Path, environment: dict[str, str] | None = None) -> str:
    """Runs a bash script of the suite's commands; its output is in `log`. A failure shows the last lines."""
    say(f"{what} (log: {log})")
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as file:
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    text = log.read_text(errors="replace")
    if done.returncode:
        end = f". The end of {log}:\n{last_lines(text)}" if text.strip() else ""
        raise BadTree(f"{what} failed: expected exit status 0, found {done.returncode}{end}")
    return text


def static_executable(path: pathlib.Path) -> pathlib.Path:
    """The path, if the guest can run what is there: it has no libraries of the suite's languages."""
    data = path.read_bytes()
    found = "another file"
    if data[:5] == b"\x7fELF\x02":
        machine, = struct.unpack_from("<H", data, 18)
        headers, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        kinds = {struct.unpack_from("<I", data, headers + number * size)[0] for number in range(count)}
        if machine == EM_RISCV and PT_INTERP not in kinds:
            return path
        found = f"an ELF file of machine {machine}, {'dynamic' if PT_INTERP in kinds else 'static'}"
    raise BadTree(f"{path}: expected a static RISC-V executable (ELF, machine {EM_RISCV}), found {found}")


def fresh(folder: pathlib.Path) -> pathlib.Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """While it lasts, no other run-spec builds in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another build in {folder}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
