//! Where the timing core pushes what commits.

use crate::{
    CommitRecord, CycleClass, Detail, Event, InstId, Redirect, Stages, StaticInfo, TeaEvents,
};

/// One dynamic instruction with absolute cycles, as the timing core computes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commit {
    /// Static instruction.
    pub inst: InstId,
    /// Cycle in which it was decoded.
    pub decode: u64,
    /// First cycle in which the ROB holds it.
    pub dispatch: u64,
    /// Cycle in which it commits; for a trap, in which it is taken at the ROB's head.
    pub commit: u64,
    /// Why the front end is redirected after it.
    pub redirect: Redirect,
    /// First instruction of its ROB row.
    pub first_of_row: bool,
    /// What it waits for at the head.
    pub class: CycleClass,
    /// The events that it met.
    pub tea: TeaEvents,
}

impl Commit {
    /// Returns the commit's record, `delta` cycles after the record before; [`CommitRecord::at`] is the reverse.
    #[inline(always)]
    pub fn record(&self, delta: u32) -> CommitRecord {
        CommitRecord::new(
            self.inst,
            delta,
            self.commit.wrapping_sub(self.dispatch),
            self.dispatch.wrapping_sub(self.decode),
            self.redirect,
            self.first_of_row,
            self.class,
            self.tea,
        )
    }
}

snapshot::snapshot!(Commit { inst, decode, dispatch, commit, redirect, first_of_row, class, tea });

/// What became of the instructions that a hart's sampling units sampled since reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledTotals {
    /// Sampled instructions whose record was kept.
    pub recorded: u64,
    /// Instructions that could not be sampled because another one was under way.
    pub collided: u64,
    /// Sampled instructions that the filter left out.
    pub filtered: u64,
    /// Records for which there was no room.
    pub dropped: u64,
}

/// The timing core drives, the sink decides. `commit` is the one required method.
pub trait CommitSink {
    /// True if the sink wants [`CommitSink::stages`]: a constant, so that a core whose sink does not want them is compiled
    /// without them.
    const STAGES: bool = false;
    /// An instruction committed (or trapped). Commit cycles never decrease.
    fn commit(&mut self, commit: &Commit);
    /// Several instructions committed: the first one's `commit_delta` counts from cycle `from`, the last one commits in `to`.
    fn commits(&mut self, from: u64, records: &[CommitRecord], to: u64) {
        let mut cycle = from;
        for record in records {
            cycle += u64::from(record.commit_delta);
            self.commit(&record.at(cycle));
        }
        debug_assert_eq!(cycle, to);
    }
    /// Takes the stages of the instructions that commit next, one [`Stages`] each, in order; called only if
    /// [`CommitSink::STAGES`] is true.
    fn stages(&mut self, _stages: &[Stages]) {}
    /// Takes what sampling units want to know of the instructions that leave next, one [`Detail`] each, in order; called only
    /// as long as somebody observes them.
    fn details(&mut self, _details: &[Detail]) {}
    /// Begins an excerpt: the details of the instructions that leave until its end are for it.
    fn begin_excerpt(&mut self) {}
    /// Ends the excerpt in `cycle`, and returns the cycle from which on the next excerpt may begin.
    fn end_excerpt(&mut self, _cycle: u64) -> u64 {
        u64::MAX
    }
    /// Returns what became of the instructions that the sink's units sampled.
    fn sampled(&self) -> SampledTotals {
        SampledTotals::default()
    }
    /// A static instruction is used for the first time.
    fn define(&mut self, _static_info: &StaticInfo) {}
    /// Something happened after the last commit, at `cycle`.
    fn event(&mut self, _cycle: u64, _event: Event) {}
}

/// Drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl CommitSink for NullSink {
    fn commit(&mut self, _: &Commit) {}
}
