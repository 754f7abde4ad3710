//! The section as text, and the verdict's sentence.

use std::fmt::{self, Write};

use super::{PathEdgeRow, PathKindRow, PathState, PathThread, ThreadPathReport};
use crate::model::Common;
use crate::widths::{count, fit, fit_name, fixed, percent, wrap};

/// Rows that the text shows.
const SHOWN_THREADS: usize = 8;
const SHOWN_FUNCTIONS: usize = 8;
const SHOWN_EDGES: usize = 8;
/// Least share of a row that the text shows.
const WORTH_A_ROW: f64 = 0.001;
/// Least share of the path that one thread runs for which the verdict says that the program is serial.
const SERIAL: f64 = 0.8;
/// Least share of the path without a hart for which the verdict says so, and largest one of a program that the verdict calls serial.
const SHORT_OF_HARTS: f64 = 0.05;
/// Least share of the path of a function that the verdict names.
const WORTH_A_NAME: f64 = 0.2;

impl PathKindRow {
    /// Returns what the threads do, in words.
    pub(super) fn title(&self) -> String {
        match (self.state, &self.reason) {
            (PathState::Running, _) => "running".to_owned(),
            (PathState::Ready, _) => "ready, on no hart".to_owned(),
            (PathState::Waiting, Some(reason)) => format!("waiting: {reason}"),
            (PathState::Waiting, None) => "waiting".to_owned(),
            (PathState::Unknown, _) => "not told".to_owned(),
        }
    }
}

impl PathEdgeRow {
    /// Returns what is waited for, and where.
    pub(super) fn what(&self) -> String {
        let futex = self.futex.as_ref().map_or_else(String::new, |futex| format!(" {futex}"));
        let place = self.place.as_ref().map_or_else(String::new, |place| format!(" in {place}"));
        let by = self.waker_place.as_ref();
        let by = by.map_or_else(String::new, |place| format!(", woken in {place}"));
        format!("{}{futex}{place}{by}", self.reason)
    }
}

impl ThreadPathReport {
    /// Returns how the functions' cycles are known, in a sentence.
    pub(super) fn precision(&self) -> String {
        let of = match self.by_thread {
            true => "the thread's profile on its hart",
            false => "its process's profile on its hart",
        };
        match self.stretch {
            0 => "Which functions run when is not known: the run counted nothing over time."
                .to_owned(),
            stretch => format!(
                "Functions are estimated: a thread's running time on the path is split as {of}, in stretches of {} cycles.",
                count(stretch as f64)
            ),
        }
    }

    /// Returns what the path says of a command's processes in a sentence, if it is worth one.
    pub(crate) fn sentence(&self, processes: &[usize]) -> Option<String> {
        let is_own = |thread: &&PathThread| {
            thread.process.is_some_and(|process| processes.contains(&process))
        };
        let own = || self.threads.iter().filter(is_own);
        let most = own().max_by(|a, b| a.running.total_cmp(&b.running))?;
        let ready: f64 = own().map(|thread| thread.ready).sum();
        if ready >= SHORT_OF_HARTS {
            return Some(format!(
                "{} % of the critical path (what the end waited for, from wakeup to wakeup) is its threads being ready without a hart: more \
                 harts would make it faster",
                fixed(ready)
            ));
        }
        if most.running < SERIAL || self.harts < 2 {
            return None;
        }
        let function = self.functions.iter().find(|row| row.thread == most.thread);
        let function = function.filter(|row| row.share >= WORTH_A_NAME);
        let function = function.map_or_else(String::new, |row| {
            format!(", {} % in {}", fixed(row.share), fit_name(&row.function, 60))
        });
        Some(format!(
            "{} % of the critical path (what the end waited for, from wakeup to wakeup) is thread {} running{function}: more harts will \
             not make it faster",
            fixed(most.running),
            most.thread
        ))
    }
}

/// Writes tables of what the path consists of.
pub(super) fn write(path: &ThreadPathReport, common: &Common, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{:<60}{:>16}{:>8}", "Critical path over threads", "cycles", "%")?;
    for row in path.kinds.iter().filter(|row| row.share >= WORTH_A_ROW) {
        writeln!(
            out,
            "{:<60}{:>16}{:>8}",
            fit(&row.title(), 59),
            count(row.cycles as f64),
            percent(row.share)
        )?;
    }
    writeln!(out, "{:<60}{:>16}{:>8}", "all: the region", count(path.cycles as f64), percent(1.0))?;
    writeln!(
        out,
        "{:<24}{:<24}{:>12}{:>16}{:>8}{:>8}{:>8}{:>8}",
        "process", "thread", "segments", "cycles", "%", "run %", "ready %", "wait %"
    )?;
    let listed = |row: &&PathThread| row.share >= WORTH_A_ROW;
    for row in path.threads.iter().filter(listed).take(SHOWN_THREADS) {
        let process = row.process.map_or("", |process| &common.processes[process].name);
        writeln!(
            out,
            "{:<24}{:<24}{:>12}{:>16}{:>8}{:>8}{:>8}{:>8}",
            fit(process, 23),
            fit(&row.thread, 23),
            count(row.segments as f64),
            count(row.cycles as f64),
            percent(row.share),
            percent(row.running),
            percent(row.ready),
            percent(row.waiting),
        )?;
    }
    let more = path.threads.iter().filter(listed).count().saturating_sub(SHOWN_THREADS);
    if more > 0 {
        writeln!(out, "and {more} more")?;
    }
    if path.stretch > 0 {
        writeln!(out, "{:<24}{:<36}{:>16}{:>8}", "thread", "function", "cycles", "%")?;
        let functions = path.functions.iter().filter(|row| row.share >= WORTH_A_ROW);
        for row in functions.take(SHOWN_FUNCTIONS) {
            writeln!(
                out,
                "{:<24}{:<36}{:>16}{:>8}",
                fit(&row.thread, 23),
                fit_name(&row.function, 35),
                count(row.cycles),
                percent(row.share)
            )?;
        }
    }
    for line in wrap(&path.precision(), 116) {
        writeln!(out, "{line}")?;
    }
    if path.edges.is_empty() {
        return Ok(());
    }
    writeln!(out, "{:<24}{:<24}{:>8}{:>16}   waited for", "from", "to", "wakeups", "waited")?;
    for row in path.edges.iter().take(SHOWN_EDGES) {
        writeln!(
            out,
            "{:<24}{:<24}{:>8}{:>16}   {}",
            fit(&row.waker, 23),
            fit(&row.waiter, 23),
            count(row.count as f64),
            count(row.waited as f64),
            fit(&row.what(), 44),
        )?;
    }
    let more = path.edges.len() + path.more_edges;
    if more > SHOWN_EDGES {
        writeln!(out, "and {} more", more - SHOWN_EDGES)?;
    }
    Ok(())
}
