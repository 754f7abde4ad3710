#!/usr/bin/env python3
"""Top-down of the quickstart's phases in percent of slots: counted in the guest / by the host's report.

usage: phases.py OUT (the output folder of workloads/counters/phases.toml)
"""

import collections
import json
import pathlib
import sys

PHASES = ["compute_integers", "compute_floats", "flush_ceil", "mispredict_branches", "stall_chase"]
# In the guest, and in the report.
PARTS = {
    "retiring": "retiring",
    "frontend_bound": "frontend",
    "bad_speculation": "bad_speculation",
    "backend_bound": "backend",
    "backend_bound.memory": "backend.memory",
}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    samples: collections.Counter[tuple[str, str]] = collections.Counter()
    for line in (out / "phases.txt").read_text().splitlines():
        words = line.split()
        if len(words) >= 3:
            event = words[0].rstrip(":").removesuffix(":u").removeprefix("topdown.")
            samples[words[2], event] += 1
    functions = json.loads((out / "report.json").read_text())["top_down"]["functions"]
    print("| phase | samples of slots | " + " | ".join(PARTS) + " |")
    print("|---" * (2 + len(PARTS)) + "|")
    for phase in PHASES:
        shares = next(f["shares"] for f in functions if f["name"] == phase)
        slots = samples[phase, "slots"]
        if not slots:
            sys.exit(f"{phase}: expected samples of topdown.slots, found none")
        cells = [
            f"{100 * samples[phase, event] / slots:.1f} / {100 * shares.get(name, 0):.1f}"
            for event, name in PARTS.items()
        ]
        print(f"| `{phase}` | {slots} | " + " | ".join(cells) + " |")


main()
