"""A fleet by Slurm, on a cluster of this machine in which everything dies once."""

import contextlib
import pathlib
import subprocess
import threading
import time
from typing import NoReturn

from fleet.state import process_start
from fleet.test.cluster import Cluster, until
from fleet.test.drivers import Driver, Setup, kill, parent_of, say, simulators, watch


def lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def administrator() -> NoReturn:
    """For a thread. Slurm lets jobs that it begins again wait for two minutes, which a test has not; and it takes a node out of service
    if a controller that was killed has forgotten which jobs run there."""
    while True:
        with contextlib.suppress(subprocess.SubprocessError):
            for line in lines("squeue", "--noheader", "--states=PENDING", "--format=%i|%r"):
                job, reason = line.split("|")
                if reason == "BeginTime":
                    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], check=False, capture_output=True)
            for node in lines("sinfo", "--noheader", "--states=drain", "--format=%n"):
                subprocess.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], check=False, capture_output=True)
        time.sleep(2)


class SlurmTest:
    """`run`: how the fleet is started; what is done to it comes once so many tasks are done."""

    def __init__(self, test: Setup, run: list[str | pathlib.Path], tasks: int) -> None:
        self.test, self.tasks = test, tasks
        self.run_arguments = [*run, "--engine", "slurm", "--poll", "1", "--tasks-per-job", "3", "--retries", "9"]
        self.schedule = [(4, self.kill_simulators), (8, self.kill_worker), (11, self.kill_controller), (14, self.kill_driver),
                         (18, self.lose_node), (24, self.requeue), (30, self.kill_both)]

    def run(self) -> None:
        began = time.monotonic()
        with Cluster(self.test.out / "cluster") as self.cluster:
            say(f"Slurm on this machine: {time.monotonic() - began:.0f} s")
            began = time.monotonic()
            threading.Thread(target=administrator, daemon=True).start()
            self.drivers = [Driver(self.test, "slurm", *self.run_arguments)]
            for done, what in self.schedule:
                self.drivers[-1].wait_for(done)
                say(f"{time.monotonic() - began:.0f} s, {done} done: {what()}")
            watch(self.drivers)
        assert not simulators(self.drivers[0].folder), "a simulator outlives its cluster"
        say(f"{self.tasks} tasks by Slurm: {time.monotonic() - began:.0f} s")

    def running(self) -> list[int]:
        """Simulators that run now; there is one."""
        folder = self.drivers[-1].folder
        until(lambda: simulators(folder), "a simulator", 60)
        return [pid for pids in simulators(folder).values() for pid in pids]

    def kill_simulators(self) -> str:
        for simulator in self.running():
            kill(simulator)
        return "killed the simulators that ran"

    def kill_worker(self) -> str:
        simulator = self.running()[0]
        kill(parent_of(simulator))
        until(lambda: process_start(simulator) is None, "end of a simulator without its worker", 5)
        return "killed what an element of an array executes; its simulator ended with it"

    def kill_controller(self) -> str:
        self.cluster.kill("slurmctld")
        time.sleep(3)
        self.cluster.start("slurmctld")
        until(self.cluster.up, "slurmctld again")
        return "killed slurmctld, began it again"

    def kill_driver(self) -> str:
        self.drivers.pop().process.kill()
        time.sleep(2)
        self.drivers.append(Driver(self.test, "slurm", *self.run_arguments, "--resume"))
        return "killed the driver, began it again"

    def lose_node(self) -> str:
        """A node without power: slurmd ends, the keepers of its jobs, and the jobs. Slurm notices after a while."""
        simulator = self.running()[0]
        self.cluster.kill("slurmd")
        for pid in [parent_of(parent_of(simulator)), parent_of(simulator)]:
            kill(pid)
        until(lambda: self.cluster.node_is("down", "down*"), "the node's failure", 60)
        self.cluster.start("slurmd")
        until(self.cluster.up, "slurmd again")
        return "killed the node with what ran on it; Slurm noticed, and began the node and its jobs again"

    def requeued(self) -> bool:
        """Whether one element of an array is begun anew. Not the array: its number is the last element's too, and Slurm refuses what
        waits."""
        running = lines("squeue", "--noheader", "--states=RUNNING", "--format=%i")
        return bool(running) and subprocess.run(["scontrol", "requeue", running[0]], check=False).returncode == 0

    def requeue(self) -> str:
        until(self.requeued, "a job that Slurm begins anew", 60)
        self.drivers.append(Driver(self.test, "slurm", *self.run_arguments))
        return "Slurm began a job anew, and somebody a second driver"

    def kill_both(self) -> str:
        for daemon in ["slurmd", "slurmctld"]:
            self.cluster.kill(daemon)
        time.sleep(1)
        for daemon in ["slurmctld", "slurmd"]:
            self.cluster.start(daemon)
        until(self.cluster.up, "both daemons again")
        return "killed slurmd and slurmctld, began them again"
