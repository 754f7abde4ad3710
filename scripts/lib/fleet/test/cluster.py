"""A Slurm cluster of this machine alone, for tests: daemons of its own on the loopback interface, in a folder of its own."""

import contextlib
import getpass
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Self

from fleet.task import die_with

CONFIGURATION = """
ClusterName=tipsimtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={daemon_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=6
SlurmctldTimeout=10
KillWait=2
MinJobAge=10
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory={memory} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# Seconds in which a daemon is there, or gone.
PATIENCE = 30


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Cluster:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ["munge", "state", "spool", "log"]:
            (folder / name).mkdir(parents=True)
        for path in [folder, folder / "munge"]:
            path.chmod(0o755)
        key = folder / "munge/key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        text = CONFIGURATION.format(folder=folder, host=socket.gethostname().split(".")[0], user=getpass.getuser(),
                                    controller_port=free_port(), daemon_port=free_port(), processors=os.cpu_count(),
                                    memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 >> 20)
        (folder / "slurm.conf").write_text(text)
        (folder / "cgroup.conf").write_text("")
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def command(self, name: str) -> list[str]:
        munge = self.folder / "munge"
        return {
            "munged": ["munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                       f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=2"],
            "slurmctld": ["slurmctld", "-D"],
            "slurmd": ["slurmd", "-D"],
        }[name]

    def start(self, name: str) -> None:
        parent = os.getpid()
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        with open(self.folder / f"log/{name}.out", "ab") as log:
            self.daemons[name] = subprocess.Popen(self.command(name), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True, env=dict(os.environ, PATH=path),
                                                  preexec_fn=lambda: die_with(parent))

    def kill(self, name: str) -> None:
        self.daemons[name].kill()
        self.daemons.pop(name).wait()

    def node_is(self, *states: str) -> bool:
        done = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True, check=False)
        return done.returncode == 0 and done.stdout.strip() in states

    def up(self) -> bool:
        return self.node_is("idle", "mix", "alloc")

    def __enter__(self) -> Self:
        self.start("munged")
        until((self.folder / "munge/socket").exists, "munged")
        self.start("slurmctld")
        self.start("slurmd")
        try:
            until(self.up, f"Slurm (see {self.folder}/log)")
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Jobs first: their keepers outlive slurmd."""
        if {"slurmctld", "slurmd"} <= self.daemons.keys():
            subprocess.run(["scancel", f"--user={getpass.getuser()}"], check=False, capture_output=True)
            with contextlib.suppress(RuntimeError):
                jobs = ["squeue", "--noheader"]
                until(lambda: not subprocess.run(jobs, capture_output=True, check=False).stdout.strip(), "end of all jobs", 60)
        for daemon in reversed(self.daemons.values()):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
