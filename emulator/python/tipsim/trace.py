"""Traces."""

from __future__ import annotations

import json
import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _tipsim

Place = int | str
"""A place in a trace: a record (1000), a cycle ("1000c") or a time of the guest since reset ("1.5ms"; s, ms, us, ns)."""


class TraceWarning(UserWarning):
    """A trace whose writer was stopped: it is read up to there."""


class Trace:
    """A trace file. Its tables are read from the file piece by piece, by whoever reads them, as often as they are.

    Of a damaged trace, iterating over a table gives all batches before the damage, then raises `Error`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = _tipsim.TraceFile(self.path)
        if self._file.cut:
            warnings.warn(f"{self.path}: {self.end}; read up to there", TraceWarning, stacklevel=2)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """What the trace says of its run."""
        try:
            return json.loads(self._file.metadata)
        except ValueError as error:
            raise _tipsim.Error(f"{self.path}: metadata: {error}") from error

    @property
    def end(self) -> str:
        """How the file ends: "complete", or where it is cut or damaged."""
        return self._file.end

    @property
    def harts(self) -> int:
        """Number of harts."""
        return self._file.harts

    @property
    def record_count(self) -> int:
        """Records of all harts."""
        return self._file.records

    @property
    def cycles(self) -> tuple[int, int]:
        """The last cycle before it, and its last one."""
        return self._file.cycles

    @property
    def clock_hz(self) -> int:
        """Cycles in a second of the guest."""
        return self._file.clock_hz

    def records(self, hart: int = 0, start: Place | None = None, end: Place | None = None) -> _tipsim.Table:
        """Every instruction that committed or trapped, from `start` to before `end`."""
        return self._table("records", hart, start, end)

    def spans(self, hart: int = 0, start: Place | None = None, end: Place | None = None) -> _tipsim.Table:
        """Every run of cycles in one state of the commit stage, and whom it is charged to; with any cycle from `start` to before `end`."""
        return self._table("spans", hart, start, end)

    def static_instructions(self, hart: int = 0) -> _tipsim.Table:
        """Every instruction of the program: what `inst` of a record and `insts` of a span are numbers of."""
        return self._table("static_instructions", hart, None, None)

    def _table(self, name: str, hart: int, start: Place | None, end: Place | None) -> _tipsim.Table:
        place = lambda at: None if at is None else str(at)
        return self._file.table(name, hart, place(start), place(end))

    def __repr__(self) -> str:
        harts = "" if self.harts == 1 else f", {self.harts} harts"
        return f"<tipsim.Trace {self.path}: {self.record_count:,} records, {self.end}{harts}>"
