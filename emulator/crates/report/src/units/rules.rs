//! Numbers of the section "Units over the region".

use crate::rule::{ReportPath, Rule, rule};

/// Returns the rule of a number of the units; `below` is the path below the section.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let source = "report/src/units.rs, from units.json";
    let Some(field) = below.last() else {
        return path.no_rule();
    };
    match *field {
        "variance" => rule(
            "Share of the estimate's variance by chance that comes from these units: the larger it is, the less is known of this part.",
            "sum over these units of (weight × (cycles - CPI × instructions - mean of the stratum))² / the same sum over all units; without strata the mean is 0",
            source,
            "Cochran, Sampling Techniques, 5.5 and 6.4",
        ),
        "cpi" => rule(
            "Cycles for each instruction, while the hart is awake.",
            "sum of weight × cycles / sum of weight × instructions, over the units",
            source,
            "none",
        ),
        "least" | "most" => rule(
            "Cycles for each instruction of the unit that has the fewest or the most.",
            "cycles / instructions of that unit",
            source,
            "none",
        ),
        "share" => rule(
            "Share of the region that the units of this phase stand for.",
            "sum of weight × instructions of the phase's units / that of all units",
            source,
            "none",
        ),
        "number" | "phase" => {
            rule("Number of the phase, by which units.json names it.", "as chosen", source, "none")
        }
        _ => rule(
            "Instructions of the region, or of a part of it, or before it; or a number of units.",
            "counted",
            source,
            "none",
        ),
    }
}
