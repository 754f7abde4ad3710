//! What a timeline asks of an evaluation that goes on.

use super::*;

impl Evaluator {
    /// Takes what the Oracle charged since the last call. [`Self::finish`] then has the rest only. Not to be called after
    /// [`Self::in_detail`].
    pub(crate) fn take_oracle(&mut self) -> (Profile, CycleStacks, ContextWeights) {
        let charged = self.run.take_oracle().finish();
        let stacks = self.run.stacks.as_mut();
        let by_context = stacks.map(|stacks| stacks.counts.take());
        (charged.profile, charged.stacks, by_context.unwrap_or_default())
    }

    /// Returns how often the region has restarted. Cycles before the last time are no part of it.
    pub(crate) fn region_restarts(&self) -> u32 {
        self.run.region_restarts
    }

    /// Idle cycles so far.
    pub(crate) fn idle(&self) -> u64 {
        self.run.idle
    }

    /// Calling contexts so far, if they are asked for.
    pub(crate) fn contexts(&self) -> Option<&Contexts> {
        let stacks = self.run.stacks.as_ref();
        stacks.map(|stacks| stacks.calls.contexts())
    }

    /// Static instructions so far, by number.
    pub(crate) fn static_info(&self) -> &[StaticInfo] {
        &self.run.static_info
    }
}
