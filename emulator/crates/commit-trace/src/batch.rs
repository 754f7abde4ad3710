//! How records travel: in owned batches, with the events between them.

use crate::{CommitRecord, HartId, Seq, Stages, StaticInfo};

/// Things that happen between records. An event takes effect before the record that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The hart slept in `wfi` after the previous record's commit.
    Idle {
        /// Cycles that the hart slept; they may exceed 32 bits.
        cycles: u64,
    },
    /// Privilege after the previous record (0 U, 1 S, 3 M).
    Privilege(u8),
    /// A side-band record that the guest's driver wrote to the TIP unit (type, bytes).
    SideBand {
        /// Record type (tip-device's table).
        kind: u8,
        /// Payload, little-endian.
        bytes: Vec<u8>,
    },
    /// The region of interest starts (`true`) or stops.
    Region(bool),
    /// The region of interest starts here and nowhere before: what was marked until now is no part of it.
    RegionAnew,
    /// Stretches of the region that start from here on stand for so many times as much as they are, from 1 to [`Event::MAX_WEIGHT`]: the region is
    /// sampled, and its units stand for more and less of it. Before the first such event all stretches stand for themselves.
    Weight(u32),
    /// The run ends here: the last record's commit cycle is the run's last cycle.
    End,
}

impl Event {
    /// The largest weight of a stretch of the region.
    pub const MAX_WEIGHT: u32 = 1 << 16;

    /// Cycles that pass in the event.
    pub const fn idle(&self) -> u64 {
        match self {
            Self::Idle { cycles } => *cycles,
            _ => 0,
        }
    }
}

/// An owned piece of one hart's stream. A batch never splits a commit group: its first record, if it
/// has one, commits in a cycle of its own (`commit_delta` is not 0).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Hart.
    pub hart: HartId,
    /// Number of the first record.
    pub first_seq: Seq,
    /// Last cycle of the stream before this batch. The first record's `commit_delta` counts from
    /// it, or from the end of the [`Event::Idle`] between them.
    pub start_cycle: u64,
    /// Static info of the instructions that are first used in this batch, in order of number.
    pub static_info: Vec<StaticInfo>,
    /// Records in program order.
    pub records: Vec<CommitRecord>,
    /// The other stages of each record; empty if the run does not record them.
    pub stages: Vec<Stages>,
    /// Events, each with the index of the record that it precedes (`records.len()` at the end), in
    /// order.
    pub events: Vec<(u32, Event)>,
}

impl Batch {
    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.static_info.clear();
        self.records.clear();
        self.stages.clear();
        self.events.clear();
    }

    /// True if the batch carries nothing.
    pub fn is_empty(&self) -> bool {
        self.static_info.is_empty() && self.records.is_empty() && self.events.is_empty()
    }

    /// Last cycle of the stream after this batch; `None` if that does not fit into 64 bits.
    pub fn end_cycle(&self) -> Option<u64> {
        // Fewer than 2^32 records of 32 bits each: this sum cannot overflow.
        let commits = self.records.iter().map(|record| u64::from(record.commit_delta)).sum();
        self.after_events()?.checked_add(commits)
    }

    /// Returns an upper bound of [`Self::end_cycle`] without adding up the records; `None` if it does not fit into 64 bits.
    pub(crate) fn bound(&self) -> Option<u64> {
        let most = (self.records.len() as u64).checked_mul(u32::MAX.into())?;
        self.after_events()?.checked_add(most)
    }

    /// Returns the batch's start cycle plus the idle cycles of its events; `None` if that does not fit into 64 bits.
    pub(crate) fn after_events(&self) -> Option<u64> {
        let mut idle = self.events.iter().map(|(_, event)| event.idle());
        idle.try_fold(self.start_cycle, u64::checked_add)
    }
}
