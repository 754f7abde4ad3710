#!/usr/bin/env python3
"""Errors of the mixes by event, share and period, from the run's report.json.

usage: table.py OUT (the output folder of workloads/precise.toml)
"""
import json
import pathlib
import re
import sys

FILE = re.compile(r"(?P<kind>[a-z0-9]+)-(?P<share>\d+)-(?P<period>\d+)(-\w+)?\.data")


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1]) / "report.json"
    precise = json.loads(path.read_text())["precise"]
    if not precise:
        sys.exit(f"{path}: precise: expected judged events, found none")
    print("| event | share, % | period | samples | lost, throttled | error (expected), % | wrong, % | skid | sampled / true |")
    print("|---" * 9 + "|")
    for own in precise["profiles"]:
        match = FILE.fullmatch(own["file"])
        if not match:
            continue
        skid = f"{own['skid']['mean']:.2f}" if own["skid"] else "-"
        error = own["instruction"]
        print(
            f"| {own['event']} | {match['share']} | {own['period']} | {own['samples']} | {own['lost']}, {own['throttled']} "
            f"| {100 * error['error']:.1f} ({100 * error['sampling']:.1f}) | {100 * own['wrong']:.1f} | {skid} "
            f"| {own['estimate'] / own['truth']:.3f} |"
        )


main()
