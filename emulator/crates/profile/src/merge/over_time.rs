//! Time bins of several harts as one list.

use std::collections::BTreeMap;

use super::{MergedNumbers, end_where_the_next_begins};
use crate::over_time::{ProcessUnits, Spent, kept};
use crate::packed::summed;
use crate::{ContextWeights, Contexts, Evaluation, ProcessId, TimeBin};

/// What all harts spent in a bin.
#[derive(Default)]
struct Sums {
    /// The bin's first cycle.
    start: u64,
    /// First cycle after the bin.
    end: u64,
    /// Units by instruction, and units of instructions that are not kept apart, by process.
    processes: BTreeMap<ProcessId, (Vec<(u64, u64)>, u64)>,
    /// Units by calling context and instruction.
    by_context: ContextWeights,
    /// Units that are not kept apart by calling context, by process.
    other_contexts: BTreeMap<ProcessId, u64>,
}

/// Merges the bins of all harts into bins as long as the longest, as windows are merged: bins that begin within one such
/// length become one.
pub(super) fn merged(
    parts: &[(&Evaluation, &MergedNumbers)],
    contexts: Option<&Contexts>,
) -> Vec<TimeBin> {
    let all = || {
        let bins = parts.iter().map(|(of, numbers)| (&of.over_time, *numbers));
        bins.flat_map(|(bins, numbers)| bins.iter().map(move |bin| (bin, numbers)))
    };
    let length = all().map(|(bin, _)| bin.end.saturating_sub(bin.start)).max();
    let length = length.unwrap_or(1).max(1);
    let mut sums: BTreeMap<u64, Sums> = BTreeMap::new();
    for (bin, numbers) in all() {
        let sum = sums
            .entry(bin.start / length)
            .or_insert_with(|| Sums { start: bin.start, ..Sums::default() });
        sum.start = sum.start.min(bin.start);
        sum.end = sum.end.max(bin.end);
        for time in &bin.processes {
            let process = numbers.process(time.process);
            let (weights, others) = sum.processes.entry(process).or_default();
            let more = time.weights();
            weights.extend(more.map(|(inst, units)| (numbers.inst(inst).0.into(), units)));
            *others += time.others;
            sum.by_context.extend(numbers.weights(time.by_context()));
            *sum.other_contexts.entry(process).or_default() += time.other_contexts;
        }
    }
    let none = Contexts::default();
    let contexts = contexts.unwrap_or(&none);
    let bin = |sum: Sums| {
        let spent = sum.processes.into_iter();
        let spent = spent.map(|(process, (weights, others))| (process, summed(weights), others));
        let spent = Spent {
            processes: spent.collect::<Vec<ProcessUnits>>(),
            by_context: sum.by_context,
            other_contexts: sum.other_contexts,
        };
        TimeBin { start: sum.start, end: sum.end, processes: kept(spent, contexts) }
    };
    let mut bins: Vec<TimeBin> = sums.into_values().map(bin).collect();
    end_where_the_next_begins(&mut bins, |bin| (bin.start, &mut bin.end));
    bins
}
