"""Command line of scripts/fleet."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable

from fleet import page, results
from fleet.local import LocalEngine
from fleet.matrix import prepare, size
from fleet.progress import plural
from fleet.slurm import SlurmEngine
from fleet.spec import is_stored_run
from fleet.squeue import SlurmError
from fleet.state import Fleet, FleetError, process_start, write_json
from places import REPO, guest_built_last
from report_terms import LEVELS

DESCRIPTION = """Runs a matrix of run specs, or times the stored units of runs on many cores: each combination once, with the
results beside each other.

Commands:
  run SPEC…      run all combinations; without a command, this. Again in the same folder: what is missing, failed or lost
  status DIR     what became of each task
  collect DIR    all results: fleet.json, fleet.txt
  report DIR     one page: fleet.html
  cancel DIR     stop what waits and runs
  build          what run does first: installs what is missing, builds guest and simulator once
"""
EXAMPLES = """Examples:
  scripts/fleet workloads/*.toml --preset boom-4w,large-boom
  scripts/fleet sort.toml qsort.toml --vary core.rob.entries=64,128,192 --out out/rob
  scripts/fleet sort.toml --seeds 5 --engine slurm --partition long
  scripts/fleet out/xz --preset boom-4w,mega-boom --vary core.rob.entries=64,128      the stored units of a run (run.sampling.store = true)
  scripts/fleet run --resume --out out/rob           go on with it
  scripts/fleet status out/rob
  scripts/fleet report out/rob --base 'rob.entries = 64' --show CACHE.L1.RD.DATA.MISS
"""


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(prog="scripts/fleet", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run all combinations", formatter_class=raw, epilog=EXAMPLES)
    run.add_argument("specs", nargs="*", metavar="SPEC",
                     help="run specs, or folders of runs that stored their units; none with --resume: those of the folder")
    run.add_argument("--out", type=pathlib.Path, default=REPO / "out/fleet", metavar="DIR",
                     help="folder of the fleet, on a file system that all hosts share (default: out/fleet)")
    matrix = run.add_argument_group("the matrix")
    matrix.add_argument("--preset", default=[], type=lambda text: text.split(","), metavar="A,B", help="core presets: names or files")
    matrix.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of all specs, as of tipsim run")
    matrix.add_argument("--vary", action="append", default=[], metavar="KEY=V1,V2",
                        help="several values of a key; several keys: all combinations")
    matrix.add_argument("--seeds", metavar="N|LIST", help="seeds of the specs' random samplers: 1 to N, or a list")
    matrix.add_argument("--repeat", type=int, default=1, metavar="N", help="the same N times; collect says if the results differ")
    how = run.add_argument_group("how")
    how.add_argument("--engine", choices=["local", "slurm"], default="local", help="this machine (the default), or a cluster")
    how.add_argument("--only", type=lambda text: text.split(","), metavar="A,B",
                     help="these tasks of the matrix; the others stay for later")
    how.add_argument("--jobs", type=int, metavar="N", help="at once at most (default: local: processors; slurm: no limit)")
    how.add_argument("--memory", metavar="SIZE",
                     help="of a task (default: as measured of the spec's first tasks; before, the guest's and 1G)")
    how.add_argument("--retries", type=int, default=1, metavar="N",
                     help="further tries of a task that was lost: killed, or its host failed (default: 1)")
    how.add_argument("--resume", action="store_true", help="go on in a folder; the default if SPEC… and options are the same")
    how.add_argument("--tipsim", type=pathlib.Path, metavar="FILE", help="this simulator: build nothing")
    how.add_argument("--guest-dir", type=pathlib.Path, metavar="DIR", default=os.environ.get("TIPSIM_GUEST"),
                     help="a guest that guest-sw/build made (default: the one of this clone; with --tipsim, the last) [env: TIPSIM_GUEST]")
    slurm = run.add_argument_group("with --engine slurm")
    slurm.add_argument("--partition", metavar="P")
    slurm.add_argument("--tasks-per-job", type=int, metavar="N",
                       help="one after the other in an element of an array (default: about ten minutes' worth)")
    slurm.add_argument("--time", type=int, metavar="MINUTES", help="limit of an element (default: three times what was measured)")
    slurm.add_argument("--sbatch", action="append", default=[], metavar="OPTION",
                       help="a further option of sbatch, e.g. --sbatch=--account=arch")
    slurm.add_argument("--poll", type=float, default=10, metavar="SECONDS", help="between looks at the queue (default: 10)")

    for name, words in [("status", "what became of each task"), ("collect", "all results in fleet.json and fleet.txt"),
                        ("report", "one page, fleet.html"), ("cancel", "stop what waits and runs")]:
        command = commands.add_parser(name, help=words, formatter_class=raw)
        command.add_argument("folder", type=pathlib.Path, metavar="DIR", help="folder of a fleet")
        if name != "cancel":
            command.add_argument("--format", choices=["text", "json"], default="text", help="of what is printed")
        if name in ["collect", "report"]:
            command.add_argument("--process", metavar="NAME",
                                 help="errors and cycle stack of a process of the guest (default: all)")
            command.add_argument("--show", default=[], type=lambda text: text.split(","), metavar="A,B",
                                 help="counters of the core as columns and curves (tipsim core events lists them)")
            command.add_argument("--along", metavar="AXIS",
                                 help="parameter along the curves (default: the one with the most values)")
        if name == "report":
            command.add_argument("--base", metavar="POINT",
                                 help="point of the matrix that the others are compared with (default: the first)")
            command.add_argument("--sampler", default="tip,nci", metavar="A,B",
                                 help="samplers whose errors are shown (default: tip,nci)")
            command.add_argument("--level", choices=LEVELS, default="instruction", help="of the errors")
    return top


def built(args: argparse.Namespace) -> tuple[pathlib.Path, pathlib.Path | None]:
    """The simulator, and the guest unless all tasks are of stored units."""
    needs_guest = not all(is_stored_run(pathlib.Path(spec)) for spec in args.specs)
    if args.tipsim:
        if not os.access(args.tipsim, os.X_OK):
            raise FleetError(f"--tipsim {args.tipsim}: expected a program, found none")
        return args.tipsim, (args.guest_dir or existing_guest()) if needs_guest else None
    done = subprocess.run([REPO / "scripts/fleet", "build"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise FleetError("the simulator or its guest cannot be built")
    guest, tipsim = map(pathlib.Path, done.stdout.splitlines()[-2:])
    return tipsim, (args.guest_dir or guest) if needs_guest else None


def existing_guest() -> pathlib.Path:
    """The guest that was built last."""
    latest = guest_built_last()
    if not latest.exists():
        raise FleetError(f"no guest ({latest} is not there): run guest-sw/build, or give --guest-dir DIR")
    return latest


def check(args: argparse.Namespace) -> None:
    for option, least in [("jobs", 1), ("tasks_per_job", 1), ("time", 1), ("repeat", 1), ("retries", 0), ("poll", 0.1)]:
        value = getattr(args, option)
        if value is not None and value < least:
            raise FleetError(f"--{option.replace('_', '-')} {value}: expected at least {least}")
    if args.memory:
        size(args.memory, "--memory")
    only_slurm = [option for option in ["partition", "tasks_per_job", "time", "sbatch"] if getattr(args, option)]
    if args.engine != "slurm" and only_slurm:
        raise FleetError(f"--{only_slurm[0].replace('_', '-')}: expected --engine slurm with it")


def opened(args: argparse.Namespace) -> Fleet:
    """The fleet of `run`."""
    check(args)
    if args.specs:
        if args.resume and not (args.out / "matrix.json").exists():
            raise FleetError(f"{args.out}: expected a fleet to go on with, found none")
        tipsim, guest = built(args)
        return prepare(args.out, args, tipsim, guest, REPO)
    if not args.resume:
        raise FleetError("expected a SPEC, or --resume (see --help)")
    asked = [option for option in ["preset", "set", "vary", "seeds"] if getattr(args, option)]
    if asked:
        raise FleetError(f"--{asked[0]}: expected SPEC… with it")
    fleet = Fleet(args.out)
    fleet.matrix["retries"] = args.retries
    write_json(fleet.folder / "matrix.json", fleet.matrix)
    return fleet


def run(args: argparse.Namespace) -> int:
    fleet = opened(args)
    unknown = [task for task in args.only or [] if task not in fleet.tasks]
    if unknown:
        raise FleetError(f"--only {unknown[0]}: expected tasks of the matrix, such as {next(iter(fleet.tasks))}")
    fleet.only = args.only
    (fleet.folder / "cancelled").unlink(missing_ok=True)
    again = fleet.ask_again()
    done = len(fleet.results())
    if done or again:
        print(f"fleet: {done} of {len(fleet.tasks)} are done, {again} that failed are run again", file=sys.stderr)
    engine = SlurmEngine(fleet, args) if args.engine == "slurm" else LocalEngine(fleet, args)
    if not engine.run():
        jobs = " Its jobs go on." if args.engine == "slurm" and not (fleet.folder / "cancelled").exists() else ""
        go_on = f"scripts/fleet run --resume --out {args.out}{' --engine slurm' if args.engine == 'slurm' else ''}"
        print(f"fleet: stopped, {len(fleet.results())} of {len(fleet.tasks)} are done.{jobs} To go on: {go_on}", file=sys.stderr)
        return 130
    rows, _, curves = results.collect(fleet)
    samplers = [name for name in ["tip", "nci"] if any(name in row.get("errors", {}) for row in rows)]
    page.page(fleet, rows, curves, samplers=samplers)
    print(results.text(rows), *(f"{line}\n" for line in results.problems(rows)), sep="", end="")
    print(f"results: {args.out}/fleet.html, fleet.txt, fleet.json, tasks/")
    return 0 if all(row["status"] == "done" for row in rows if fleet.is_asked(row["task"])) else 1


def status(args: argparse.Namespace) -> int:
    fleet = Fleet(args.folder)
    queued: dict[str, tuple[str, str]] = {}
    if (fleet.folder / "slurm").exists():
        with contextlib.suppress(SlurmError):
            engine = SlurmEngine(fleet, args)
            queued, _ = engine.queue(engine.batches())
    rows = []
    for row in results.rows(fleet):
        tries = fleet.tries(row["task"])
        if row["status"] == "missing" and tries and fleet.alive(row["task"], tries[-1]):
            row["status"] = "running"
        elif row["status"] == "missing" and row["task"] in queued:
            row |= {"status": "queued", "reason": queued[row["task"]][1]}
        elif row["status"] == "missing" and tries and tries[-1].get("outcome", "lost") == "lost":
            row |= {"status": "lost, to be tried again", "reason": tries[-1].get("reason", "its process vanished")}
        rows.append(row | {"tries": fleet.made(tries)})
    if args.format == "json":
        keys = ["task", "status", "tries", "host_seconds", "mips", "host", "job", "reason"]
        print(json.dumps({"counts": results.counts(rows), "tasks": [{key: row.get(key) for key in keys} for row in rows]}, indent=2))
        return 0
    number = results.number
    lines = [[row["task"], row["status"], str(row["tries"]), number(row.get("host_seconds"), ".1f"), number(row.get("mips"), ".1f")]
             for row in rows]
    print(results.table(["task", "state", "tries", "seconds", "MIPS"], lines), end="")
    print(", ".join(f"{count} {state}" for state, count in results.counts(rows).items()))
    return 0


def collect(args: argparse.Namespace) -> int:
    fleet = Fleet(args.folder)
    rows, _, _ = results.collect(fleet, args.process, args.show, args.along)
    print((fleet.folder / ("fleet.json" if args.format == "json" else "fleet.txt")).read_text(), end="")
    return 0 if all(row["status"] == "done" for row in rows) else 1


def report(args: argparse.Namespace) -> int:
    fleet = Fleet(args.folder)
    rows, shown, curves = results.collect(fleet, args.process, args.show, args.along)
    page.page(fleet, rows, curves, args.base, args.sampler.split(","), args.level, shown)
    path = args.folder / "fleet.html"
    print(json.dumps({"page": str(path), "counts": results.counts(rows)}) if args.format == "json" else path)
    return 0


def cancel(args: argparse.Namespace) -> int:
    fleet = Fleet(args.folder)
    (fleet.folder / "cancelled").touch()
    drivers = set()
    for task in fleet.unfinished():
        tries = fleet.tries(task)
        owner = tries[-1]["owner"] if tries and fleet.alive(task, tries[-1]) else None
        if owner and not owner["job"] and owner["machine"] == fleet.me["machine"] and process_start(owner["pid"]) == owner["start"]:
            drivers.add(owner["pid"])
    for pid in drivers:
        os.kill(pid, signal.SIGINT)
    elements = SlurmEngine(fleet, args).cancel() if (fleet.folder / "slurm").exists() else 0
    print(f"fleet: stopped {plural(len(drivers), 'driver')} here, cancelled {plural(elements, 'element')} of arrays")
    return 0


# `build` is a command of scripts/fleet itself.
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": run, "status": status, "collect": collect, "report": report, "cancel": cancel,
}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] not in [*COMMANDS, "build", "-h", "--help"]:
        arguments = ["run", *arguments]
    args = parser().parse_args(arguments)
    try:
        return COMMANDS[args.command](args)
    except (FleetError, SlurmError) as error:
        print(f"fleet: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"fleet: {error.filename or args.command}: {error.strerror or error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
