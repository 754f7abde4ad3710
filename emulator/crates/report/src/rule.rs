//! The rule of a number of the report: its meaning, its formula, and where it is computed. The file of each section has the rules of its
//! numbers.

use serde_json::Value;

pub(crate) const TIP: &str = "TIP: Time-Proportional Instruction Profiling (MICRO 2021)";
pub(crate) const TEA: &str = "TEA: Time-Proportional Event Analysis (ISCA 2023)";
pub(crate) const TMA: &str = "Yasin, A Top-Down method for performance analysis (ISPASS 2014)";
pub(crate) const ORACLE: &str = "profile/src/oracle.rs, from every record of the commit stream";
pub(crate) const TOP_DOWN: &str =
    "profile/src/topdown.rs (its table of rules), from every record of the commit stream";
pub(crate) const SAMPLERS: &str =
    "profile/src/evaluate.rs and sampling-rules/src/, from the spans in which its clock triggered";
pub(crate) const EVENTS: &str =
    "profile/src/events.rs, from the records' event bits; report/src/tea.rs";
pub(crate) const RUN: &str = "emulator/src/experiment/outcome.rs (run.json)";

/// A rule's part of an explanation.
#[derive(Default)]
pub(crate) struct Rule {
    pub meaning: String,
    pub formula: String,
    pub inputs: Vec<(String, String)>,
    pub check: Option<f64>,
    pub source: &'static str,
    pub reference: &'static str,
}

/// Where a number stands in the report: its keys from the top, and the names that the keys' values have.
pub(crate) struct ReportPath<'a> {
    pub report: &'a Value,
    pub keys: Vec<&'a str>,
    pub names: Vec<&'a str>,
    pub value: f64,
}

/// Returns a rule without inputs.
pub(crate) fn rule(
    meaning: impl Into<String>,
    formula: impl Into<String>,
    source: &'static str,
    reference: &'static str,
) -> Rule {
    Rule { meaning: meaning.into(), formula: formula.into(), source, reference, ..Rule::default() }
}

impl Rule {
    /// Adds an input.
    pub(crate) fn from(mut self, name: impl Into<String>, value: Option<f64>) -> Self {
        if let Some(value) = value {
            self.inputs.push((name.into(), number(value)));
        }
        self
    }

    /// Sets the formula's result for the inputs, if it is a number.
    pub(crate) fn check(mut self, check: Option<f64>) -> Self {
        self.check = check.filter(|check| check.is_finite());
        self
    }
}

/// Returns a number as it is written: whole ones whole, others with six digits.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value}");
    }
    let digits = (6 - value.abs().log10().floor() as i32 - 1).clamp(0, 12) as usize;
    format!("{value:.digits$}")
}

impl<'a> ReportPath<'a> {
    /// Returns the number at a path of keys.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<f64> {
        let mut value = self.report;
        for key in keys {
            value = match value {
                Value::Array(list) => list.get(key.parse::<usize>().ok()?)?,
                _ => value.get(key)?,
            };
        }
        value.as_f64()
    }

    /// Returns the number `field` of the entry of the list or map that `keys[..2]` (or `[..3]` within a part) name.
    pub(crate) fn own(&self, part: usize, field: &str) -> Option<f64> {
        let mut keys = self.keys[..part].to_vec();
        keys.push(field);
        self.at(&keys)
    }

    /// Returns the name and the cycles of the process that a row belongs to.
    pub(crate) fn process_of(&self, part: usize) -> (String, Option<f64>) {
        let index = self.own(part, "process").map(|index| (index as usize).to_string());
        let index = index.as_deref().unwrap_or(self.keys[part - 1]);
        let row = index.parse::<usize>().ok().and_then(|index| self.report["processes"].get(index));
        let name = row.and_then(|row| row["name"].as_str()).unwrap_or("?");
        (format!("processes.{name}.cycles"), self.at(&["processes", index, "cycles"]))
    }

    /// Returns what is said of a number without a rule.
    pub(crate) fn no_rule(&self) -> Rule {
        rule(
            "A number of a part of the report that has no rule here.",
            "not known",
            "report/src/explain/rules.rs, or the section's own file, would have it",
            "none",
        )
    }

    /// Returns the rule of an index into another list of the report.
    pub(crate) fn index(&self) -> Rule {
        rule(
            "The entry of `processes`, `columns` or `modules` that this belongs to, counted from 0.",
            "an index, not a measurement",
            "report/src/model.rs",
            "none",
        )
    }

    /// Returns the quotient of the numbers at two paths of keys.
    pub(crate) fn ratio(&self, part: &[&str], whole: &[&str]) -> Option<f64> {
        Some(self.at(part)? / self.at(whole)?)
    }
}
