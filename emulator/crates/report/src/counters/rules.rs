//! Numbers of the counters.

use crate::rule::{ORACLE, ReportPath, Rule, TIP, TMA, TOP_DOWN, rule};

const COUNTERS: &str = "timing/src/count.rs, of the region of interest (simulation/src/counts.rs); `tipsim core events` says what each event is";
const DRAFT: &str = "RISC-V performance events draft, v0.1.0";

/// Returns the rule of a number of the section "Counters".
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    match below {
        ["events", event] => rule(
            format!("How often the event {event} occurred."),
            "counted by the core",
            COUNTERS,
            DRAFT,
        ),
        ["guest", _, "guest"] => rule(
            "What the guest's perf stat printed.",
            "read from its file in the output folder",
            "emulator/src/run_folder/guest_counts.rs",
            DRAFT,
        ),
        ["guest", _, "run"] => rule(
            "Which perf stat of its command the line is of, from 0.",
            "counted in the order of files and lines",
            "emulator/src/run_folder/guest_counts.rs",
            DRAFT,
        ),
        ["guest", _, "host"] => rule(
            "The host's own count of the same event.",
            "sum of the events that perf's name means, in the region; of several perf stats, the cycles of the one's process",
            COUNTERS,
            DRAFT,
        ),
        ["checks", _, "counters"] => rule(
            "Cycles or instructions of the commit stage, by counters.",
            "sum of events",
            COUNTERS,
            DRAFT,
        ),
        ["checks", _, "profile"] => rule(
            "The same by the Oracle.",
            "sum of categories of the cycle stack of all processes",
            ORACLE,
            TIP,
        ),
        ["top_down", _, "level"] | ["top_down_of", _, "pairs", _, "level"] => {
            rule("Level of the node in the tree.", "given by the tree", TOP_DOWN, TMA)
        }
        ["top_down_of", _, "pairs", _, "decode"] => rule(
            "Share of the slots of decode, by the guest's perf in this process.",
            "slots of the event / topdown.slots",
            "emulator/src/run_folder/guest_counts.rs",
            DRAFT,
        ),
        ["top_down_of", _, "pairs", _, "commit"] => rule(
            "Share of the slots of commit in this process, by the profile.",
            "top_down.processes.shares",
            TOP_DOWN,
            TMA,
        ),
        ["top_down", _, "decode"] => rule(
            "Share of the slots of decode, by counters.",
            "slots of the event / TOPDOWN.SLOTS",
            COUNTERS,
            DRAFT,
        ),
        ["top_down", _, "commit"] => rule(
            "Share of the slots of commit, by the profile.",
            "top_down.processes.all.shares",
            TOP_DOWN,
            TMA,
        ),
        _ => path.no_rule(),
    }
}
