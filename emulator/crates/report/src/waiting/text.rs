//! The section as text, and the verdict's sentence.

use std::fmt::{self, Write};

use profile::waits::WaitReason;

use super::build::reason;
use super::{FutexRow, ThreadWaiting, UNKNOWN, WORTH_A_SENTENCE, WaitingReport, shown_processes};
use crate::model::Common;
use crate::options::Options;
use crate::widths::{count, fit, fixed, percent, wrap};

/// Rows that the text shows.
const SHOWN_THREADS: usize = 16;
const SHOWN_FUTEXES: usize = 8;
/// Pairs of a futex, and functions that wait for it.
const SHOWN_PAIRS: usize = 3;
const SHOWN_CALLERS: usize = 3;
/// Reasons that the verdict names beside locks.
const MAX_NAMED_REASONS: usize = 2;
/// Least share of its time that a listed thread does not run.
const WORTH_A_ROW: f64 = 0.001;

/// Returns what a thread waits for, the longest waits first.
pub(super) fn reasons(thread: &ThreadWaiting) -> Vec<String> {
    let reasons = thread.waits.iter().map(|wait| {
        let wakers: Vec<&str> = wait.wakers.iter().take(2).map(|row| &*row.waker).collect();
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

/// Returns the threads that wait for a futex, and those that wake them.
pub(super) fn pairs(futex: &FutexRow, most: usize) -> Vec<String> {
    let pairs = futex.pairs.iter().take(most).map(|pair| {
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

/// Returns where a futex is waited for: the functions of the program's own code, or else that of the system call.
pub(super) fn places(futex: &FutexRow, most: usize) -> Vec<String> {
    if futex.callers.is_empty() {
        return futex.places.iter().take(most).map(|place| place.label.clone()).collect();
    }
    let callers = futex.callers.iter().take(most).map(|caller| {
        format!("{} {}x {} %", caller.title(), caller.time.count, fixed(caller.time.share))
    });
    let mut callers: Vec<String> = callers.collect();
    if futex.callers.len() > most {
        callers.push("…".to_owned());
    }
    callers
}

/// What the calls were, and of whom.
pub(super) fn operations(futex: &FutexRow) -> String {
    let operations = futex.operations.join(", ");
    match futex.of_runtime {
        true => format!("{operations} of the Go runtime"),
        false => operations,
    }
}

impl WaitingReport {
    /// The threads of a process that are worth a row.
    pub(super) fn listed(&self, process: usize) -> impl Iterator<Item = &ThreadWaiting> {
        let own = self.threads.iter().filter(move |t| t.process == process);
        own.filter(|thread| thread.running.share < 1.0 - WORTH_A_ROW)
    }

    /// Returns the waiting of the processes of a command in a sentence, if it is worth one.
    pub(crate) fn sentence(&self, processes: &[usize]) -> Option<String> {
        let own = self.programs.iter().filter(|p| processes.contains(&p.process));
        let program = own.cloned().reduce(|sum, other| sum.and(&other))?;
        let mut parts = Vec::new();
        if program.locks >= WORTH_A_SENTENCE {
            let own = |futex: &&FutexRow| {
                // What a futex has is a share of its process's time alone.
                [futex.process] == *processes && !futex.is_shared() && !futex.of_runtime
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
                let caller = futex
                    .callers
                    .first()
                    .filter(|caller| caller.function != UNKNOWN)
                    .map_or_else(String::new, |caller| format!(" in {}", caller.title()));
                format!(", the most ({} %) for {address}{caller}{waker}", fixed(futex.time.share))
            });
            parts.push(format!(
                "{} % is waiting for locks and conditions{most}",
                fixed(program.locks)
            ));
        }
        if program.idle >= WORTH_A_SENTENCE {
            parts.push(format!(
                "{} % is idle Go worker threads, which have no goroutine to run",
                fixed(program.idle)
            ));
        }
        if program.runtime >= WORTH_A_SENTENCE {
            let which = match self.calls_followed {
                true => "for the runtime's own locks or the garbage collector",
                false => {
                    "mostly for a goroutine to run (goroutines that wait for a lock hold no thread)"
                }
            };
            parts.push(format!(
                "{} % is waiting in the Go runtime, {which}",
                fixed(program.runtime)
            ));
        }
        if program.ready >= WORTH_A_SENTENCE {
            parts.push(format!("{} % is being ready without a hart", fixed(program.ready)));
        }
        if program.other >= WORTH_A_SENTENCE {
            let also = if program.locks >= WORTH_A_SENTENCE { "otherwise " } else { "" };
            let reasons = self.longest_reasons(processes, program.cycles).join(", ");
            parts.push(format!(
                "{} % is {also}waiting in the kernel ({reasons})",
                fixed(program.other)
            ));
        }
        (!parts.is_empty()).then(|| format!("of its threads' time {}", parts.join("; ")))
    }
}

impl WaitingReport {
    /// What threads of these processes wait for beside locks, the longest first, as shares of all `cycles` of their time.
    fn longest_reasons(&self, processes: &[usize], cycles: u64) -> Vec<String> {
        let mut sums: Vec<(&str, u64)> = Vec::new();
        let own = self.threads.iter().filter(|thread| processes.contains(&thread.process));
        let told = [WaitReason::Futex, WaitReason::Idle, WaitReason::Runtime].map(reason);
        let waits = own.flat_map(|thread| &thread.waits);
        for wait in waits.filter(|wait| !told.contains(&wait.reason)) {
            match sums.iter_mut().find(|(reason, _)| *reason == wait.reason) {
                Some((_, sum)) => *sum += wait.time.cycles,
                None => sums.push((&wait.reason, wait.time.cycles)),
            }
        }
        sums.sort_by_key(|(reason, sum)| (std::cmp::Reverse(*sum), *reason));
        let share = |sum: u64| sum as f64 / cycles.max(1) as f64;
        sums.into_iter()
            .take(MAX_NAMED_REASONS)
            .map(|(reason, sum)| format!("{reason} {} %", fixed(share(sum))))
            .collect()
    }
}

impl WaitingReport {
    /// Returns how to learn which functions wait for futexes, if that is not known.
    pub(super) fn offer_of_callers(&self, common: &Common) -> Option<&'static str> {
        if self.calls_followed || self.futexes.is_empty() {
            return None;
        }
        Some(match common.meta.has_trace() {
            true => {
                "Which functions of the program wait: tipsim report DIR --rebuild --call-stacks."
            }
            false => {
                "Which functions of the program wait: record.call_stacks, or tipsim profile --call-stacks."
            }
        })
    }
}

/// Writes tables of the threads, and of the futexes that they wait for.
pub(super) fn write(
    waiting: &WaitingReport,
    common: &Common,
    options: &Options,
    out: &mut String,
) -> fmt::Result {
    let shown = shown_processes(common, options.process.as_deref());
    let listed: Vec<&ThreadWaiting> =
        shown.iter().flat_map(|process| waiting.listed(*process)).collect();
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
            fit(&common.processes[thread.process].name, 17),
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
            fit(&operations(futex), 35),
        )?;
        for line in wrap(&pairs(futex, SHOWN_PAIRS).join("; "), 112) {
            writeln!(out, "      {line}")?;
        }
        let most = if futex.callers.is_empty() { 1 } else { SHOWN_CALLERS };
        let shown_places = places(futex, most);
        if !shown_places.is_empty() {
            for line in wrap(&format!("in {}", shown_places.join("; ")), 112) {
                writeln!(out, "      {line}")?;
            }
        }
    }
    if futexes.len() > SHOWN_FUTEXES {
        writeln!(out, "and {} more", futexes.len() - SHOWN_FUTEXES)?;
    }
    if let Some(offer) = waiting.offer_of_callers(common) {
        writeln!(out, "{offer}")?;
    }
    Ok(())
}
