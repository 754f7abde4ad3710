//! The Oracle's cycles over time.

use commit_trace::{Batch, HartId, InstId, StreamError};

use crate::calls::sum_up;
use crate::{ContextWeights, Evaluation, Evaluator, MergedNumbers, ProcessId, fold};

/// Contexts with less than 1 / `LEAST_PART` of a window's time are folded: windows have few cycles, and many contexts.
const LEAST_PART: u64 = 2_000;
/// Sums of windows that are gathered before the sums of one context and instruction are added up.
const MORE_SUMS: usize = 1 << 20;

/// A stretch of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Hart.
    pub hart: HartId,
    /// The last cycle before the window.
    pub start: u64,
    /// The window's last cycle.
    pub end: u64,
    /// Cycles in the region of interest in which the hart slept.
    pub idle: u64,
    /// The Oracle's units per process and instruction, unless they are by calling context.
    pub weights: Vec<(ProcessId, InstId, u64)>,
    /// The Oracle's units by calling context and instruction, if the evaluator has contexts. Contexts without a 2000th of the
    /// window are folded into their callers.
    pub by_context: ContextWeights,
    /// The Oracle's units by process and published category, in the order of [`crate::Category::ALL`].
    pub stacks: Vec<(ProcessId, [u64; 7])>,
}

impl Window {
    /// Returns the window with the numbers of processes, instructions and contexts in [`Evaluation::merged`].
    #[must_use]
    pub fn renumbered(mut self, numbers: &MergedNumbers) -> Self {
        for (process, inst, _) in &mut self.weights {
            (*process, *inst) = (numbers.process(*process), numbers.inst(*inst));
        }
        self.by_context = numbers.weights(self.by_context.into_iter()).collect();
        for (process, _) in &mut self.stacks {
            *process = numbers.process(*process);
        }
        self
    }
}

/// Cuts a stream into [`Window`]s of the Oracle, while an [`Evaluator`] takes it. Windows end where batches do, so that a
/// window is longer than asked for by up to a batch ([`commit_trace::BATCH_RECORDS`] instructions).
pub struct Timeline {
    evaluator: Evaluator,
    hart: HartId,
    width: u64,
    idle: u64,
    start: Option<u64>,
    /// How often the region had restarted at the last batch: see [`commit_trace::Event::RegionAnew`].
    region_restarts: u32,
    windows: Vec<Window>,
}

impl Timeline {
    /// Windows of at least `width` cycles. Not of an evaluator [in detail](Evaluator::in_detail).
    pub fn new(evaluator: Evaluator, width: u64) -> Self {
        Self {
            evaluator,
            hart: HartId::default(),
            width,
            idle: 0,
            start: None,
            region_restarts: 0,
            windows: Vec::new(),
        }
    }

    /// Takes the next batch.
    ///
    /// # Errors
    /// If it does not continue the stream.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), StreamError> {
        self.evaluator.batch(batch)?;
        self.hart = batch.hart;
        let start = *self.start.get_or_insert(batch.start_cycle);
        if self.region_restarts != self.evaluator.region_restarts() {
            self.region_restarts = self.evaluator.region_restarts();
            self.windows.clear();
            self.idle = 0;
        }
        if self.evaluator.cycle() - start >= self.width {
            self.cut();
        }
        Ok(())
    }

    /// The evaluation without the Oracle's cycle stacks, and all windows, in order; those without cycles in the region of
    /// interest are left out.
    pub fn finish(mut self) -> (Evaluation, Vec<Window>) {
        self.cut();
        let mut evaluation = self.evaluator.finish();
        let mut full = MORE_SUMS;
        for window in &self.windows {
            for (process, inst, units) in &window.weights {
                evaluation.oracle.add(*process, *inst, *units);
            }
            evaluation.by_context.extend(&window.by_context);
            if evaluation.by_context.len() > full {
                sum_up(&mut evaluation.by_context);
                full = MORE_SUMS + evaluation.by_context.len();
            }
        }
        sum_up(&mut evaluation.by_context);
        (evaluation, self.windows)
    }

    fn cut(&mut self) {
        let end = self.evaluator.cycle();
        let Some(start) = self.start.replace(end) else {
            return;
        };
        let idle = self.evaluator.idle() - std::mem::replace(&mut self.idle, self.evaluator.idle());
        let (profile, cycle_stacks, mut by_context) = self.evaluator.take_oracle();
        let static_info = self.evaluator.static_info();
        let mut stacks: Vec<(ProcessId, [u64; 7])> = Vec::new();
        for (process, inst, stack) in cycle_stacks.iter() {
            if stacks.last().is_none_or(|(last, _)| *last != process) {
                stacks.push((process, [0; 7]));
            }
            if let (Some((_, sums)), Some(static_info)) =
                (stacks.last_mut(), static_info.get(inst.0 as usize))
            {
                let units = stack.categories(static_info.class);
                sums.iter_mut().zip(units).for_each(|(sum, part)| *sum += part);
            }
        }
        let weights: Vec<_> = match self.evaluator.contexts() {
            Some(contexts) => {
                let shown = contexts.shown([&by_context], LEAST_PART);
                fold(&mut by_context, &shown);
                // Most was folded, and there are many windows.
                by_context.shrink_to_fit();
                Vec::new()
            }
            None => profile.iter().collect(),
        };
        if idle > 0 || !stacks.is_empty() {
            self.windows.push(Window {
                hart: self.hart,
                start,
                end,
                idle,
                weights,
                by_context,
                stacks,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use commit_trace::synthetic;

    use super::*;
    use crate::{Profile, Region, UNITS_PER_CYCLE};

    #[test]
    fn windows_add_up_to_the_oracle() {
        let words: Vec<u32> = (0..60_000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
        let batches = synthetic::batches(&words, 4);
        for region in [Region::Whole, Region::Marked] {
            let mut whole = Evaluator::new(&[], region);
            let mut timeline = Timeline::new(Evaluator::new(&[], region), 1000);
            for batch in &batches {
                whole.batch(batch).unwrap();
                timeline.batch(batch).unwrap();
            }
            let whole = whole.finish();
            let (evaluation, windows) = timeline.finish();
            assert_eq!(evaluation.oracle, whole.oracle);
            assert!(windows.len() > 10, "{} windows", windows.len());
            let mut sum = Profile::new(UNITS_PER_CYCLE);
            let (mut stacked, mut idle, mut end) = (0, 0, 0);
            for window in windows {
                assert!(window.start >= end && window.end > window.start);
                end = window.end;
                idle += window.idle;
                stacked += window.stacks.iter().flat_map(|(_, s)| s).sum::<u64>();
                let weights = window.weights.into_iter();
                weights.for_each(|(process, inst, units)| sum.add(process, inst, units));
            }
            assert_eq!(sum, whole.oracle);
            assert_eq!((stacked, idle), (whole.oracle.total(), whole.idle));
        }
    }
}
