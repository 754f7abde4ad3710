//! Numbers of the section "Error against sampling rate".

use crate::rule::{ReportPath, Rule, TIP, rule};

/// Returns the rule of a number of the error curves; `below` is process, curve, point and field.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let source =
        "report/src/sensitivity.rs, from the errors of the samplers of this profiler and period";
    let [_, "curves", _, "points", _, field @ ..] = below else {
        return path.no_rule();
    };
    match field {
        ["period"] => rule("Cycles between samples.", "as the run spec sets it", source, TIP),
        ["samplers"] => rule(
            "Samplers of this profiler and period; they differ in offset or seed.",
            "counted",
            source,
            TIP,
        ),
        ["samples"] => {
            rule("Samples that fell into the process.", "mean over the samplers", source, TIP)
        }
        [kind, level] => {
            let how = match *kind {
                "least" => "the least of the samplers'",
                "greatest" => "the greatest of the samplers'",
                _ => "mean over the samplers",
            };
            let what = if *kind == "sampling" {
                "what sampling alone would leave of the error"
            } else {
                "the profile error"
            };
            rule(
                format!("Of samplers of this profiler and period, {what} by {level}."),
                how,
                source,
                TIP,
            )
            .from("samplers", path.own(6, "samplers"))
            .from("samples in the process", path.own(6, "samples"))
        }
        _ => path.index(),
    }
}
