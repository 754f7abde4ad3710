//! Deals out the units of a sampled region to subsamples.

use std::collections::BTreeMap;

use commit_trace::Span;

use crate::ProcessId;
use crate::block::Block;
use crate::oracle::Oracle;
use crate::subsample::{SUBSAMPLES, Subsample};
use crate::topdown::Slots;

/// The Oracle's part in each subsample so far.
pub(super) struct Subsamples {
    /// Number of subsamples that units are dealt out to.
    count: usize,
    parts: Vec<Part>,
    /// Index of the subsample that has the present unit, once there has been one.
    open: usize,
}

#[derive(Default)]
struct Part {
    units: u64,
    oracle: Oracle,
    instructions: u64,
    /// Commit slots by process.
    slots: BTreeMap<ProcessId, Slots>,
}

impl Subsamples {
    /// Returns subsamples without units; all units together are one if they `say_nothing_of_chance`.
    pub(super) fn new(say_nothing_of_chance: bool) -> Self {
        let count = if say_nothing_of_chance { 1 } else { SUBSAMPLES };
        Self { count, parts: Vec::new(), open: 0 }
    }

    /// Returns as many subsamples without units.
    pub(super) fn emptied(&self) -> Self {
        Self { parts: Vec::new(), ..*self }
    }

    /// Begins unit `number` of the region, in which a process runs.
    pub(super) fn begin_unit(&mut self, number: usize, process: ProcessId) {
        self.open = number % self.count;
        if self.parts.len() <= self.open {
            self.parts.resize_with(self.open + 1, Part::default);
        }
        self.parts[self.open].units += 1;
        self.select(process);
    }

    /// Returns the index of the subsample that has the present unit.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Adds the commit slots that processes had in the present unit.
    pub(super) fn add_slots(&mut self, slots: impl Iterator<Item = (ProcessId, Slots)>) {
        let Some(part) = self.parts.get_mut(self.open) else { return };
        for (process, slots) in slots {
            *part.slots.entry(process).or_default() += slots;
        }
    }

    /// A process runs from here on.
    pub(super) fn select(&mut self, process: ProcessId) {
        if let Some(part) = self.parts.get_mut(self.open) {
            part.oracle.select(process, false);
        }
    }

    #[inline]
    pub(super) fn span(&mut self, span: &Span<'_>) {
        if let Some(part) = self.parts.get_mut(self.open) {
            part.oracle.span(span);
        }
    }

    #[inline]
    pub(super) fn block(&mut self, block: &Block<'_>) {
        if let Some(part) = self.parts.get_mut(self.open) {
            part.oracle.block(block, |_| ());
        }
    }

    /// Counts instructions that committed.
    #[inline]
    pub(super) fn commit(&mut self, instructions: u64) {
        if let Some(part) = self.parts.get_mut(self.open) {
            part.instructions += instructions;
        }
    }

    /// Packs the counts of processes that have not run for a while; `newly` are those since the last call.
    pub(super) fn pack_cold(&mut self, newly: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        for part in &mut self.parts {
            part.oracle.pack_cold(newly, &is_cold);
        }
    }

    pub(super) fn finish(self) -> Vec<Subsample> {
        let finished = |part: Part| Subsample {
            units: part.units,
            instructions: part.instructions,
            stacks: part.oracle.finish().stacks,
            slots: part.slots,
        };
        self.parts.into_iter().map(finished).collect()
    }
}
