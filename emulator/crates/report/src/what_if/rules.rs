//! Numbers of the section "What if".

use crate::rule::{ReportPath, Rule, TIP, rule};

/// Returns the rule of a number of the trials of `tipsim what-if`; `below` is the path in the section.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let source = "emulator/src/commands/what_if.rs";
    match below {
        ["trials", _, "gain"] | ["trials", _, "select", "gain"] => rule(
            "Share of the program's cycles (on several harts: of the elapsed ones) that it takes less without a cause of lost cycles at some instructions, or with selects in the place of branches.",
            "1 - cycles without / cycles",
            "emulator/src/commands/what_if.rs, from a run of its own, or from a replay of the scheduler's records (profile/src/waits/replay.rs)",
            "timing/src/without.rs",
        )
        .check(match (path.own(below.len(), "cycles"), path.at(&["what_if", "cycles"])) {
            (Some(without), Some(cycles)) => Some(1.0 - without / cycles),
            _ => None,
        }),
        ["trials", _, "lost"] => rule(
            "Share of the program's cycles that the Oracle charges to the cause at these instructions.",
            "the components of the cycle stacks / cycles of the program",
            "emulator/src/commands/what_if/candidates.rs",
            TIP,
        ),
        ["trials", _, "replay", "waits"] => rule(
            "Waits of threads that the change is about.",
            "counted in the region",
            "profile/src/waits/replay.rs",
            "",
        ),
        ["trials", _, "replay", _] => rule(
            "Cycles of the region: as they were (recorded), and of a replay of what the kernel's scheduler recorded, as it was and with the change.",
            "list scheduling of the threads' actions on the run's harts",
            "profile/src/waits/replay.rs",
            "",
        ),
        ["harts"] => rule("Harts of the run.", "guest.harts", source, TIP),
        [.., "cycles"] => rule(
            "Cycles of the program, all its processes together; on several harts: elapsed cycles of the region. Of a trial: without the cause.",
            "sum of its processes' cycles",
            source,
            TIP,
        ),
        _ => path.no_rule(),
    }
}
