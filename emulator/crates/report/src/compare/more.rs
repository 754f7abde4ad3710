//! Comparison of more than two runs: each is shown beside the first.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::Serialize;

use super::speedup::Speedup;
use super::text::{MIN_CHANGE_SHARE, TOTALS, relative, say_if_none, titled};
use super::{Change, Comparison, Run, RunTitle, Totals, scaling};
use crate::model::part_line;
use crate::printable::printable_lines;
use crate::widths::{fit, fit_name};

/// Mark of a change that may be there by chance.
pub(crate) const BY_CHANCE: &str = "~";
/// Runs that are beside the first in a block of the text.
const BESIDE: usize = 3;

/// Runs, each of which is compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What identifies each run.
    pub runs: Vec<RunTitle>,
    /// Settings of core and spec, by run, that differ from the first run, with the values in the first run and in this one.
    pub differences: Vec<Vec<String>>,
    /// Why runs are not whole, a sentence each; none if all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// What became of the sampling of runs whose region was sampled, a line each: their cycles are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<String>,
    /// Totals by run.
    pub totals: Vec<Totals>,
    /// Speed-up of each run after the first; empty unless the first is of one hart, and all others are of the same on several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speedups: Vec<Speedup>,
    /// All processes, those of one command together; "all" is their sum.
    pub processes: Vec<ComparedRow>,
    /// The functions that a report names.
    pub functions: Vec<ComparedRow>,
}

/// A command or a function in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRow {
    /// The command whose processes have the function; in the row of a command, its own name.
    pub process: String,
    /// The function; empty for a command.
    pub name: String,
    /// Module of a function.
    pub place: String,
    /// The Oracle's cycles by run; 0 in one that does not have it.
    pub cycles: Vec<f64>,
    /// Runs, by index, whose change from the first run may be there by chance, as one of the two was sampled ([`Change::margin`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within_chance: Vec<usize>,
}

impl ComparedRow {
    pub(crate) fn title(&self) -> String {
        match self.name.as_str() {
            "" => self.process.clone(),
            name => format!("{}: {name}", self.process),
        }
    }

    /// Cycles of the largest change from the first run.
    fn change(&self) -> f64 {
        let first = self.cycles.first().copied().unwrap_or(0.0);
        self.cycles.iter().fold(0.0, |most, cycles| f64::max(most, (cycles - first).abs()))
    }
}

impl Compared {
    /// Compares each of some runs with the first of them.
    pub fn new(runs: &[Run]) -> Self {
        let pairs = runs.iter().skip(1).filter_map(|run| {
            // Nothing is renamed, so there is no name that could be wrong.
            Comparison::new(&runs[0], run, &[]).ok()
        });
        let pairs: Vec<Comparison> = pairs.collect();
        let (parts, sampled) = (runs.iter().enumerate(), runs.iter().enumerate());
        Self {
            differences: runs.iter().map(|run| runs[0].differences(run)).collect(),
            parts: parts
                .filter_map(|(at, run)| Some(format!("run {}: {}", at + 1, run.part()?)))
                .collect(),
            sampled: sampled
                .filter_map(|(at, run)| run.sampled(&format!("run {}", at + 1)))
                .collect(),
            totals: runs.iter().map(Run::totals).collect(),
            speedups: pairs
                .iter()
                .map(|pair| pair.speedup.clone())
                .collect::<Option<_>>()
                .unwrap_or_default(),
            processes: rows(&pairs, |pair| &pair.processes),
            functions: rows(&pairs, |pair| &pair.functions),
            runs: runs.iter().map(Run::title).collect(),
        }
    }

    /// Returns the comparison as text: tables of at most `limit` rows each.
    pub fn text(&self, limit: usize) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out, limit);
        printable_lines(&out).into_owned()
    }

    fn write(&self, out: &mut String, limit: usize) -> fmt::Result {
        for part in &self.parts {
            writeln!(out, "{}\n", part_line(part))?;
        }
        for words in &self.sampled {
            writeln!(out, "{words}\n")?;
        }
        for (at, run) in self.runs.iter().enumerate() {
            titled(out, &format!("run {}", at + 1), &run.line())?;
            if !self.differences[at].is_empty() {
                titled(out, "", &format!("differs in {}", self.differences[at].join(", ")))?;
            }
        }
        if !self.sampled.is_empty() {
            writeln!(out, "{BY_CHANCE} before a change: it may be there by chance (95 %)")?;
        }
        scaling::write(&self.speedups, out)?;
        let others: Vec<usize> = (1..self.runs.len()).collect();
        for beside in others.chunks(BESIDE) {
            writeln!(out)?;
            heading(out, "", beside)?;
            for (name, value) in TOTALS {
                let values: Option<Vec<f64>> = self.totals.iter().map(value).collect();
                if let Some(values) = values {
                    row(out, name, &values, beside, &[])?;
                }
            }
            for (title, rows) in
                [("Process, M cycles", &self.processes), ("Function, M cycles", &self.functions)]
            {
                writeln!(out)?;
                heading(out, title, beside)?;
                let mut written = 0;
                for of in self.noticed(rows).take(limit) {
                    let values: Vec<f64> = of.cycles.iter().map(|cycles| cycles / 1e6).collect();
                    row(out, &fit_name(&of.title(), 43), &values, beside, &of.within_chance)?;
                    written += 1;
                }
                say_if_none(out, written)?;
            }
        }
        Ok(())
    }

    /// Rows whose change is worth one.
    pub(crate) fn noticed<'a>(
        &self,
        rows: &'a [ComparedRow],
    ) -> impl Iterator<Item = &'a ComparedRow> + use<'a> {
        let least = MIN_CHANGE_SHARE * self.totals.first().map_or(0, Totals::busy) as f64;
        rows.iter().filter(move |row| row.change() > least)
    }
}

fn heading(out: &mut String, title: &str, beside: &[usize]) -> fmt::Result {
    write!(out, "{title:44}{:>11}", "run 1")?;
    for run in beside {
        write!(out, "{:>11}{:>10}", format!("run {}", run + 1), "change")?;
    }
    writeln!(out)
}

/// Writes the values of all runs; changes of runs `within_chance` are marked.
fn row(
    out: &mut String,
    name: &str,
    values: &[f64],
    beside: &[usize],
    within_chance: &[usize],
) -> fmt::Result {
    write!(out, "{:44}{:>11.3}", fit(name, 43), values[0])?;
    for run in beside {
        let change = relative(values[0], values[*run]);
        let mark = if within_chance.contains(run) { BY_CHANCE } else { "" };
        write!(out, "{:>11.3}{:>10}", values[*run], format!("{mark}{}", change.trim()))?;
    }
    writeln!(out)
}

/// The rows of all pairs, those with the largest change first.
fn rows(pairs: &[Comparison], of: fn(&Comparison) -> &Vec<Change>) -> Vec<ComparedRow> {
    let mut found: BTreeMap<(&str, &str, &str), ComparedRow> = BTreeMap::new();
    for (at, pair) in pairs.iter().enumerate() {
        for change in of(pair) {
            let key = (&*change.process, &*change.name, &*change.place);
            let row = found.entry(key).or_insert_with(|| ComparedRow {
                process: change.process.clone(),
                name: change.name.clone(),
                place: change.place.clone(),
                cycles: vec![0.0; 1 + pairs.len()],
                within_chance: Vec::new(),
            });
            row.cycles[0] = change.before;
            row.cycles[1 + at] = change.after;
            if change.is_within_chance() {
                row.within_chance.push(1 + at);
            }
        }
    }
    let mut rows: Vec<ComparedRow> = found.into_values().collect();
    rows.sort_by(|a, b| b.change().total_cmp(&a.change()));
    rows
}
