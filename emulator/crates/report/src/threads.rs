//! The time of threads, by name.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use profile::Evaluation;

use super::gather::Gathered;
use super::html::escape;
use super::model::Report;
use super::tables::ThreadRow;
use super::text::Options;
use super::text::fit::{count, fit, percent};

/// Thread ids that a row lists at most.
const TIDS: usize = 10;

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

impl Report {
    /// Returns the threads to list: those of the process that [`Options::process`] asks for; else those with at least
    /// [`Options::min_share`] of processes whose threads have several names.
    fn listed_threads(&self, options: &Options) -> Vec<&ThreadRow> {
        let own = |row: &ThreadRow| &self.processes[row.process].name;
        let of = |process: usize| self.threads.iter().filter(move |row| row.process == process);
        let listed = |row: &&ThreadRow| match &options.process {
            Some(name) => own(row) == name,
            None => row.share >= options.min_share && of(row.process).nth(1).is_some(),
        };
        self.threads.iter().filter(listed).collect()
    }

    pub(super) fn write_threads(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        let rows = self.listed_threads(options);
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
                fit(&self.processes[row.process].name, 23),
                fit(&row.name, 17),
                count(row.cycles),
                percent(row.share),
                row.count,
                tids.join(" "),
            )?;
        }
        Ok(())
    }

    /// Returns the threads as a table of the page; empty if there is nothing to tell apart.
    pub(super) fn threads_html(&self) -> String {
        let rows = self.listed_threads(&Options::default());
        if rows.is_empty() {
            return String::new();
        }
        let mut out = "<section id=\"threads\"><h2>Threads</h2><table><thead><tr><th>process</th><th>name</th>\
            <th>cycles</th><th>%</th><th>threads</th></tr></thead><tbody>"
            .to_owned();
        for row in rows {
            let cells = [
                escape(&self.processes[row.process].name),
                escape(&row.name),
                count(row.cycles),
                percent(row.share),
                row.count.to_string(),
            ];
            out += &format!("<tr><td>{}</td></tr>", cells.join("</td><td>"));
        }
        out + "</tbody></table></section>"
    }
}
