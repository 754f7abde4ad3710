"""Programs of SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0, from the user's own copy: what `scripts/run-spec` does with their run specs.

  python3 scripts/lib suites prepare SPEC [options] [options of tipsim run]
        builds the program and sets up its input; the last line is a folder with both, and with prepared.json
  python3 scripts/lib suites run FOLDER --tipsim BINARY --guest-dir DIR
        runs it in the guest, and compares its output with the suite's, where the suite can
  python3 scripts/lib suites specs [--check]
        writes the run specs of all programs anew; --check: says whether they differ
"""

import argparse
import pathlib
import sys

from suites.commands import prepare, run, write_specs
from suites.common import BadTree


def parse() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="python3 scripts/lib suites", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="action", required=True)
    one = commands.add_parser("prepare", allow_abbrev=False, add_help=False)
    one.add_argument("spec", type=pathlib.Path)
    one.add_argument("--spec-dir", type=pathlib.Path)
    one.add_argument("--parsec-dir", type=pathlib.Path)
    one.add_argument("--size")
    one.add_argument("--threads", type=int, default=1, choices=range(1, 17))
    one.add_argument("--out", type=pathlib.Path)
    two = commands.add_parser("run")
    two.add_argument("folder", type=pathlib.Path)
    two.add_argument("--tipsim", type=pathlib.Path, required=True)
    two.add_argument("--guest-dir", type=pathlib.Path, required=True)
    three = commands.add_parser("specs")
    three.add_argument("--check", action="store_true")
    arguments, further = parser.parse_known_args()
    if further and arguments.action != "prepare":
        parser.error(f"unknown arguments: {' '.join(further)}")
    return arguments, further


def main() -> int:
    arguments, further = parse()
    try:
        if arguments.action == "run":
            return run(arguments)
        if arguments.action == "specs":
            write_specs(arguments.check)
        else:
            prepare(arguments, further)
    except BadTree as error:
        print(f"run-spec: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
