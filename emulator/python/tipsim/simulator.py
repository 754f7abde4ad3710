"""Running the simulator."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ._tipsim import Error
from .report import Run
from .session import Settings, assignments


def run(
    spec: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    set: Settings = (),
    options: Sequence[str] = (),
) -> Run:
    """Runs a spec as `tipsim run` does, and gives its results; progress is on standard error.

    `out` is the folder for them (`out/NAME` by default). `set` changes keys of the spec: `{"core.rob.entries": 64}`, or what `--set`
    takes. `options` are others of `tipsim run`. The simulator is what `TIPSIM` names (the binary, or a clone of the repository), else
    `tipsim` on the path, else that of the clone around the working folder or this package. A clone is built by the first run of a Python
    process; later ones take what was built then, whatever changes in the clone.
    """
    out = Path("out") / Path(spec).stem if out is None else Path(out)
    # The programs of suites that users have are built by the clone's script, each time.
    is_of_suite = Path(spec).resolve().parent.name in ("spec2017", "spec2026", "parsec")
    return _results(_simulator("run", is_of_suite), [os.fspath(spec), *_settings(set), *options], out)


def profile(
    command: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
) -> Run:
    """Profiles a command in the guest, as `tipsim profile` does: a program and its arguments, or one script for the shell.

    `out` is `out/profile-NAME` by default; `options` are those of `tipsim profile`, such as `["--package", "xz-utils"]`.
    """
    words = [command] if isinstance(command, str) else [os.fspath(word) for word in command]
    if not words or not words[0].split():
        raise ValueError(f"command: expected a program or a script, found {command!r}")
    if out is None:
        out = Path("out") / f"profile-{Path(words[0].split()[0]).name}"
    return _results(_simulator("profile"), list(options), Path(out), ["--", *words])


def _settings(set: Settings) -> list[str]:
    return [word for setting in assignments(set) for word in ("--set", setting)]


@dataclass(frozen=True)
class _Simulator:
    """The beginning of a command line."""

    words: tuple[str, ...]
    clone: Path | None = None
    """The clone that it is of, if it is one's."""

    def environment(self) -> dict[str, str]:
        """That of a command: what a clone's script would say, too."""
        guest = {} if self.clone is None else {"TIPSIM_GUEST_SW": str(self.clone / "guest-sw")}
        return os.environ | guest


_built: dict[Path, Path] = {}
"""The simulators that this process has built, by their clones."""


def _simulator(command: str, by_script: bool = False) -> _Simulator:
    named = os.environ.get("TIPSIM")
    if named and not Path(named).is_dir():
        return _Simulator((named, command))
    found = None if named else shutil.which("tipsim")
    if found:
        return _Simulator((found, command))
    script = {"run": "run-spec", "profile": "profile"}[command]
    places = [Path(named)] if named else [at for start in (Path.cwd(), Path(__file__).resolve()) for at in (start, *start.parents)]
    for place in places:
        if (place / "scripts" / script).is_file() and (place / "guest-sw/build").is_file():
            place = place.resolve()
            if place in _built and not by_script:
                return _Simulator((str(_built[place]), command), place)
            return _Simulator((str(place / "scripts" / script),), place)
    if named:
        raise Error(f"TIPSIM: expected the binary or a clone of the repository, found {named}")
    raise Error("no simulator: expected tipsim on the path, or TIPSIM with the binary or a clone of the repository")


def _results(simulator: _Simulator, arguments: Sequence[str], out: Path, last: Sequence[str] = ()) -> Run:
    command = [*simulator.words, *arguments]
    status, said = _execute([*command, "--out", str(out), *last], simulator.environment())
    if simulator.clone is not None:
        target = Path(os.environ.get("CARGO_TARGET_DIR") or simulator.clone / "target")
        binary = target.resolve() / "release/tipsim"
        if binary.is_file():
            _built.setdefault(simulator.clone, binary)
    if status != 0:
        errors = [line.removeprefix("tipsim: ") for line in said if line.startswith("tipsim: ")]
        raise Error(errors[-1] if errors else "\n".join([f"{command[0]}: exit status {status}", *said]))
    return Run(out)


def _execute(command: list[str], environment: Mapping[str, str]) -> tuple[int, list[str]]:
    """Runs a command whose standard error is shown while it comes. Gives the exit status and the last lines of it."""
    # Progress is shown on terminals only.
    read, write = pty.openpty() if sys.stderr.isatty() else os.pipe()
    last: deque[str] = deque(maxlen=20)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write, env=environment)
    except OSError as error:
        os.close(read)
        raise Error(f"{command[0]}: {error.strerror}") from error
    finally:
        os.close(write)
    rest = ""
    try:
        while text := _read(read):
            sys.stderr.write(text)
            sys.stderr.flush()
            *lines, rest = (rest + text).replace("\r\n", "\n").split("\n")
            # Progress goes back to the line's start.
            last.extend(line.rpartition("\r")[2] for line in lines)
            rest = rest[rest.rfind("\r", 0, -1) + 1 :]
    except BaseException:
        child.terminate()
        raise
    finally:
        os.close(read)
        status = child.wait()
    return status, [*last, rest] if rest else list(last)


def _read(file: int) -> str:
    try:
        return os.read(file, 1 << 16).decode(errors="replace")
    except OSError:
        # A terminal whose other end is closed.
        return ""
