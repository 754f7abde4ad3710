"""The study as text: one table per figure of the published evaluation."""

import textwrap

from report_terms import CLASSES, LEVEL_NAMES, LEVELS, PROFILERS, SHORT_NAMES, TEA_PROFILERS
from study.data import GROUPS, ORACLE_BYTES, RATES, SAMPLE_BYTES, Program, Study
from study.words import all_words, error, mean_of_rate

# The profilers that tell what it brings to split a sample.
ILP_PROFILERS = ["nci", "nci-ilp", "tip-ilp", "tip"]
FIGURES = {"instruction": "figures 1 and 10", "block": "figure 9", "function": "figure 8"}


def percent(value: float | None, width: int = 7) -> str:
    return f"{'–':>{width}}" if value is None else f"{100 * value:{width}.1f}"


def bytes_per_second(value: float) -> str:
    for unit in ["B", "kB", "MB"]:
        if value < 1000:
            return f"{value:.0f} {unit}/s"
        value /= 1000
    return f"{value:.0f} GB/s"


def header(first: str, titles: list[str], width: int = 7) -> str:
    return f"{first:24}" + "".join(f"{title:>{width}}" for title in titles)


def error_table(study: Study, level: str) -> list[str]:
    programs, summary = study["programs"], study["summary"]
    lines = [f"Error by {LEVEL_NAMES[level]}, % of all cycles, a run of published length ({FIGURES[level]})",
             header("Program", [SHORT_NAMES[p] for p in PROFILERS])]

    def of(p: Program, who: str) -> float | None:
        return p["errors"][who][level]["periodic"]["published_length"] if who in p["errors"] else None

    lines += [f"{p['name']:24}" + "".join(percent(of(p, who)) for who in PROFILERS) for p in programs]
    for name in ["all", *GROUPS, *CLASSES]:
        rows = summary[name].get(level)
        if rows:
            title = f"mean of {name}" if name == "all" else f"  {name} ({summary[name]['programs']})"
            lines.append(f"{title:24}" + "".join(percent(rows[who]["mean"]) for who in PROFILERS))
    rows = summary["all"][level]
    lines.append(f"{'published mean':24}" + "".join(percent(rows[who]["published"]) for who in PROFILERS))
    lines.append(f"{'largest':24}" + "".join(percent(rows[who]["max"]) for who in PROFILERS))
    lines.append(f"{'published largest':24}" + "".join(percent(rows[who]["published_max"]) for who in PROFILERS))
    return lines


def stack_table(study: Study) -> list[str]:
    lines = ["Cycle stacks, % of cycles (figure 7)",
             header("Program", ["IPC", *study["programs"][0]["stack"]], 12) + "  class"]
    for p in study["programs"]:
        shares = "".join(percent(share, 12) for share in p["stack"].values())
        lines.append(f"{p['name']:24}{p['ipc']:12.2f}{shares}  {p['class']}")
    return lines


def rate_table(study: Study) -> list[str]:
    """Means over the programs."""
    lines = ["Error by instruction at perf's rates, %, mean of the programs: periodic / random; the run's own length",
             header("Profiler", RATES, 16)]
    for who in PROFILERS:
        cells = ""
        for rate in RATES:
            parts = [mean_of_rate(study, who, rate, mode) for mode in ["periodic", "random"]]
            cells += f"{' / '.join('–' if v is None else f'{100 * v:.1f}' for v in parts):>16}"
        lines.append(f"{SHORT_NAMES[who]:24}" + cells)
    samples = [mean_of_rate(study, "tip", rate, "periodic", "samples") for rate in RATES]
    lines.append(f"{'samples':24}" + "".join(f"{value or 0:16,.0f}" for value in samples))
    noise = [mean_of_rate(study, "tip", rate, "random", "noise") for rate in RATES]
    lines.append(f"{'chance alone (TIP)':24}" + "".join(percent(value, 16) for value in noise))
    return lines


def dense_table(study: Study) -> list[str]:
    lines = ["Bias and chance, error by instruction, %: TIP with a sample every 199 cycles, periodic and random; what as many random",
             "samples of the Oracle's own profile would leave (chance); then each profiler's bias: what is left of its error with",
             "infinitely many samples, by its error with a sample every 199 and every 1009 cycles",
             header("Program", ["TIP", "random", "chance"]) + "   bias:" + header("", [SHORT_NAMES[p] for p in PROFILERS])[24:]]
    for p in study["programs"]:
        errors = {who: p["errors"][who]["instruction"] for who in p["errors"]}
        tip = errors["tip"]
        values = [tip["periodic"]["error"], tip["random"]["error"], tip["periodic"]["noise"]]
        biases = "".join(percent(errors[who]["periodic"]["bias"]) for who in PROFILERS)
        lines.append(f"{p['name']:24}" + "".join(f"{100 * value:7.2f}" for value in values) + "        " + biases)
    return lines


def ilp_table(study: Study) -> list[str]:
    lines = ["Is it worth it to split a sample among all that commit together? Error by instruction, % (figure 11)",
             header("", [SHORT_NAMES[who] for who in ILP_PROFILERS])]
    for name in ["all", *CLASSES, *GROUPS]:
        rows = study["summary"][name].get("instruction")
        if rows:
            title = f"{name} ({study['summary'][name]['programs']})"
            lines.append(f"{title:24}" + "".join(percent(rows[w]["mean"]) for w in ILP_PROFILERS))
    better = [p["name"] for p in study["programs"] if error(p, "nci-ilp") < error(p, "nci")]
    lines.append(f"NCI+ILP is better than NCI in {len(better)} of {len(study['programs'])}: {', '.join(better) or 'none'}")
    found = study["correlation_with_execute"]
    if "nci" in found and "nci-ilp" in found:
        lines.append("Correlation of the bias with the share of cycles that commit, over the programs: "
                     + ", ".join(f"{SHORT_NAMES[who]} {found[who]:+.2f}" for who in ["nci", "nci-ilp", "tip-ilp"]))
    return lines


def analysis_table(study: Study) -> list[str]:
    keys = ["retiring", "bad_speculation", "frontend", "backend", "backend.memory", "backend.core"]
    titles = ["retiring", "bad spec.", "frontend", "backend", "memory", "core", "TEA", "nci-tea", "disp-tea"]
    lines = ["Top-down, % of slots; error of time by event (TEA) and instruction in the largest process, sampled every 199 cycles, %",
             header("Program", titles, 11)]
    for p in study["programs"]:
        tea = p["tea"] or {}
        errors = [tea.get(name, {}).get("instruction") for name in TEA_PROFILERS]
        lines.append(f"{p['name']:24}" + "".join(percent(p["top_down"][key], 11) for key in keys)
                     + "".join(percent(value, 11) for value in errors))
    return lines


def data_lines(study: Study) -> list[str]:
    clock = study["programs"][0]["clock_hz"]
    lines = ["Data rates",
             f"  Oracle, one record of {ORACLE_BYTES} bytes per cycle: {bytes_per_second(ORACLE_BYTES * clock)}"]
    traces = [p["trace_bytes"] / (p["cycles"] / p["clock_hz"]) for p in study["programs"] if p["trace_bytes"]]
    if traces:
        mean = sum(traces) / len(traces)
        lines.append(f"  Oracle, tipsim's compressed trace, mean of the programs: {bytes_per_second(mean)}")
    lines += [f"  {SHORT_NAMES[who]} at 4 kHz, {size} bytes per sample: {bytes_per_second(4000 * size)}"
              for who, size in SAMPLE_BYTES.items()]
    costs = [p["overhead"] for p in study["programs"] if p.get("overhead") is not None]
    if costs:
        lines.append(f"  perf record -e tip in the guest, at 4 kHz: {100 * sum(costs) / len(costs):.2f} % more cycles, mean of "
                     f"{len(costs)} programs, at most {100 * max(costs):.2f} % (published: 1.1 %)")
    return lines


def program_table(study: Study) -> list[str]:
    lines = ["Programs", f"{'Program':24}{'stands for':18}{'group':16}{'M instr.':>9}{'M cycles':>9}{'MIPS':>7}  output"]
    for p in study["programs"]:
        about = p["about"]
        lines.append(f"{p['name']:24}{about.get('stands_for', ''):18}{about.get('group', ''):16}"
                     f"{p['instructions'] / 1e6:9,.0f}{p['cycles'] / 1e6:9,.0f}{p['mips']:7.1f}  "
                     f"{p.get('output', 'not compared')}")
    return lines


def order_lines(study: Study) -> list[str]:
    if not study["exceptions"]:
        return ["The published order (TIP < TIP-ILP < NCI < LCI, Dispatch, Software) holds for every program."]
    lines = ["The published order (TIP < TIP-ILP < NCI < LCI, Dispatch, Software) does not hold in:"]
    for row in study["exceptions"]:
        found = " and ".join(f"{100 * value:.2f}" for value in row["found"])
        lines.append(f"  {row['program']:22} {row['expected']}: found {found} %")
    return lines


def text(study: Study) -> str:
    words = all_words(study)

    def said(figure: str) -> list[str]:
        return textwrap.wrap(words[figure], 130)

    tables = [program_table(study), *(error_table(study, level) + said(level) for level in LEVELS), order_lines(study),
              stack_table(study) + said("stack"), dense_table(study) + said("bias"), rate_table(study) + said("rates"),
              ilp_table(study) + said("ilp"), analysis_table(study) + said("analysis"), data_lines(study)]
    missing = [f"missing: {name}: {why}" for name, why in study["missing"].items()]
    return "\n\n".join("\n".join(lines) for lines in [*tables, missing] if lines) + "\n"
