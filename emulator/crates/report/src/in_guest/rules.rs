//! Numbers of what perf sampled in the guest.

use crate::rule::{ReportPath, Rule, TIP, rule};

const CODE: &str =
    "report/src/in_guest.rs, from the guest's perf.data and the host's sampler of the same rule";

/// Returns the rule of a number of the section "In the guest".
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    match below {
        [_, "samples" | "model_samples"] => rule(
            "Samples of the guest, or of the host's model of the same rule, in the process and in the privilege modes that \
             the guest's event sampled.",
            "of the model: its samples by its weight there",
            CODE,
            TIP,
        ),
        [_, "errors", _, "between", "error"] => rule(
            "Share of the cycles that the guest's profile and the model's give to different symbols.",
            "half the sum over symbols of |share by the guest - share by the model|",
            CODE,
            TIP,
        ),
        [_, "errors", _, "between", "sampling"] => rule(
            "That share, as expected if both profiles are samples of one distribution.",
            "(1/n + 1/m)/2 times the sum over symbols of E|k - c n/(n + m)|; k is binomial, of the c samples that a symbol \
             has in both profiles",
            "report/src/in_guest/between.rs",
            TIP,
        ),
        [_, "errors", _, _, "error"] => rule(
            "Error against the Oracle in these privilege modes, of the guest's profile or the model's.",
            "half the sum over symbols of |share by the Oracle - share by the profile|",
            CODE,
            TIP,
        ),
        [_, "errors", _, _, "sampling"] => rule(
            "The error that as many random samples of the Oracle's distribution are expected to have.",
            "see processes.errors.sampling",
            CODE,
            TIP,
        ),
        [_, "functions" | "instructions", _, "oracle" | "model" | "guest"] => rule(
            "Share of the process in these privilege modes, by the Oracle, the host's model or the guest.",
            "weight of the symbol / weight of all",
            CODE,
            TIP,
        ),
        [_, "process" | "column" | "model"] => path.index(),
        _ => path.no_rule(),
    }
}
