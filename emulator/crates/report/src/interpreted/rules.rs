//! Numbers of interpreted programs' functions.

use crate::rule::{ReportPath, Rule, rule};

const INTERPRETED_SOURCE: &str = "interpreters/src/python.rs, profile/src/scripts.rs, from samples of the interpreter's frames; report/src/interpreted.rs";

/// Returns the rule of a number of the section "Python functions", or of a verdict's functions.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let (meaning, formula) = match below {
        [.., "samples"] => (
            "Samples of the process, or those with the function innermost, or at the line.",
            "counted",
        ),
        [.., "line"] => ("A line of the source file.", "as the code object says"),
        [.., "share_error" | "total_error"] => (
            "Half the width of the interval that holds the true share in 95 of 100 cases.",
            "1.96 * sqrt((1 - 2 share) * sum of squares of the part + share^2 * sum of squares of all) / cycles of all samples",
        ),
        [.., "total"] => (
            "Share of the process's cycles of the function with all that it calls.",
            "cycles of samples with the function in the stack / cycles of all samples",
        ),
        [.., "share"] => (
            "Share of the process's cycles while the function was the innermost one, or at the line.",
            "cycles of samples with it innermost / cycles of all samples",
        ),
        [.., "cycles"] => {
            ("Cycles of the process by that share.", "share * cycles of the process by the Oracle")
        }
        [.., "outside"] => (
            "Share of the process in no function: start and end of the interpreter, threads of libraries.",
            "1 - sum of the functions' shares",
        ),
        [.., "process"] => return path.index(),
        _ => return path.no_rule(),
    };
    rule(
        meaning,
        formula,
        INTERPRETED_SOURCE,
        "Py_DebugOffsets (CPython 3.13); sampling of ratios (Cochran, 1977)",
    )
}
