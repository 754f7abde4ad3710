//! Numbers of the section "Elapsed time".

use crate::rule::{ReportPath, Rule, rule};

const FUNCTIONS: &str = "profile/src/busy_harts.rs, from the Oracle's profiles by number of busy harts; report/src/elapsed_profile.rs";
const THREADS: &str = "profile/src/waits/sharing.rs, from the guest's side-band records SWITCH";
const STACKS: &str = "Du Bois, Eyerman, Sartor and Eeckhout, Criticality stacks (ISCA 2013)";

/// Returns the rule of a number of elapsed time; `below` is the field, and in a list entry and field.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let share = |of: &str, whole: Option<f64>, source| {
        let part = path.own(3, "cycles");
        rule(
            format!("Share of the elapsed time that {of} takes."),
            "cycles / elapsed_profile.cycles",
            source,
            STACKS,
        )
        .from("cycles", part)
        .from("elapsed_profile.cycles", whole)
        .check(part.zip(whole).map(|(part, whole)| part / whole.max(1.0)))
    };
    let whole = path.at(&["elapsed_profile", "cycles"]);
    match below {
        ["harts"] => rule("Number of harts of the run.", "counted", THREADS, STACKS),
        ["cycles"] => rule(
            "Cycles of elapsed time in the region of interest.",
            "elapsed_profile.idle + sum of elapsed_profile.busy",
            THREADS,
            STACKS,
        ),
        ["idle"] => rule(
            "Cycles in which every hart sleeps or runs its idle thread.",
            "from the records of switches",
            THREADS,
            STACKS,
        ),
        ["busy", ..] => rule(
            "Cycles in which so many harts run other threads than their idle ones, one in the first place.",
            "from the records of switches",
            THREADS,
            STACKS,
        ),
        ["functions" | "threads", _, "process"] => path.index(),
        ["functions", _, "cycles"] => rule(
            "Cycles of elapsed time: those that the Oracle charges to the function's instructions, each over the number of harts that are busy \
             in it. What harts were told late is made good: all functions together are the cycles in which any hart is busy.",
            "sum over all harts of cycles / busy harts",
            FUNCTIONS,
            STACKS,
        ),
        ["threads", _, "cycles"] => rule(
            "Cycles of elapsed time: those in which a hart runs such a thread, each over the number of harts that are busy in it.",
            "sum over all harts of cycles / busy harts",
            THREADS,
            STACKS,
        ),
        ["functions", _, "share"] => share("the function", whole, FUNCTIONS),
        ["threads", _, "share"] => share("threads of this name", whole, THREADS),
        ["functions", _, "of_busy"] => rule(
            "Share of the cycles of all harts in which they are busy that the Oracle charges to the function.",
            "sum of the Oracle's cycles / those of all functions",
            FUNCTIONS,
            STACKS,
        ),
        ["threads", _, "of_busy"] => rule(
            "Share of the cycles of all harts in which they are busy in which a hart runs such a thread.",
            "cycles in which they run / those of all threads",
            THREADS,
            STACKS,
        ),
        ["threads", _, "count"] => {
            rule("Number of threads of this name.", "counted", THREADS, STACKS)
        }
        _ => path.no_rule(),
    }
}
