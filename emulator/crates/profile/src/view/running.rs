//! One sampler at work.

use commit_trace::{CommitRecord, InstId, Span};
use sampling_rules::{Outcome, Rule, Trigger};

use super::ExecutionContext;
use crate::calls::ContextTally;
use crate::events::{MisplacedCounter, SampleSignatures, Truth};
use crate::oracle::{SHARE, UNITS_PER_CYCLE};
use crate::subsample::SubsampleProfiles;
use crate::{ContextId, ProcessId, Profile, Profiler, Sample, Sampler, SamplerResult};

/// Weights that a sampler gathers before it adds them to its profile, which is larger than the host's caches: many cache
/// misses at once overlap, and cost little more than one.
const FRESH: usize = 128;

/// A trigger of the sampling clock: the view's time in cycles, and the cycle in the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tick {
    pub time: u64,
    pub cycle: u64,
}

/// A sampler at work. The group of samplers that share its clock knows whether a sample is pending: methods that may end a
/// pending sample return whether one still is.
pub(super) struct Running {
    position: usize,
    sampler: Sampler,
    rule: Rule,
    profile: Profile,
    /// Weights that are not in `profile` yet, of `process`.
    fresh: Vec<(InstId, u64)>,
    process: ProcessId,
    samples: u64,
    dropped: u64,
    /// The view's time up to which samples account for all cycles.
    accounted: u64,
    signatures: Option<SampleSignatures>,
    misplaced: Option<MisplacedCounter>,
    by_context: Option<ContextTally>,
    by_subsample: Option<SubsampleProfiles>,
    log: Option<Vec<Sample>>,
}

impl Running {
    pub(super) fn new(position: usize, sampler: Sampler) -> Self {
        Self {
            position,
            rule: Rule::new(sampler.profiler.heuristic()),
            sampler,
            profile: Profile::new(UNITS_PER_CYCLE),
            fresh: Vec::with_capacity(FRESH),
            process: ProcessId::BOOT,
            samples: 0,
            dropped: 0,
            accounted: 0,
            signatures: None,
            misplaced: None,
            by_context: None,
            by_subsample: None,
            log: None,
        }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn profiler(&self) -> Profiler {
        self.sampler.profiler
    }

    pub(super) fn keep_samples(&mut self) {
        self.log = Some(Vec::new());
    }

    pub(super) fn with_call_stacks(&mut self) {
        self.by_context = Some(ContextTally::default());
    }

    /// Also counts by subsample of a sampled region.
    pub(super) fn by_subsample(&mut self) {
        self.by_subsample = Some(SubsampleProfiles::default());
    }

    /// Also counts time by event, if the profiler sees events, and the time that it misplaces, if `misplaced`.
    pub(super) fn in_detail(&mut self, misplaced: bool) {
        let sees_events = self.sampler.profiler.sees_events();
        self.signatures = sees_events.then(SampleSignatures::default);
        let misplaced = misplaced && self.sampler.profiler.misplaces();
        self.misplaced = misplaced.then(MisplacedCounter::default);
    }

    /// Takes a trigger while no sample is pending. True if one is from here on.
    #[inline(always)]
    pub(super) fn trigger(
        &mut self,
        tick: &Tick,
        at: &Trigger<'_>,
        execution: ExecutionContext<'_>,
    ) -> bool {
        self.await_sample(Truth { state: at.span.state, records: at.span.records });
        let outcome = self.rule.trigger(at);
        self.settle(tick, outcome, at.span.records, execution)
    }

    /// Takes a trigger in a group of a block, for a profiler that waits for records: its sample is pending from here on.
    #[inline(always)]
    pub(super) fn await_records(&mut self, cycle: u64, truth: Truth<'_>) {
        self.await_sample(truth);
        self.rule.await_records(cycle);
    }

    #[inline(always)]
    fn await_sample(&mut self, truth: Truth<'_>) {
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.await_sample(truth);
        }
    }

    /// Shows a span while a sample is pending; true if the sample still is.
    #[inline(always)]
    pub(super) fn span(
        &mut self,
        tick: &Tick,
        span: &Span<'_>,
        execution: ExecutionContext<'_>,
    ) -> bool {
        let outcome = self.rule.span(span);
        self.settle(tick, outcome, span.records, execution)
    }

    /// Shows records that leave the ROB after cycle `before`, while a sample is pending; true if the sample still is.
    #[inline(always)]
    pub(super) fn records(
        &mut self,
        tick: &Tick,
        before: u64,
        records: &[CommitRecord],
        execution: ExecutionContext<'_>,
    ) -> bool {
        let outcome = self.rule.records(before, records);
        self.settle(tick, outcome, &[], execution)
    }

    /// Charges a sample as the rule's `outcome` says; true if it is still pending. [`Outcome::All`] splits it over `all`, the
    /// records of the span that passes.
    #[inline(always)]
    fn settle(
        &mut self,
        tick: &Tick,
        outcome: Outcome,
        all: &[CommitRecord],
        execution: ExecutionContext<'_>,
    ) -> bool {
        match outcome {
            Outcome::Pending => return true,
            Outcome::One(record) => self.sample(tick, &[record], None, execution),
            Outcome::All => self.sample(tick, all, None, execution),
            Outcome::Dropped => self.dropped += 1,
        }
        false
    }

    /// Takes a sample, split evenly over `records`. Without `truth`, the truth is the pending sample's.
    #[inline(never)]
    pub(super) fn sample(
        &mut self,
        tick: &Tick,
        records: &[CommitRecord],
        truth: Option<Truth<'_>>,
        execution: ExecutionContext<'_>,
    ) {
        let share = (tick.time - self.accounted) * SHARE[records.len()];
        let share = share.saturating_mul(execution.weight);
        self.samples += 1;
        self.accounted = tick.time;
        if self.process != execution.process || self.fresh.len() + records.len() > FRESH {
            self.note_fresh();
            self.process = execution.process;
        }
        for record in records {
            self.fresh.push((record.inst, share));
            if let Some(signatures) = &mut self.signatures {
                signatures.add(execution.process, record, share);
            }
            if let Some(misplaced) = &mut self.misplaced {
                misplaced.named(truth, execution.process, record.inst, share);
            }
            if let Some(profiles) = &mut self.by_subsample {
                profiles.add(execution.subsample, execution.process, record.inst, share);
            }
            if self.by_context.is_some() || self.log.is_some() {
                self.add_context(tick, execution, record.inst, share);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn add_context(
        &mut self,
        tick: &Tick,
        execution: ExecutionContext<'_>,
        inst: InstId,
        units: u64,
    ) {
        let context = match (&mut self.by_context, execution.calls) {
            (Some(by_context), Some(calls)) => {
                let context = calls.context(execution.process, inst);
                by_context.add(context, inst, units);
                context
            }
            _ => ContextId::default(),
        };
        if let Some(log) = &mut self.log {
            log.push(Sample {
                cycle: tick.cycle,
                process: execution.process,
                inst,
                context,
                units,
            });
        }
    }

    #[inline(never)]
    fn note_fresh(&mut self) {
        self.profile.add_each(self.process, &self.fresh);
        self.fresh.clear();
    }

    /// See [`super::View::pack_cold`].
    pub(super) fn pack_cold(
        &mut self,
        newly: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool,
        has_ended: impl Fn(ProcessId) -> bool,
    ) {
        self.note_fresh();
        newly.iter().for_each(|process| self.profile.pack_cold(*process));
        if let Some(signatures) = &mut self.signatures {
            signatures.pack_cold(is_cold);
        }
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.pack_cold(has_ended);
        }
    }

    /// Counts the pending sample as dropped.
    pub(super) fn drop_pending(&mut self) {
        self.dropped += 1;
    }

    /// The result, at the view's time `time`.
    pub(super) fn finish(mut self, time: u64, processes: Option<Vec<ProcessId>>) -> SamplerResult {
        self.note_fresh();
        self.profile.cool_all();
        SamplerResult {
            sampler: self.sampler,
            profile: self.profile,
            processes,
            samples: self.samples,
            dropped: self.dropped,
            tail_cycles: time - self.accounted,
            signatures: self.signatures.map(SampleSignatures::finish),
            misplaced: self.misplaced.map(MisplacedCounter::finish).unwrap_or_default(),
            by_context: self.by_context.map(ContextTally::finish).unwrap_or_default(),
            subsamples: self.by_subsample.map(SubsampleProfiles::finish).unwrap_or_default(),
            log: self.log.unwrap_or_default(),
        }
    }
}
