"""For the tests of fleets: drivers as users start them, and what runs because of them."""

import contextlib
import multiprocessing.queues
import os
import pathlib
import signal
import subprocess
import time
from typing import ClassVar, Protocol, Self

from fleet.state import Fleet
from fleet.test.cluster import until
from places import REPO


def say(words: str) -> None:
    print(f"fleet test: {words}", flush=True)


def claim_all(folder: pathlib.Path, queue: "multiprocessing.queues.Queue[list[str]]") -> None:
    """Claims all tasks of a fleet that nobody has, and puts their names into the queue. To be run as a process of its own."""
    fleet = Fleet(folder)
    queue.put([task for task in fleet.tasks if fleet.claim(task)])
    time.sleep(60)  # As long as somebody has a task, nobody else can take it.


class Setup(Protocol):
    """What a driver needs to know of its test: where it runs, the simulator and the guest."""

    out: pathlib.Path
    tipsim: pathlib.Path
    guest: pathlib.Path


class Driver:
    """scripts/fleet as a user starts it."""

    started: ClassVar[list["Driver"]] = []

    def __init__(self, test: Setup, folder: str, *arguments: str | pathlib.Path) -> None:
        self.folder = test.out / folder
        self.log = test.out / f"{folder}.log"
        command = [REPO / "scripts/fleet", *arguments, "--out", self.folder, "--tipsim", test.tipsim, "--guest-dir", test.guest]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, start_new_session=True)
        self.started.append(self)

    def end(self, status: int = 0, seconds: float = 600) -> Self:
        found = self.process.wait(seconds)
        assert found == status, f"{self.log}: expected exit status {status}, found {found}:\n{self.log.read_text()}"
        return self

    def fleet(self) -> Fleet:
        until(lambda: (self.folder / "matrix.json").exists(), f"{self.folder}/matrix.json")
        return Fleet(self.folder)

    def wait_for(self, done: int) -> None:
        """Until so many tasks are done."""
        fleet = self.fleet()
        until(lambda: len(fleet.results()) >= done or self.process.poll() is not None, f"{done} tasks of {self.folder}", 600)


def simulators(folder: pathlib.Path) -> dict[str, list[int]]:
    """Processes of the tasks of a fleet, by task."""
    found: dict[str, list[int]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        prefix = f"{folder}/running/".encode()
        for word in words:
            if word.startswith(prefix) and words[0].endswith(b"/tipsim"):
                task = word[len(prefix):].rpartition(b".")[0].decode()
                found.setdefault(task, []).append(int(pid))
    return found


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def parent_of(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def end_all() -> None:
    """After a failure: nothing is left running. A simulator ends with its parent, be it a driver or what an element of an array
    executes."""
    for driver in Driver.started:
        driver.process.kill()
        driver.process.wait()
        for pids in simulators(driver.folder).values():
            for pid in pids:
                with contextlib.suppress(FileNotFoundError):
                    kill(parent_of(pid))


def watch(drivers: list[Driver]) -> None:
    """Until all drivers have ended: no task may run twice at the same time."""
    while any(driver.process.poll() is None for driver in drivers):
        twice = {task: pids for task, pids in simulators(drivers[0].folder).items() if len(pids) > 1}
        assert not twice, f"two at once: {twice}"
        time.sleep(0.2)
    for driver in drivers:
        driver.end()
