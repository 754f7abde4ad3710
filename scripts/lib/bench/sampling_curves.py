"""The errors of schemes of sampling over the part of programs that is timed, as a page with a chart on logarithmic axes."""

import math
from typing import Any

from pages import POLICY

TITLE = "Error of the cycles, in the mean of seeds and programs"
WIDTH, HEIGHT = 760, 420
# Edges of the plot.
LEFT, RIGHT, TOP, BOTTOM = 60, 560, 16, 370
# Ends of the axes, in per cent.
LEAST_TIMED, MOST_TIMED = 0.005, 20.0
LEAST_ERROR, MOST_ERROR = 0.05, 50.0
COLORS = {"systematic": "#3f9c6b", "random": "#8b8780", "stratified": "#d3603f", "ranked-set": "#4c84b8", "simpoint": "#7a5cb8"}
DASHES = {50_000: "none", 1_000_000: "5 3"}
# Published mean errors, in per cent, where the part that was timed is not the same: lines over the whole plot.
PUBLISHED = {
    "SMARTS 0.64 % (ISCA 2003)": 0.64,
    "ranked sets, 30 x 1 M: 2 % (arXiv 2603.22598)": 2.0,
    "two phases: 3 % at most (arXiv 2603.22605)": 3.0,
}


def place(value: float, ends: tuple[float, float], edges: tuple[float, float]) -> float:
    """Returns where a value is on a logarithmic axis; what is beyond its ends is at an end."""
    value = min(max(value, ends[0]), ends[1])
    share = math.log(value / ends[0]) / math.log(ends[1] / ends[0])
    return edges[0] + share * (edges[1] - edges[0])


def across(timed: float) -> float:
    return place(timed, (LEAST_TIMED, MOST_TIMED), (LEFT, RIGHT))


def down(error: float) -> float:
    return place(error, (LEAST_ERROR, MOST_ERROR), (BOTTOM, TOP))


def label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def curves(summary: list[dict[str, Any]]) -> str:
    """Returns the page; `summary` has a row for each scheme, unit and part that is timed."""
    parts = []
    for error in (0.1, 1, 10):
        y = down(error)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>' + label(LEFT - 6, y + 4, f"{error} %", "end"))
    for timed in (0.01, 0.1, 1, 10):
        x = across(timed)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{BOTTOM}"/>' + label(x, BOTTOM + 16, f"{timed} %", "middle"))
    parts.append(label((LEFT + RIGHT) / 2, BOTTOM + 36, "part of the program in units", "middle"))
    parts.append(label(LEFT, TOP - 4, TITLE))
    for text, error in PUBLISHED.items():
        y = down(error)
        parts.append(f'<path class="published" d="M{LEFT} {y:.1f}H{RIGHT}"/>' + label(LEFT + 4, y - 3, text))
    # Means of fewer programs are no part of the same curve.
    programs = max((row["programs"] for row in summary), default=0)
    summary = [row for row in summary if row["programs"] == programs]
    order = list(COLORS)
    known = sorted({(row["unit"], order.index(row["scheme"]) if row["scheme"] in order else len(order), row["scheme"]) for row in summary})
    for number, (unit, _, scheme) in enumerate(known):
        rows = [row for row in summary if (row["unit"], row["scheme"]) == (unit, scheme) and not isinstance(row["size"], str)]
        points = sorted((100 * row["timed"], 100 * row["mean_error"]) for row in rows)
        path = " ".join(f"{across(timed):.1f},{down(error):.1f}" for timed, error in points)
        style = f'stroke="{COLORS.get(scheme, "#000")}" stroke-dasharray="{DASHES.get(unit, "2 2")}"'
        y = float(TOP + 16 + 16 * number)
        parts.append(f'<polyline class="curve" points="{path}" {style}/><path class="curve" d="M{RIGHT + 6} {y}h24" {style}/>'
                     + label(RIGHT + 36, y + 4, f"{scheme}, {unit // 1000}k"))
    style = "text{font:11px sans-serif}.grid{stroke:#ddd}.published{stroke:#999;stroke-dasharray:1 3}.curve{fill:none;stroke-width:2}"
    chart = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{TITLE}">{"".join(parts)}</svg>'
    return f'<!doctype html>\n<html lang="en"><meta charset="utf-8">{POLICY}<title>{TITLE}</title><style>{style}</style>{chart}</html>\n'
