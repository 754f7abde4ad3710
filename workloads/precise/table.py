#!/usr/bin/env python3
"""Errors of the mixes by event, share and period, from the report.json of runs of workloads/precise.toml.

usage: table.py [--compact] OUT...

OUT: output folders. --compact: means over shares by period, and over periods by share (of profiles of 50 samples or more), not each
profile; what was lost, and wrong, by period.
"""

import collections
import json
import pathlib
import re
import statistics
import sys
from typing import Any

FILE = re.compile(r"(?P<kind>[a-z0-9]+)-(?P<share>\d+)-(?P<period>\d+)(-(?P<unit>\w+))?\.data")
# A profile with fewer samples is not in the means over periods.
ENOUGH_SAMPLES = 50
UNITS = {None: "plain", "pp": "`:pp`", "pdis": "`pdis`"}


class Profile:
    def __init__(self, own: dict[str, Any], match: re.Match[str]) -> None:
        self.own = own
        self.kind = match["kind"]
        self.share = int(match["share"])
        self.period = int(match["period"])
        self.unit = match["unit"]
        self.error = 100 * own["instruction"]["error"]
        self.expected = 100 * own["instruction"]["sampling"]
        self.ratio = own["estimate"] / own["truth"]

    def order(self) -> tuple[str, int, int, str, str]:
        return (self.kind, self.share, self.period, self.unit or "", self.own["event"])


def read(path: pathlib.Path) -> dict[str, Any]:
    precise = json.loads(path.read_text())["precise"]
    if not precise or not precise["profiles"]:
        sys.exit(f"{path}: precise: expected judged events, found none")
    return precise


def table(head: list[str], rows: list[list[str]]) -> None:
    for cells in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(cells) + " |")
    print()


def each(profiles: list[Profile]) -> None:
    """A row for each profile."""
    rows = []
    for profile in profiles:
        own = profile.own
        event = own["event"] + (":pp" if own["precise"] and ":" not in own["event"] else "")
        rows.append([
            f"`{event}`", profile.kind, str(profile.share), str(own["period"]), str(own["samples"]),
            f"{own['lost']}, {own['throttled']}", f"{profile.error:.1f} ({profile.expected:.1f})",
            f"{100 * own['wrong']:.1f}", f"{own['skid']['mean']:.2f}" if own["skid"] else "-", f"{profile.ratio:.3f}",
        ])
    table(["event", "kind", "share, %", "period", "samples", "lost, throttled", "error (expected), %", "wrong, %", "skid",
           "sampled / true"], rows)


def means(profiles: list[Profile], by: str) -> None:
    """Means by kind and unit: a column for each period or share."""
    groups: dict[tuple[str, str | None, int], list[Profile]] = collections.defaultdict(list)
    for profile in profiles:
        groups[profile.kind, profile.unit, getattr(profile, by)].append(profile)
    columns = sorted({key[2] for key in groups})
    rows = []
    for kind in sorted({key[0] for key in groups}):
        for unit, name in UNITS.items():
            cells = []
            for column in columns:
                own = groups[kind, unit, column]
                if not own:
                    cells.append("-")
                    continue
                error, expected, ratio = (statistics.mean(getattr(profile, key) for profile in own)
                                          for key in ["error", "expected", "ratio"])
                cells.append(f"{error:.1f} ({expected:.1f}); {ratio:.3f}")
            rows.append([kind, name, *cells])
    table(["kind", "sampled", *(f"{by} {column}" for column in columns)], rows)


def lost(profiles: list[Profile], units: dict[int, list[dict[str, Any]]]) -> None:
    """What was lost, and how many samples are at instructions that never incur the event, by period."""
    rows = []
    for period, all_units in sorted(units.items()):
        def sums(unit: str | None, period: int = period) -> str:
            own = [p.own for p in profiles if (p.period, p.unit) == (period, unit)]
            samples, lost, throttled = (sum(p[key] for p in own) for key in ["samples", "lost", "throttled"])
            wrong = sum(p["wrong"] * p["samples"] for p in own) / samples if samples else 0
            return f"{samples}, {100 * wrong:.1f}, {lost}, {throttled}"
        totals = [str(sum(unit[key] for unit in all_units))
                  for key in ["overflows", "samples", "collisions", "filtered", "dropped"]]
        rows.append([str(period), *(sums(unit) for unit in UNITS), *totals])
    heads = [f"{name}: samples, wrong %, lost, throttled" for name in UNITS.values()]
    table(["period", *heads, "overflows of the unit", "recorded", "collisions", "filtered", "dropped"], rows)


def main() -> None:
    paths = [argument for argument in sys.argv[1:] if argument != "--compact"]
    if not paths or any(path.startswith("-") for path in paths):
        sys.exit(__doc__)
    profiles: list[Profile] = []
    units: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
    for path in paths:
        precise = read(pathlib.Path(path) / "report.json")
        matches = ((own, FILE.fullmatch(own["file"])) for own in precise["profiles"])
        found = [Profile(own, match) for own, match in matches if match]
        profiles += found
        # A run has one period.
        for period in {profile.period for profile in found}:
            units[period] += precise["units"]
    profiles.sort(key=Profile.order)
    alone = [profile for profile in profiles if profile.unit in UNITS]
    several = [profile for profile in profiles if profile.unit not in UNITS]
    if "--compact" in sys.argv:
        means(alone, "period")
        means([profile for profile in alone if profile.own["samples"] >= ENOUGH_SAMPLES], "share")
        lost(alone, units)
        return
    each(alone)
    if several:
        print("Several events at once:\n")
        each(several)


main()
