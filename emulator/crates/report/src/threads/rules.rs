//! Numbers of the section "Threads".

use crate::rule::{ReportPath, Rule, rule};

/// Returns the rule of a number of the threads; `below` is entry and field.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let source = "report/src/threads.rs, from the profiled cycles between the guest's switches";
    let [_, field @ ..] = below else {
        return path.no_rule();
    };
    match field {
        ["process"] => path.index(),
        ["share"] => rule(
            "Share of all cycles in which threads of this name ran in this process.",
            "cycles of the threads / (cycles - idle)",
            source,
            "none",
        )
        .from("cycles of the threads", path.own(2, "cycles")),
        ["cycles"] => rule(
            "Profiled cycles in which threads of this name ran in this process, kernel code included.",
            "sum over the threads",
            source,
            "none",
        ),
        _ => rule(
            "How many threads of the process had this name, or the kernel's number of one of them.",
            "counted, or as the guest says",
            source,
            "none",
        ),
    }
}
