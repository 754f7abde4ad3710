//! What a timeline asks of an evaluation that goes on.

use super::*;
use crate::calls::sum_up;
use crate::oracle::Charged;

impl Evaluator {
    /// Takes what the Oracle charged since the last call, as often as it weighs. [`Self::finish`] then has the rest only. Not to be called after
    /// [`Self::in_detail`].
    pub(crate) fn take_oracle(&mut self) -> (Profile, CycleStacks, ContextWeights) {
        let run = &mut self.run;
        let by_context = run.stacks.as_mut().map(|stacks| stacks.counts.take());
        let present = (run.weight, run.take_oracle(), by_context.unwrap_or_default());
        let mut weighted = run.others.iter_mut().map(|(weight, counts)| {
            let (oracle, by_context) = counts.take_oracle();
            (*weight, oracle, by_context)
        });
        let (weight, oracle, by_context) = present;
        let mut all = charged(weight, oracle, by_context);
        for (weight, oracle, by_context) in &mut weighted {
            let (profile, stacks, contexts) = charged(weight, oracle, by_context);
            profile.iter().for_each(|(process, inst, units)| all.0.add(process, inst, units));
            all.1.add(&stacks);
            all.2.extend(contexts);
        }
        sum_up(&mut all.2);
        all
    }

    /// Returns how often the region has restarted. Cycles before the last time are no part of it.
    pub(crate) fn region_restarts(&self) -> u32 {
        self.run.region_restarts
    }

    /// Idle cycles so far, as often as they weigh.
    pub(crate) fn idle(&self) -> u64 {
        let others = self.run.others.iter().map(|(weight, counts)| (*weight, counts.idle()));
        others.fold(self.run.weight.saturating_mul(self.run.idle), |sum, (weight, idle)| {
            sum.saturating_add(weight.saturating_mul(idle))
        })
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

/// Returns what an Oracle charged in cycles of a weight, as often as they weigh.
fn charged(
    weight: u64,
    oracle: Oracle,
    mut by_context: ContextWeights,
) -> (Profile, CycleStacks, ContextWeights) {
    let Charged { profile, stacks, .. } = oracle.finish();
    if weight == 1 {
        return (profile, stacks, by_context);
    }
    by_context.iter_mut().for_each(|(.., units)| *units = units.saturating_mul(weight));
    (profile.times(weight), stacks.times(weight), by_context)
}
