"""Sessions: an experiment in steps, in this process."""

from __future__ import annotations

import json
import os
import sys
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ._tipsim import Error, SessionThread
from .report import Run

Settings = Mapping[str, Any] | Iterable[str]
"""Changes of a spec or a core: `{"core.rob.entries": 64}`, or what `--set` takes."""


def assignments(set: Settings) -> list[str]:
    """Changes as `KEY=VALUE`. What Python and TOML have in common is written alike in JSON."""
    if isinstance(set, Mapping):
        return [f"{key}={json.dumps(value)}" for key, value in set.items()]
    return list(set)


@dataclass(frozen=True)
class Hart:
    """The state of a hart between two steps."""

    pc: int
    """Address of the next instruction."""
    registers: tuple[int, ...]
    """The integer registers, x0 first."""
    cycle: int
    """Cycles since reset."""
    instructions: int
    """Instructions retired since reset."""


class Console:
    """The guest's console."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def text(self) -> str:
        """All that the guest has printed, and what was printed before the checkpoint that it goes on from."""
        session = self._session
        return session._text if session._run is not None else session._thread.console()

    def send(self, text: str) -> None:
        """Types text; the guest takes it when it goes on. The session must have been begun with `interactive=True`."""
        self._session._thread.send(text)

    def expect(self, text: str, instructions: int | None = None) -> str:
        """Runs until the guest prints `text`, at most so many instructions. Gives what was printed up to there since the last `expect`.

        Text that was printed since then counts, so that one can wait for several texts one after the other.
        """
        session = self._session
        if text not in self.text[session._console_read :]:
            session.run_until(text=text, instructions=instructions)
        printed, found, _ = self.text[session._console_read :].partition(text)
        if not found:
            end = session.end
            why = f"but {end}" if end else "but the guest waits, or the instructions were over"
            raise Error(f"console: expected {text!r}, {why}; it printed {printed[-200:]!r}")
        session._console_read += len(printed) + len(found)
        return printed + found


class Session:
    """An experiment of a run spec, which goes on in steps; results are those of a run.

    The machine is booted as by `tipsim run` (a functional boot is done once, and kept), or goes on from a `checkpoint` of another session
    with the same guest. It stands still between two steps, so that what it does depends on the steps alone. `out` is the folder of
    the results (`out/NAME` by default), which are there after `result()`. `set` changes keys of the spec, `guest` is the folder of a built guest
    (`TIPSIM_GUEST`, or the one that was built last). `interactive` gives the guest's console an input, for `console.send`. `progress` shows
    on standard error how far a step is: always, never, or without a value on terminals and in notebooks.

    A session is a context manager: `with tipsim.Session(...) as session`. One that ends without `result()` leaves nothing.
    """

    def __init__(
        self,
        spec: str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        set: Settings = (),
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        guest: str | os.PathLike[str] | None = None,
        interactive: bool = False,
        progress: bool | None = None,
    ) -> None:
        self.out = Path("out") / Path(spec).stem if out is None else Path(out)
        self._progress = _Progress() if _shows(progress) else None
        self._run: Run | None = None
        self._harts: list[Hart] = []
        self._end: str | None = None
        self._text = ""
        guest = guest or os.environ.get("TIPSIM_GUEST") or None
        self._owner = os.getpid()
        self._of_owner = SessionThread(spec, self.out, assignments(set), guest, checkpoint, interactive)
        self._console_read = 0
        # Also when the interpreter ends.
        self._finalizer = weakref.finalize(self, _end, self._of_owner, self._owner)

    @property
    def _thread(self) -> SessionThread:
        if os.getpid() != self._owner:
            raise Error("the session is another process's, whose threads this one does not have")
        return self._of_owner

    @property
    def console(self) -> Console:
        """The guest's console."""
        return Console(self)

    def run_until(
        self,
        *,
        instructions: int | None = None,
        cycle: int | None = None,
        mark: str | None = None,
        text: str | None = None,
        pc: int | None = None,
    ) -> bool:
        """Runs to the first of these, or without any to the guest's end. True if it is reached, false if the experiment
        has ended (`end`) or the guest of an interactive session waits for what is typed.

        `instructions` are counted from here, over all harts, where they retire; `cycle` is one since reset. `mark` is "mounted" (the guest has booted, and is about
        to look for its command), "command-start", "command-stop", or a program's own "start" or "stop" (`tipsim-region`). `text` is what the console prints: the step ends up to 65,536 instructions later. `pc` is the
        virtual address of an instruction. Ctrl-C ends the step (`KeyboardInterrupt`); the session can go on.
        """
        numbers = {"instructions": instructions, "cycle": cycle, "pc": pc}
        for name, value in numbers.items():
            if value is not None and not 0 <= value < 1 << 64:
                raise ValueError(f"{name}: expected a number of 64 bits, found {value}")
        if text == "":
            raise ValueError("text: expected some, found none")
        show = None if self._progress is None else self._progress.show
        try:
            return self._thread.run_until(instructions, cycle, mark, text, pc, show)
        finally:
            if self._progress is not None:
                self._progress.clear()

    def interrupt(self) -> None:
        """Ends the step that goes on in another thread; the session can go on."""
        self._thread.interrupt()

    def run(self) -> Run:
        """Runs to the guest's end, and gives the results."""
        self.run_until()
        return self.result()

    def timing(self, core: Settings = ()) -> None:
        """The timing cores execute from now on. `core` changes them (`{"rob.entries": 64}`), before the first timed part."""
        self._thread.set_mode(True, assignments(core))

    def functional(self) -> None:
        """The functional harts execute from now on, many times as fast; nothing is recorded meanwhile. To the report of a run with
        `run.region = "run"` that time is idle time."""
        self._thread.set_mode(False, [])

    @property
    def mode(self) -> str:
        """What executes: "timing" or "functional"."""
        return "timing" if self._thread.is_timing() else "functional"

    @contextmanager
    def region(self) -> Iterator[None]:
        """A region of interest: what is run within `with session.region():`, as a program's own marks would make it. Needs a spec with
        `run.region = "command"` or `"marked"`."""
        if not self._thread.mark_region(True):
            raise Error('region: expected a command that runs, or run.region = "marked" before any command has ended')
        try:
            yield
        finally:
            if self._run is None and self.end is None:
                self._thread.mark_region(False)

    def counters(self) -> list[dict[str, int]]:
        """Totals of all events so far, by name (`tipsim core events`), for each hart; an empty list before the first timed part."""
        return self._thread.counters()

    def harts(self) -> list[Hart]:
        """The state of each hart."""
        if self._run is not None:
            return self._harts
        return [Hart(pc, tuple(registers), cycle, instructions) for pc, registers, cycle, instructions in self._thread.harts()]

    @property
    def cycle(self) -> int:
        """Cycles since reset, of the hart that is furthest."""
        return max(hart.cycle for hart in self.harts())

    @property
    def instructions(self) -> int:
        """Instructions since reset, of all harts."""
        return sum(hart.instructions for hart in self.harts())

    def memory(self, address: int, length: int, hart: int = 0) -> bytes:
        """Memory at a virtual address of a hart, as far as it is mapped."""
        if not (0 <= address < 1 << 64 and 0 <= length <= 1 << 30):
            raise ValueError(f"expected an address of 64 bits and at most 1 GiB, found {address:#x} and {length}")
        if not 0 <= hart < len(self.harts()):
            raise ValueError(f"hart: expected 0 to {len(self.harts()) - 1}, found {hart}")
        return self._thread.read_memory(hart, address, length)

    def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Saves the machine. Another session of the spec goes on from there with `checkpoint=`, on any core of the same clock and extensions; the
        core begins with empty caches and predictors. A guest that has looked into the folder with its command, after "mounted", cannot be saved any more."""
        self._thread.checkpoint(path)

    @property
    def end(self) -> str | None:
        """Why the experiment has ended, in words; `None` if it can go on."""
        return self._end if self._run is not None else self._thread.end()

    def result(self) -> Run:
        """Ends the session, evaluates what was recorded, and gives the results. Those of a guest that has not ended are of a part (`PartWarning`)."""
        if self._run is not None:
            return self._run
        # What is asked of a session that has ended is what it was then.
        self._harts, self._end, self._text = self.harts(), self.end, self.console.text
        try:
            self._thread.finish()
        except KeyboardInterrupt:
            # It is raised when the results are there.
            self._run = Run(self.out)
            raise
        self._run = Run(self.out)
        return self._run

    def close(self) -> None:
        """Ends the session, and a step that goes on in another thread; without `result()` before, nothing is left of it."""
        self._finalizer()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._run is not None:
            return f"Session(ended, results in {self.out})"
        return f"Session({self.mode}, {self.cycle} cycles, {self.instructions} instructions)"


def _end(thread: SessionThread, owner: int) -> None:
    """Ends a session of this process."""
    if os.getpid() == owner:
        thread.interrupt()
        with suppress(Error):
            thread.discard()


def _shows(progress: bool | None) -> bool:
    """Whether progress is shown: `None` says that it is on terminals and in notebooks."""
    # IPython's kernels have an output that is no terminal, but shows a line that is written anew.
    if progress is not None:
        return progress
    try:
        return "ipykernel" in sys.modules or sys.stderr.isatty()
    except (AttributeError, ValueError):
        # There is none, or it is closed.
        return False


class _Progress:
    """One line that is written anew."""

    def __init__(self) -> None:
        self._begun: tuple[float, int] | None = None
        self._width = 0

    def show(self, cycle: int, instructions: int) -> None:
        now = time.monotonic()
        if self._begun is None:
            self._begun = (now, instructions)
        begun, before = self._begun
        speed = (instructions - before) / max(now - begun, 1e-9) / 1e6
        line = f"{instructions / 1e6:9.1f} M instructions  {cycle / 1e6:9.1f} M cycles  {speed:5.1f} MIPS"
        self._width = max(self._width, len(line))
        sys.stderr.write("\r" + line)
        sys.stderr.flush()

    def clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
        self._begun, self._width = None, 0
