//! Counters beside profiles: calling contexts, slots and signatures, each counted only on request.

use commit_trace::{Seq, Span, State, StaticInfo, group_spans};

use super::Evaluator;
use crate::block::{Block, ForEachSpan};
use crate::busy_harts::SharedCycles;
use crate::calls::{Calls, ContextTally, fold, sum_up};
use crate::events::CycleSignatures;
use crate::oracle::{Oracle, SHARE, Stalled, UNITS_PER_CYCLE};
use crate::over_time::OracleOverTime;
use crate::topdown::Counter;
use crate::{BusyHarts, ContextId, ContextWeights, Contexts, ProcessId};

/// Sums by context and instruction that the Oracle gathers before the smallest contexts are [`fold`]ed. Most contexts have next
/// to no time: those of a minute would take gigabytes.
const MORE_SUMS: usize = if cfg!(test) { 16 } else { 3 << 19 };
/// Contexts with 1 / `KEPT_PART` of the time so far are not folded, and neither are contexts that are new since the last
/// time: they may only have begun to take time. The contexts that are shown have a multiple of that part.
const KEPT_PART: u64 = 8_000;

/// Calling contexts, and the Oracle's time by them.
pub(super) struct CallStacks {
    pub calls: Calls,
    pub counts: ContextCounts,
}

/// The Oracle's time by calling context.
pub(super) struct ContextCounts {
    /// What the Oracle was charged in the open bin of time; `None` if it is not asked for.
    oracle: Option<ContextTally>,
    /// What the Oracle was charged in the bins of time that are over.
    before: ContextWeights,
    /// When contexts of the open bin are folded.
    fold_open_bin: FoldThreshold,
    /// When contexts of the bins that are over are folded.
    fold_closed_bins: FoldThreshold,
}

/// When the smallest contexts of a list of sums are folded.
struct FoldThreshold {
    /// Number of sums at which contexts are folded next.
    sums: usize,
    /// Number of contexts when contexts were folded last.
    known: usize,
}

impl Default for FoldThreshold {
    fn default() -> Self {
        Self { sums: MORE_SUMS, known: 0 }
    }
}

impl FoldThreshold {
    /// Folds the smallest contexts, except those that are new since the last time.
    fn fold(&mut self, weights: &mut ContextWeights, contexts: &Contexts) {
        let mut shown = contexts.shown([&*weights], KEPT_PART);
        for (number, shown) in shown.iter_mut().enumerate().skip(self.known) {
            *shown = ContextId(number as u32);
        }
        fold(weights, &shown);
        self.known = contexts.len();
        // The limit grows with the list: all folds together take time in proportion to what is counted.
        self.sums = weights.len() + MORE_SUMS.max(weights.len() / 2);
    }
}

impl ContextCounts {
    fn new() -> Self {
        Self {
            oracle: Some(ContextTally::default()),
            before: Vec::new(),
            fold_open_bin: FoldThreshold::default(),
            fold_closed_bins: FoldThreshold::default(),
        }
    }

    /// Takes what the Oracle was charged since the last time.
    pub(super) fn take(&mut self) -> ContextWeights {
        let mut all = std::mem::take(&mut self.before);
        all.extend(self.take_open());
        sum_up(&mut all);
        all
    }

    /// Ends a bin of time, and returns what the Oracle was charged in it; [`Self::take`] returns that, too.
    pub(super) fn end_bin(&mut self, contexts: &Contexts) -> ContextWeights {
        let weights = self.take_open();
        self.before.extend(&weights);
        sum_up(&mut self.before);
        if self.before.len() > self.fold_closed_bins.sums {
            self.fold_closed_bins.fold(&mut self.before, contexts);
        }
        weights
    }

    /// Takes what the Oracle was charged in the open bin.
    fn take_open(&mut self) -> ContextWeights {
        self.fold_open_bin.sums = MORE_SUMS;
        let oracle = self.oracle.as_mut().map(std::mem::take);
        oracle.map(ContextTally::finish).unwrap_or_default()
    }

    /// Folds the Oracle's smallest contexts if there are too many.
    fn limit(&mut self, contexts: &Contexts) {
        if self.oracle.as_ref().is_none_or(|oracle| oracle.len() < self.fold_open_bin.sums) {
            return;
        }
        let mut weights = self.take_open();
        self.fold_open_bin.fold(&mut weights, contexts);
        if let Some(oracle) = &mut self.oracle {
            for (context, inst, units) in weights {
                oracle.add(context, inst, units);
            }
        }
    }
}

impl CallStacks {
    pub(super) fn new(calls: Calls) -> Self {
        Self { calls, counts: ContextCounts::new() }
    }

    /// Counts the samplers only.
    pub(super) fn ignore_oracle(&mut self) {
        self.counts.oracle = None;
    }

    /// Returns counts of nothing yet, of the Oracle only if that is asked for.
    pub(super) fn no_counts(&self) -> ContextCounts {
        let oracle = self.counts.oracle.as_ref().map(|_| ContextTally::default());
        ContextCounts { oracle, ..ContextCounts::new() }
    }

    /// Ends a bin of time, and returns what the Oracle was charged in it.
    pub(super) fn end_bin(&mut self) -> ContextWeights {
        self.counts.end_bin(self.calls.contexts())
    }

    /// Folds the Oracle's smallest contexts if there are too many.
    pub(super) fn limit(&mut self) {
        self.counts.limit(self.calls.contexts());
    }

    #[inline(never)]
    pub(super) fn charge(&mut self, span: &Span<'_>, process: ProcessId) {
        let Some(oracle) = &mut self.counts.oracle else {
            return;
        };
        let (records, units) = match span.state {
            State::Computing => (span.records, SHARE[span.records.len()]),
            _ => (&span.records[..span.records.len().min(1)], span.cycles * UNITS_PER_CYCLE),
        };
        for record in records {
            let context = self.calls.context(process, record.inst);
            oracle.add(context, record.inst, units);
        }
    }
}

impl Evaluator {
    /// Counts only the samplers by calling context or thread, not the Oracle: it takes less time, and much less memory.
    pub fn without_oracle_contexts(mut self) -> Self {
        if let Some(stacks) = &mut self.run.stacks {
            stacks.ignore_oracle();
        }
        self
    }
}

/// What is counted for a report only.
pub(super) struct Details {
    pub slots: Counter,
    pub signatures: CycleSignatures,
    pub over_time: OracleOverTime,
    /// What the Oracle charged in loops that only wait.
    pub spinning: Oracle,
    /// What the Oracle charged while several harts were busy.
    pub shared: SharedCycles,
}

impl Details {
    /// Counters for a core with `width` slots a cycle.
    pub(super) fn new(width: u32) -> Self {
        Self {
            slots: Counter::new(width),
            signatures: CycleSignatures::new(),
            over_time: OracleOverTime::default(),
            spinning: Oracle::new(),
            shared: SharedCycles::default(),
        }
    }

    /// A process runs from here on while so many harts are busy.
    pub(super) fn select(&mut self, process: ProcessId, busy: BusyHarts) {
        self.slots.select(process);
        self.signatures.select(process);
        self.spinning.select(process, false);
        self.shared.select(process, busy);
    }

    /// Packs the counts of inactive processes.
    pub(super) fn pack_cold(
        &mut self,
        newly: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool + Copy,
    ) {
        self.slots.pack_cold(newly, is_cold);
        self.signatures.pack_cold(newly, is_cold);
        self.over_time.pack_cold(newly, is_cold);
        self.spinning.pack_cold(newly, is_cold);
        self.shared.pack_cold(newly, is_cold);
    }

    /// Counts a profiled span; true if a bin of [`Self::over_time`] ended before it.
    #[inline(never)]
    pub(super) fn span(&mut self, span: &Span<'_>, static_info: &[StaticInfo]) -> bool {
        self.signatures.span(span);
        self.shared.span(span);
        self.slots.span(span, static_info) && self.over_time.end_window()
    }

    /// Counts a block that ends in the open window, except the spans that [`Self::waits`] is given; the Oracle has counted
    /// `stalled`.
    #[inline(never)]
    pub(super) fn block(
        &mut self,
        block: &Block<'_>,
        stalled: &Stalled,
        static_info: &[StaticInfo],
    ) {
        self.signatures.block(block);
        self.shared.block(block);
        if self.slots.takes_blocks() {
            self.slots.block(block, stalled);
            return;
        }
        let (mut at, mut cycle, mut before) = (0, block.cycle, block.before);
        let sink = &mut ForEachSpan(|span: &Span<'_>| {
            self.slots.span(span, static_info);
        });
        while let Ok((len, commit)) = group_spans(&block.records[at..], before, cycle, Seq(0), sink)
        {
            (at, cycle) = (at + len, commit);
            if at == block.records.len() {
                return;
            }
            before = Some((&block.records[at - 1], commit));
        }
    }

    /// Counts a span of a block in which nothing commits.
    #[inline(never)]
    pub(super) fn waits(&mut self, span: &Span<'_>, static_info: &[StaticInfo]) {
        self.signatures.span(span);
        if self.slots.takes_blocks() {
            self.slots.waiting(span, static_info);
        }
    }
}

#[cfg(test)]
mod tests {
    use commit_trace::InstId;

    use super::*;
    use crate::Context;

    /// A context that has just begun to take time may become a large one.
    #[test]
    fn a_small_context_is_folded_once_it_is_known_for_a_while() {
        let mut contexts = Contexts::flat(1);
        let root = ContextId(0);
        let mut threshold = FoldThreshold::default();
        let mut weights = vec![(root, InstId(0), 10 * KEPT_PART)];
        let mut begin = |contexts: &mut Contexts, call| {
            let context =
                contexts.add(Context { caller: Some((root, InstId(call))), ..contexts.get(root) });
            weights.push((context, InstId(9), 1));
            threshold.fold(&mut weights, contexts);
            weights.iter().map(|(context, _, _)| context.0).collect::<Vec<_>>()
        };
        assert_eq!(begin(&mut contexts, 1), [0, 1]);
        assert_eq!(begin(&mut contexts, 2), [0, 0, 2]);
        assert_eq!(begin(&mut contexts, 3), [0, 0, 3]);
    }
}
