//! The Oracle's time by instruction over time.

use commit_trace::InstId;
use serde::{Deserialize, Serialize};

use crate::ProcessId;
use crate::oracle::{Charged, Oracle};
use crate::packed::{Packed, merged};
use crate::topdown::{SlotWindow, WINDOWS};

/// A bin is as long as so many windows of the top-down method, and ends where they do.
pub(crate) const WINDOWS_PER_BIN: usize = 4;
/// At so many bins each two are merged into one, when the windows are.
const MAX_BINS: usize = 2 * WINDOWS / WINDOWS_PER_BIN;
/// Instructions that a bin keeps apart: those with the most time. It bounds what a run of much code takes.
const MAX_INSTRUCTIONS: usize = if cfg!(test) { 1 << 8 } else { 1 << 13 };

/// A stretch of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeBin {
    /// Its first cycle.
    pub start: u64,
    /// First cycle after it.
    pub end: u64,
    /// What each process spent, ascending.
    pub processes: Vec<ProcessTime>,
}

/// A process in a [`TimeBin`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessTime {
    /// The process.
    pub process: ProcessId,
    pub(crate) weights: Packed,
    /// Units of instructions that are not kept apart.
    pub others: u64,
}

impl ProcessTime {
    /// Units of the instructions with the most time, ascending by instruction.
    pub fn weights(&self) -> impl Iterator<Item = (InstId, u64)> {
        let weights = self.weights.iter();
        weights.map(|(inst, units)| (InstId(inst as u32), units))
    }
}

/// Units of a process by instruction, ascending, before they are packed; and those of instructions that are not kept apart.
pub(crate) type ProcessUnits = (ProcessId, Vec<(u64, u64)>, u64);

/// Cuts the Oracle's counts into bins.
#[derive(Debug, Default)]
pub(crate) struct OracleOverTime {
    /// All bins so far.
    before: Oracle,
    bins: Vec<Vec<ProcessTime>>,
    /// Windows in the open bin that are over.
    windows: usize,
}

impl OracleOverTime {
    /// A window is over; true if the bin is, too.
    pub(crate) fn end_window(&mut self) -> bool {
        self.windows += 1;
        self.windows == WINDOWS_PER_BIN
    }

    /// Ends the open bin, in which the Oracle counted `now`.
    pub(crate) fn end_bin(&mut self, now: Oracle, is_cold: impl Fn(ProcessId) -> bool) {
        self.windows = 0;
        let spent = self.before.absorb(now, is_cold);
        self.bins.push(kept(spent));
        if self.bins.len() == MAX_BINS {
            let pairs = self.bins.chunks(2);
            self.bins = pairs.map(|pair| both(&pair[0], &pair[1])).collect();
        }
    }

    /// What the Oracle counted so far; `now` is that of the open bin.
    pub(crate) fn so_far(&self, now: &Oracle) -> Oracle {
        let mut all = self.before.clone();
        all.absorb(now.clone(), |_| false);
        all
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn cool(&mut self, newly: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        self.before.cool(newly, is_cold);
    }

    /// The result: everything, and by bin; `now` is what the Oracle counted in the last one, which is left out if it is empty.
    pub(crate) fn finish(mut self, now: Oracle) -> (Charged, Vec<Vec<ProcessTime>>) {
        if !now.is_empty() {
            self.end_bin(now, |_| true);
        }
        (self.before.finish(), self.bins)
    }
}

/// Bins with the times of their windows.
pub(crate) fn timed(bins: Vec<Vec<ProcessTime>>, windows: &[SlotWindow]) -> Vec<TimeBin> {
    let windows = windows.chunks(WINDOWS_PER_BIN);
    { windows.zip(bins) }
        .map(|(windows, processes)| TimeBin {
            start: windows[0].start,
            end: windows[windows.len() - 1].end,
            processes,
        })
        .collect()
}

/// The instructions with the most time, packed, and what is left.
pub(crate) fn kept(spent: Vec<ProcessUnits>) -> Vec<ProcessTime> {
    let amounts = || spent.iter().flat_map(|(_, weights, _)| weights);
    let mut least = 0;
    if amounts().count() > MAX_INSTRUCTIONS {
        let mut units: Vec<u64> = amounts().map(|(_, units)| *units).collect();
        let (_, most, _) = units.select_nth_unstable_by(MAX_INSTRUCTIONS, |a, b| b.cmp(a));
        least = *most + 1;
    }
    let packed = |(process, weights, others): ProcessUnits| {
        let rest = { weights.iter() }.filter(|(_, units)| *units < least);
        let others = others + rest.map(|(_, units)| units).sum::<u64>();
        let weights = weights.into_iter().filter(|(_, units)| *units >= least);
        ProcessTime {
            process,
            weights: weights.collect(),
            others,
        }
    };
    spent.into_iter().map(packed).collect()
}

/// Two bins as one.
fn both(one: &[ProcessTime], other: &[ProcessTime]) -> Vec<ProcessTime> {
    let mut processes: Vec<ProcessId> = { one.iter().chain(other) }
        .map(|time| time.process)
        .collect();
    processes.sort_unstable();
    processes.dedup();
    let spent = processes.into_iter().map(|process| {
        let parts = [one, other].map(|list| {
            let found = list.binary_search_by_key(&process, |time| time.process);
            found.ok().map(|at| &list[at])
        });
        let [first, second] =
            parts.map(|part| part.into_iter().flat_map(|time| time.weights.iter()));
        let others = parts.iter().flatten().map(|time| time.others).sum();
        (process, merged(first, second).collect(), others)
    });
    kept(spent.collect())
}
