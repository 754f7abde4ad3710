//! The time of threads, by name.

pub(crate) mod rules;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};
use profile::Evaluation;
use schemars::JsonSchema;
use serde::Serialize;

use super::gather::Gathered;
use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::widths::{count, fit, percent};

/// Thread ids that a row lists at most.
const TIDS: usize = 10;

/// The threads of a process that have the same name.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ThreadRow {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// The threads' name in the kernel, the last one that they had.
    pub name: String,
    /// The kernel's thread ids: the first ten.
    pub tids: Vec<u32>,
    /// Number of threads.
    pub count: usize,
    /// Cycles in which the threads ran.
    pub cycles: f64,
    /// Share of all processes' cycles.
    pub share: f64,
}

/// Returns a row for each name of a process's threads that ran.
pub(super) fn threads(evaluation: &Evaluation, gathered: &Gathered<'_>) -> Vec<ThreadRow> {
    let numbers: BTreeMap<_, usize> =
        gathered.processes.iter().map(|summary| summary.process).zip(1..).collect();
    let total = evaluation.cycles.saturating_sub(evaluation.idle).max(1) as f64;
    let mut rows: BTreeMap<(usize, &str), ThreadRow> = BTreeMap::new();
    for thread in &evaluation.threads {
        let Some(&process) = numbers.get(&thread.process).filter(|_| thread.cycles > 0) else {
            continue;
        };
        let row = rows.entry((process, thread.name())).or_insert_with(|| ThreadRow {
            process,
            name: thread.name().to_owned(),
            tids: Vec::new(),
            count: 0,
            cycles: 0.0,
            share: 0.0,
        });
        if row.tids.len() < TIDS {
            row.tids.push(thread.tid);
        }
        row.count += 1;
        row.cycles += thread.cycles as f64;
        row.share = row.cycles / total;
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| (row.process, Reverse(row.cycles as u64)));
    rows
}

/// Returns the threads to list: those of the process that [`Options::process`] asks for; else those with at least
/// [`Options::min_share`] of processes whose threads have several names.
fn listed<'a>(rows: &'a [ThreadRow], common: &Common, options: &Options) -> Vec<&'a ThreadRow> {
    let own = |row: &ThreadRow| &common.processes[row.process].name;
    let of = |process: usize| rows.iter().filter(move |row| row.process == process);
    let listed = |row: &&ThreadRow| match &options.process {
        Some(name) => own(row) == name,
        None => row.share >= options.min_share && of(row.process).nth(1).is_some(),
    };
    rows.iter().filter(listed).collect()
}

impl Section for Vec<ThreadRow> {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> std::fmt::Result {
        let rows = listed(self, common, options);
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<24}{:<18}{:>15}{:>8}{:>9}  tid",
            "Threads of", "name", "cycles", "%", "threads"
        )?;
        for row in rows {
            let mut tids: Vec<String> = row.tids.iter().take(6).map(u32::to_string).collect();
            if row.count > tids.len() {
                tids.push("…".to_owned());
            }
            writeln!(
                out,
                "{:<24}{:<18}{:>15}{:>8}{:>9}  {}",
                fit(&common.processes[row.process].name, 23),
                fit(&row.name, 17),
                count(row.cycles),
                percent(row.share),
                row.count,
                tids.join(" "),
            )?;
        }
        Ok(())
    }

    /// Returns the threads as a table; empty if there is nothing to tell apart.
    fn page(&self, common: &Common) -> Markup {
        let rows = listed(self, common, &Options::default());
        if rows.is_empty() {
            return html! {};
        }
        html! {
            section id="threads" {
                h2 { "Threads" }
                table {
                    thead {
                        tr { th { "process" } th { "name" } th { "cycles" } th { "%" } th { "threads" } }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                td { (common.processes[row.process].name) }
                                td { (row.name) }
                                td { (count(row.cycles)) }
                                td { (percent(row.share)) }
                                td { (row.count) }
                            }
                        }
                    }
                }
            }
        }
    }
}
