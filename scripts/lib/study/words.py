"""A sentence or two for each figure of the study: what it shows beside the published one, and why."""

from report_terms import CLASSES, EXECUTION, PROFILER_NAMES, TEA_PROFILERS
from study.data import RATES, Program, Study


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def error(program: Program, who: str, level: str = "instruction", key: str = "published_length", mode: str = "periodic") -> float:
    return program["errors"][who][level][mode][key]


def mean_of_rate(study: Study, who: str, rate: str, mode: str, key: str = "error") -> float | None:
    values = [p["errors"][who]["instruction"][mode]["rates"][rate][key] for p in study["programs"]
              if rate in p["errors"].get(who, {}).get("instruction", {}).get(mode, {}).get("rates", {})]
    return sum(values) / len(values) if values else None


def means(study: Study, level: str) -> str:
    """Each profiler's mean, the best first."""
    rows = study["summary"]["all"][level]
    ordered = sorted((who for who in PROFILER_NAMES if who in rows), key=lambda who: rows[who]["mean"])

    def published(who: str) -> str:
        return "" if rows[who]["published"] is None else f" (published {percent(rows[who]['published'])})"

    return "Mean error: " + ", ".join(f"{PROFILER_NAMES[who]} {percent(rows[who]['mean'])}{published(who)}" for who in ordered) + "."


def bias(study: Study) -> str:
    programs = study["programs"]
    biases = {p["name"]: error(p, "tip", key="bias") for p in programs}
    worst = max(biases, key=lambda name: biases[name])
    below = sum(error(p, "tip", key="error") < error(p, "tip", key="noise") for p in programs)
    return (f"TIP's bias is at most {percent(biases[worst])} ({worst}): what its errors above are is chance, which more samples take "
            "away. "
            f"With a sample every 199 cycles its error is below that of as many random samples of the true profile in {below} of "
            f"{len(programs)} programs. The others keep theirs, however many samples they take.")


def instruction(study: Study) -> str:
    largest = max(study["programs"], key=lambda p: error(p, "tip"))
    return (means(study, "instruction") + f" TIP's largest is {largest['name']}'s, {percent(error(largest, 'tip'))}, of which bias is "
            f"{percent(error(largest, 'tip', key='bias'))}: its time is spread over most instructions.")


def block(study: Study) -> str:
    return (means(study, "block") + " Where an instruction of the same block gets the time, nothing is lost: what is left of NCI's and "
            "LCI's errors is time of a block's end that the next one gets, or the other way round.")


def function(study: Study) -> str:
    return (means(study, "function") + " A sample seldom goes to another function, but with Software, whose interrupt is "
            "taken late, and Dispatch, which marks what enters the reorder buffer.")


def stack(study: Study) -> str:
    counts = ", ".join(f"{study['summary'][name]['programs']} {name}" for name in CLASSES)
    commit = sum(p["stack"][EXECUTION] for p in study["programs"]) / len(study["programs"])
    return (f"Programs by class: {counts}. In {percent(commit)} of the cycles instructions commit, mean of the programs; where that share "
            "is larger, sharing a sample among all that commit together matters more (figure 11).")


def rates(study: Study) -> str:
    def of(mode: str, key: str = "error") -> list[float]:
        """The means at those rates at which TIP was sampled."""
        means_of = [mean_of_rate(study, "tip", rate, mode, key) for rate in RATES]
        return [mean for mean in means_of if mean is not None]

    def series(values: list[float]) -> str:
        return ", ".join(percent(value) for value in values)

    periodic, random, chance = of("periodic"), of("random"), of("random", "noise")
    software = mean_of_rate(study, "software", RATES[-1], "periodic")
    if software is None or any(len(values) < len(RATES) for values in [periodic, random, chance]):
        return ""
    apart = max(abs(a - b) for a, b in zip(periodic, random, strict=True))
    return (f"TIP's mean error from {RATES[0]} to {RATES[-1]} is {series(random)} with random samples; as many random samples of the true "
            f"profile leave {series(chance)}: it is chance, and falls as sampling theory says. Periodic and random samples differ by at "
            f"most {percent(apart)}. Software's error at {RATES[-1]} is still {percent(software)}.")


def ilp(study: Study) -> str:
    programs = study["programs"]
    worse = sum(error(p, "nci-ilp") > error(p, "nci") for p in programs)
    by_class = []
    for name in CLASSES:
        rows = study["summary"][name].get("instruction")
        if rows:
            by_class.append(f"{name} {percent(rows['nci']['mean'])} and {percent(rows['nci-ilp']['mean'])}")
    return (f"NCI+ILP is worse than NCI in {worse} of {len(programs)} programs. Mean errors of NCI and of NCI+ILP by class: "
            f"{', '.join(by_class)}. A sample that waits for one instruction is given to all that commit with it, which is wrong where "
            "stalls are most of the time; where instructions commit in most cycles, it is nearer to the truth.")


def analysis(study: Study) -> str:
    rows = [p["tea"] for p in study["programs"] if p["tea"]]
    if not rows or not all(who in row for row in rows for who in TEA_PROFILERS):
        return ""

    def mean(who: str) -> float:
        return sum(row[who]["instruction"] for row in rows) / len(rows)

    return (f"Mean error of time by event and instruction: TEA {percent(mean('tea'))}, NCI-TEA {percent(mean('nci-tea'))}, "
            f"Dispatch-TEA {percent(mean('dispatch-tea'))}: the same events, charged to other instructions.")


def all_words(study: Study) -> dict[str, str]:
    """By figure."""
    return {"instruction": instruction(study), "block": block(study), "function": function(study), "stack": stack(study),
            "bias": bias(study), "rates": rates(study), "ilp": ilp(study), "analysis": analysis(study)}
