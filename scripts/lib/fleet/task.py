"""One try of a task: tipsim in a folder of its own, which becomes the result. Also what an element of a Slurm array executes:

  python3 scripts/lib fleet.task FLEET BATCH    the tasks that the batch has for $SLURM_ARRAY_TASK_ID, one after the other
"""

import ctypes
import datetime
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import Any, Self

from fleet.results import profile_of, region_of, report_of, retimed_of
from fleet.spec import content_and_checksum
from fleet.state import SIGN_OF_LIFE, Fleet, FleetError, Result, read_json, write_text
from places import REPO

# Where tipsim works in a try's folder: it puts its results there itself, or what it has of them if it is killed beside that.
RUN_FOLDER = "run"
# Of what a task printed, what is kept with the reason why it failed.
LAST_LINES = 12
# Seconds that tipsim has to end by itself.
GRACE = 5
PR_SET_PDEATHSIG = 1
# Exit status of tipsim if a signal ended it.
INTERRUPTED = 130


def die_with(parent: int) -> None:
    """For a child: it ends if its parent is killed, or it would go on unseen."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def last_lines(work: pathlib.Path) -> dict[str, list[str]]:
    """The guest's console, and what tipsim printed."""
    lines = {}
    for name, file in [("console", "console.log"), ("printed", "terminal.txt")]:
        try:
            with open(work / file, "rb") as opened:
                opened.seek(max(0, os.path.getsize(work / file) - 8192))
                text = opened.read().decode(errors="replace").replace("\r", "\n")
        except OSError:
            continue
        lines[name] = [line for line in text.split("\n") if line.strip()][-LAST_LINES:]
    return lines


class Attempt:
    """A try that was begun."""

    def __init__(self, fleet: Fleet, task: str, number: int) -> None:
        self.fleet, self.task, self.number = fleet, task, number
        self.work = fleet.folder / "running" / f"{task}.{number}"
        self.began = self.last_sign = time.monotonic()
        self.started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self.child: subprocess.Popen[bytes] | None = None
        self.spec = fleet.matrix["asked"]["specs"][fleet.tasks[task]["spec"]]

    def start(self) -> Self:
        """Starts tipsim."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        with open(self.work / "terminal.txt", "wb") as terminal:
            try:
                if content_and_checksum(pathlib.Path(self.spec["path"]))[1] != self.spec["sha256"]:
                    what = "run" if self.retimes else "spec"
                    raise OSError(f"{self.spec['path']}: is another {what} now than when the fleet was begun")
                command = self.command()
                parent = os.getpid()
                # For guest.packages: the simulator is not in the repository.
                os.environ.setdefault("TIPSIM_GUEST_SW", str(REPO / "guest-sw"))
                self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                                              start_new_session=True, preexec_fn=lambda: die_with(parent))
            except (OSError, FleetError) as error:
                terminal.write(f"fleet: {error}\n".encode())
        return self

    @property
    def retimes(self) -> bool:
        return self.fleet.tasks[self.task].get("retimes", False)

    def command(self) -> list[str | pathlib.Path]:
        """What tipsim is to do."""
        what = "retime" if self.retimes else "run"
        command = [self.fleet.folder / "tipsim", what, self.spec["path"], "--out", self.work / RUN_FOLDER]
        command += ["--jobs", "1"] if self.retimes else ["--guest-dir", self.fleet.matrix["guest"]]
        for assignment in self.fleet.tasks[self.task]["set"]:
            key, _, value = assignment.partition("=")
            command += ["--core", value] if self.retimes and key == "core.preset" else ["--set", assignment]
        return command

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def resident(self) -> int:
        """Bytes of memory that it takes now."""
        if self.child is None:
            return 0
        try:
            pages = int(pathlib.Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def poll(self) -> str | None:
        """What became of it, once something did: done, failed, lost, not needed."""
        if time.monotonic() - self.last_sign > SIGN_OF_LIFE:
            self.last_sign = time.monotonic()
            os.utime(self.fleet.try_path(self.task, self.number))
        if self.child is None:
            return self.ended(2 << 8, None)
        pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
        return self.ended(status, usage) if pid else None

    def gather(self) -> None:
        """Moves what tipsim left into the try's own folder."""
        for folder in [self.work / RUN_FOLDER, self.work / f"{RUN_FOLDER}.partial"]:
            if folder.is_dir():
                for name in os.listdir(folder):
                    os.rename(folder / name, self.work / name)
                folder.rmdir()
                break

    def ended(self, status: int, usage: resource.struct_rusage | None) -> str:
        if self.child:
            self.child.returncode = os.waitstatus_to_exitcode(status)
        self.gather()
        run = read_json(self.work / "run.json") or {}
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return self.give_up("lost", f"killed by signal {number} ({signal.strsignal(number)})")
        exit_status = os.WEXITSTATUS(status)
        if run.get("end") == {"reason": "interrupted"} or (self.retimes and exit_status == INTERRUPTED):
            return self.give_up("lost", "stopped by a signal from elsewhere")
        if len(self.fleet.tries(self.task)) > self.number:
            return self.give_up("not needed", "taken for lost, and begun by another")
        # Results that are not of a whole run, such as of one whose region never began, are no results, whatever the exit status says.
        done = exit_status == 0 and run.get("part") is None
        kind = "tasks" if done else "failed"
        result = self.result("done" if done else "failed", run, usage) | {"exit_status": exit_status}
        if not done:
            result |= last_lines(self.work)
            printed = result.get("printed") or [f"exit status {exit_status}"]
            if exit_status == 0:
                result["reason"] = run["part"]
            elif run.get("exit_status"):
                # The guest's command failed; the rest of the run did not, and its results are whole.
                result["reason"] = f"the guest's command ended with {run['exit_status']}"
            else:
                result["reason"] = printed[-1]
        if not self.fleet.publish(self.work, kind, self.task, result):
            return self.give_up("not needed", "another try came first")
        self.fleet.close(self.task, self.number, result["status"])
        return result["status"]

    def result(self, status: str, run: dict[str, Any], usage: resource.struct_rusage | None) -> Result:
        asked = self.fleet.matrix["asked"]
        report = report_of(self.work)
        return {
            "task": self.task, "status": status, "tries": self.fleet.made(self.fleet.tries(self.task)),
            "axes": self.fleet.tasks[self.task]["axes"], "started": self.started, "host_seconds": round(self.seconds, 3),
            "cpu_seconds": usage and round(usage.ru_utime + usage.ru_stime, 3),
            "peak_memory_mb": usage and round(usage.ru_maxrss / 1024, 1),
            "instructions": run.get("instructions"), "cycles": run.get("cycles"), "ipc": run.get("ipc"), "mips": run.get("mips"),
            "tipsim_sha256": asked["tipsim"], "commit": self.fleet.matrix["commit"], "guest_sha256": asked["guest"],
            "spec_sha256": self.spec["sha256"], "host": self.fleet.me["host"], "job": self.fleet.me["job"],
            **region_of(report), **profile_of(report), **retimed_of(run),
        }

    def give_up(self, outcome: str, reason: str) -> str:
        """Notes why there is no result of this try; nothing of it stays."""
        self.gather()
        self.fleet.close(self.task, self.number, outcome, reason=reason, **last_lines(self.work))
        shutil.rmtree(self.work, ignore_errors=True)
        return outcome

    def terminate(self) -> None:
        """Asks tipsim to end."""
        if self.child and self.child.poll() is None:
            self.child.terminate()

    def stop(self, outcome: str, reason: str) -> str:
        """Ends it before its time."""
        self.terminate()
        if self.child:
            try:
                self.child.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        return self.give_up(outcome, reason)


def begin(fleet: Fleet, task: str) -> Attempt | None:
    """The next try of a task, running; None if it is none of ours. A task that was lost too often has failed."""
    claimed = fleet.claim(task)
    if claimed is None:
        return None
    number, tries = claimed
    attempt = Attempt(fleet, task, number)
    lost = fleet.lost(tries)
    if len(lost) <= fleet.matrix["retries"]:
        return attempt.start()
    attempt.work.mkdir(parents=True, exist_ok=True)
    reasons = [before.get("reason", "its process vanished: killed, or its host failed") for before in lost]
    words = {key: lost[-1][key] for key in ["console", "printed"] if key in lost[-1]}
    if "console" in words:
        write_text(attempt.work / "console.log", "\n".join(words["console"]) + "\n")
    result = attempt.result("lost", {}, None)
    result |= {"tries": fleet.made(tries), "host_seconds": None, "reason": reasons[-1], "reasons": reasons} | words
    fleet.publish(attempt.work, "failed", task, result)
    fleet.close(task, number, "given up")
    return None


def main() -> None:
    fleet = Fleet(sys.argv[1])
    batch = read_json(pathlib.Path(sys.argv[2]))
    tasks = batch["elements"][int(os.environ["SLURM_ARRAY_TASK_ID"])]
    stopped: list[bool] = []
    for number in [signal.SIGTERM, signal.SIGINT]:
        signal.signal(number, lambda *_: stopped.append(True))
    for task in tasks:
        attempt = None if stopped else begin(fleet, task)
        if attempt is None:
            continue
        while (outcome := attempt.poll()) is None and not stopped:
            time.sleep(0.1)
        if outcome is None:
            outcome = attempt.stop("lost", "Slurm stopped its job: time limit, or scancel")
        print(f"{task}: {outcome}, {attempt.seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
