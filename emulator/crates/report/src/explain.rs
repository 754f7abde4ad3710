//! Explains a number of a report: its meaning, its formula, the inputs with their values, and the code and paper that
//! define it.
//!
//! A number is named by its path in report.json: keys, and where there is a list the entry's own name or its index,
//! joined by dots: `processes.quickstart.errors.tip.instruction.error`, `functions.memcpy.shares.nci`,
//! `instructions.80001234.stack.Load stall`, `top_down.processes.all.shares.backend.memory`. Names may hold dots; upper
//! and lower case are the same; the start of a sampler's name (`tip` for `tip@4kHz`) means the first such sampler.

mod find;
mod rules;

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::printable::printable_lines;
use crate::rule::number;
use crate::widths::wrap;

use find::{Found, numbers_below, resolve, with_value};

/// Numbers that are explained at once. If a question has more, their paths are listed.
const MAX_EXPLAINED: usize = 4;
/// Paths that are listed.
const MAX_LISTED_NUMBERS: usize = 30;

/// Where a number comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The number's path in report.json.
    pub path: String,
    /// The number.
    pub value: f64,
    /// The number's meaning, with its unit.
    pub meaning: String,
    /// The formula that the number is computed by.
    pub formula: String,
    /// The formula's inputs, by path or name.
    pub inputs: Vec<(String, String)>,
    /// The formula's result for the inputs in report.json (apart from rounding), if they are all there.
    pub check: Option<f64>,
    /// The code that computes it, and from what.
    pub source: &'static str,
    /// Where the definition comes from.
    pub reference: &'static str,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The numbers that were meant.
    Explained(Vec<Explanation>),
    /// Too many numbers to explain: their paths and values, of which the user should name one.
    Many(Vec<(String, f64)>),
}

/// Explains the number at a path of a parsed report.json, the numbers below that path, or those that are shown as `question`.
///
/// # Errors
/// Nothing is there; the message says what is.
pub fn explain(report: &Value, question: &str) -> Result<Answer, String> {
    let question = question.trim();
    let mut found =
        match question.trim_end_matches(['%', 'M']).trim().replace(',', "").parse::<f64>() {
            Ok(_) => with_value(report, question),
            Err(_) => numbers_at(report, question)?,
        };
    // What the verdict shows is read first, and so asked about first.
    found.sort_by_key(|found| !found.path().starts_with("verdict."));
    if found.is_empty() {
        return Err(format!("no number of the report is at {question}, or shows as it"));
    }
    if found.len() > MAX_EXPLAINED {
        return Ok(Answer::Many(found.iter().map(|found| (found.path(), found.value)).collect()));
    }
    Ok(Answer::Explained(found.iter().map(|found| rules::explained(report, found)).collect()))
}

impl Answer {
    /// The answer as text for a terminal.
    pub fn text(&self) -> String {
        printable_lines(&self.lines()).into_owned()
    }

    fn lines(&self) -> String {
        match self {
            Self::Explained(list) => {
                let texts: Vec<String> = list.iter().map(Explanation::text).collect();
                texts.join("\n")
            }
            Self::Many(list) => {
                let mut out = format!("{} numbers; name one of them:\n", list.len());
                for (path, value) in list.iter().take(MAX_LISTED_NUMBERS) {
                    let _ = writeln!(out, "  {path} = {}", number(*value));
                }
                if list.len() > MAX_LISTED_NUMBERS {
                    out += "  …\n";
                }
                out
            }
        }
    }
}

/// The numbers at or below a path.
fn numbers_at(report: &Value, path: &str) -> Result<Vec<Found>, String> {
    let (at, value) = resolve(report, path)
        .map_err(|known| format!("{path}: not in the report; expected, where it fails: {known}"))?;
    let mut found = Vec::new();
    numbers_below(report, value, &mut at.clone(), &mut found);
    Ok(found)
}

impl Explanation {
    fn text(&self) -> String {
        let mut out = format!("{} = {}\n", self.path, number(self.value));
        let mut part = |title: &str, text: &str| {
            for (at, line) in wrap(text, 104).into_iter().enumerate() {
                let _ = writeln!(out, "  {:<10}{line}", if at == 0 { title } else { "" });
            }
        };
        part("meaning", &self.meaning);
        part("formula", &self.formula);
        for (name, value) in &self.inputs {
            part("from", &format!("{name} = {value}"));
        }
        if let Some(check) = self.check {
            part("gives", &number(check));
        }
        part("code", self.source);
        part("reference", self.reference);
        out
    }
}

#[cfg(test)]
mod tests;
