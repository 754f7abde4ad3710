"""Finished runs."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _tipsim
from .trace import Trace


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _tipsim.Error(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _tipsim.Error(f"{path}: {error}") from error


class Run:
    """The folder of a finished run. With `hart`, what is reported of that one of several harts."""

    def __init__(self, folder: str | os.PathLike[str], hart: int | None = None) -> None:
        self.folder = Path(folder)
        self.hart = hart
        self.info: dict[str, Any] = self._json(self.folder / "run.json")
        """How it ran: `run.json`."""
        each = self.info.get("harts")
        # That of a single hart has no list of them.
        harts = len(each) if isinstance(each, list) and each else 1
        if hart is not None and not 0 <= hart < harts:
            raise ValueError(f"{self.folder}: hart: expected {'0, the only hart' if harts == 1 else f'0 to {harts - 1}'}, found {hart}")
        # One of several has a folder of its own.
        self._report_folder = self.folder if hart is None or harts == 1 else self.folder / f"hart{hart}"

    @staticmethod
    def _json(path: Path) -> dict[str, Any]:
        try:
            found = json.loads(_text(path))
        except ValueError as error:
            raise _tipsim.Error(f"{path}: {error}") from error
        if not isinstance(found, dict):
            raise _tipsim.Error(f"{path}: expected an object, found {type(found).__name__}")
        return found

    @cached_property
    def report(self) -> dict[str, Any]:
        """Everything that is reported: `report.json`."""
        return self._json(self._report_folder / "report.json")

    @property
    def text(self) -> str:
        """The report for people: `report.txt`."""
        return _text(self._report_folder / "report.txt")

    @cached_property
    def trace(self) -> Trace:
        """Its trace, of all harts."""
        return Trace(self.folder / "trace.tip")

    @cached_property
    def _file(self) -> _tipsim.ReportFile:
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

    def __repr__(self) -> str:
        totals = self.report["totals"]
        hart = "" if self.hart is None else f", hart {self.hart}"
        processes = [f"{p['name']} {p['share']:.0%}" for p in self.report["processes"][1:4]]
        return (f"<tipsim.Run {self.folder}{hart}: {totals['instructions']:,} instructions, {totals['cycles']:,} cycles, "
                f"IPC {totals['ipc']:.2f}; {', '.join(processes)}>")
