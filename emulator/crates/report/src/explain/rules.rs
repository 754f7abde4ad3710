//! The rule of a number: that of its section, or of what all sections share.

mod error;
mod profile;
mod run;

use serde_json::Value;

use super::Explanation;
use super::find::Found;
use crate::rule::{ReportPath, Rule, TIP, rule};
use crate::sections::SECTIONS;
use crate::{tea, topdown};

/// Explains the number that was found.
pub(super) fn explained(report: &Value, found: &Found) -> Explanation {
    let path = ReportPath {
        report,
        keys: found.steps.iter().map(|step| &*step.key).collect(),
        names: found.steps.iter().map(|step| &*step.name).collect(),
        value: found.value,
    };
    let rule = rule_of(&path);
    Explanation {
        path: found.path(),
        value: found.value,
        meaning: rule.meaning,
        formula: rule.formula,
        inputs: rule.inputs,
        check: rule.check,
        source: rule.source,
        reference: rule.reference,
    }
}

/// Returns the rule of the number at `path`.
fn rule_of(path: &ReportPath<'_>) -> Rule {
    let last = *path.keys.last().unwrap_or(&"");
    if let Some((key, below)) = path.keys.split_first()
        && let Some(section) = SECTIONS.iter().find(|section| section.key == *key)
    {
        return (section.rule)(path, below);
    }
    match path.keys[..] {
        [
            "commands" | "processes" | "functions" | "instructions",
            _,
            "margins" | "stack_margins",
            ..,
        ] => rule(
            "How far the number beside it may be off by chance, as the region was sampled: by no more, for 95 or 99.7 % of seeds. The state in which units begin is not in it.",
            "√((Student's t · standard error of a ratio, from 32 subsamples)² + (number · share that may have been in no unit)²)",
            "report/src/margins.rs, profile/src/subsample.rs",
            "Wolter, Introduction to Variance Estimation, 2.4",
        ),
        ["meta", "sampling", ..] => rule(
            "A fact about the sampling of the region, or an estimate of the whole region from its units.",
            "ratio of sums over all units, with Student's t for its intervals",
            "simulation/src/sampling.rs, profile/src/estimate.rs",
            "Cochran, Sampling Techniques, 6.4",
        ),
        ["format"] => rule(
            "Version of report.json: within one, keys may be added, and none goes away or changes its meaning, unit or type.",
            "REPORT_FORMAT",
            "report/src/format.rs",
            "",
        ),
        ["meta", ..] => run::meta(path),
        ["totals", "elapsed", field] => run::elapsed(path, field),
        ["totals", field] => run::totals(path, field),
        ["columns", ..] => run::column(last),
        ["commands", ..] => profile::command(path),
        ["processes", _, ..] => profile::process(path),
        ["functions" | "instructions", ..] => profile::row(path),
        ["modules", _, _] => rule(
            "Share of all cycles, by the Oracle, at addresses of this file.",
            "cycles of the instructions in the file / cycles of all instructions",
            "report/src/build.rs, from the Oracle's profile and the guest's mappings",
            TIP,
        ),
        ["top_down", ..] => topdown::rules::rule_of(path),
        ["tea", ..] => tea::rules::rule_of(path),
        ["disagreements", _, "share"] => rule(
            "Share of the profiler's time in the process that it gave to the one instruction while the Oracle, in \
             the cycle of the sample's trigger, charged the other.",
            "weights of those samples / weight of the profiler's samples in the process",
            "profile/src/events.rs (Misplaced), from each sample's trigger and what it named",
            TIP,
        ),
        ["disagreements", ..] => path.index(),
        _ => path.no_rule(),
    }
}
