"""Programs of SPEC CPU2017 and PARSEC 3.0, from the user's own copy: what `scripts/run-spec` does with their run specs.

  suites.py prepare SPEC [options]     builds the program, sets up its input; the last line is the folder of both
  suites.py check PREPARED OUT         compares the output in OUT with the suite's, where the suite can
  suites.py specs [--check]            writes the run specs of all programs anew; --check: says whether they differ

`prepare` writes three files into its folder: `arguments`, what tipsim run is to be told, one a line; `prepared.json`, for `check`;
and beside them the program's folder, which is given to the guest with a script of its commands.
"""

import argparse
import csv
import json
import os
import pathlib
import shlex
import shutil
import sys

import suites_parsec
import suites_spec2017
from suites_common import REPO, BadTree, read_table, say

SUITES = {"spec2017": suites_spec2017, "parsec": suites_parsec}
SCRIPT = "tipsim-commands.sh"


def spec_text(suite, row):
    """The run spec of a program, as it is in the repository."""
    about = [suite.TITLE, row["name"], row["notes"]]
    return f"""\
# {suite.TITLE}, {row["name"]}: {row["notes"]} ({row["language"]}).
# Made of programs.csv by scripts/lib/suites.py. The suite is yours: scripts/run-spec builds the program from it.
name = "{row["name"]}"

[guest]
memory = "{suite.memory(row)}"

[run]
boot = "functional"
region = "command"
# Replaced by scripts/run-spec.
command = "echo 'this program comes from your own copy of {about[0]}: scripts/run-spec runs it' >&2; exit 2"

[record]
trace = false
"""


def write_specs(check):
    wrong = []
    for name, suite in SUITES.items():
        folder = REPO / "workloads" / name
        wanted = {f"{row['name']}.toml": spec_text(suite, row) for row in read_table(folder)}
        wrong += [folder / old.name for old in folder.glob("*.toml") if old.name not in wanted]
        for file, text in wanted.items():
            path = folder / file
            if check and (not path.is_file() or path.read_text() != text):
                wrong.append(path)
            elif not check:
                path.write_text(text)
    if wrong:
        names = ", ".join(str(path.relative_to(REPO)) for path in wrong)
        raise BadTree(f"{names}: not as scripts/lib/suites.py specs writes them from programs.csv")


def guest_script(prepared):
    """What runs in the guest, in the program's folder: its commands one by one, then what makes its output comparable."""
    lines = ["#!/bin/sh", f"# {prepared.title}", "ulimit -s unlimited 2> /dev/null"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in prepared.environment.items()]
    lines += [
        'failed() {',
        '    status=$?',
        '    echo "failed with $status: $1" >&2',
        '    for file in *.err; do [ ! -s "$file" ] || { echo "== $file" >&2; tail -n 20 "$file" >&2; }; done',
        '    exit $status',
        '}',
    ]
    timed = "" if prepared.marks_itself else "tipsim-run "
    lines += [f"{timed}{command} || failed {shlex.quote(command)}" for command in prepared.commands]
    lines += [f"{command} || failed {shlex.quote(command)}" for command in prepared.afterwards]
    return "\n".join(lines) + "\n"


def toml_string(text):
    return json.dumps(str(text), ensure_ascii=False)


def prepare(arguments):
    path = arguments.spec.resolve()
    suite_name = path.parent.name
    suite = SUITES.get(suite_name)
    if suite is None:
        raise BadTree(f"{arguments.spec}: expected a run spec in a folder {' or '.join(SUITES)}, found {suite_name}")
    rows = {row["name"]: row for row in read_table(REPO / "workloads" / suite_name)}
    # The tests' program is in no table; it has a row of its own beside its spec.
    if (path.parent / "programs.csv").is_file():
        rows |= {row["name"]: row for row in read_table(path.parent)}
    row = rows.get(path.stem)
    if row is None:
        raise BadTree(f"{arguments.spec}: expected the name of a program of {suite.TITLE} (workloads/{suite_name}/programs.csv), found {path.stem}")
    size = arguments.size or suite.SIZES[0]
    if size not in suite.SIZES:
        raise BadTree(f"--size {size}: expected {', '.join(suite.SIZES)}")
    tree = suite.find_tree(arguments)
    cache = pathlib.Path(os.environ.get("TIPSIM_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tipsim")
    prepared = suite.prepare(tree, row, size, arguments.threads, cache.absolute() / "suites")

    folder = prepared.folder.parent
    (prepared.folder / SCRIPT).write_text(guest_script(prepared))
    name = prepared.folder.name
    # A rename, so that the folder is left where it is when run.files are taken back.
    command = f"(cd {name} && sh {SCRIPT}); status=$?; mv {name} results; exit $status"
    settings = {
        "run.files": f"[{toml_string(prepared.folder)}]",
        "run.command": toml_string(command),
        "guest.harts": arguments.threads,
    }
    (folder / "arguments").write_text("".join(f"--set\n{key}={value}\n" for key, value in settings.items()))
    (folder / "prepared.json").write_text(json.dumps({"suite": suite_name, "title": prepared.title, "checks": prepared.checks}, indent=1))
    say(f"{prepared.title}: {len(prepared.commands)} commands, {folder}")
    print(folder)


def check(arguments):
    prepared = json.loads((arguments.prepared / "prepared.json").read_text())
    SUITES[prepared["suite"]].check(prepared, arguments.out / "results")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="action", required=True)
    one = commands.add_parser("prepare", help="build a program and set up its input")
    one.add_argument("spec", type=pathlib.Path)
    one.add_argument("--spec-dir", type=pathlib.Path, help="an installed SPEC CPU2017 (or SPEC_DIR)")
    one.add_argument("--parsec-dir", type=pathlib.Path, help="PARSEC 3.0 (or PARSEC_DIR)")
    one.add_argument("--size", help="the input (default: the suite's test input)")
    one.add_argument("--threads", type=int, default=1, choices=range(1, 9), help="threads of the program and harts of the guest")
    two = commands.add_parser("check", help="compare a run's output")
    two.add_argument("prepared", type=pathlib.Path)
    two.add_argument("out", type=pathlib.Path)
    three = commands.add_parser("specs", help="write the run specs")
    three.add_argument("--check", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse()
    try:
        if arguments.action == "prepare":
            prepare(arguments)
        elif arguments.action == "check":
            check(arguments)
        else:
            write_specs(arguments.check)
    except BadTree as error:
        print(f"run-spec: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
