"""A sentence or two for each figure of the study: what it shows beside the published one, and why."""

from study_data import CLASSES, RATES

NAMES = {"software": "Software", "dispatch": "Dispatch", "lci": "LCI", "nci": "NCI", "nci-ilp": "NCI+ILP", "tip-ilp": "TIP-ILP",
         "tip": "TIP"}


def percent(value):
    return f"{100 * value:.1f} %"


def error(program, who, level="instruction", key="published_length", mode="periodic"):
    return program["errors"][who][level][mode][key]


def mean_of_rate(study, who, rate, mode, key="error"):
    values = [p["errors"][who]["instruction"][mode]["rates"][rate][key] for p in study["programs"]
              if rate in p["errors"].get(who, {}).get("instruction", {}).get(mode, {}).get("rates", {})]
    return sum(values) / len(values) if values else None


def means(study, level):
    """Each profiler's mean, the best first."""
    rows = study["summary"]["all"][level]
    ordered = sorted((who for who in NAMES if who in rows), key=lambda who: rows[who]["mean"])
    published = lambda who: "" if rows[who]["published"] is None else f" (published {percent(rows[who]['published'])})"
    return "Mean error: " + ", ".join(f"{NAMES[who]} {percent(rows[who]['mean'])}{published(who)}" for who in ordered) + "."


def bias(study):
    programs = study["programs"]
    biases = {p["name"]: error(p, "tip", key="bias") for p in programs}
    worst = max(biases, key=biases.get)
    below = sum(error(p, "tip", key="error") < error(p, "tip", key="noise") for p in programs)
    return (f"TIP's bias is at most {percent(biases[worst])} ({worst}): what its errors above are is chance, which more samples take away. "
            f"With a sample every 199 cycles its error is below that of as many random samples of the true profile in {below} of "
            f"{len(programs)} programs. The others keep theirs, however many samples they take.")


def instruction(study):
    largest = max(study["programs"], key=lambda p: error(p, "tip"))
    return (means(study, "instruction") + f" TIP's largest is {largest['name']}'s, {percent(error(largest, 'tip'))}, of which bias is "
            f"{percent(error(largest, 'tip', key='bias'))}: its time is spread over most instructions.")


def block(study):
    return (means(study, "block") + " Where an instruction of the same block gets the time, nothing is lost: what is left of NCI's and "
            "LCI's errors is time of a block's end that the next one gets, or the other way round.")


def function(study):
    return (means(study, "function") + " A sample seldom goes to another function, but with Software, whose interrupt is "
            "taken late, and Dispatch, which marks what enters the reorder buffer.")


def stack(study):
    counts = ", ".join(f"{study['summary'][name]['programs']} {name}" for name in CLASSES)
    commit = sum(p["stack"]["Execution"] for p in study["programs"]) / len(study["programs"])
    return (f"Programs by class: {counts}. In {percent(commit)} of the cycles instructions commit, mean of the programs; where that share is "
            "larger, sharing a sample among all that commit together matters more (figure 11).")


def rates(study):
    of = lambda mode, key="error": [mean_of_rate(study, "tip", rate, mode, key) for rate in RATES]
    periodic, random, chance = of("periodic"), of("random"), of("random", "noise")
    if None in periodic + random + chance:
        return ""
    series = lambda values: ", ".join(percent(value) for value in values)
    apart = max(abs(a - b) for a, b in zip(periodic, random))
    return (f"TIP's mean error from {RATES[0]} to {RATES[-1]} is {series(random)} with random samples; as many random samples of the true "
            f"profile leave {series(chance)}: it is chance, and falls as sampling theory says. Periodic and random samples differ by at "
            f"most {percent(apart)}. Software's error at {RATES[-1]} is still {percent(mean_of_rate(study, 'software', RATES[-1], 'periodic'))}.")


def ilp(study):
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


def analysis(study):
    rows = [p["tea"] for p in study["programs"] if p["tea"]]
    mean = lambda who: sum(row[who]["instruction"] for row in rows) / len(rows)
    if not rows or not all("tea" in row and "nci-tea" in row for row in rows):
        return ""
    return (f"Mean error of time by event and instruction: TEA {percent(mean('tea'))}, NCI-TEA {percent(mean('nci-tea'))}, "
            f"Dispatch-TEA {percent(mean('dispatch-tea'))}: the same events, charged to other instructions.")


def all_words(study):
    """By figure."""
    return {"instruction": instruction(study), "block": block(study), "function": function(study), "stack": stack(study),
            "bias": bias(study), "rates": rates(study), "ilp": ilp(study), "analysis": analysis(study)}
