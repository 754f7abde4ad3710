//! One pass over a stream: the Oracle and every sampler.

use std::collections::BTreeMap;

use commit_trace::{
    Batch, CommitRecord, Event, InstFacts, InstId, Span, SpanBuilder, SpanSink, State, StreamError,
    TeaEvents,
};

use crate::events::{MisplacedCounter, SignatureCounter};
use crate::oracle::{Oracle, SHARE, UNITS_PER_CYCLE};
use crate::policy::{Outcome, Policy, Trigger};
use crate::topdown::Counter;
use crate::{
    CycleStacks, Evaluation, GuestContext, ProcessId, Profile, Sample, Sampler, SamplerResult,
    SamplingClock, Schedule,
};

/// Which cycles are profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Region {
    /// All of them.
    #[default]
    Whole,
    /// Those between the guest's trigger instructions ([`Event::Region`]).
    Marked,
}

/// Takes one hart's batches, in order, and makes an [`Evaluation`] of them. It does not matter
/// whether they come live from the recorder or from a trace file.
///
/// Sampling clocks advance with profiled cycles only: those in the region, and not idle. A sample
/// still pending when the region ends is dropped.
pub struct Evaluator {
    spans: SpanBuilder,
    run: Run,
    start_cycle: Option<u64>,
}

impl Evaluator {
    /// An evaluator of the given samplers. The clock of equal schedules is shared.
    pub fn new(samplers: &[Sampler], region: Region) -> Self {
        let mut groups: Vec<ClockGroup> = Vec::new();
        for (position, sampler) in samplers.iter().enumerate() {
            let running = Running::new(position, sampler.clone());
            match groups
                .iter_mut()
                .find(|group| group.schedule == sampler.schedule)
            {
                Some(group) => group.samplers.push(running),
                None => groups.push(ClockGroup {
                    schedule: sampler.schedule,
                    clock: SamplingClock::new(&sampler.schedule),
                    samplers: vec![running],
                }),
            }
        }
        let mut run = Run {
            marked: region == Region::Marked,
            profiling: region == Region::Whole,
            context: GuestContext::new(),
            process: ProcessId::BOOT,
            oracle: Oracle::new(),
            groups,
            next_due: 0,
            pending: false,
            profiled: 0,
            idle: 0,
            instructions: 0,
            traps: 0,
            last: None,
            facts: Vec::new(),
            first_use: Vec::new(),
            details: None,
        };
        run.schedule();
        Self {
            spans: SpanBuilder::new(),
            run,
            start_cycle: None,
        }
    }

    /// Keeps every single sample from now on ([`SamplerResult::log`]), not only their sums.
    pub fn keep_samples(mut self) -> Self {
        for sampler in self.run.groups.iter_mut().flat_map(|g| &mut g.samplers) {
            sampler.log = Some(Vec::new());
        }
        self
    }

    /// Also counts what a report needs beyond profiles: commit slots (of a core that commits `width` instructions
    /// a cycle), time by event, and what profilers misplace. It takes longer.
    pub fn in_detail(mut self, width: u32) -> Self {
        self.run.details = Some(Box::new(Details {
            slots: Counter::new(width),
            signatures: SignatureCounter::default(),
        }));
        for running in self.run.groups.iter_mut().flat_map(|g| &mut g.samplers) {
            running.misplaced = Some(MisplacedCounter::default());
            let sees = running.sampler.profiler.sees_events();
            running.signatures = sees.then(SignatureCounter::default);
        }
        self
    }

    /// Takes the next batch.
    ///
    /// # Errors
    /// If it does not continue the stream. What came before can still be finished.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), StreamError> {
        self.spans.batch(batch, &mut self.run)?;
        self.start_cycle.get_or_insert(batch.start_cycle);
        Ok(())
    }

    /// The stream's last cycle so far.
    pub fn cycle(&self) -> u64 {
        self.spans.cycle()
    }

    /// Instructions that committed in the region so far.
    pub fn instructions(&self) -> u64 {
        self.run.instructions
    }

    /// What the Oracle charged since the last call. [`Self::finish`] then has the rest only.
    pub(crate) fn take_oracle(&mut self) -> (Profile, CycleStacks) {
        let mut fresh = Oracle::new();
        fresh.select(self.run.process);
        std::mem::replace(&mut self.run.oracle, fresh).finish()
    }

    /// Idle cycles so far.
    pub(crate) fn idle(&self) -> u64 {
        self.run.idle
    }

    /// Static instructions so far, by number.
    pub(crate) fn facts(&self) -> &[InstFacts] {
        &self.run.facts
    }

    /// Ends the pass.
    pub fn finish(mut self) -> Evaluation {
        self.run.drop_pending();
        let run = self.run;
        let mut results: Vec<(usize, SamplerResult)> = run
            .groups
            .into_iter()
            .flat_map(|group| group.samplers)
            .map(|sampler| (sampler.position, sampler.finish(run.profiled)))
            .collect();
        results.sort_by_key(|(position, _)| *position);
        let (oracle, stacks) = run.oracle.finish();
        let spaces = owners(&oracle, &run.facts);
        let (top_down, signatures) = match run.details {
            Some(details) => (
                Some(details.slots.finish()),
                Some(details.signatures.finish()),
            ),
            None => (None, None),
        };
        Evaluation {
            oracle,
            stacks,
            samplers: results.into_iter().map(|(_, result)| result).collect(),
            facts: run.facts,
            first_use: run.first_use,
            spaces,
            kernel_text: run.context.kernel_text(),
            cycles: run.profiled + run.idle,
            idle: run.idle,
            instructions: run.instructions,
            traps: run.traps,
            stream_cycles: self.spans.cycle() - self.start_cycle.unwrap_or(0),
            malformed_side_band: run.context.malformed(),
            processes: run.context.into_processes(),
            top_down,
            signatures,
        }
    }
}

/// The process that spent the most time in each user address space. Nothing else tells, and all but
/// strays are exact: the kernel reports a switch before the first instruction of the new process.
fn owners(oracle: &Profile, facts: &[InstFacts]) -> BTreeMap<u32, ProcessId> {
    let mut units = BTreeMap::<u32, BTreeMap<ProcessId, u64>>::new();
    for (process, inst, weight) in oracle.iter() {
        if let Some(facts) = facts.get(inst.0 as usize)
            && facts.space >= 2
        {
            *units
                .entry(facts.space)
                .or_default()
                .entry(process)
                .or_default() += weight;
        }
    }
    let most = |by_process: BTreeMap<ProcessId, u64>| {
        by_process
            .into_iter()
            .max_by_key(|(process, units)| (*units, std::cmp::Reverse(*process)))
    };
    units
        .into_iter()
        .filter_map(|(space, by_process)| most(by_process).map(|(process, _)| (space, process)))
        .collect()
}

struct Run {
    /// Only what lies between trigger instructions is profiled.
    marked: bool,
    profiling: bool,
    context: GuestContext,
    process: ProcessId,
    oracle: Oracle,
    groups: Vec<ClockGroup>,
    /// The earliest trigger of all clocks.
    next_due: u64,
    /// Some sample is pending.
    pending: bool,
    /// Profiled cycles so far: the clocks' time.
    profiled: u64,
    idle: u64,
    instructions: u64,
    traps: u64,
    /// The youngest instruction of the last committing cycle.
    last: Option<InstId>,
    facts: Vec<InstFacts>,
    first_use: Vec<u64>,
    details: Option<Box<Details>>,
}

/// What is counted for a report only.
struct Details {
    slots: Counter,
    signatures: SignatureCounter,
}

impl Details {
    #[inline(never)]
    fn span(&mut self, span: &Span<'_>, process: ProcessId) {
        self.slots.span(span);
        self.signatures.span(span, process);
    }
}

/// Samplers that trigger together.
struct ClockGroup {
    schedule: Schedule,
    clock: SamplingClock,
    samplers: Vec<Running>,
}

impl Run {
    /// A trigger falls into the span, or a sample is pending.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, span: &Span<'_>) {
        let end = self.profiled + span.cycles;
        let process = self.process;
        for group in &mut self.groups {
            while group.clock.next() <= end {
                let time = group.clock.next();
                let cycle = span.start + (time - self.profiled - 1);
                let at = Trigger {
                    cycle,
                    span,
                    last: self.last,
                };
                for sampler in &mut group.samplers {
                    sampler.trigger(time, &at, process);
                }
                group.clock.advance();
            }
            for sampler in &mut group.samplers {
                sampler.span(span, process);
            }
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        let next = self.groups.iter().map(|group| group.clock.next()).min();
        self.next_due = next.unwrap_or(u64::MAX);
        self.pending = self
            .groups
            .iter()
            .any(|group| group.samplers.iter().any(|s| s.pending));
    }

    fn drop_pending(&mut self) {
        for sampler in self.groups.iter_mut().flat_map(|group| &mut group.samplers) {
            sampler.drop_pending();
        }
        self.pending = false;
    }
}

impl SpanSink for Run {
    // Called for every span: inlining makes the evaluation faster by a seventh (`benches/replay.rs`).
    #[inline(always)]
    fn span(&mut self, span: &Span<'_>) {
        if self.profiling {
            if span.state == State::Idle {
                self.idle += span.cycles;
                return;
            }
            self.oracle.span(span);
            if let Some(details) = &mut self.details {
                details.span(span, self.process);
            }
            let end = self.profiled + span.cycles;
            if end >= self.next_due || self.pending {
                self.sample(span);
            }
            self.profiled = end;
        }
        if span.state == State::Computing {
            self.last = span.records.last().map(|record| record.inst);
            if self.profiling {
                self.instructions += span.records.len() as u64;
            }
        }
    }

    fn trap(&mut self, commit: u64, record: &CommitRecord) {
        if !self.profiling {
            return;
        }
        self.traps += u64::from(!record.tea().contains(TeaEvents::FL_MO));
        if let Some(details) = &mut self.details {
            details.slots.next(record, commit);
        }
        if self.pending {
            for sampler in self.groups.iter_mut().flat_map(|group| &mut group.samplers) {
                sampler.record(commit, record, self.process);
            }
            self.schedule();
        }
    }

    fn facts(&mut self, cycle: u64, facts: &InstFacts) {
        self.facts.push(*facts);
        self.first_use.push(cycle);
    }

    fn event(&mut self, cycle: u64, event: &Event) {
        match event {
            Event::SideBand { kind, bytes } => {
                self.context.record(cycle, *kind, bytes);
                self.process = self.context.current();
                self.oracle.select(self.process);
                if let Some(details) = &mut self.details {
                    details.slots.select(self.process);
                }
            }
            Event::Region(inside) if self.marked => {
                self.profiling = *inside;
                if !inside {
                    self.drop_pending();
                    if let Some(details) = &mut self.details {
                        details.slots.close();
                    }
                }
            }
            Event::Region(_) | Event::Privilege(_) | Event::Idle { .. } | Event::End => {}
        }
    }
}

/// A sampler at work.
struct Running {
    position: usize,
    sampler: Sampler,
    policy: Box<dyn Policy>,
    profile: Profile,
    samples: u64,
    dropped: u64,
    pending: bool,
    /// Time of the last trigger, and its cycle in the stream.
    triggered: u64,
    triggered_cycle: u64,
    /// Time up to which cycles are in samples.
    accounted: u64,
    signatures: Option<SignatureCounter>,
    misplaced: Option<MisplacedCounter>,
    log: Option<Vec<Sample>>,
}

impl Running {
    fn new(position: usize, sampler: Sampler) -> Self {
        Self {
            position,
            policy: sampler.profiler.policy(),
            sampler,
            profile: Profile::new(UNITS_PER_CYCLE),
            samples: 0,
            dropped: 0,
            pending: false,
            triggered: 0,
            triggered_cycle: 0,
            accounted: 0,
            signatures: None,
            misplaced: None,
            log: None,
        }
    }

    fn trigger(&mut self, time: u64, at: &Trigger<'_>, process: ProcessId) {
        self.triggered = time;
        self.triggered_cycle = at.cycle;
        if !self.pending {
            if let Some(misplaced) = &mut self.misplaced {
                misplaced.trigger(at.span);
            }
            let outcome = self.policy.trigger(at);
            self.settle(outcome, at.span.records, process);
        }
    }

    fn span(&mut self, span: &Span<'_>, process: ProcessId) {
        if self.pending {
            let outcome = self.policy.span(span);
            self.settle(outcome, span.records, process);
        }
        if span.state == State::Computing {
            for record in span.records {
                self.record(span.commit, record, process);
            }
        }
    }

    fn record(&mut self, commit: u64, record: &CommitRecord, process: ProcessId) {
        if self.pending {
            let outcome = self.policy.record(commit, record);
            self.settle(outcome, std::slice::from_ref(record), process);
        }
    }

    fn settle(&mut self, outcome: Outcome, records: &[CommitRecord], process: ProcessId) {
        self.pending = outcome == Outcome::Pending;
        let cycles = self.triggered - self.accounted;
        match outcome {
            Outcome::One(inst) => {
                let units = cycles * UNITS_PER_CYCLE;
                if let Some(signatures) = &mut self.signatures
                    && let Some(record) = records.iter().find(|record| record.inst == inst)
                {
                    signatures.add(process, record, units);
                }
                self.add(process, inst, units);
            }
            Outcome::All => {
                let share = cycles * SHARE[records.len()];
                for record in records {
                    if let Some(signatures) = &mut self.signatures {
                        signatures.add(process, record, share);
                    }
                    self.add(process, record.inst, share);
                }
            }
            Outcome::Pending => return,
            Outcome::Dropped => {
                self.dropped += 1;
                return;
            }
        }
        self.samples += 1;
        self.accounted = self.triggered;
    }

    fn add(&mut self, process: ProcessId, inst: InstId, units: u64) {
        self.profile.add(process, inst, units);
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.named(process, inst, units);
        }
        if let Some(log) = &mut self.log {
            log.push(Sample {
                cycle: self.triggered_cycle,
                process,
                inst,
                units,
            });
        }
    }

    fn drop_pending(&mut self) {
        self.dropped += u64::from(std::mem::take(&mut self.pending));
    }

    fn finish(self, profiled: u64) -> SamplerResult {
        SamplerResult {
            sampler: self.sampler,
            profile: self.profile,
            samples: self.samples,
            dropped: self.dropped,
            tail_cycles: profiled - self.accounted,
            signatures: self.signatures.map(SignatureCounter::finish),
            misplaced: self
                .misplaced
                .map(MisplacedCounter::finish)
                .unwrap_or_default(),
            log: self.log.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
