//! Commit: the records of instructions that leave the ROB.

use commit_trace::{CommitRecord, CommitSink, StageCycles, Stages};
use isa::StaticId;

use crate::micro_op::MicroOp;
use crate::pipeline::{Pipeline, stream_id};
use crate::records::{FIRST_OF_ROW, Records, Retired};

impl<S: CommitSink> Pipeline<S> {
    /// Commits the instruction decoded last; returns the cycle.
    #[inline(always)]
    pub(crate) fn commit(&mut self, micro_op: &MicroOp, id: StaticId, retired: &Retired) -> u64 {
        let before = self.window.committed;
        let new_row = self.mark & FIRST_OF_ROW != 0;
        let cycle =
            self.window.commit(retired.done, retired.class, micro_op, new_row, &mut self.stats);
        self.push(id, retired, before, cycle);
        cycle
    }

    /// Adds the record of an instruction that leaves the ROB in `cycle`; the one before it left in cycle `before`.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: StaticId, retired: &Retired, before: u64, cycle: u64) {
        let flags = CommitRecord::flags_of(retired.redirect, false, retired.class, retired.tea);
        self.records.push(CommitRecord::of(
            stream_id(id),
            (cycle - before) as u32,
            // The ROB holds an instruction from the cycle after its dispatch.
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

    /// Sends the records to the sink.
    #[inline(always)]
    pub(crate) fn send(&mut self) {
        let Records { sent, records, count, stages } = &mut self.records;
        let from = std::mem::replace(sent, self.window.committed);
        let count = std::mem::take(count);
        if let Some(records) = records.get(..count)
            && count != 0
        {
            if let Some(follower) = &mut self.selections.follower {
                follower.take((from, *sent), records, &self.micro_ops);
            }
            if let Some(slots) = &mut self.selections.slots {
                slots.sent(records);
            }
            if S::STAGES {
                self.sink.stages(stages);
                stages.clear();
            }
            if self.observer.is_active() {
                self.sink.details(&self.observer.details);
                self.observer.excerpts.sent(count);
                self.observer.details.clear();
            }
            self.sink.commits(from, records, *sent);
        }
    }
}
