//! One rule per kind of number.

mod counters;
mod error;
mod events;
mod in_guest;
mod interpreted;
mod loops;
mod profile;
mod run;
mod top_down;
mod truth;
mod waiting;

use serde_json::Value;

use crate::sections::SECTIONS;

use super::find::Found;
use super::{Explanation, number};

const TIP: &str = "TIP: Time-Proportional Instruction Profiling (MICRO 2021)";
const TEA: &str = "TEA: Time-Proportional Event Analysis (ISCA 2023)";
const TMA: &str = "Yasin, A Top-Down method for performance analysis (ISPASS 2014)";
const ORACLE: &str = "profile/src/oracle.rs, from every record of the commit stream";
const TOP_DOWN: &str =
    "profile/src/topdown.rs (its table of rules), from every record of the commit stream";
const SAMPLERS: &str =
    "profile/src/evaluate.rs and sampling-rules/src/, from the spans in which its clock triggered";
const EVENTS: &str = "profile/src/events.rs, from the records' event bits; report/src/tea.rs";
const RUN: &str = "emulator/src/run/outcome.rs (run.json)";

/// A rule's part of an explanation.
#[derive(Default)]
pub(crate) struct Rule {
    meaning: String,
    formula: String,
    inputs: Vec<(String, String)>,
    check: Option<f64>,
    source: &'static str,
    reference: &'static str,
}

/// Where a number stands in the report: its keys from the top, and the names that the keys' values have.
pub(crate) struct ReportPath<'a> {
    report: &'a Value,
    keys: Vec<&'a str>,
    names: Vec<&'a str>,
    value: f64,
}

pub(super) fn explained(report: &Value, found: &Found) -> Explanation {
    let path = ReportPath {
        report,
        keys: found.steps.iter().map(|step| &*step.key).collect(),
        names: found.steps.iter().map(|step| &*step.name).collect(),
        value: found.value,
    };
    let rule = path.rule();
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

fn rule(
    meaning: impl Into<String>,
    formula: impl Into<String>,
    source: &'static str,
    reference: &'static str,
) -> Rule {
    Rule { meaning: meaning.into(), formula: formula.into(), source, reference, ..Rule::default() }
}

impl Rule {
    /// Adds an input.
    fn from(mut self, name: impl Into<String>, value: Option<f64>) -> Self {
        if let Some(value) = value {
            self.inputs.push((name.into(), number(value)));
        }
        self
    }

    fn check(mut self, check: Option<f64>) -> Self {
        self.check = check.filter(|check| check.is_finite());
        self
    }
}

impl<'a> ReportPath<'a> {
    /// A number at a path of keys.
    fn at(&self, keys: &[&str]) -> Option<f64> {
        let mut value = self.report;
        for key in keys {
            value = match value {
                Value::Array(list) => list.get(key.parse::<usize>().ok()?)?,
                _ => value.get(key)?,
            };
        }
        value.as_f64()
    }

    /// The entry of the list or map that `keys[..2]` (or `[..3]` within a part) name.
    fn own(&self, part: usize, field: &str) -> Option<f64> {
        let mut keys = self.keys[..part].to_vec();
        keys.push(field);
        self.at(&keys)
    }

    /// The name and the cycles of the process that a row belongs to.
    fn process_of(&self, part: usize) -> (String, Option<f64>) {
        let index = self.own(part, "process").map(|index| (index as usize).to_string());
        let index = index.as_deref().unwrap_or(self.keys[part - 1]);
        let row = index.parse::<usize>().ok().and_then(|index| self.report["processes"].get(index));
        let name = row.and_then(|row| row["name"].as_str()).unwrap_or("?");
        (format!("processes.{name}.cycles"), self.at(&["processes", index, "cycles"]))
    }

    fn rule(&self) -> Rule {
        let last = *self.keys.last().unwrap_or(&"");
        if let Some((key, below)) = self.keys.split_first()
            && let Some(section) = SECTIONS.iter().find(|section| section.key == *key)
        {
            return (section.rule)(self, below);
        }
        match self.keys[..] {
            ["meta", ..] => self.meta(),
            ["totals", "elapsed", field] => self.elapsed(field),
            ["totals", field] => self.totals(field),
            ["columns", ..] => self.column(last),
            ["commands", ..] => self.command(),
            ["processes", _, ..] => self.process(),
            ["functions" | "instructions", ..] => self.row(),
            ["modules", _, _] => rule(
                "Share of all cycles, by the Oracle, at addresses of this file.",
                "cycles of the instructions in the file / cycles of all instructions",
                "report/src/build.rs, from the Oracle's profile and the guest's mappings",
                TIP,
            ),
            ["top_down", ..] => self.top_down(),
            ["tea", ..] => self.tea(),
            ["disagreements", _, "share"] => rule(
                "Share of the profiler's time in the process that it gave to the one instruction while the Oracle, in \
                 the cycle of the sample's trigger, charged the other.",
                "weights of those samples / weight of the profiler's samples in the process",
                "profile/src/events.rs (Misplaced), from each sample's trigger and what it named",
                TIP,
            ),
            ["disagreements", ..] => self.index(),
            _ => self.no_rule(),
        }
    }

    fn no_rule(&self) -> Rule {
        rule(
            "A number of a part of the report that has no rule here.",
            "not known",
            "report/src/explain/rules.rs would have it",
            "none",
        )
    }

    fn index(&self) -> Rule {
        rule(
            "The entry of `processes`, `columns` or `modules` that this belongs to, counted from 0.",
            "an index, not a measurement",
            "report/src/model.rs",
            "none",
        )
    }

    fn ratio(&self, part: &[&str], whole: &[&str]) -> Option<f64> {
        Some(self.at(part)? / self.at(whole)?)
    }
}
