"""What `scripts/run-spec` does with run specs of SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0.

It prepares a program of the user's copy of the suite, and runs it.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess

import places
from places import REPO
from suites import parsec
from suites.common import BadTree, Prepared, Row, Suite, locked, read_table, say
from suites.spec import SPEC2017, SPEC2026

SUITES: dict[str, Suite] = {**{suite.workloads: suite for suite in (SPEC2017, SPEC2026)}, "parsec": parsec}
# What the study of the profilers (scripts/study) calls the tables' kinds.
GROUPS = {
    "intrate": "integer", "intspeed": "integer", "fprate": "floating-point", "fpspeed": "floating-point",
    "apps": "parallel", "kernels": "parallel",
}
SCRIPT = "tipsim-commands.sh"
# What the guest's clock shows at reset (2026-01-01 00:00 UTC).
GUEST_CLOCK = 1767225600
# What the guest leaves of the program's folder, in the run's output folder.
RESULTS = "results"


def spec_text(suite: Suite, row: Row) -> str:
    """The run spec of a program, as it is in the repository."""
    return f"""\
# {suite.TITLE}, {row["name"]}: {row["notes"]} ({row["language"]}).
# Written by `python3 scripts/lib suites specs` from programs.csv. scripts/run-spec builds the program from your own copy of the suite.
name = "{row["name"]}"

[about]
suite = "{suite.TITLE}"
stands_for = "{row["name"]}"
group = "{GROUPS[row["kind"]]}"

[guest]
memory = "{suite.memory(row)}"

[run]
boot = "functional"
region = "marked"
# Replaced by scripts/run-spec.
command = "echo 'This program is built from your own copy of {suite.TITLE}: scripts/run-spec does that.' >&2; exit 2"

[record]
trace = false
"""


def write_specs(check: bool) -> None:
    wrong: list[pathlib.Path] = []
    for name, suite in SUITES.items():
        folder = REPO / "workloads" / name
        wanted = {f"{row['name']}.toml": spec_text(suite, row) for row in read_table(folder)}
        wrong += [old for old in folder.glob("*.toml") if old.name not in wanted]
        for file, text in wanted.items():
            path = folder / file
            if not check:
                path.write_text(text)
            elif not path.is_file() or path.read_text() != text:
                wrong.append(path)
    if wrong:
        names = ", ".join(str(path.relative_to(REPO)) for path in wrong)
        raise BadTree(f"{names}: expected what `python3 scripts/lib suites specs` writes from programs.csv, found something else", status=1)


def guest_script(prepared: Prepared) -> str:
    """What runs in the guest, in the program's folder: its commands one by one, then what makes its output comparable."""
    lines = ["#!/bin/sh", f"# {prepared.title}", "ulimit -s unlimited 2> /dev/null"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in prepared.environment.items()]
    lines += [
        "failed() {",
        "    status=$?",
        '    echo "failed with $status: $1" >&2',
        '    for file in *.err; do [ ! -s "$file" ] || { echo "== $file" >&2; tail -n 20 "$file" >&2; }; done',
        "    exit $status",
        "}",
    ]
    region = "" if prepared.marks_itself else "tipsim-run "
    lines += [f"{region}{command} || failed {shlex.quote(command)}" for command in prepared.commands]
    lines += [f"{command} || failed {shlex.quote(command)}" for command in prepared.afterwards]
    return "\n".join(lines) + "\n"


def find_program(path: pathlib.Path) -> tuple[str, Suite, Row]:
    """The suite's name and module, and the program's row of the table."""
    name = path.resolve().parent.name
    suite = SUITES.get(name)
    if suite is None:
        raise BadTree(f"{path}: expected a run spec in a folder {' or '.join(SUITES)}, found {name}")
    folder = path.resolve().parent
    if not (folder / "programs.csv").is_file():
        folder = REPO / "workloads" / name
    row = next((row for row in read_table(folder) if row["name"] == path.stem), None)
    if row is None:
        raise BadTree(f"{path}: expected the name of a program of {folder / 'programs.csv'}, found {path.stem}")
    return name, suite, row


def builds_folder() -> pathlib.Path:
    return places.cache() / "suites"


def toml_string(text: object) -> str:
    return json.dumps(str(text), ensure_ascii=False)


def prepare(arguments: argparse.Namespace, further: list[str]) -> None:
    name, suite, row = find_program(arguments.spec)
    size = arguments.size or suite.SIZES[0]
    if size not in suite.SIZES:
        raise BadTree(f"--size: expected {', '.join(suite.SIZES)}, found {size}")
    if arguments.threads > 1 and any("run.sampling" in word for word in further):
        raise BadTree("--sampled: expected one thread, since a guest with several harts cannot be sampled, "
                      f"found --threads {arguments.threads}")
    tree = suite.find_tree(arguments)
    with locked(builds_folder() / name):
        prepared = suite.prepare(tree, row, size, arguments.threads, builds_folder() / name)
        (prepared.folder / SCRIPT).write_text(guest_script(prepared))
        # What the guest sees does not depend on when the program was built.
        for path in [prepared.folder, *prepared.folder.rglob("*")]:
            os.utime(path, (GUEST_CLOCK, GUEST_CLOCK), follow_symlinks=False)

    program = prepared.folder.name
    # Renamed, the folder is left in the output when tipsim takes run.files back.
    command = f"(cd {program} && sh {SCRIPT}); status=$?; mv {program} {RESULTS}; exit $status"
    settings = [f"run.files=[{toml_string(prepared.folder)}]", f"run.command={toml_string(command)}", f"guest.harts={arguments.threads}"]
    folder = prepared.folder.parent
    (folder / "prepared.json").write_text(json.dumps({
        "suite": name,
        "title": prepared.title,
        "spec": str(arguments.spec.absolute()),
        "out": str((arguments.out or REPO / "out" / row["name"]).absolute()),
        "arguments": [word for setting in settings for word in ("--set", setting)] + further,
        "checks": prepared.checks,
    }, indent=1))
    say(f"{prepared.title} is ready: {len(prepared.commands)} commands in {prepared.folder}")
    print(folder)


def run(arguments: argparse.Namespace) -> int:
    """Gives the exit status of tipsim run, if it is not 0, else that of the comparison."""
    prepared = json.loads((arguments.folder / "prepared.json").read_text())
    out = pathlib.Path(prepared["out"])
    results = out / "files" / RESULTS
    words = [arguments.tipsim, "run", prepared["spec"], "--guest-dir", arguments.guest_dir, "--out", out, *prepared["arguments"]]
    status = subprocess.run(words).returncode
    if status == 0:
        SUITES[prepared["suite"]].check(prepared, results)
    return status
