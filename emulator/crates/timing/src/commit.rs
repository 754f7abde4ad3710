//! Commit: the record of an instruction.

use commit_trace::{Commit, CommitSink, CycleClass, Redirect, TeaEvents};
use isa::StaticId;

use crate::core::{Core, stream_id};
use crate::facts::Fact;
use crate::lsu::Answer;

/// An instruction that can commit from cycle `done` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retired {
    pub dispatch: u64,
    pub done: u64,
    pub redirect: Redirect,
    pub class: CycleClass,
    pub tea: TeaEvents,
}

impl Retired {
    /// One that redirects nothing.
    #[inline(always)]
    pub fn of(answer: &Answer, dispatch: u64) -> Self {
        let Answer {
            done, class, tea, ..
        } = *answer;
        Self {
            dispatch,
            done,
            redirect: Redirect::None,
            class,
            tea,
        }
    }
}

impl<S: CommitSink> Core<S> {
    /// Commits the instruction decoded last; the cycle.
    #[inline(always)]
    pub(crate) fn commit(&mut self, fact: &Fact, id: StaticId, retired: &Retired) -> u64 {
        let cycle = self
            .window
            .commit(retired.done, fact, self.new_row, &mut self.stats);
        self.stats.instructions += 1;
        self.push(id, retired, cycle);
        cycle
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, id: StaticId, retired: &Retired, cycle: u64) {
        self.sink.commit(&Commit {
            inst: stream_id(id),
            decode: self.front.buffer.cycle(),
            // The ROB holds it from the cycle after its dispatch.
            dispatch: retired.dispatch + 1,
            commit: cycle,
            redirect: retired.redirect,
            first_of_row: self.new_row,
            class: retired.class,
            tea: retired.tea | self.late,
        });
    }
}
