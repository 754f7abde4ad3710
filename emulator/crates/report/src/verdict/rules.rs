//! Numbers of the section "Verdict".

use crate::interpreted;
use crate::rule::{ReportPath, Rule, TIP, rule};

/// Returns the rule of a number of a verdict; `below` is entry and fields.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let source = "report/src/verdict.rs";
    match below {
        [.., "process"] => path.index(),
        [_, "interpreted", ..] => interpreted::rules::rule_of(path, below),
        [_, "places", _, "share"] => rule(
            "Share of the cycles of its command's processes that the Oracle charges to this function.",
            "sum of the cycle stacks of its instructions / cycles of the command",
            source,
            TIP,
        ),
        [_, "inclusive", .., "share"] => rule(
            "Share of the command's cycles at and below this function; of a callee: below that caller.",
            "cycles at and below its nodes in the tree of callers / cycles of the command",
            "report/src/inclusive.rs, from calls and returns in the commit stream",
            TIP,
        ),
        [.., "share"] => rule(
            "Share of the command's cycles that the Oracle charges for this cause; of a place: there.",
            "the component of the cycle stacks / cycles of the command",
            source,
            TIP,
        ),
        _ => path.no_rule(),
    }
}
