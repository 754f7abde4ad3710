//! One sampler at work.

use commit_trace::{CommitRecord, InstId, Span, State};

use super::Whose;
use crate::calls::ContextTally;
use crate::events::{MisplacedCounter, SampleSignatures, Truth};
use crate::oracle::{SHARE, UNITS_PER_CYCLE};
use crate::policy::{Outcome, Policy, Rule, Trigger};
use crate::{ContextId, ProcessId, Profile, Profiler, Sample, Sampler, SamplerResult};

/// Weights that a sampler gathers before they go into its profile. That is spread over more memory than the host's
/// caches hold, and many waits for it at once cost little more than one.
const FRESH: usize = 128;

/// A trigger: the view's time, and the cycle in the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tick {
    pub time: u64,
    pub cycle: u64,
}

/// A sampler at work. Whether its sample is pending is its group's to know: what may end that says whether it still is.
pub(super) struct Running {
    position: usize,
    sampler: Sampler,
    rule: Rule,
    profile: Profile,
    /// What is not in `profile` yet, of one process.
    fresh: Vec<(InstId, u64)>,
    process: ProcessId,
    samples: u64,
    dropped: u64,
    /// Time up to which cycles are in samples.
    accounted: u64,
    signatures: Option<SampleSignatures>,
    misplaced: Option<MisplacedCounter>,
    by_context: Option<ContextTally>,
    log: Option<Vec<Sample>>,
}

impl Running {
    pub fn new(position: usize, sampler: Sampler) -> Self {
        Self {
            position,
            rule: sampler.profiler.rule(),
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
            log: None,
        }
    }

    pub fn position(&self) -> usize {
        self.position
    }

    pub fn profiler(&self) -> Profiler {
        self.sampler.profiler
    }

    /// See [`Policy::waits_for_records`].
    pub fn waits_for_records(&self) -> bool {
        self.rule.waits_for_records()
    }

    pub fn keep_samples(&mut self) {
        self.log = Some(Vec::new());
    }

    pub fn with_call_stacks(&mut self) {
        self.by_context = Some(ContextTally::default());
    }

    /// Also counts time by event, if it sees those, and what it misplaces.
    pub fn in_detail(&mut self, misplaced: bool) {
        let sees_events = self.sampler.profiler.sees_events();
        self.signatures = sees_events.then(SampleSignatures::default);
        self.misplaced = misplaced.then(MisplacedCounter::default);
    }

    /// The clock fires, and nothing is pending.
    #[inline(always)]
    pub fn trigger(
        &mut self,
        tick: &Tick,
        at: &Trigger<'_>,
        truth: &Truth,
        whose: Whose<'_>,
    ) -> bool {
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.trigger(truth);
        }
        let outcome = self.rule.trigger(at);
        self.settle(tick, outcome, at.span.records, whose)
    }

    /// A span passes.
    #[inline(always)]
    pub fn span(&mut self, tick: &Tick, span: &Span<'_>, whose: Whose<'_>) -> bool {
        if !self.rule.waits_for_records() {
            let outcome = self.rule.span(span);
            if !self.settle(tick, outcome, span.records, whose) {
                return false;
            }
        }
        if span.state != State::Computing {
            return true;
        }
        match self.rule.records(span.commit, span.records) {
            Some((outcome, at)) => self.settle(tick, outcome, &span.records[at..=at], whose),
            None => true,
        }
    }

    #[inline(always)]
    pub fn groups(
        &mut self,
        tick: &Tick,
        before: u64,
        records: &[CommitRecord],
        whose: Whose<'_>,
    ) -> bool {
        match self.rule.groups(before, records) {
            Some((outcome, at)) => self.settle(tick, outcome, &records[at..=at], whose),
            None => true,
        }
    }

    pub fn record(
        &mut self,
        tick: &Tick,
        commit: u64,
        record: &CommitRecord,
        whose: Whose<'_>,
    ) -> bool {
        let outcome = self.rule.record(commit, record);
        self.settle(tick, outcome, std::slice::from_ref(record), whose)
    }

    /// Takes the outcome of the trigger; true: it is pending. `records` are those that it speaks of.
    #[inline(always)]
    fn settle(
        &mut self,
        tick: &Tick,
        outcome: Outcome,
        records: &[CommitRecord],
        whose: Whose<'_>,
    ) -> bool {
        if outcome == Outcome::Pending {
            return true;
        }
        self.finish_sample(tick, outcome, records, whose);
        false
    }

    #[inline(never)]
    fn finish_sample(
        &mut self,
        tick: &Tick,
        outcome: Outcome,
        records: &[CommitRecord],
        whose: Whose<'_>,
    ) {
        let cycles = tick.time - self.accounted;
        match outcome {
            Outcome::One(inst) => {
                let units = cycles * UNITS_PER_CYCLE;
                if let Some(signatures) = &mut self.signatures
                    && let Some(record) = records.iter().find(|record| record.inst == inst)
                {
                    signatures.add(whose.process, record, units);
                }
                self.add(tick, whose, inst, units);
            }
            Outcome::All => {
                let share = cycles * SHARE[records.len()];
                for record in records {
                    if let Some(signatures) = &mut self.signatures {
                        signatures.add(whose.process, record, share);
                    }
                    self.add(tick, whose, record.inst, share);
                }
            }
            Outcome::Pending => return,
            Outcome::Dropped => {
                self.dropped += 1;
                return;
            }
        }
        self.samples += 1;
        self.accounted = tick.time;
    }

    #[inline(always)]
    fn add(&mut self, tick: &Tick, whose: Whose<'_>, inst: InstId, units: u64) {
        if self.fresh.len() == FRESH || self.process != whose.process {
            self.note_fresh();
            self.process = whose.process;
        }
        self.fresh.push((inst, units));
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.named(whose.process, inst, units);
        }
        if self.by_context.is_some() || self.log.is_some() {
            self.add_context(tick, whose, inst, units);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_context(&mut self, tick: &Tick, whose: Whose<'_>, inst: InstId, units: u64) {
        let context = match (&mut self.by_context, whose.calls) {
            (Some(by_context), Some(calls)) => {
                let context = calls.context(whose.process, inst);
                by_context.add(context, inst, units);
                context
            }
            _ => ContextId::default(),
        };
        if let Some(log) = &mut self.log {
            log.push(Sample {
                cycle: tick.cycle,
                process: whose.process,
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

    /// See [`super::View::cool`].
    pub fn cool(
        &mut self,
        newly: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool,
        has_ended: impl Fn(ProcessId) -> bool,
    ) {
        self.note_fresh();
        newly.iter().for_each(|process| self.profile.cool(*process));
        if let Some(signatures) = &mut self.signatures {
            signatures.cool(is_cold);
        }
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.cool(has_ended);
        }
    }

    /// What is pending never becomes a sample.
    pub fn drop_pending(&mut self) {
        self.dropped += 1;
    }

    /// The result, at the view's time `time`.
    pub fn finish(mut self, time: u64, processes: Option<Vec<ProcessId>>) -> SamplerResult {
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
            misplaced: self
                .misplaced
                .map(MisplacedCounter::finish)
                .unwrap_or_default(),
            by_context: self
                .by_context
                .map(ContextTally::finish)
                .unwrap_or_default(),
            log: self.log.unwrap_or_default(),
        }
    }
}
