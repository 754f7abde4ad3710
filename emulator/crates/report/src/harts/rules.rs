//! Numbers of the section "Harts".

use crate::rule::{ReportPath, Rule, TIP, rule};

/// Returns the rule of a number of the harts; `below` is entry and fields.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let (meaning, formula) = match below {
        [_, "stack", ..] => (
            "Share of the hart's busy cycles that the Oracle charges for this category.",
            "its cycle stack / (cycles - idle)",
        ),
        [_, "windows", _, "processes", ..] => (
            "A process, and the cycles of the window in which the hart executed it.",
            "sum of the window's cycles by process",
        ),
        [_, "cycles" | "idle" | "instructions"] => {
            ("Of this hart, in the region of interest.", "counted")
        }
        [_, "windows", _, "start" | "end"] => {
            ("A cycle at which a window begins, or the one after it.", "as the run counts cycles")
        }
        [_, "hart"] => ("The hart's number.", "from 0"),
        _ => return path.no_rule(),
    };
    rule(meaning, formula, "report/src/harts.rs", TIP)
}
