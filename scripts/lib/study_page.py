"""The study as one page of HTML, which needs no network: the published figures drawn anew, and every table."""

import html
import math

from study_data import PROFILERS, RATES
from study_text import SHORT, mean_of_rate, published, text

COLOURS = {"software": "#8c564b", "dispatch": "#d62728", "dispatch-op": "#ff9896", "lci": "#e377c2", "nci": "#ff7f0e",
           "nci-ilp": "#bcbd22", "tip-ilp": "#17becf", "tip": "#1f77b4"}
STACK = ["#2ca02c", "#98df8a", "#1f77b4", "#aec7e8", "#ffbb78", "#d62728", "#9467bd"]
STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222}
svg{width:100%;height:auto;font:11px system-ui,sans-serif}pre{overflow-x:auto;font-size:12px}
.key span{display:inline-block;margin-right:1em}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}
h2{margin-top:2em}.note{max-width:75ch}"""
WIDTH, LEFT, BAR_TOP = 1060, 40, 10


def key(names):
    items = "".join(f'<span><i style="background:{colour}"></i>{html.escape(name)}</span>' for name, colour in names)
    return f'<p class="key">{items}</p>'


def axis(height, most, unit="%"):
    lines = []
    for step in range(5):
        y = BAR_TOP + height * (1 - step / 4)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{100 * most * step / 4:.0f}{unit}</text>')
    return "".join(lines)


def label(x, y, name):
    return f'<text transform="translate({x:.1f} {y}) rotate(-40)" text-anchor="end">{html.escape(name)}</text>'


def rect(x, y, width, height, colour, title):
    return (f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{max(height, 0):.2f}" fill="{colour}">'
            f"<title>{html.escape(title)}</title></rect>")


def figure(body, height):
    return f'<svg viewBox="0 0 {WIDTH} {height + 110}" role="img">{body}</svg>'


def grouped_bars(groups, series, most, height=240):
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
                             f"{name}, {SHORT.get(who, who)}: {100 * value:.2f} %")
        body += label(x + 0.4 * step, height + 24, name)
    return figure(body, height)


def stacked_bars(programs, height=240):
    step = (WIDTH - LEFT) / len(programs)
    body = axis(height, 1.0)
    for at, p in enumerate(programs):
        y = BAR_TOP + height
        for (category, share), colour in zip(p["stack"].items(), STACK):
            tall = height * share
            y -= tall
            body += rect(LEFT + (at + 0.1) * step, y, 0.8 * step, tall, colour,
                         f"{p['name']}, {category}: {100 * share:.1f} %")
        body += label(LEFT + (at + 0.5) * step, height + 24, f"{p['name']} ({p['class']})")
    return figure(body, height)


def errors(study, level, who):
    """By program, then the mean and the published mean."""
    value = lambda p, w: p["errors"][w][level]["periodic"]["published_length"] if w in p["errors"] else None
    groups = [(p["name"], {w: value(p, w) for w in who}) for p in study["programs"]]
    rows = study["summary"]["all"][level]
    groups.append(("mean", {w: rows[w]["mean"] for w in who if w in rows}))
    groups.append(("published mean", {w: rows[w]["published"] for w in who if w in rows}))
    most = max((v for _, values in groups for v in values.values() if v is not None), default=0.01)
    series = [(w, COLOURS[w]) for w in who]
    return key([(SHORT[w], COLOURS[w]) for w in who]) + grouped_bars(groups, series, max(most, 0.01))


def rates(study):
    groups = []
    for mode in ["periodic", "random"]:
        for rate in RATES:
            values = {w: mean_of_rate(study, w, rate, mode) for w in PROFILERS}
            groups.append((f"{rate}, {mode}", values))
    most = max((v for _, values in groups for v in values.values() if v is not None), default=0.01)
    return grouped_bars(groups, [(w, COLOURS[w]) for w in PROFILERS], most)


def note(sentence):
    return f'<p class="note">{html.escape(sentence)}</p>'


def notes(study):
    """A sentence for each figure, of what it shows beside the published one."""
    rows = study["summary"]["all"]["instruction"]
    of = lambda who: f"{100 * rows[who]['mean']:.1f} % (published {100 * rows[who]['published']:.1f} %)"
    worse = sum(published(p, "nci-ilp") > published(p, "nci") for p in study["programs"])
    classes = {name: study["summary"][name]["programs"] for name in ["compute", "flush", "stall"]}
    def both(name):
        of = study["summary"][name]["instruction"]
        return f"{name} {100 * of['nci']['mean']:.1f} and {100 * of['nci-ilp']['mean']:.1f} %"

    by_class = ", ".join(both(name) for name, count in classes.items() if count)
    return {
        "instruction": f"Mean error by instruction: TIP {of('tip')}, TIP-ILP {of('tip-ilp')}, NCI {of('nci')}, "
                       f"NCI+ILP {of('nci-ilp')}, LCI {of('lci')}, Dispatch {of('dispatch')}, Software {of('software')}.",
        "stack": f"{classes['compute']} programs are of class compute, {classes['flush']} flush, {classes['stall']} stall.",
        "ilp": f"NCI+ILP is worse than NCI in {worse} of {len(study['programs'])} programs. Mean errors of NCI and of "
               f"NCI+ILP by class: {by_class}. A sample that waits for one instruction is given to all that commit with it, which is "
               "wrong where stalls are most of the time; where instructions commit in most cycles, it is nearer to the truth.",
    }


def page(study):
    say = notes(study)
    parts = [
        f"<h1>The profilers on {len(study['programs'])} programs</h1>",
        note(f"Core {study['core']}. Errors are of a run of published length (1.2 million samples at equal distances): "
             "what dense sampling leaves, with the chance of so many samples. They are not fitted to anything."),
    ]
    if study["missing"]:
        parts.append(note("Missing: " + "; ".join(f"{name} ({why})" for name, why in study["missing"].items())))
    parts += ["<h2>Error by instruction (figures 1 and 10)</h2>", note(say["instruction"]),
              errors(study, "instruction", PROFILERS),
              "<h2>Cycle stacks (figure 7)</h2>", note(say["stack"]), key(zip(study["programs"][0]["stack"], STACK)),
              stacked_bars(study["programs"]),
              "<h2>Error by function (figure 8)</h2>", errors(study, "function", PROFILERS),
              "<h2>Error by basic block (figure 9)</h2>", errors(study, "block", ["lci", "nci", "tip-ilp", "tip"]),
              "<h2>Sampling rate, periodic and random</h2>",
              note("Mean error by instruction of the runs as they are, whose number of samples is in the table below."),
              rates(study),
              "<h2>Splitting a sample among all that commit together (figure 11)</h2>", note(say["ilp"]),
              errors(study, "instruction", ["nci", "nci-ilp", "tip-ilp", "tip"]),
              "<h2>Tables</h2>", f"<pre>{html.escape(text(study))}</pre>"]
    body = "\n".join(parts)
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Study</title><style>{STYLE}</style></head>'
            f"<body>{body}</body></html>\n")
