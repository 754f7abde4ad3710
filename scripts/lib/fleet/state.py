"""The folder of a fleet, which is all that its drivers and tasks know of each other.

  matrix.json        what was asked for, and the tasks that this stands for
  tipsim             the simulator, copied: it can be rebuilt meanwhile
  tries/TASK/N.json  the N-th try of a task: who makes it, and what became of it
  running/TASK.N/    what that try writes
  tasks/TASK/        a result, whole: renamed into place, with result.json
  failed/TASK/       the same of a task that failed, or that was lost too often
  slurm/             batches of tasks as given to Slurm, and their output

Whoever makes the file of the next try has the task: a link is made once, on a shared file system too. Nobody removes such a file, so
there is no moment in which two could have it. A try without an outcome whose process is gone is lost, and the next may begin.
"""

import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import time
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

from fleet import squeue

RESULT = "result.json"
# Seconds between two signs of life of a try, and without any until another host takes it for dead.
SIGN_OF_LIFE = 10
SILENCE = 90

# The axes of a task are the values of what was varied, by name.
Axes = dict[str, str | int]
# A result is what result.json says of a task.
Result = dict[str, Any]
# A try is what its file in tries/ says, and the number of that file.
Try = dict[str, Any]


class Task(TypedDict):
    """A task of the matrix: its settings are those of tipsim run, the memory is the guest's, in bytes. One that retimes has the stored
    units of a run timed on another core, by tipsim retime."""

    spec: str
    axes: Axes
    set: list[str]
    memory: int
    retimes: NotRequired[bool]


class Owner(TypedDict):
    """The process that makes a try. `restart` is how often Slurm began its job anew."""

    host: str
    machine: str
    pid: int
    start: int | None
    job: str | None
    restart: str | None


class Measured(TypedDict):
    """What the tasks of a spec took: the most memory in MB, the longest and the mean time in seconds."""

    memory_mb: float
    seconds: float
    mean: float


class FleetError(Exception):
    """What was asked for cannot be done, in words for the user."""


def write_json(path: pathlib.Path, value: object) -> None:
    """Writes a file that is there when it is whole."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_text(path: pathlib.Path, text: str) -> None:
    """The same of a text."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(partial, "x") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def create_json(path: pathlib.Path, value: object) -> bool:
    """Makes a file, with its content from its first moment; False if it is there."""
    whole = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    write_json(whole, value)
    try:
        os.link(whole, path)
        return True
    except FileExistsError:
        return False
    finally:
        whole.unlink()


def read_json(path: pathlib.Path) -> Any:  # noqa: ANN401 (whoever reads a file knows its type)
    """What a file says; None if there is none, or no whole one."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def process_start(pid: int) -> int | None:
    """When a process of this machine began, in ticks since boot; None if there is none."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def machine() -> str:
    """Where process numbers mean the same: a boot of a host, and a container in it."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def this_process() -> Owner:
    pid = os.getpid()
    job = os.environ.get("SLURM_JOB_ID")
    return {"host": socket.gethostname(), "machine": machine(), "pid": pid, "start": process_start(pid),
            "job": job, "restart": os.environ.get("SLURM_RESTART_COUNT", "0") if job else None}


class Fleet:
    """A fleet's folder. `jobs` answers whether a job of Slurm's still runs: True, False, or None (Slurm does not say)."""

    def __init__(self, folder: str | pathlib.Path, jobs: Callable[[str], bool | None] = squeue.job_runs) -> None:
        self.folder = pathlib.Path(folder).resolve()
        self.matrix = read_json(self.folder / "matrix.json")
        if self.matrix is None:
            raise FleetError(f"{folder}: expected the folder of a fleet, found no matrix.json in it")
        self.tasks: dict[str, Task] = self.matrix["tasks"]
        self.jobs = jobs
        # Tasks that are to be run now; None: all.
        self.only: list[str] | None = None
        self.me = this_process()
        self._results: dict[str, Result] = {}

    # Results

    def result(self, task: str) -> Result | None:
        """The final result of a task, or None."""
        for kind in ["tasks", "failed"]:
            result: Result | None = read_json(self.folder / kind / task / RESULT)
            if result is not None:
                return result
        return None

    def results(self) -> dict[str, Result]:
        """The final results that are there."""
        found = {}
        for kind in ["failed", "tasks"]:
            with contextlib.suppress(FileNotFoundError):
                for task in os.listdir(self.folder / kind):
                    if task not in self.tasks:
                        continue
                    # A result in place never changes; a failed one does if the task is run again.
                    known = self._results.get(task) if kind == "tasks" else None
                    result = known or read_json(self.folder / kind / task / RESULT)
                    if result is not None:
                        found[task] = result
                        if kind == "tasks":
                            self._results[task] = result
        return found

    def unfinished(self) -> list[str]:
        results = self.results()
        return [task for task in self.tasks if task not in results and self.is_asked(task)]

    def is_asked(self, task: str) -> bool:
        """It is to be run now (--only)."""
        return self.only is None or task in self.only

    def publish(self, work: pathlib.Path, kind: str, task: str, result: Result) -> bool:
        """Moves a folder into place with its result, as the last act. False: there is one."""
        write_json(work / RESULT, result)
        (self.folder / kind).mkdir(exist_ok=True)
        try:
            os.rename(work, self.folder / kind / task)
            return True
        except OSError:
            if not (self.folder / kind / task / RESULT).exists():
                raise
            return False

    # Tries

    def try_path(self, task: str, number: int) -> pathlib.Path:
        return self.folder / "tries" / task / f"{number}.json"

    def tries(self, task: str) -> list[Try]:
        """All tries of a task, the first first."""
        try:
            numbers = [int(name[:-5]) for name in os.listdir(self.folder / "tries" / task) if re.fullmatch(r"\d+\.json", name)]
        except FileNotFoundError:
            return []
        return [self.read_try(task, number) for number in sorted(numbers)]

    def read_try(self, task: str, number: int) -> Try:
        path = self.try_path(task, number)
        for _ in range(3):
            found = read_json(path)
            if found is not None:
                return {**found, "number": number}
            time.sleep(0.05)
        raise FleetError(f"{path}: expected a try of a task, found something that cannot be read")

    def alive(self, task: str, attempt: Try) -> bool:
        """Somebody is at work on this try."""
        if "outcome" in attempt:
            return False
        owner = attempt["owner"]
        if owner["machine"] == self.me["machine"]:
            return process_start(owner["pid"]) == owner["start"]
        if owner["job"] and owner["job"] == self.me["job"] and owner["restart"] != self.me["restart"]:
            return False  # This job, before Slurm began it anew.
        if self.silence(task, attempt["number"]) < SILENCE:
            return True
        return bool(owner["job"]) and self.jobs(owner["job"]) is not False

    def silence(self, task: str, number: int) -> float:
        """Seconds since a try's last sign of life, by the clock of the file system."""
        clock = self.folder / f".clock.{secrets.token_hex(8)}"
        clock.touch()
        now = clock.stat().st_mtime
        clock.unlink()
        return now - self.try_path(task, number).stat().st_mtime

    @staticmethod
    def made(tries: list[Try]) -> int:
        """How often tipsim was started."""
        return sum(attempt.get("outcome") not in ["again", "given up", "not needed"] for attempt in tries)

    @staticmethod
    def lost(tries: list[Try]) -> list[Try]:
        """The tries that were lost since somebody last asked for the task."""
        recent: list[Try] = []
        for attempt in tries:
            recent = [] if attempt.get("outcome") == "again" else [*recent, attempt]
        return [attempt for attempt in recent if attempt.get("outcome", "lost") == "lost"]

    def claim(self, task: str) -> tuple[int, list[Try]] | None:
        """Begins the next try: its number and the tries before. None: the task is done, or somebody is at work on it."""
        if self.result(task):
            return None
        tries = self.tries(task)
        if tries and self.alive(task, tries[-1]):
            return None
        number = tries[-1]["number"] + 1 if tries else 1
        path = self.try_path(task, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not create_json(path, {"owner": self.me, "started": time.time()}):
            return None
        # Only now: whoever had the task before may have come to its end meanwhile.
        if self.result(task):
            self.close(task, number, "not needed")
            return None
        for before in range(1, number):
            shutil.rmtree(self.folder / "running" / f"{task}.{before}", ignore_errors=True)
        return number, tries

    def close(self, task: str, number: int, outcome: str, **more: object) -> None:
        """Notes what became of one's own try."""
        path = self.try_path(task, number)
        known = read_json(path) or {"owner": self.me}
        write_json(path, {**known, "outcome": outcome, "ended": time.time(), **more})

    def ask_again(self) -> int:
        """Puts tasks that failed back to those that are to be run; how many."""
        count = 0
        for task, result in self.results().items():
            number = len(self.tries(task)) + 1
            asked = {"owner": self.me, "outcome": "again", "started": time.time()}
            if result["status"] == "done" or not self.is_asked(task) or not create_json(self.try_path(task, number), asked):
                continue
            old = self.folder / "running" / f"{task}.again{number}"
            old.parent.mkdir(exist_ok=True)
            os.rename(self.folder / "failed" / task, old)
            shutil.rmtree(old, ignore_errors=True)
            count += 1
        return count

    def measured(self) -> dict[str, Measured]:
        """By spec: the largest peak of memory in MB, the largest time and the mean time of a task, in seconds."""
        by_spec: dict[str, list[tuple[float, float]]] = {}
        for task, result in self.results().items():
            if result.get("peak_memory_mb"):
                by_spec.setdefault(self.tasks[task]["spec"], []).append((result["peak_memory_mb"], result["host_seconds"]))
        return {spec: {"memory_mb": max(m for m, _ in runs), "seconds": max(s for _, s in runs),
                       "mean": sum(s for _, s in runs) / len(runs)} for spec, runs in by_spec.items()}
