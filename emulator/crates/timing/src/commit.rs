//! Commit: the record of an instruction.

use commit_trace::{
    CommitRecord, CommitSink, CycleClass, Redirect, StageCycles, Stages, TeaEvents,
};
use isa::{RUN_STEPS, StaticId};

use crate::facts::Fact;
use crate::lsu::Answer;
use crate::pipeline::{Pipeline, stream_id};

/// The flag of a record that says "first of its ROB row".
pub(crate) const FIRST_OF_ROW: u32 =
    CommitRecord::flags_of(Redirect::None, true, CycleClass::Alu, TeaEvents(0));

/// Records that wait to be sent: those of a run. A load that fails its order leaves two.
const WAITING: usize = (2 * RUN_STEPS).next_power_of_two();

/// Records on their way to the sink.
pub(crate) struct Records {
    /// The cycle up to which the sink knows all.
    pub sent: u64,
    records: [CommitRecord; WAITING],
    count: usize,
    /// Their other stages, for a sink that wants them.
    stages: Vec<Stages>,
}

// None wait between runs.
snapshot::snapshot!(Records { sent } keeps { records, count, stages });

impl Records {
    pub fn new() -> Self {
        Self {
            sent: 0,
            records: [CommitRecord::default(); WAITING],
            count: 0,
            stages: Vec::new(),
        }
    }

    #[inline(always)]
    pub fn push(&mut self, record: CommitRecord) {
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
    /// One that redirects nothing.
    #[inline(always)]
    pub fn of(answer: &Answer, dispatch: u64, issue: u64) -> Self {
        let Answer {
            done, class, tea, ..
        } = *answer;
        Self {
            dispatch,
            issue,
            done,
            redirect: Redirect::None,
            class,
            tea,
        }
    }
}

impl<S: CommitSink> Pipeline<S> {
    /// Commits the instruction decoded last; the cycle.
    #[inline(always)]
    pub(crate) fn commit(&mut self, fact: &Fact, id: StaticId, retired: &Retired) -> u64 {
        let before = self.window.committed;
        let new_row = self.mark & FIRST_OF_ROW != 0;
        let cycle = self
            .window
            .commit(retired.done, fact, new_row, &mut self.stats);
        self.push(id, retired, before, cycle);
        cycle
    }

    /// Records an instruction that leaves the ROB in `cycle`, after another that did `before`.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: StaticId, retired: &Retired, before: u64, cycle: u64) {
        let flags = CommitRecord::flags_of(retired.redirect, false, retired.class, retired.tea);
        self.records.push(CommitRecord::of(
            stream_id(id),
            (cycle - before) as u32,
            // The ROB holds it from the cycle after its dispatch.
            cycle - (retired.dispatch + 1),
            self.window.lead,
            flags | self.mark,
        ));
        if S::STAGES {
            let stages = StageCycles {
                fetch: self.front.fetched(),
                issue: (retired.issue != 0).then_some(retired.issue),
                complete: retired.done,
            };
            self.records.stages.push(Stages::new(&stages, cycle));
        }
    }

    /// Gives the sink what was recorded.
    #[inline(always)]
    pub(crate) fn send(&mut self) {
        let Records {
            sent,
            records,
            count,
            stages,
        } = &mut self.records;
        let from = std::mem::replace(sent, self.window.committed);
        let count = std::mem::take(count);
        if let Some(records) = records.get(..count)
            && count != 0
        {
            if S::STAGES {
                self.sink.stages(stages);
                stages.clear();
            }
            self.sink.commits(from, records, *sent);
        }
    }
}
