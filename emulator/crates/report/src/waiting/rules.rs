//! What threads wait for.

use crate::rule::{ReportPath, Rule, rule};

const WAITS: &str = "profile/src/waits/follow.rs, from the guest's side-band records SWITCH, WAKE and FORK; report/src/waiting/build.rs";
const KERNEL: &str =
    "the guest kernel's scheduler, as its TIP driver tells: tip-device/REGISTERS.md";

pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let of = |meaning: &str, formula: &str| rule(meaning, formula, WAITS, KERNEL);
    match below {
        [.., "process"] => path.index(),
        ["more_threads" | "more_futexes"] => of(
            "Rows that are not in report.json.",
            "all rows - the first 500 threads, or 50 futexes",
        ),
        ["programs", _, "threads"] => of(
            "Threads of the program that lived in the region.",
            "threads that a record of the scheduler names",
        ),
        ["programs", _, "cycles"] => of(
            "Time of the program's threads in the region, added up.",
            "sum of the threads' cycles",
        ),
        ["programs", ..] => of(
            "Share of the time of all threads of the program.",
            "sum over its threads / programs.cycles",
        ),
        ["threads", _, "tid"] => {
            of("The kernel's number of the thread.", "a name, not a measurement")
        }
        ["threads", _, "unknown"] => of(
            "Share of the thread's time in which it did not run, and no record said why.",
            "cycles without a known state / threads.cycles",
        ),
        ["threads", _, "cycles"] => of(
            "Cycles of the region in which the thread lived, on a hart or not.",
            "running + ready + waits + unknown",
        ),
        [.., "count"] => of(
            "How often a thread came into this state.",
            "stretches of it that are, in part, in the region",
        ),
        [.., "longest"] => of(
            "Cycles of the longest of these stretches.",
            "the maximum over them, as far as they are in the region",
        ),
        [.., "cycles"] => of(
            "Cycles in this state: a thread that runs ends at the record of its switch, one that waits at that of its wakeup, \
             one that is ready where a hart switches to it.",
            "sum over the stretches, as far as they are in the region",
        ),
        _ => of(
            "Share of the thread's time; of wakers, pairs, places and callers, of the waiting that they are part of; of a futex, of \
             the time of all threads of its program.",
            "cycles / cycles of the whole",
        ),
    }
}
