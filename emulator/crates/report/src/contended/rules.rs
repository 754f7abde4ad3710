//! Numbers of the section "Contended lines".

use crate::rule::{ReportPath, Rule, rule};

const LINES: &str =
    "truth/src/lines.rs, from every data access of the timing cores; report/src/contended.rs";
const DUBOIS: &str =
    "Dubois et al.: The Detection and Elimination of Useless Misses in Multiprocessors (ISCA 1993)";

/// Returns the rule of a number of the section "Contended lines".
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let (meaning, formula) = match below {
        ["samples" | "hitm_samples"] | [.., "hitm_samples"] => (
            "Samples of the guest's perf with a data source, or of these the ones that say HITM.",
            "counted in its files, by the line of the physical or virtual address",
        ),
        [.., "true_sharing"] => (
            "Misses on a line that others wrote, after which the hart accessed a byte that another had written.",
            "counted",
        ),
        [.., "false_sharing"] => (
            "Misses on a line that others wrote, after which the hart accessed no such byte before it lost the line.",
            "counted",
        ),
        [.., "cycles"] => (
            "Cycles of accesses that other harts' caches answered or had to permit.",
            "sum of cycles from issue until they were done",
        ),
        [.., "peer_modified" | "peer_clean" | "upgrades" | "loads" | "stores"] => {
            ("Accesses to the line.", "counted")
        }
        [.., "hart"] => return path.index(),
        _ => return path.no_rule(),
    };
    rule(meaning, formula, LINES, DUBOIS)
}
