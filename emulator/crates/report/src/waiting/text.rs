//! The section as text, and the verdict's sentence.

use std::fmt::{self, Write};

use super::{FutexRow, ThreadWaiting, WORTH_A_SENTENCE, WaitingReport};
use crate::model::Report;
use crate::text::Options;
use crate::text::fit::{count, fit, fixed, percent, wrap};

/// Rows that the text shows.
const SHOWN_THREADS: usize = 16;
const SHOWN_FUTEXES: usize = 8;
/// Pairs of a futex.
const SHOWN_PAIRS: usize = 3;
/// Threads that run but for less than this share of their time are not listed.
const WORTH_A_ROW: f64 = 0.001;

/// What a thread waits for, the longest first.
pub(super) fn reasons(thread: &ThreadWaiting) -> Vec<String> {
    let reasons = thread.waits.iter().map(|wait| {
        let wakers: Vec<&str> = { wait.wakers.iter() }
            .take(2)
            .map(|row| &*row.waker)
            .collect();
        let more = if wait.wakers.len() > 2 { ", …" } else { "" };
        format!(
            "{} {} % ({}x, by {}{more})",
            wait.reason,
            fixed(wait.time.share),
            wait.time.count,
            wakers.join(", ")
        )
    });
    reasons.collect()
}

/// Who waits there, and who wakes them.
pub(super) fn pairs(futex: &FutexRow, most: usize) -> Vec<String> {
    let pairs = { futex.pairs.iter() }.take(most).map(|pair| {
        format!(
            "{} by {} {}x {} %",
            pair.waiter,
            pair.waker,
            pair.time.count,
            fixed(pair.time.share)
        )
    });
    let mut pairs: Vec<String> = pairs.collect();
    if futex.pairs.len() > most {
        pairs.push("…".to_owned());
    }
    pairs
}

impl WaitingReport {
    /// The threads of a process that are worth a row.
    pub(super) fn listed(&self, process: usize) -> impl Iterator<Item = &ThreadWaiting> {
        let own = self.threads.iter().filter(move |t| t.process == process);
        own.filter(|thread| thread.running.share < 1.0 - WORTH_A_ROW)
    }

    /// The waiting of the processes of a command in a sentence, if it is worth one.
    fn sentence(&self, processes: &[usize]) -> Option<String> {
        let own = self
            .programs
            .iter()
            .filter(|p| processes.contains(&p.process));
        let program = own.cloned().reduce(|sum, other| sum.and(&other))?;
        let mut parts = Vec::new();
        if program.locks >= WORTH_A_SENTENCE {
            let own = |futex: &&FutexRow| {
                // What a futex has is a share of its process's time alone.
                [futex.process] == *processes && !futex.is_shared()
            };
            let most = self.futexes.iter().find(own);
            let most = most.map_or_else(String::new, |futex| {
                let wakers = futex.wakers();
                let waker = wakers.first().map_or_else(String::new, |(waker, share)| {
                    format!(", woken by {waker} in {} % of that", fixed(*share))
                });
                let address = match &futex.object {
                    Some(object) => format!("`{object}` ({})", futex.address),
                    None => futex.address.clone(),
                };
                format!(
                    ", the most ({} %) for {address}{waker}",
                    fixed(futex.time.share)
                )
            });
            parts.push(format!(
                "{} % is waiting for locks and conditions{most}",
                fixed(program.locks)
            ));
        }
        if program.ready >= WORTH_A_SENTENCE {
            parts.push(format!(
                "{} % is being ready without a hart",
                fixed(program.ready)
            ));
        }
        (!parts.is_empty()).then(|| format!("of its threads' time {}", parts.join("; ")))
    }
}

impl Report {
    /// See [`WaitingReport::sentence`].
    pub(crate) fn waiting_in_words(&self, processes: &[usize]) -> Option<String> {
        self.waiting.as_ref()?.sentence(processes)
    }

    pub(crate) fn write_waiting(&self, out: &mut String, options: &Options) -> fmt::Result {
        let Some(waiting) = &self.waiting else {
            return Ok(());
        };
        let shown = self.shown_waiting(options.process.as_deref());
        let listed: Vec<&ThreadWaiting> = shown
            .iter()
            .flat_map(|process| waiting.listed(*process))
            .collect();
        if listed.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<18}{:<18}{:>7}{:>14}{:>8}{:>8}{:>8}{:>8}   longest ready",
            "Waiting of", "thread", "tid", "cycles", "run %", "ready %", "wait %", "? %"
        )?;
        for thread in listed.iter().take(SHOWN_THREADS) {
            writeln!(
                out,
                "{:<18}{:<18}{:>7}{:>14}{:>8}{:>8}{:>8}{:>8}   {}",
                fit(&self.processes[thread.process].name, 17),
                fit(&thread.name, 17),
                thread.tid,
                count(thread.cycles as f64),
                percent(thread.running.share),
                percent(thread.ready.share),
                percent(thread.waiting()),
                percent(thread.unknown),
                count(thread.ready.longest as f64),
            )?;
            if !thread.waits.is_empty() {
                for line in wrap(&reasons(thread).join("; "), 112) {
                    writeln!(out, "      {line}")?;
                }
            }
        }
        if listed.len() > SHOWN_THREADS {
            writeln!(out, "and {} more", listed.len() - SHOWN_THREADS)?;
        }
        let own = |futex: &&FutexRow| shown.contains(&futex.process);
        let futexes: Vec<&FutexRow> = waiting.futexes.iter().filter(own).collect();
        if futexes.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<36}{:>8}{:>15}{:>8}{:>15}   operation",
            "Futex", "waits", "cycles", "%", "longest"
        )?;
        for futex in futexes.iter().take(SHOWN_FUTEXES) {
            writeln!(
                out,
                "{:<36}{:>8}{:>15}{:>8}{:>15}   {}",
                fit(&futex.title(), 35),
                count(futex.time.count as f64),
                count(futex.time.cycles as f64),
                percent(futex.time.share),
                count(futex.time.longest as f64),
                fit(&futex.operations.join(", "), 35),
            )?;
            for line in wrap(&pairs(futex, SHOWN_PAIRS).join("; "), 112) {
                writeln!(out, "      {line}")?;
            }
            if let Some(place) = futex.places.first() {
                writeln!(out, "      in {}", fit(&place.label, 108))?;
            }
        }
        if futexes.len() > SHOWN_FUTEXES {
            writeln!(out, "and {} more", futexes.len() - SHOWN_FUTEXES)?;
        }
        Ok(())
    }
}
