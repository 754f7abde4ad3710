"""Running the simulator."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._tipsim import Error
from .report import Run


def run(
    spec: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | Iterable[str] = (),
    options: Sequence[str] = (),
) -> Run:
    """Runs a spec as `tipsim run` does, and gives its results; progress is on standard error.

    `out` is the folder for them (`out/NAME` by default). `set` changes keys of the spec: `{"core.rob.entries": 64}`, or what `--set`
    takes. `options` are others of `tipsim run`. The simulator is what `TIPSIM` names (the binary, or a clone of the repository), else
    `tipsim` on the path, else that of the clone around the working folder or this package, built first if need be.
    """
    out = Path("out") / Path(spec).stem if out is None else Path(out)
    return _results(_simulator("run") + [os.fspath(spec), *_settings(set), *options], out)


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
    return _results(_simulator("profile") + list(options), Path(out), ["--", *words])


def _settings(set: Mapping[str, Any] | Iterable[str]) -> list[str]:
    if isinstance(set, Mapping):
        # What Python and TOML have in common is written alike in JSON.
        set = [f"{key}={json.dumps(value)}" for key, value in set.items()]
    return [word for setting in set for word in ("--set", setting)]


def _simulator(command: str) -> list[str]:
    """The beginning of a command line."""
    named = os.environ.get("TIPSIM")
    if named and not Path(named).is_dir():
        return [named, command]
    found = None if named else shutil.which("tipsim")
    if found:
        return [found, command]
    script = {"run": "run-spec", "profile": "profile"}[command]
    places = [Path(named)] if named else [at for start in (Path.cwd(), Path(__file__).resolve()) for at in (start, *start.parents)]
    for place in places:
        if (place / "scripts" / script).is_file() and (place / "guest-sw/build").is_file():
            return [str(place / "scripts" / script)]
    if named:
        raise Error(f"TIPSIM: expected the binary or a clone of the repository, found {named}")
    raise Error("no simulator: expected tipsim on the path, or TIPSIM with the binary or a clone of the repository")


def _results(command: list[str], out: Path, last: Sequence[str] = ()) -> Run:
    status, said = _execute([*command, "--out", str(out), *last])
    if status != 0:
        errors = [line.removeprefix("tipsim: ") for line in said if line.startswith("tipsim: ")]
        raise Error(errors[-1] if errors else "\n".join([f"{command[0]}: exit status {status}", *said]))
    return Run(out)


def _execute(command: list[str]) -> tuple[int, list[str]]:
    """Runs a command whose standard error is shown while it comes. Gives the exit status and the last lines of it."""
    # Progress is shown on terminals only.
    read, write = pty.openpty() if sys.stderr.isatty() else os.pipe()
    last: deque[str] = deque(maxlen=20)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write)
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
