//! Numbers of the section "Precise sampling".

use crate::rule::{ReportPath, Rule, TIP, rule};

const JUDGE: &str = "report/src/precise/judge.rs, from the guest's perf.data files and truth.json (truth/src/counts.rs)";

/// Returns the rule of a number of the section "Precise sampling".
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let (meaning, formula) = match below {
        ["trust", ..] | ["units", _, "hart"] | [.., "slot"] => return path.index(),
        ["units", _, count] => (
            "Overflows of the hart's unit that samples instructions, since reset, by what became of them.",
            match *count {
                "overflows" => "recorded + collisions + filtered + dropped, and a few under way",
                _ => "counted by the unit",
            },
        ),
        [_, _, "metric", ..] => ("What the event selects and lets pass.", "read from the file"),
        [.., "error"] => (
            "Share of the event that the samples give to the wrong symbol.",
            "half the sum over symbols of |share by true counts - share by samples|",
        ),
        [.., "sampling"] => (
            "The error that as many random samples of the true counts are expected to have.",
            "see processes.errors.sampling",
        ),
        [_, _, "skid", "mean"] => (
            "Executed instructions of the function between a sample and the nearest instruction before it that had the event, on average.",
            "sum of distance by period / sum of periods",
        ),
        [_, _, "skid", "known"] => (
            "Share of the samples of which the skid is known: there is such an instruction in the function.",
            "sum of their periods / sum of all periods",
        ),
        [.., "latency", "sampled"] => ("Mean of perf's weight.", "sum of weights / samples"),
        [.., "latency", "truth"] => (
            "Mean latency, as perf weighs it, of all executions of the sampled instructions that the event counts.",
            "mean over samples of (cycles / executions) of its instruction",
        ),
        [_, _, "wrong"] => (
            "Share of the samples at instructions that never had the event.",
            "samples there / samples",
        ),
        [_, _, "truth"] => {
            ("How often the event truly occurred in the judged programs.", "counted by the core")
        }
        [_, _, "estimate"] => ("How often it occurred by the samples.", "sum of their periods"),
        [_, _, "classes" | "slots" | "sources" | "instructions", _, "truth"] => {
            ("Share by true counts.", "count / all counts")
        }
        [_, _, "classes" | "slots" | "sources" | "instructions", _, "sampled"] => {
            ("Share by samples.", "periods / all periods")
        }
        [_, _, "samples" | "exact" | "lost" | "throttled" | "period" | "precise"] => {
            ("What the guest's file says of the event.", "read from the file")
        }
        _ => return path.no_rule(),
    };
    rule(meaning, formula, JUDGE, TIP)
}
