"""Finished runs."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _tipsim
from .trace import Trace


_MARKER = "tipsim.json"

_Instruction = tuple[str, int | None, int]
"""Process, its id, and address."""


def _weights(profile: Any, process: str | None) -> dict[_Instruction, float]:
    """What a profile charges to each instruction."""
    import pyarrow

    table = pyarrow.table(profile)
    missing = [name for name in ("process", "pid", "pc", "cycles") if name not in table.column_names]
    if missing:
        raise ValueError(f"profile: expected columns process, pid, pc and cycles; found none of the name {', '.join(missing)}")
    found: dict[_Instruction, float] = {}
    for name, pid, pc, cycles in zip(*(table[name].to_pylist() for name in ("process", "pid", "pc", "cycles"))):
        if process in (None, name):
            found[name, pid, pc] = found.get((name, pid, pc), 0.0) + cycles
    return found


def _oracle(trace: Trace, hart: int, process: str | None) -> dict[_Instruction, float]:
    """The cycles that each instruction of a hart cost: a span's are those of its instructions, in equal parts."""
    import pyarrow
    import pyarrow.compute as compute

    address = dict(zip(*(column.to_pylist() for column in pyarrow.table(trace.static_instructions(hart)).select(["inst", "pc"]).columns)))
    found: dict[_Instruction, float] = {}
    for batch in trace.spans(hart):
        spans = pyarrow.table(batch)
        spans = spans.filter(compute.not_equal(spans["state"].cast("string"), "idle"))
        lists = spans["insts"].combine_chunks()
        span = compute.list_parent_indices(lists)
        parts = compute.divide(spans["cycles"].cast("double"), compute.list_value_length(lists).cast("double"))
        charged = pyarrow.table({
            "process": spans["process"].cast("string").take(span),
            "pid": spans["pid"].take(span),
            "inst": compute.list_flatten(lists),
            "cycles": parts.take(span),
        })
        sums = charged.group_by(["process", "pid", "inst"]).aggregate([("cycles", "sum")])
        for name, pid, inst, cycles in zip(*(sums[name].to_pylist() for name in ("process", "pid", "inst", "cycles_sum"))):
            if process in (None, name):
                instruction = (name, pid, address[inst])
                found[instruction] = found.get(instruction, 0.0) + cycles
    return found


class PartWarning(UserWarning):
    """The results are not those of a whole run: it was interrupted, for instance, or nothing was profiled."""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _tipsim.Error(f"{path}: {error.strerror}") from error


def _object(path: Path, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _tipsim.Error(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise _tipsim.Error(f"{path}: expected an object, found {type(found).__name__}")
    return found


def _marker(folder: Path) -> dict[str, Any]:
    """What says which files of a folder belong to one run; empty if an older tipsim made it."""
    path = folder / _MARKER
    return _object(path, _bytes(path)) if path.exists() else {}


class Run:
    """The folder of a finished run. With `hart`, what is reported of that one of several harts.

    Warns (`PartWarning`) of a run that was cut short, and refuses a folder whose last run goes on or was killed, as well as files of another run.
    """

    def __init__(self, folder: str | os.PathLike[str], hart: int | None = None) -> None:
        self.folder = Path(folder)
        self.hart = hart
        self._marked = self._last_run()
        self.info: dict[str, Any] = self._json(self.folder / "run.json")
        """How it ran: `run.json`."""
        each = self.info.get("harts")
        # That of a single hart has no list of them.
        harts = len(each) if isinstance(each, list) and each else 1
        if hart is not None and not 0 <= hart < harts:
            raise ValueError(f"{self.folder}: hart: expected {'0, the only hart' if harts == 1 else f'0 to {harts - 1}'}, found {hart}")
        # One of several has a folder of its own.
        self._report_folder = self.folder if hart is None or harts == 1 else self.folder / f"hart{hart}"

    def _last_run(self) -> dict[str, Any]:
        """What is noted of the run, which is the last one into its folder."""
        partial = Path(f"{self.folder.resolve()}.partial")
        for folder in (self.folder, partial):
            found = _marker(folder)
            states = ("running",) if folder == self.folder else ("running", "killed")
            if found.get("state") in states:
                raise _tipsim.Error(f"{self.folder}: the last run into this folder goes on, or was killed before its end (`tipsim report` says more)")
        marked = _marker(self.folder)
        if marked.get("part"):
            warnings.warn(f"{self.folder}: not whole: {marked['part']}", PartWarning, stacklevel=3)
        return marked

    def _checked(self, path: Path) -> bytes:
        """The content of a file, which is the run's own."""
        content = _bytes(path)
        files = self._marked.get("files")
        if files is not None and files.get(str(path.relative_to(self.folder))) != hashlib.sha256(content).hexdigest():
            raise _tipsim.Error(f"{path}: expected the file that the run wrote, found another one, or a damaged one")
        return content

    def _json(self, path: Path) -> dict[str, Any]:
        return _object(path, self._checked(path))

    def _text(self, path: Path) -> str:
        try:
            return self._checked(path).decode()
        except UnicodeDecodeError as error:
            raise _tipsim.Error(f"{path}: {error}") from error

    @cached_property
    def report(self) -> dict[str, Any]:
        """Everything that is reported: `report.json`."""
        return self._json(self._report_folder / "report.json")

    @property
    def text(self) -> str:
        """The report for people: `report.txt`."""
        return self._text(self._report_folder / "report.txt")

    @cached_property
    def trace(self) -> Trace:
        """Its trace, of all harts."""
        return Trace(self.folder / "trace.tip")

    @cached_property
    def _file(self) -> _tipsim.ReportFile:
        self._checked(self._report_folder / "report.json")
        return _tipsim.ReportFile(self._report_folder / "report.json", self.folder / "run.json")

    def processes(self) -> _tipsim.Table:
        """Every process with its cycle stack; the first, `all`, is all of them."""
        return self._file.table("processes")

    def errors(self) -> _tipsim.Table:
        """The error of every sampler in every process, by function, basic block and instruction."""
        return self._file.table("errors")

    def functions(self) -> _tipsim.Table:
        """Functions with their cycle stacks, and the share that each sampler gives them."""
        return self._file.table("functions")

    def instructions(self) -> _tipsim.Table:
        """The thousand most expensive instructions, with the same."""
        return self._file.table("instructions")

    def loops(self) -> _tipsim.Table:
        """Loops: iterations, cycles of each, what bounds it."""
        return self._file.table("loops")

    def top_down(self) -> _tipsim.Table:
        """The top-down analysis of every process."""
        return self._file.table("top_down")

    def windows(self) -> _tipsim.Table:
        """Cycle stacks over time."""
        return self._file.table("windows")

    def counters(self) -> _tipsim.Table:
        """What the cores counted."""
        return self._file.table("counters")

    def error(self, profile: Any, process: str | None = None) -> float:
        """The error of a profile of one's own against the Oracle, by instruction: the share of time that is charged to a wrong one.

        `profile` is any table of Arrow with a row for each instruction: `pc`, what it is charged (`cycles`, in whatever unit), and the
        `process` and `pid` that executed it. With `process`, the error of that process alone. It is what `errors()` has of the run's
        own samplers (TIP, MICRO'21, section 5). Reads the whole trace. Needs pyarrow.
        """
        found = _weights(profile, process)
        oracle: dict[_Instruction, float] = {}
        for hart in range(self.trace.harts) if self.hart is None else [self.hart]:
            for instruction, cycles in _oracle(self.trace, hart, process).items():
                oracle[instruction] = oracle.get(instruction, 0.0) + cycles
        totals = sum(oracle.values()), sum(found.values())
        if not all(totals):
            raise ValueError(f"{self.folder}: expected cycles of {process or 'some process'} in the trace and in the profile, found {totals[0]:,.0f} and {totals[1]:,.0f}")
        correct = sum(min(cycles / totals[0], found.get(instruction, 0.0) / totals[1]) for instruction, cycles in oracle.items())
        return max(1.0 - correct, 0.0)

    def __repr__(self) -> str:
        totals = self.report["totals"]
        hart = "" if self.hart is None else f", hart {self.hart}"
        processes = [f"{p['name']} {p['share']:.0%}" for p in self.report["processes"][1:4]]
        return (f"<tipsim.Run {self.folder}{hart}: {totals['instructions']:,} instructions, {totals['cycles']:,} cycles, "
                f"IPC {totals['ipc']:.2f}; {', '.join(processes)}>")
