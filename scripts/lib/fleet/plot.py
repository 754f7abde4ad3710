"""A curve as SVG, which is drawn without any script."""

import html
import math
from collections.abc import Callable

from fleet.curves import Curve
from report_terms import PAGE_COLOURS

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 66, 16, 14, 48
# Where the largest value of a parameter is so many times the least, its axis is logarithmic.
LOGARITHMIC = 8
# Ticks of the vertical axis, about.
TICKS = 4


def number(value: float) -> str:
    """A value in few characters: at most four digits that tell something."""
    for unit, size in [("G", 1e9), ("M", 1e6), ("k", 1e3)]:
        if abs(value) >= 10 * size:
            return f"{value / size:.4g} {unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def ticks(least: float, most: float) -> list[float]:
    """Round numbers that span the values."""
    span = most - least or abs(most) or 1
    raw = span / TICKS
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in [1, 2, 2.5, 5, 10] if factor * power >= raw)
    first = math.floor(least / step)
    last = max(math.ceil(most / step), first + 1)
    return [at * step for at in range(first, last + 1)]


def positions(values: list[float]) -> dict[float, float]:
    """Where each value of the parameter is, from 0 to 1."""
    scale: Callable[[float], float] = math.log2 if values[0] > 0 and values[-1] / values[0] >= LOGARITHMIC else float
    first, last = scale(values[0]), scale(values[-1])
    return {value: (scale(value) - first) / (last - first) if last > first else 0.5 for value in values}


def drawn(curve: Curve) -> str:
    """The lines of a curve in one coordinate system, each point with its values as a tooltip."""
    names = dict(curve["values"])
    points = [point for line in curve["lines"] for point in line["points"]]
    places = positions(sorted({point[0] for point in points}))
    least, most = min(point[2] for point in points), max(point[3] for point in points)
    marks = ticks(least if least > 0.5 * most else min(0, least), most)

    def x(value: float) -> float:
        return LEFT + 8 + places[value] * (WIDTH - LEFT - RIGHT - 16)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - marks[0]) / (marks[-1] - marks[0]) * (HEIGHT - TOP - BOTTOM)

    parts = []
    for mark in marks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(mark):.1f}" y2="{y(mark):.1f}"/>'
                     f'<text x="{LEFT - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{number(mark)}</text>')
    last_label = -math.inf
    for value in places:
        # Labels that would lie on the one before are left out.
        if x(value) - last_label >= 7 * len(names[value]) + 6:
            last_label = x(value)
            parts.append(f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{html.escape(names[value])}</text>')
    parts.append(f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
                 f'{html.escape(curve["along"])}</text>')
    for order, line in enumerate(curve["lines"]):
        # After the last colour the first comes again, in dashes, which are shorter each time.
        turn, number_of_colour = divmod(order, len(PAGE_COLOURS))
        colour, dashes = f"var(--c{number_of_colour})", f' stroke-dasharray="{6 - turn} 4"' if turn else ""
        path = " ".join(f"{x(value):.1f},{y(mean):.1f}" for value, mean, _, _ in line["points"])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        for value, mean, low, high in line["points"]:
            spread = f" ({low:,.6g} to {high:,.6g})" if high > low else ""
            named = ", ".join(filter(None, [line["name"], f"{curve['along']} = {names[value]}"]))
            shown = f"{mean:,.0f}" if abs(mean) >= 1000 else f"{mean:.4g}"
            if high > low:
                parts.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}" stroke="{colour}"/>')
            parts.append(f'<circle cx="{x(value):.1f}" cy="{y(mean):.1f}" r="4" fill="{colour}"><title>'
                         f"{html.escape(named)}: {shown} {html.escape(curve['metric'])}{spread}</title></circle>")
    label = html.escape(f"{curve['metric']} of {curve['program']} against {curve['along']}")
    return f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def figure(curve: Curve, title: str) -> str:
    """A curve with its title and, if it has several lines, their names."""
    names = "".join(f'<li><i style="background: var(--c{order % len(PAGE_COLOURS)})"></i>{html.escape(line["name"])}</li>'
                    for order, line in enumerate(curve["lines"])) if len(curve["lines"]) > 1 else ""
    key = f'<ul class="key">{names}</ul>' if names else ""
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{drawn(curve)}{key}</figure>"
