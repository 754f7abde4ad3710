"""The tables of workloads/study/README.md, between two marks in it."""

import pathlib
import textwrap

from report_terms import LEVEL_NAMES, LEVELS, PROFILER_NAMES
from study.data import Study
from study.text import dense_table, error_table, ilp_table, order_lines, stack_table
from study.words import all_words

BEGIN, END = "<!-- tables: written by scripts/study --keep -->\n", "<!-- end -->\n"


def cell(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def headline(study: Study) -> list[str]:
    """Each profiler's mean at each level, the published one below."""
    lines = ["| level | | " + " | ".join(PROFILER_NAMES.values()) + " |", "|---|---|" + "---|" * len(PROFILER_NAMES)]
    for level in LEVELS:
        rows = study["summary"]["all"][level]
        published = [f"< {cell(below)}" if (below := rows[who]["published_below"]) else cell(rows[who]["published"])
                     for who in PROFILER_NAMES]
        lines.append(f"| {LEVEL_NAMES[level]} | ours | " + " | ".join(cell(rows[who]["mean"]) for who in PROFILER_NAMES) + " |")
        lines.append("| | published | " + " | ".join(published) + " |")
    return lines


def tables(study: Study) -> str:
    words = {figure: textwrap.fill(sentence, 138) for figure, sentence in all_words(study).items()}
    count = len(study["programs"])
    parts = [[f"Mean error over {count} programs, %, beside the published means (27 programs at 4 kHz):"], headline(study)]
    figures = [(error_table(study, "instruction"), "instruction"), (stack_table(study), "stack"), (dense_table(study), "bias"),
               (ilp_table(study), "ilp")]
    for lines, figure in figures:
        parts += [["```text", *lines, "```"], [words[figure]]]
    parts += [[words[figure]] for figure in ["rates", "block", "function", "analysis"]] + [order_lines(study)]
    if study["missing"]:
        parts.append(["Not run: " + ", ".join(study["missing"]) + "."])
    return "\n\n".join("\n".join(lines) for lines in parts if lines[0]) + "\n"


def write(path: pathlib.Path, study: Study) -> None:
    text = path.read_text()
    before, rest = text.split(BEGIN)
    path.write_text(before + BEGIN + tables(study) + END + rest.split(END)[1])
