"""Runs a fleet on this machine: as many tasks at once as its processors and its memory allow."""

import argparse
import collections
import os
import pathlib
import signal
import time

from fleet.matrix import size, threads
from fleet.progress import Progress
from fleet.state import Fleet
from fleet.task import Attempt, begin

# What the simulator takes beside the guest's memory, until a task of the spec was measured.
BESIDE_THE_GUEST = 1 << 30
# Of what was measured.
MARGIN = 1.1
# Seconds between looks at tasks that another driver has.
ELSEWHERE = 5


def memory_available() -> int:
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


class LocalEngine:
    def __init__(self, fleet: Fleet, args: argparse.Namespace) -> None:
        self.fleet, self.args = fleet, args
        self.processors = args.jobs or len(os.sched_getaffinity(0))
        self.waiting = collections.deque(fleet.unfinished())
        self.elsewhere: list[str] = []
        self.looked = time.monotonic()
        self.running: list[Attempt] = []
        self.stopped: list[bool] = []
        self.progress = Progress(fleet)

    def need(self, task: str) -> int:
        """Bytes of memory that a task will take at most."""
        if self.args.memory:
            return size(self.args.memory, "--memory")
        measured = self.fleet.measured().get(self.fleet.tasks[task]["spec"])
        return int(measured["memory_mb"] * MARGIN) << 20 if measured else self.fleet.tasks[task]["memory"] + BESIDE_THE_GUEST

    def fits(self, task: str) -> bool:
        if not self.running:
            return True
        if sum(threads(self.fleet.tasks[attempt.task]) for attempt in self.running) + threads(self.fleet.tasks[task]) > self.processors:
            return False
        # What runs will still grow to what it needs.
        coming = sum(max(0, self.need(attempt.task) - attempt.resident()) for attempt in self.running)
        return memory_available() - coming >= self.need(task)

    def start_what_fits(self) -> None:
        if not self.waiting and self.elsewhere and time.monotonic() - self.looked > ELSEWHERE:
            self.waiting.extend(self.elsewhere)
            self.elsewhere, self.looked = [], time.monotonic()
        while self.waiting and self.fits(self.waiting[0]):
            task = self.waiting.popleft()
            attempt = begin(self.fleet, task)
            if attempt:
                self.running.append(attempt)
            elif not self.fleet.result(task):
                self.elsewhere.append(task)

    def collect_what_ended(self) -> None:
        for attempt in list(self.running):
            outcome = attempt.poll()
            if outcome is None:
                continue
            self.running.remove(attempt)
            if outcome == "failed":
                result = self.fleet.result(attempt.task) or {}
                self.progress.say(f"{attempt.task}: failed: {result.get('reason')}")
            if outcome in ["lost", "not needed"] and not self.fleet.result(attempt.task):
                self.progress.say(f"{attempt.task}: {outcome}: {self.fleet.read_try(attempt.task, attempt.number).get('reason')}")
                self.waiting.append(attempt.task)

    def show(self, force: bool = False) -> None:
        at_once = min(self.processors, max(1, len(self.running)) if self.waiting else len(self.running) or 1)
        self.progress.show({attempt.task: attempt.seconds for attempt in self.running}, at_once, force=force)

    def stop_asked(self) -> bool:
        return bool(self.stopped) or (self.fleet.folder / "cancelled").exists()

    def run(self) -> bool:
        """To the end, or to Ctrl-C; False then."""
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            signal.signal(number, lambda *_: self.stopped.append(True))
        while (self.waiting or self.running or self.elsewhere) and not self.stop_asked():
            self.collect_what_ended()
            self.start_what_fits()
            self.show()
            time.sleep(0.1)
        for attempt in self.running:
            attempt.terminate()
        for attempt in self.running:
            attempt.stop("stopped", "the driver was stopped")
        self.show(force=True)
        self.progress.end()
        return not self.stop_asked()
