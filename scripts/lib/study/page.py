"""The study as one page of HTML, which needs no network: the published figures drawn anew, and every table."""

import html
import math
from collections.abc import Iterable, Mapping

from pages import POLICY
from report_terms import CATEGORY_COLOURS, PROFILER_COLOURS, PROFILERS, SHORT_NAMES
from study.data import RATES, Program, Study
from study.text import ILP_PROFILERS, text
from study.words import all_words, mean_of_rate

STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222}
svg{width:100%;height:auto;font:11px system-ui,sans-serif}pre{overflow-x:auto;font-size:12px}
.key span{display:inline-block;margin-right:1em}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}
h2{margin-top:2em}.note{max-width:75ch}"""
WIDTH, LEFT, BAR_TOP = 1060, 40, 10
# Bars that are drawn beside each other: the name of each group, and its values by what they are of.
Groups = list[tuple[str, Mapping[str, float | None]]]


def key(names: Iterable[tuple[str, str]]) -> str:
    items = "".join(f'<span><i style="background:{colour}"></i>{html.escape(name)}</span>' for name, colour in names)
    return f'<p class="key">{items}</p>'


def axis(height: float, most: float, unit: str = "%") -> str:
    lines = []
    for step in range(5):
        y = BAR_TOP + height * (1 - step / 4)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{100 * most * step / 4:.0f}{unit}</text>')
    return "".join(lines)


def label(x: float, y: float, name: str) -> str:
    return f'<text transform="translate({x:.1f} {y}) rotate(-40)" text-anchor="end">{html.escape(name)}</text>'


def rect(x: float, y: float, width: float, height: float, colour: str, title: str) -> str:
    return (f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{max(height, 0):.2f}" fill="{colour}">'
            f"<title>{html.escape(title)}</title></rect>")


def figure(body: str, height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height + 110}" role="img">{body}</svg>'


def grouped_bars(
    groups: Groups, series: list[tuple[str, str]], most: float, height: float = 240
) -> str:
    """`groups`: (name, {series: value}); `series`: (name, colour)."""
    # Four steps of whole per cents.
    most = math.ceil(25 * most) / 25
    step = (WIDTH - LEFT) / len(groups)
    width = 0.8 * step / len(series)
    body = axis(height, most)
    for at, (name, values) in enumerate(groups):
        x = LEFT + at * step + 0.1 * step
        for n, (who, colour) in enumerate(series):
            value = values.get(who)
            if value is not None:
                tall = height * min(value, most) / most
                body += rect(x + n * width, BAR_TOP + height - tall, 0.9 * width, tall, colour,
                             f"{name}, {SHORT_NAMES.get(who, who)}: {100 * value:.2f} %")
        body += label(x + 0.4 * step, height + 24, name)
    return figure(body, height)


def stacked_bars(programs: list[Program], height: float = 240) -> str:
    step = (WIDTH - LEFT) / len(programs)
    body = axis(height, 1.0)
    for at, p in enumerate(programs):
        y = BAR_TOP + height
        for category, share in p["stack"].items():
            tall = height * share
            y -= tall
            body += rect(LEFT + (at + 0.1) * step, y, 0.8 * step, tall, CATEGORY_COLOURS[category],
                         f"{p['name']}, {category}: {100 * share:.1f} %")
        body += label(LEFT + (at + 0.5) * step, height + 24, f"{p['name']} ({p['class']})")
    return figure(body, height)


def errors(study: Study, level: str, who: list[str]) -> str:
    """By program, then the mean and the published mean."""
    def value(p: Program, w: str) -> float | None:
        return p["errors"][w][level]["periodic"]["published_length"] if w in p["errors"] else None

    groups: Groups = [(p["name"], {w: value(p, w) for w in who}) for p in study["programs"]]
    rows = study["summary"]["all"][level]
    groups.append(("mean", {w: rows[w]["mean"] for w in who if w in rows}))
    groups.append(("published mean", {w: rows[w]["published"] for w in who if w in rows}))
    most = max((v for _, values in groups for v in values.values() if v is not None), default=0.01)
    series = [(w, PROFILER_COLOURS[w]) for w in who]
    return key([(SHORT_NAMES[w], PROFILER_COLOURS[w]) for w in who]) + grouped_bars(groups, series, max(most, 0.01))


def rates(study: Study) -> str:
    groups: Groups = []
    for mode in ["periodic", "random"]:
        for rate in RATES:
            values = {w: mean_of_rate(study, w, rate, mode) for w in PROFILERS}
            groups.append((f"{rate}, {mode}", values))
    most = max((v for _, values in groups for v in values.values() if v is not None), default=0.01)
    return grouped_bars(groups, [(w, PROFILER_COLOURS[w]) for w in PROFILERS], most)


def biases(study: Study) -> str:
    groups: Groups = [(p["name"], {w: p["errors"][w]["instruction"]["periodic"]["bias"] for w in PROFILERS}) for p in study["programs"]]
    most = max((v for _, values in groups for v in values.values() if v is not None), default=0.01)
    return grouped_bars(groups, [(w, PROFILER_COLOURS[w]) for w in PROFILERS], max(most, 0.01))


def note(sentence: str) -> str:
    return f'<p class="note">{html.escape(sentence)}</p>'


def page(study: Study) -> str:
    words = {figure: note(sentence) for figure, sentence in all_words(study).items()}
    parts = [
        f"<h1>The profilers on {len(study['programs'])} programs</h1>",
        note(f"Core {study['core']}. Errors are of a run of published length (1.2 million samples at equal distances): "
             "what dense sampling leaves, with the chance of so many samples. They are not fitted to anything."),
    ]
    if study["missing"]:
        parts.append(note("Missing: " + "; ".join(f"{name} ({why})" for name, why in study["missing"].items())))
    parts += ["<h2>Error by instruction (figures 1 and 10)</h2>", errors(study, "instruction", PROFILERS), words["instruction"],
              "<h2>Cycle stacks (figure 7)</h2>", key((category, CATEGORY_COLOURS[category]) for category in study["programs"][0]["stack"]),
              stacked_bars(study["programs"]), words["stack"],
              "<h2>Error by function (figure 8)</h2>", errors(study, "function", PROFILERS), words["function"],
              "<h2>Error by basic block (figure 9)</h2>", errors(study, "block", ["lci", "nci", "tip-ilp", "tip"]), words["block"],
              "<h2>Bias of each profiler</h2>", biases(study), words["bias"],
              "<h2>Sampling rate, periodic and random</h2>",
              note("Mean error by instruction of the runs as they are, whose number of samples is in the table below."),
              rates(study), words["rates"],
              "<h2>Splitting a sample among all that commit together (figure 11)</h2>",
              errors(study, "instruction", ILP_PROFILERS), words["ilp"],
              "<h2>Tables</h2>", f"<pre>{html.escape(text(study))}</pre>"]
    body = "\n".join(parts)
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">{POLICY}<title>Study</title><style>{STYLE}</style></head>'
            f"<body>{body}</body></html>\n")
