//! What is known of an instruction when it commits, and its record on the way to the sink.

use commit_trace::{CommitRecord, CycleClass, Redirect, Stages, TeaEvents};
use isa::RUN_STEPS;

use crate::lsu::Answer;

/// The flag of a record that says "first of its ROB row".
pub(crate) const FIRST_OF_ROW: u32 =
    CommitRecord::flags_of(Redirect::None, true, CycleClass::Alu, TeaEvents(0));

/// Records that can wait to be sent: those of a run. A load that fails its order leaves two.
const WAITING: usize = (2 * RUN_STEPS).next_power_of_two();

/// Records on their way to the sink.
pub(crate) struct Records {
    /// Cycle up to which the sink knows all.
    pub sent: u64,
    pub records: [CommitRecord; WAITING],
    pub count: usize,
    /// Other stages of the records, for a sink that wants them.
    pub stages: Vec<Stages>,
}

// No records wait between runs.
snapshot::snapshot!(Records { sent } keeps { records, count, stages });

impl Records {
    pub(crate) fn new() -> Self {
        Self { sent: 0, records: [CommitRecord::default(); WAITING], count: 0, stages: Vec::new() }
    }

    /// Returns the records of the run that is under way.
    #[inline(always)]
    pub(crate) fn so_far(&self) -> &[CommitRecord] {
        &self.records[..self.count.min(WAITING)]
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, record: CommitRecord) {
        self.records[self.count % WAITING] = record;
        self.count += 1;
    }
}

/// An instruction that can commit from cycle `done` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retired {
    pub dispatch: u64,
    /// Cycle of its issue; 0: it never issues.
    pub issue: u64,
    pub done: u64,
    pub redirect: Redirect,
    pub class: CycleClass,
    pub tea: TeaEvents,
}

impl Retired {
    /// Returns an instruction that redirects nothing, by the answer to its access.
    #[inline(always)]
    pub(crate) fn of(answer: &Answer, dispatch: u64, issue: u64) -> Self {
        let Answer { done, class, tea, .. } = *answer;
        Self { dispatch, issue, done, redirect: Redirect::None, class, tea }
    }
}
