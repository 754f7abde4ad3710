//! The Oracle's time by instruction, and by calling context, over time.

use std::collections::BTreeMap;

use commit_trace::InstId;
use serde::{Deserialize, Serialize};

use crate::calls::{fold, sum_up};
use crate::oracle::{Charged, Oracle};
use crate::packed::{Packed, merged};
use crate::topdown::{SlotWindow, WINDOWS};
use crate::{ContextId, ContextWeights, Contexts, ProcessId};

/// Windows of the top-down method in a bin, which ends where its last window does.
pub(crate) const WINDOWS_PER_BIN: usize = 4;
/// Number of bins at which each two are merged into one. The windows are merged at the same time.
const MAX_BINS: usize = 2 * WINDOWS / WINDOWS_PER_BIN;
/// Instructions that a bin keeps apart: those with the most time. The limit bounds what a run of much code takes.
const MAX_INSTRUCTIONS: usize = if cfg!(test) { 1 << 8 } else { 1 << 13 };
/// Sums by calling context and instruction that a bin keeps apart.
const MAX_CONTEXT_SUMS: usize = if cfg!(test) { 1 << 8 } else { 1 << 14 };
/// If there are more sums than [`MAX_CONTEXT_SUMS`], contexts with less than 1 / `CONTEXT_PART` of the bin's time are folded
/// into their callers first, and then small instructions of a context count as its hottest.
const CONTEXT_PART: u64 = 4_000;

/// A stretch of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeBin {
    /// The bin's first cycle.
    pub start: u64,
    /// First cycle after the bin.
    pub end: u64,
    /// What each process spent, ascending.
    pub processes: Vec<ProcessTime>,
}

impl TimeBin {
    /// What a process spent, if anything.
    pub fn of(&self, process: ProcessId) -> Option<&ProcessTime> {
        of(&self.processes, process)
    }
}

fn of(processes: &[ProcessTime], process: ProcessId) -> Option<&ProcessTime> {
    let at = processes.binary_search_by_key(&process, |time| time.process);
    at.ok().map(|at| &processes[at])
}

/// A process in a [`TimeBin`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessTime {
    /// The process.
    pub process: ProcessId,
    pub(crate) weights: Packed,
    /// Units of instructions that are not kept apart.
    pub others: u64,
    /// Units by [`context_key`].
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    by_context: Packed,
    /// Units that are not kept apart by calling context, if there are any.
    #[serde(default)]
    pub other_contexts: u64,
}

impl ProcessTime {
    /// Units of the calling contexts and instructions with the most time, ascending; nothing, if contexts were not asked for.
    pub fn by_context(&self) -> impl Iterator<Item = (ContextId, InstId, u64)> {
        let weights = self.by_context.iter();
        weights.map(|(key, units)| (ContextId((key >> 32) as u32), InstId(key as u32), units))
    }

    /// Multiplies all units.
    pub(crate) fn multiply(&mut self, factor: u64) {
        self.weights = self.weights.times(factor);
        self.by_context = self.by_context.times(factor);
        self.others = self.others.saturating_mul(factor);
        self.other_contexts = self.other_contexts.saturating_mul(factor);
    }

    /// Units of the instructions with the most time, ascending by instruction.
    pub fn weights(&self) -> impl Iterator<Item = (InstId, u64)> {
        let weights = self.weights.iter();
        weights.map(|(inst, units)| (InstId(inst as u32), units))
    }
}

/// Units of a process by instruction, ascending, before they are packed; and those of instructions that are not kept apart.
pub(crate) type ProcessUnits = (ProcessId, Vec<(u64, u64)>, u64);

/// What was spent in a bin, before it is packed.
#[derive(Default)]
pub(crate) struct Spent {
    /// Units by process and instruction, ascending.
    pub processes: Vec<ProcessUnits>,
    /// Units by calling context and instruction, in any order; empty if contexts were not asked for.
    pub by_context: ContextWeights,
    /// Units that are not kept apart by calling context, by process.
    pub other_contexts: BTreeMap<ProcessId, u64>,
}

fn context_key(context: ContextId, inst: InstId) -> u64 {
    u64::from(context.0) << 32 | u64::from(inst.0)
}

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
    /// Ends a window; true if the bin is over, too.
    pub(crate) fn end_window(&mut self) -> bool {
        self.windows += 1;
        self.windows == WINDOWS_PER_BIN
    }

    /// Ends the open bin, in which the Oracle counted `now`, and `by_context` of it by calling context.
    pub(crate) fn end_bin(
        &mut self,
        now: Oracle,
        by_context: ContextWeights,
        contexts: &Contexts,
        is_cold: impl Fn(ProcessId) -> bool,
    ) {
        self.windows = 0;
        let spent =
            Spent { processes: self.before.absorb(now, is_cold), by_context, ..Spent::default() };
        self.bins.push(kept(spent, contexts));
        if self.bins.len() == MAX_BINS {
            let pairs = self.bins.chunks(2);
            self.bins = pairs.map(|pair| both(&pair[0], &pair[1], contexts)).collect();
        }
    }

    /// Returns what the Oracle counted so far; `now` is what it counted in the open bin.
    pub(crate) fn so_far(&self, now: &Oracle) -> Oracle {
        let mut all = self.before.clone();
        all.absorb(now.clone(), |_| false);
        all
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn pack_cold(&mut self, newly: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        self.before.pack_cold(newly, is_cold);
    }

    /// Returns the result for the whole run, and by bin. In the last bin the Oracle counted `now`, and `by_context` by calling
    /// context; an empty last bin is left out.
    pub(crate) fn finish(
        mut self,
        now: Oracle,
        by_context: ContextWeights,
        contexts: &Contexts,
    ) -> (Charged, Vec<Vec<ProcessTime>>) {
        if !now.is_empty() {
            self.end_bin(now, by_context, contexts, |_| true);
        }
        (self.before.finish(), self.bins)
    }
}

/// Bins with the times of their windows.
pub(crate) fn timed(bins: Vec<Vec<ProcessTime>>, windows: &[SlotWindow]) -> Vec<TimeBin> {
    let windows = windows.chunks(WINDOWS_PER_BIN);
    windows
        .zip(bins)
        .map(|(windows, processes)| TimeBin {
            start: windows[0].start,
            end: windows[windows.len() - 1].end,
            processes,
        })
        .collect()
}

/// The instructions and calling contexts with the most time, packed, and what is left.
pub(crate) fn kept(spent: Spent, contexts: &Contexts) -> Vec<ProcessTime> {
    let Spent { processes, mut by_context, mut other_contexts } = spent;
    let amounts = || processes.iter().flat_map(|(_, weights, _)| weights);
    let least = least_kept(MAX_INSTRUCTIONS, || amounts().map(|(_, units)| *units));
    sum_up(&mut by_context);
    if by_context.len() > MAX_CONTEXT_SUMS {
        let shown = contexts.shown([&by_context], CONTEXT_PART);
        fold(&mut by_context, &shown);
        by_context = with_fewer_instructions(by_context);
    }
    let least_of_context = least_of_contexts(MAX_CONTEXT_SUMS, &by_context);
    let mut kept_contexts: BTreeMap<ProcessId, Vec<(u64, u64)>> = BTreeMap::new();
    for (context, inst, units) in by_context {
        let process = contexts.get(context).process;
        if units < least_of_context {
            *other_contexts.entry(process).or_default() += units;
        } else {
            let of_process = kept_contexts.entry(process).or_default();
            of_process.push((context_key(context, inst), units));
        }
    }
    let packed = |(process, weights, others): ProcessUnits| {
        let rest = weights.iter().filter(|(_, units)| *units < least);
        let others = others + rest.map(|(_, units)| units).sum::<u64>();
        let weights = weights.into_iter().filter(|(_, units)| *units >= least);
        let by_context = kept_contexts.remove(&process).unwrap_or_default();
        ProcessTime {
            process,
            weights: weights.collect(),
            others,
            by_context: by_context.into_iter().collect(),
            other_contexts: other_contexts.remove(&process).unwrap_or_default(),
        }
    };
    processes.into_iter().map(packed).collect()
}

fn least_of_contexts(most: usize, by_context: &ContextWeights) -> u64 {
    least_kept(most, || by_context.iter().map(|(_, _, units)| *units))
}

/// Gives units that are not kept apart to the hottest instruction of their context: mostly it is of the same function.
fn with_fewer_instructions(by_context: ContextWeights) -> ContextWeights {
    let of_one = || by_context.chunk_by(|one, next| one.0 == next.0);
    // Sums that there is room for besides one of each context.
    let room = MAX_CONTEXT_SUMS.saturating_sub(of_one().count());
    let least = least_of_contexts(room, &by_context);
    let mut fewer = ContextWeights::new();
    for weights in of_one() {
        let hottest = (0..weights.len()).max_by_key(|at| weights[*at].2);
        let small = weights.iter().filter(|(.., units)| *units < least);
        let rest: u64 = small.map(|(.., units)| units).sum();
        for (at, (context, inst, units)) in weights.iter().enumerate() {
            if Some(at) == hottest {
                let own = if *units < least { 0 } else { *units };
                fewer.push((*context, *inst, own + rest));
            } else if *units >= least {
                fewer.push((*context, *inst, *units));
            }
        }
    }
    fewer
}

/// Returns the least amount that is kept apart if at most `most` amounts can be.
fn least_kept<I: Iterator<Item = u64>>(most: usize, amounts: impl Fn() -> I) -> u64 {
    if amounts().count() <= most {
        return 0;
    }
    let mut amounts: Vec<u64> = amounts().collect();
    let (_, first_left, _) = amounts.select_nth_unstable_by(most, |a, b| b.cmp(a));
    *first_left + 1
}

/// Merges two bins into one.
fn both(one: &[ProcessTime], other: &[ProcessTime], contexts: &Contexts) -> Vec<ProcessTime> {
    let mut processes: Vec<ProcessId> = one.iter().chain(other).map(|time| time.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let mut spent = Spent::default();
    for process in processes {
        let parts = [one, other].map(|list| of(list, process));
        let [first, second] =
            parts.map(|part| part.into_iter().flat_map(|time| time.weights.iter()));
        let others = parts.iter().flatten().map(|time| time.others).sum();
        let weights = merged(first, second).collect();
        spent.processes.push((process, weights, others));
        for time in parts.into_iter().flatten() {
            spent.by_context.extend(time.by_context());
            *spent.other_contexts.entry(process).or_default() += time.other_contexts;
        }
    }
    kept(spent, contexts)
}

#[cfg(test)]
mod tests;
