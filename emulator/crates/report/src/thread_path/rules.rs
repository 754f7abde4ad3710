//! Numbers of the section "Critical path over threads".

use crate::rule::{ReportPath, Rule, rule};

const PATH: &str = "profile/src/waits/path.rs, from the guest's side-band records SWITCH, WAKE and FORK; report/src/thread_path/build.rs";
const YANG: &str = "Yang and Miller, Critical path analysis for the execution of parallel and distributed programs (ICDCS 1988)";

/// Returns the rule of a number of the path; `below` is the field, and in lists entry and field.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let of = |meaning: &str, formula: &str| rule(meaning, formula, PATH, YANG);
    match below {
        [.., "process" | "thread"] => path.index(),
        ["harts"] => of("Number of harts of the run.", "counted"),
        ["cycles"] => of(
            "Cycles of the region, which are those of the critical path: what the end of the region waited for, from wakeup to wakeup.",
            "sum of kinds.cycles = sum of threads.cycles = sum over all segments",
        ),
        ["more_functions" | "more_edges" | "more_segments"] => of(
            "Rows that are not in report.json.",
            "all rows - the first 100 functions, 100 kinds of wakeups, or 2,000 segments",
        ),
        ["stretch"] => of(
            "Longest stretch of time in which a hart's profile does not tell what ran first, in cycles.",
            "the longest bin of the Oracle over time (profile/src/over_time.rs)",
        ),
        ["functions", _, "cycles"] => of(
            "Cycles of the path in which the thread runs in this function, estimated.",
            "sum over stretches: cycles in which the hart runs the thread on the path * share of the function in what the hart does for the \
             thread (if calls were followed) or its process in the stretch",
        ),
        ["edges", _, "count"] => of(
            "Wakeups of this kind by which the path goes from one thread to the other.",
            "counted",
        ),
        ["edges", _, "waited"] => of(
            "Cycles for which the woken threads had waited. The path leads through what the wakers did meanwhile.",
            "sum over these wakeups",
        ),
        ["threads", _, "segments"] => of("Segments of the path in the thread.", "counted"),
        ["segments", _, "hart"] => {
            of("Number of the hart that runs the thread.", "a name, not a measurement")
        }
        ["segments", ..] => of(
            "Cycle of the stream at which the segment begins, or the first one after it.",
            "from the record of the switch or the wakeup",
        ),
        [.., "cycles"] => {
            of("Cycles of the path.", "sum over the segments, as far as they are in the region")
        }
        _ => of("Share of the path.", "cycles / thread_path.cycles"),
    }
}
