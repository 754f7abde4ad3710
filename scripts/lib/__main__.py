"""Runs a module of this folder as a program: `python3 scripts/lib MODULE [argument]...`, for example `python3 scripts/lib fleet --help`.

Python puts this folder, and not the working folder, before all others in which it looks for modules. So the packages in it find each
other from wherever they are started, on any host that sees the clone.
"""

import runpy
import sys


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("scripts/lib: expected the name of a module, such as fleet or bench.timing")
    module = sys.argv.pop(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


main()
