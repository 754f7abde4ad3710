"""Runs a fleet on a cluster: arrays of jobs, sized by what the first task of each spec took.

The driver only watches. It can be killed and begun again: which jobs are its own, their names say, and what is in them, the batch
files. Whatever is in no job, has no result and nobody at work on it is given to Slurm again.
"""

import argparse
import math
import os
import re
import shlex
import signal
import time
from collections.abc import Container, Iterable
from typing import TypedDict

from fleet import squeue
from fleet.matrix import size, threads
from fleet.progress import Progress, plural
from fleet.squeue import SlurmError, slurm
from fleet.state import Fleet, FleetError, Measured, create_json, read_json, write_text
from places import program

# Beside the guest's memory, until a task of the spec was measured.
BESIDE_THE_GUEST_MB = 1024
# Times what was measured.
MEMORY_MARGIN, TIME_MARGIN = 1.5, 3
# Seconds for which an element of an array should have work: Slurm takes some for each.
WORTH_A_JOB = 600
# Seconds before a time limit at which a task is told, to note why it ended; Slurm may be a minute early. Not with limits below that of
# minutes.
WARNING, WITH_WARNING = 20, 3
# Polls in which a task is in no job and not at work until it is taken for lost: a file system may show a result late.
PATIENCE = 2
# Slurm holds a job whose start failed, for instance because its node went down just then.
HELD = {"launch failed requeued held", "JobHoldMaxRequeue", "launch_failed_requeued_held"}


class Batch(TypedDict):
    """What was given to Slurm as one array: the tasks of each element."""

    elements: list[list[str]]


class SlurmEngine:
    def __init__(self, fleet: Fleet, args: argparse.Namespace) -> None:
        self.fleet, self.args = fleet, args
        self.folder = fleet.folder / "slurm"
        self.folder.joinpath("log").mkdir(parents=True, exist_ok=True)
        self.script = self.folder / "element.sh"
        worker = shlex.join([*program("fleet.task"), str(fleet.folder)])
        write_text(self.script, f"#!/bin/bash\nexec {worker} \"$1\"\n")
        self.array_limit: int | None = None
        self.running_jobs: set[str] = set()
        self.known_batches: dict[str, Batch] = {}
        self.missing: dict[str, int] = {}
        self.stopped: list[bool] = []
        self.said: str | None = None
        self.progress = Progress(fleet)
        # What squeue said in this round, instead of asking for each task.
        fleet.jobs = lambda job: job in self.running_jobs

    def job_name(self, number: int) -> str:
        return f"tipsim-{self.fleet.matrix['id']}-{number}"

    def batches(self) -> dict[str, Batch]:
        """Batches by the names of their jobs. A batch never changes."""
        numbers = [int(match[1]) for match in (re.fullmatch(r"batch-(\d+)\.json", name) for name in os.listdir(self.folder)) if match]
        for number in sorted(numbers):
            if self.job_name(number) not in self.known_batches:
                self.known_batches[self.job_name(number)] = read_json(self.folder / f"batch-{number}.json")
        return self.known_batches

    def queue(self, batches: dict[str, Batch]) -> tuple[dict[str, tuple[str, str]], set[str]]:
        """Tasks that are in a job which waits or runs, as task → (state, reason), and jobs that Slurm holds."""
        queued: dict[str, tuple[str, str]] = {}
        held = set()
        self.running_jobs = set()
        for name, index, state, job, reason in squeue.elements(list(batches)):
            if reason in HELD:
                held.add(job)
            if state in squeue.RUNNING:
                self.running_jobs.add(job)
            for task in batches[name]["elements"][index]:
                tries = self.fleet.tries(task)
                # The job has tried it, and goes on with others.
                if tries and tries[-1].get("outcome") == "lost" and tries[-1]["owner"]["job"] == job:
                    continue
                queued[task] = (state, reason)
        return queued, held

    def wanted(self, open_tasks: list[str], queued: Container[str], batches: dict[str, Batch]) -> tuple[dict[str, int], dict[str, float]]:
        """Tasks that nobody has, with how often each was lost."""
        given = {task for batch in batches.values() for element in batch["elements"] for task in element}
        wanted: dict[str, int] = {}
        running: dict[str, float] = {}
        for task in open_tasks:
            tries = self.fleet.tries(task)
            if tries and self.fleet.alive(task, tries[-1]):
                running[task] = time.time() - tries[-1]["started"]
            elif task not in queued:
                known_lost = tries and tries[-1].get("outcome") in ["lost", "again"]
                self.missing[task] = self.missing.get(task, 0) + 1
                if task not in given or known_lost or self.missing[task] >= PATIENCE:
                    wanted[task] = len(self.fleet.lost(tries))
                continue
            self.missing.pop(task, None)
        return wanted, running

    def submit(self, wanted: dict[str, int], queued: Iterable[str], running: Iterable[str]) -> None:
        """Gives tasks to Slurm, in arrays of one spec; of a spec that was not measured, one."""
        measured = self.fleet.measured()
        finished = {self.fleet.tasks[task]["spec"] for task in self.fleet.results()}
        begun = {self.fleet.tasks[task]["spec"] for task in [*queued, *running]}
        groups: dict[tuple[str, int], list[str]] = {}
        for task, lost in wanted.items():
            groups.setdefault((self.fleet.tasks[task]["spec"], lost), []).append(task)
        probed = set()
        for (spec, lost), tasks in groups.items():
            sized = spec in measured or spec in finished or (self.args.memory and self.args.time)
            if not sized and (spec in begun or spec in probed):
                continue
            if not sized:
                tasks = tasks[:1]
                probed.add(spec)
            each = self.args.tasks_per_job or self.worth_a_job(measured.get(spec), len(tasks))
            elements = [tasks[at:at + each] for at in range(0, len(tasks), each)]
            self.array_limit = self.array_limit or squeue.array_limit()
            for at in range(0, len(elements), self.array_limit):
                self.submit_array(elements[at:at + self.array_limit], measured.get(spec), 2 ** lost)

    def worth_a_job(self, measured: Measured | None, count: int) -> int:
        """Tasks for one element: enough to be worth it, but no processor stays without."""
        if not measured:
            return 1
        at_once = self.args.jobs or squeue.processors(self.args.partition) or 1
        return max(1, min(int(WORTH_A_JOB / max(measured["mean"], 0.1)), math.ceil(count / at_once)))

    def submit_array(self, elements: list[list[str]], measured: Measured | None, factor: int) -> None:
        tasks = [task for element in elements for task in element]
        if self.args.memory:
            needed: float = size(self.args.memory, "--memory") >> 20
        elif measured:
            needed = measured["memory_mb"] * MEMORY_MARGIN * factor
        else:
            needed = max((self.fleet.tasks[task]["memory"] >> 20) + BESIDE_THE_GUEST_MB for task in tasks) * factor
        megabytes = math.ceil(needed / 64) * 64
        processors = max(threads(self.fleet.tasks[task]) for task in tasks)
        minutes = self.args.time
        if not minutes and measured:
            longest = max(len(element) for element in elements)
            minutes = math.ceil((measured["seconds"] * TIME_MARGIN * longest * factor + WARNING) / 60) + 2
        number = len(self.batches()) + 1
        while not create_json(self.folder / f"batch-{number}.json", {"elements": elements}):
            number += 1
        array = f"0-{len(elements) - 1}" + (f"%{self.args.jobs}" if self.args.jobs else "")
        command = ["sbatch", "--parsable", f"--job-name={self.job_name(number)}", f"--array={array}", f"--mem={megabytes}M",
                   "--ntasks=1", f"--cpus-per-task={processors}", "--requeue", "--open-mode=append",
                   f"--output={self.folder}/log/batch-{number}.%a.txt", f"--chdir={self.fleet.folder}"]
        command += [f"--time={minutes}"] if minutes else []
        command += [f"--signal=B:TERM@{WARNING}"] if not minutes or minutes >= WITH_WARNING else []
        command += [f"--partition={self.args.partition}"] if self.args.partition else []
        command += [*self.args.sbatch, str(self.script), str(self.folder / f"batch-{number}.json")]
        job = slurm(*command).strip()
        for task in tasks:
            self.missing.pop(task, None)
        words = f"{plural(len(tasks), 'task')} in {plural(len(elements), 'element')}"
        self.progress.say(f"job {job}: {words} of {megabytes} MB{f' and {minutes} min' if minutes else ''}")

    def round(self) -> bool:
        """One look at everything; False once all is done."""
        batches = self.batches()
        try:
            found, held = self.queue(batches)
            for job in held:
                slurm("scontrol", "release", job)
            queued: dict[str, tuple[str, str]] | None = found
        except SlurmError as error:
            self.temporary(error)
            queued = None
        # After the queue: what left it meanwhile has its result.
        open_tasks = self.fleet.unfinished()
        if not open_tasks:
            return False
        if queued is None:
            self.progress.show({}, 1, ", Slurm does not answer")
            return True
        wanted, running = self.wanted(open_tasks, queued, batches)
        try:
            self.submit(wanted, queued, running)
            self.said = None
        except SlurmError as error:
            # As long as some are on their way, a limit on jobs is no reason to end.
            if not error.temporary and not queued and not running:
                raise FleetError(f"Slurm: {error}") from None
            self.temporary(error)
        reasons = {reason for task, (state, reason) in queued.items() if state == "PENDING" and task not in running}
        waiting = len([task for task in queued if task not in running])
        words = f", {waiting} queued" + (f" ({', '.join(sorted(reasons))})" if reasons and not running else "")
        self.progress.show(running, len(running), words)
        return True

    def temporary(self, error: SlurmError) -> None:
        if str(error) != self.said:
            self.progress.say(f"Slurm: {error}; going on")
        self.said = str(error)

    def run(self) -> bool:
        """To the end, or until it is told to stop; False then. Its jobs go on without it."""
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            signal.signal(number, lambda *_: self.stopped.append(True))
        while not self.stopped and not (self.fleet.folder / "cancelled").exists():
            if not self.round():
                self.progress.show({}, 1, force=True)
                self.progress.end()
                return True
            until = time.monotonic() + self.args.poll
            while time.monotonic() < until and not self.stopped:
                time.sleep(0.2)
        self.progress.end()
        return False

    def cancel(self) -> int:
        """Cancels what waits and runs; how many elements."""
        found = squeue.elements(list(self.batches()))
        if found:
            slurm("scancel", *sorted({job for _, _, _, job, _ in found}))
        return len(found)
