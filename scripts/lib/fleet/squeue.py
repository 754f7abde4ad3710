"""Slurm's commands, as a fleet uses them. Accounting is not needed."""

import subprocess

# Of a job that is neither over nor waiting.
RUNNING = {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
# What Slurm says while its controller is away or busy, and another try later is right.
TEMPORARY = ["Unable to contact", "Socket timed out", "Connection refused", "Zero Bytes", "temporarily", "Transport endpoint",
             "Communication connection failure", "try again", "Message receive failure", "in standby mode"]


class SlurmError(Exception):
    """Slurm said no, in its words; `temporary`: it may say yes later."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.temporary = any(known in words for known in TEMPORARY)


def slurm(*command: str) -> str:
    """The output of a command of Slurm's."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise SlurmError(f"{command[0]}: not found: is this a host of a cluster?") from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{command[0]}: Socket timed out") from None
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split())
        raise SlurmError(f"{words or f'{command[0]}: exit status {done.returncode}'}")
    return done.stdout


def job_runs(job: str) -> bool | None:
    """Whether a job runs; None if Slurm does not say."""
    try:
        states = slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T").split()
    except SlurmError as error:
        return False if "Invalid job id" in str(error) else None
    return any(state in RUNNING for state in states)


def elements(names: list[str]) -> list[tuple[str, int, str, str, str]]:
    """Elements of arrays by these names that wait or run, as (name, index, state, job's number, reason to wait)."""
    if not names:
        return []
    text = slurm("squeue", "--noheader", "--array", f"--name={','.join(names)}", "--format=%j|%K|%T|%A|%r")
    found = []
    for line in text.splitlines():
        name, index, state, job, reason = line.split("|", 4)
        if state in RUNNING or state in {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}:
            found.append((name, int(index), state, job, reason))
    return found


def processors(partition: str | None) -> int | None:
    """Processors of a partition that are not out of order; None if Slurm does not say."""
    option = [f"--partition={partition}"] if partition else []
    try:
        lines = slurm("sinfo", "--noheader", "--format=%C|%P", *option).splitlines()
    except SlurmError:
        return None
    rows = [line.split("|") for line in lines]
    if not partition:
        rows = [row for row in rows if row[1].endswith("*")] or rows
    usable = sum(int(counts.split("/")[3]) - int(counts.split("/")[2]) for counts, _ in rows)
    return usable or None


def array_limit() -> int:
    """Most elements of an array."""
    try:
        lines = slurm("scontrol", "show", "config").splitlines()
    except SlurmError:
        return 1000
    limits = [int(line.split("=")[1]) for line in lines if line.startswith("MaxArraySize")]
    return max(1, limits[0] - 1) if limits else 1000
