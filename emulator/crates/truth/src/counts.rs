//! What is counted of a static instruction.

use commit_trace::{
    AccessKind, CommitRecord, DataSource, Detail, MAX_COMMIT_WIDTH, Redirect, TeaEvents,
    Translation,
};

use crate::records::Executions;

/// Buckets of a latency histogram.
pub const BUCKETS: usize = 16;

/// Returns the bucket of a latency: 0 has 0 and 1 cycles, n from 2^n to 2^(n+1) - 1, the last all longer ones.
pub fn bucket(cycles: u64) -> usize {
    (cycles.max(1).ilog2() as usize).min(BUCKETS - 1)
}

/// The counts of a static instruction on one hart in the region of interest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Times that the instruction retired.
    pub executed: u64,
    /// Times that the instruction raised an exception, or that an interrupt took its place.
    pub trapped: u64,
    /// Times that the instruction was fetched again: a load that had run ahead of an older store to its bytes.
    pub replayed: u64,
    /// Times that the branch or jump was mispredicted.
    pub mispredicted: u64,
    /// Younger instructions that were flushed because of this one, approximately.
    pub flushed: u64,
    /// Cycles from decode until the instruction left the ROB, summed over all times that it did.
    pub total_cycles: u64,
    /// Cycles in which the instruction was the oldest in the ROB, a part of [`Self::total_cycles`].
    pub head_cycles: u64,
    /// Cycles from issue to completion; for a store, from issue until its line is written.
    pub execution_cycles: u64,
    /// Fetches of the packet that the instruction starts whose line was not in the L1 instruction cache.
    pub l1i_misses: u64,
    /// Fetches of the packet that the instruction starts whose address was not in the first-level instruction TLB.
    pub itlb_misses: u64,
    /// Times that the instruction left the ROB, by the slot in which it was decoded.
    pub slots: [u64; MAX_COMMIT_WIDTH],
    /// The instruction's data accesses; `None` if it made none.
    pub memory: Option<Box<Memory>>,
    /// What the unit that samples instructions would record.
    pub records: Vec<Executions>,
}

/// The data accesses of a static instruction that retired.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Loads, atomics with them.
    pub loads: u64,
    /// Stores, atomics with them.
    pub stores: u64,
    /// Accesses by who answered, in the order of [`DataSource::ALL`].
    pub sources: [u64; DataSource::ALL.len()],
    /// Accesses by how the address was translated, in the order of [`Translation::ALL`].
    pub translations: [u64; Translation::ALL.len()],
    /// Cycles that translations took beyond those of a hit.
    pub translating: u64,
    /// Accesses by execution latency, see [`bucket`].
    pub latencies: [u64; BUCKETS],
}

/// Returns the cycles from issue until an instruction was done, a store's write included.
pub(crate) fn execution(detail: &Detail) -> u64 {
    let done = detail.complete.max(detail.access.written);
    match detail.issue {
        0 => 0,
        issue => done.saturating_sub(issue),
    }
}

impl Counts {
    /// Adds an instruction that left the ROB in cycle `commit`, the one before it in cycle `before`.
    pub(crate) fn add(&mut self, record: &CommitRecord, detail: &Detail, before: u64, commit: u64) {
        match record.redirect() {
            Redirect::Exception if record.tea().contains(TeaEvents::FL_MO) => self.replayed += 1,
            Redirect::Exception | Redirect::Interrupt => self.trapped += 1,
            Redirect::Mispredict => {
                self.executed += 1;
                self.mispredicted += 1;
            }
            Redirect::None | Redirect::Flush => self.executed += 1,
        }
        self.slots[usize::from(detail.slot) % MAX_COMMIT_WIDTH] += 1;
        self.flushed += u64::from(detail.flushed);
        self.total_cycles += commit.saturating_sub(detail.decode);
        self.head_cycles += commit.saturating_sub(before.max(detail.dispatch));
        let execution = execution(detail);
        self.execution_cycles += execution;
        if detail.packet.delivered != 0 {
            let hit = matches!(detail.packet.source, DataSource::L1 | DataSource::Unknown);
            self.l1i_misses += u64::from(!hit);
            self.itlb_misses += u64::from(detail.packet.translation != Translation::L1);
        }
        if detail.access.kind != AccessKind::None && !record.is_trap() {
            self.memory.get_or_insert_default().add(detail, execution);
        }
    }
}

/// Adds each number to the one at its place.
fn add_each(own: &mut [u64], other: &[u64]) {
    own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
}

impl Counts {
    /// Adds the counts of the same instruction in another process.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            executed,
            trapped,
            replayed,
            mispredicted,
            flushed,
            total_cycles,
            head_cycles,
            execution_cycles,
            l1i_misses,
            itlb_misses,
            slots,
            memory,
            records,
        } = other;
        self.executed += executed;
        self.trapped += trapped;
        self.replayed += replayed;
        self.mispredicted += mispredicted;
        self.flushed += flushed;
        self.total_cycles += total_cycles;
        self.head_cycles += head_cycles;
        self.execution_cycles += execution_cycles;
        self.l1i_misses += l1i_misses;
        self.itlb_misses += itlb_misses;
        add_each(&mut self.slots, &slots);
        if let Some(memory) = memory {
            self.memory.get_or_insert_default().merge(&memory);
        }
        Executions::merge(&mut self.records, records);
    }
}

impl Memory {
    fn merge(&mut self, other: &Self) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.translating += other.translating;
        add_each(&mut self.sources, &other.sources);
        add_each(&mut self.translations, &other.translations);
        add_each(&mut self.latencies, &other.latencies);
    }

    fn add(&mut self, detail: &Detail, execution: u64) {
        let access = &detail.access;
        self.loads += u64::from(access.kind != AccessKind::Store);
        self.stores += u64::from(access.kind != AccessKind::Load);
        self.sources[access.source as usize] += 1;
        self.translations[access.translation as usize] += 1;
        self.translating += u64::from(access.translating);
        self.latencies[bucket(execution)] += 1;
    }
}
