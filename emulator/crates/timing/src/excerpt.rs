//! Excerpts: some consecutive instructions with all their stages, now and then, for the host. The sink says from which cycle on
//! it wants the next one. Nothing that the guest sees depends on them.

use commit_trace::{CommitSink, DispatchWait};

use crate::pipeline::Pipeline;
use crate::schedule::Lane;
use crate::stats::Stalls;

/// Instructions of an excerpt, or a few more: it ends with a run.
const INSTRUCTIONS: usize = 1024;

/// When excerpts are taken.
#[derive(Debug)]
pub(crate) struct Excerpts {
    /// Cycle after which an excerpt begins, or the current one may end, before the next run.
    pub look: u64,
    /// Instructions to go in the current excerpt; `None`: there is none.
    left: Option<usize>,
}

impl Default for Excerpts {
    fn default() -> Self {
        Self { look: u64::MAX, left: None }
    }
}

impl Excerpts {
    /// Returns true if an excerpt is under way.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.left.is_some()
    }

    /// Notes that `instructions` instructions went to the sink.
    pub(crate) fn sent(&mut self, instructions: usize) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(instructions);
        }
    }
}

impl<S: CommitSink> Pipeline<S> {
    /// Begins the next excerpt from `cycle` on; `u64::MAX`: there is no more. Ends one that is under way. Called
    /// between runs.
    pub(crate) fn excerpts_from(&mut self, cycle: u64) {
        self.end_excerpt();
        self.observer.excerpts.look = cycle;
    }

    /// Ends the excerpt that is under way, if there is one.
    pub(crate) fn end_excerpt(&mut self) {
        if self.observer.excerpts.left.take().is_some() {
            self.observer.excerpts.look = self.sink.end_excerpt(self.window.committed);
        }
    }

    /// Begins an excerpt before a run, or ends one that is long enough.
    #[cold]
    #[inline(never)]
    pub(crate) fn turn_excerpt(&mut self) {
        match self.observer.excerpts.left {
            None => {
                if !self.observer.is_active() {
                    self.observer.forget(&mut self.front);
                }
                self.observer.stalls = self.stats.dispatch_stalls;
                self.observer.excerpts = Excerpts { look: 0, left: Some(INSTRUCTIONS) };
                self.sink.begin_excerpt();
            }
            Some(0) => self.end_excerpt(),
            Some(_) => {}
        }
    }
}

impl Stalls {
    /// Returns what an instruction's dispatch waited for last, given what had been counted before it.
    pub(crate) fn since(&self, before: &Self) -> DispatchWait {
        // Dispatch waits for a row of the ROB first, and for issue-queue slots and tags last.
        let lane = |lane: Lane, wait| (self.of_lane(lane), before.of_lane(lane), wait);
        let waits = [
            lane(Lane::Tag, DispatchWait::Tags),
            lane(Lane::Fp, DispatchWait::FpIssue),
            lane(Lane::Int, DispatchWait::IntegerIssue),
            lane(Lane::Mem, DispatchWait::MemoryIssue),
            (self.store_queue, before.store_queue, DispatchWait::StoreQueue),
            (self.load_queue, before.load_queue, DispatchWait::LoadQueue),
            (self.registers, before.registers, DispatchWait::Registers),
            (self.serialize, before.serialize, DispatchWait::Empty),
            (self.rob, before.rob, DispatchWait::Rob),
        ];
        let waited = waits.into_iter().find(|(now, before, _)| now != before);
        waited.map_or(DispatchWait::None, |(.., wait)| wait)
    }
}
