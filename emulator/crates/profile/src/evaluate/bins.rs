//! The Oracle's counts change places: when a bin of time ends, and when processes do not run.

use super::Run;
use crate::oracle::Oracle;
use crate::{Contexts, ProcessId};

impl Run {
    /// Takes what the Oracle counted since the last call.
    pub(super) fn take_oracle(&mut self) -> Oracle {
        let mut fresh = Oracle::new();
        fresh.select(self.process, self.by_mark && self.marked);
        if self.details.is_some() {
            fresh.count_commits();
        }
        std::mem::replace(&mut self.oracle, fresh)
    }

    /// Ends a bin of time.
    #[cold]
    #[inline(never)]
    pub(super) fn end_bin(&mut self) {
        let oracle = self.take_oracle();
        let by_context = self.stacks.as_mut().map_or_else(Vec::new, |stacks| stacks.end_bin());
        let none = Contexts::default();
        let contexts = self.stacks.as_ref().map_or(&none, |stacks| stacks.calls.contexts());
        let is_cold = |process| process != self.process && self.inactive.is_cold(process);
        if let Some(details) = &mut self.details {
            details.over_time.end_bin(oracle, by_context, contexts, is_cold);
        }
    }

    /// Packs the counts of processes that have not run for a while; `newly` are those since the last call.
    pub(super) fn pack_cold(&mut self, newly: &[ProcessId]) {
        let processes = self.context.processes();
        let is_cold = |process| process != self.process && self.inactive.is_cold(process);
        let has_ended = |process: ProcessId| {
            let entity = processes.get(process.0 as usize);
            is_cold(process) && entity.is_some_and(|entity| entity.end_cycle.is_some())
        };
        self.oracle.pack_cold(newly, is_cold);
        if let Some(subsamples) = &mut self.subsamples {
            subsamples.pack_cold(newly, is_cold);
        }
        if let Some(details) = &mut self.details {
            details.pack_cold(newly, is_cold);
        }
        for view in &mut self.views {
            view.pack_cold(newly, is_cold, has_ended);
        }
    }
}
