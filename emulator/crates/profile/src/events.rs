//! Time by event: TEA (Gottschall, Eeckhout, Jahre, "TEA: Time-Proportional Event Analysis", ISCA 2023).
//!
//! Each instruction's cycles are split by its *signature*: which of the nine events it met. The reference has every
//! cycle, charged as the Oracle charges it; TEA has TIP's samples, each with the signature of what it names. The
//! other profilers that name an instruction of which they see the events (NCI as PEBS, what Dispatch tags as IBS and SPE) are given the same nine bits, so that they differ from TEA in what they name and nothing else.

use std::collections::HashMap;

use commit_trace::{CommitRecord, InstId, Span, State, TeaEvents, gap_spans};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::block::{Block, Each};
use crate::oracle::{SHARE, UNITS_PER_CYCLE};
use crate::tally::Tally;
use crate::{Component, ProcessId, Profile, Profiler};

/// Units per process, instruction and signature, for signatures with any event, ascending. What else a profile
/// gives an instruction met none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signatures(Vec<(ProcessId, InstId, u16, u64)>);

impl Signatures {
    /// Every weight.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, InstId, TeaEvents, u64)> {
        self.0
            .iter()
            .map(|(process, inst, events, units)| (*process, *inst, TeaEvents(*events), *units))
    }

    /// All weights of a profile, those without an event included.
    pub fn with_base(&self, profile: &Profile) -> Vec<(ProcessId, InstId, TeaEvents, u64)> {
        let mut base: HashMap<(ProcessId, InstId), u64> = profile
            .iter()
            .map(|(process, inst, units)| ((process, inst), units))
            .collect();
        let mut out: Vec<_> = self.iter().collect();
        for (process, inst, _, units) in &out {
            let rest = base.entry((*process, *inst)).or_default();
            *rest = rest.saturating_sub(*units);
        }
        let none = base.into_iter().filter(|(_, units)| *units > 0);
        out.extend(
            none.map(|((process, inst), units)| (process, inst, TeaEvents::default(), units)),
        );
        out.sort_unstable_by_key(|(process, inst, events, _)| (*process, *inst, events.0));
        out
    }
}

/// Counts [`Signatures`]. Keys of the tally: instruction, then nine bits of events, then the process.
#[derive(Debug, Default)]
pub(crate) struct SignatureCounter(Tally);

impl SignatureCounter {
    /// Charges a profiled span as the Oracle does.
    pub(crate) fn span(&mut self, span: &Span<'_>, process: ProcessId) {
        if span.state == State::Computing {
            let share = SHARE[span.records.len()];
            for record in span.records {
                self.add(process, record, share);
            }
        } else if let Some(record) = span.records.first() {
            self.add(process, record, span.cycles * UNITS_PER_CYCLE);
        }
    }

    /// Charges a block: the same as its spans.
    #[inline(always)]
    pub(crate) fn block(&mut self, block: &Block<'_>, process: ProcessId) {
        // Few records met an event. A Flushed span is charged to the record before.
        let before = block.before.map_or(0, |(record, _)| record.tea().0);
        let any = { block.records.iter() }.fold(before, |any, record| any | record.tea().0);
        if any == 0 {
            return;
        }
        block.groups(|at, size| {
            for record in &block.records[at..at + size] {
                self.add(process, record, SHARE[size]);
            }
            let first = &block.records[at];
            let gap = u64::from(first.commit_delta) - 1;
            if gap > 0 {
                let mut sink = Each(|span: &Span<'_>| self.span(span, process));
                gap_spans(block.before(at), first, 0, gap, 0, &mut sink);
            }
        });
    }

    /// Gives `units` to a record's instruction and events.
    #[inline]
    pub(crate) fn add(&mut self, process: ProcessId, record: &CommitRecord, units: u64) {
        let events = record.tea().0;
        if events == 0 {
            return;
        }
        // More than 2^23 processes would share numbers.
        let key = u64::from(record.inst.0) | u64::from(events) << 32 | u64::from(process.0) << 41;
        self.0.add(key, units);
    }

    pub(crate) fn finish(self) -> Signatures {
        let unpacked = self.0.finish().into_iter().map(|(key, units)| {
            let events = (key >> 32) as u16 & 0x1ff;
            (
                ProcessId((key >> 41) as u32),
                InstId(key as u32),
                events,
                units,
            )
        });
        let mut list: Vec<_> = unpacked.collect();
        list.sort_unstable();
        Signatures(list)
    }
}

impl Profiler {
    /// True if its samples name an instruction whose events it sees.
    pub const fn sees_events(self) -> bool {
        matches!(self, Self::Tip | Self::Nci | Self::Dispatch)
    }
}

/// Time that a profiler gave to one instruction while the Oracle, in the cycles of the samples' triggers, had
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misplaced {
    /// The process that ran.
    pub process: ProcessId,
    /// What the profiler named.
    pub named: InstId,
    /// What the Oracle charged (the oldest, if several committed).
    pub truth: InstId,
    /// What it was charged for.
    pub component: Component,
    /// Units of the profile.
    pub units: u64,
}

/// Process, what was named, the truth, and what for.
type Place = (ProcessId, InstId, InstId, Component);

/// Places that are counted at once.
const FRESH: usize = 128;

/// How many of a process are kept. In the end a sampler has about as many as samples, and nearly all weigh next to nothing.
const KEPT: usize = 100;

/// Counts [`Misplaced`] time.
#[derive(Debug, Default)]
pub(crate) struct MisplacedCounter {
    /// The Oracle's instructions in the cycle of the trigger, and what they are charged for.
    truth: Vec<InstId>,
    component: Option<Component>,
    units: FxHashMap<Place, u64>,
    /// What is not in `units` yet: waits for the host's memory overlap when many are looked up in a row.
    fresh: Vec<(Place, u64)>,
}

impl MisplacedCounter {
    /// A sampling clock triggers in a cycle of this span.
    pub(crate) fn trigger(&mut self, span: &Span<'_>) {
        self.truth.clear();
        self.truth
            .extend(span.records.iter().map(|record| record.inst));
        self.component = span
            .records
            .first()
            .map(|record| crate::oracle::component(span.state, record));
    }

    /// The trigger's sample gives `units` to `named`.
    pub(crate) fn named(&mut self, process: ProcessId, named: InstId, units: u64) {
        if let (Some(truth), Some(component)) = (self.truth.first(), self.component)
            && !self.truth.contains(&named)
        {
            self.fresh
                .push(((process, named, *truth, component), units));
            if self.fresh.len() >= FRESH {
                self.note_fresh();
            }
        }
    }

    #[inline(never)]
    fn note_fresh(&mut self) {
        for (place, units) in self.fresh.drain(..) {
            *self.units.entry(place).or_default() += units;
        }
    }

    /// The most first, up to [`KEPT`] of each process.
    pub(crate) fn finish(mut self) -> Vec<Misplaced> {
        self.note_fresh();
        let mut list: Vec<Misplaced> = self
            .units
            .into_iter()
            .map(|((process, named, truth, component), units)| Misplaced {
                process,
                named,
                truth,
                component,
                units,
            })
            .collect();
        list.sort_unstable_by_key(|m| {
            (
                std::cmp::Reverse(m.units),
                m.process,
                m.named,
                m.truth,
                m.component,
            )
        });
        let mut kept = FxHashMap::default();
        list.retain(|m| {
            let before = kept.entry(m.process).or_insert(0);
            *before += 1;
            *before <= KEPT
        });
        list.shrink_to_fit();
        list
    }
}

#[cfg(test)]
mod tests;
