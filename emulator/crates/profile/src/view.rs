//! Samplers that see the same cycles, on one clock per schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use commit_trace::{CommitRecord, InstId, Span, State};

use crate::calls::{Calls, ContextTally};
use crate::events::{MisplacedCounter, SignatureCounter};
use crate::oracle::{SHARE, UNITS_PER_CYCLE};
use crate::policy::{Outcome, Policy, Trigger};
use crate::{
    ContextId, Filter, ProcessId, Profile, Sample, Sampler, SamplerResult, SamplingClock, Schedule,
};

/// The samplers of one filter. Its time is the number of profiled cycles that the filter let through, and
/// a heap of clocks says when the next of them is due: while none is, no sampler costs anything.
pub(crate) struct View {
    filter: Filter,
    open: bool,
    /// Time until it was last opened, and the profiled cycle in which that was.
    elapsed: u64,
    opened: u64,
    /// Per process, whether the filter lets it through; `None` if it never ran.
    processes: Vec<Option<bool>>,
    groups: Vec<ClockGroup>,
    /// The next trigger of each group.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Groups with a pending sample.
    waiting: Vec<usize>,
    /// A pending sample waits for a span, not only for records.
    watching: bool,
}

/// Samplers that trigger together.
struct ClockGroup {
    schedule: Schedule,
    clock: SamplingClock,
    samplers: Vec<Running>,
    waiting: bool,
}

/// Where the stream is, as filters see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub process: ProcessId,
    /// The process's command.
    pub name: &'a str,
    /// Privilege of the instruction that the cycles are charged to.
    pub privilege: u8,
    /// Between trigger instructions.
    pub marked: bool,
}

/// Who executes what the profilers see.
#[derive(Clone, Copy)]
pub(crate) struct Whose<'a> {
    pub process: ProcessId,
    /// Calling contexts, if they are asked for.
    pub calls: Option<&'a Calls>,
}

impl View {
    /// A view without samplers, closed until [`View::enter`].
    pub(crate) fn new(filter: Filter) -> Self {
        Self {
            filter,
            open: false,
            elapsed: 0,
            opened: 0,
            processes: Vec::new(),
            groups: Vec::new(),
            due: BinaryHeap::new(),
            waiting: Vec::new(),
            watching: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn clocks(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Adds the sampler that the caller calls number `position`.
    pub(crate) fn add(&mut self, position: usize, sampler: Sampler) {
        let schedule = sampler.schedule;
        let running = Running::new(position, sampler);
        let known = self.groups.iter_mut().find(|g| g.schedule == schedule);
        if let Some(group) = known {
            group.samplers.push(running);
            return;
        }
        let clock = SamplingClock::new(&schedule);
        self.due.push(Reverse((clock.next(), self.groups.len())));
        self.groups.push(ClockGroup {
            schedule,
            clock,
            samplers: vec![running],
            waiting: false,
        });
    }

    pub(crate) fn keep_samples(&mut self) {
        self.samplers()
            .for_each(|sampler| sampler.log = Some(Vec::new()));
    }

    pub(crate) fn with_call_stacks(&mut self) {
        self.samplers()
            .for_each(|sampler| sampler.by_context = Some(ContextTally::default()));
    }

    fn samplers(&mut self) -> impl Iterator<Item = &mut Running> {
        self.groups.iter_mut().flat_map(|group| &mut group.samplers)
    }

    /// See [`crate::Evaluator::in_detail`]. Filtered samplers are compared with a part of the Oracle, which is not
    /// kept by event.
    pub(crate) fn in_detail(&mut self) {
        if self.filter != Filter::NONE {
            return;
        }
        let mut running: Vec<&mut Running> = self.samplers().collect();
        running.sort_by_key(|running| running.position);
        let mut seen = Vec::new();
        for running in running {
            let profiler = running.sampler.profiler;
            running.signatures = profiler.sees_events().then(SignatureCounter::default);
            if !seen.contains(&profiler) {
                seen.push(profiler);
                running.misplaced = Some(MisplacedCounter::default());
            }
        }
    }

    /// The profiled cycle in which it must next be shown the span; 0: in every one.
    pub(crate) fn next_due(&self) -> u64 {
        match self.waiting[..] {
            [] => self.next_look(),
            _ => 0,
        }
    }

    /// The same if all records between are shown by [`View::groups`].
    pub(crate) fn next_look(&self) -> u64 {
        match self.due.peek() {
            _ if !self.open => u64::MAX,
            _ if self.watching => 0,
            Some(Reverse((time, _))) => (time - self.elapsed).saturating_add(self.opened),
            None => u64::MAX,
        }
    }

    /// The stream goes on at `place`, after `profiled` cycles.
    pub(crate) fn enter(&mut self, place: &Place<'_>, profiled: u64) {
        let open = self.lets_through(place);
        if open == self.open {
            return;
        }
        if open {
            self.opened = profiled;
        } else {
            self.elapsed = self.time(profiled);
            self.drop_pending();
        }
        self.open = open;
    }

    fn lets_through(&mut self, place: &Place<'_>) -> bool {
        let filter = &self.filter;
        let named = filter.process.as_ref().is_none_or(|name| {
            let index = place.process.0 as usize;
            if self.processes.len() <= index {
                self.processes.resize(index + 1, None);
            }
            *self.processes[index].get_or_insert(name == place.name)
        });
        let privileged = |privilege: crate::Privilege| privilege.encoding() == place.privilege;
        named && filter.privilege.is_none_or(privileged) && (place.marked || !filter.marked)
    }

    fn time(&self, profiled: u64) -> u64 {
        if self.open {
            self.elapsed + (profiled - self.opened)
        } else {
            self.elapsed
        }
    }

    /// Shows a span that begins after `profiled` cycles.
    pub(crate) fn span(
        &mut self,
        span: &Span<'_>,
        profiled: u64,
        last: Option<InstId>,
        whose: Whose<'_>,
    ) {
        if !self.open {
            return;
        }
        let start = self.time(profiled);
        let end = start + span.cycles;
        while let Some(Reverse((_, number))) = self.due.peek().filter(|due| due.0.0 <= end) {
            let number = *number;
            let group = &mut self.groups[number];
            while group.clock.next() <= end {
                let time = group.clock.next();
                let cycle = span.start + (time - start - 1);
                let at = Trigger { cycle, span, last };
                for sampler in &mut group.samplers {
                    sampler.trigger(time, &at, whose);
                }
                group.clock.advance();
            }
            if !group.waiting {
                group.waiting = true;
                self.waiting.push(number);
            }
            self.due.pop();
            self.due.push(Reverse((group.clock.next(), number)));
        }
        self.show(|sampler| sampler.span(span, whose));
    }

    /// Shows records that commit after cycle `before`, in whole groups, before the next trigger; only if no sample
    /// waits for a span.
    pub(crate) fn groups(&mut self, before: u64, records: &[CommitRecord], whose: Whose<'_>) {
        if !self.waiting.is_empty() {
            self.show(|sampler| sampler.groups(before, records, whose));
        }
    }

    /// Shows an instruction that trapped.
    pub(crate) fn trap(&mut self, commit: u64, record: &CommitRecord, whose: Whose<'_>) {
        self.show(|sampler| sampler.record(commit, record, whose));
    }

    /// Gives every sampler that waits its turn, and forgets the groups in which none waits any longer.
    fn show(&mut self, mut turn: impl FnMut(&mut Running)) {
        let (groups, watching) = (&mut self.groups, &mut self.watching);
        *watching = false;
        self.waiting.retain(|number| {
            let group = &mut groups[*number];
            group.waiting = false;
            for sampler in group.samplers.iter_mut().filter(|sampler| sampler.pending) {
                turn(sampler);
                group.waiting |= sampler.pending;
                *watching |= sampler.pending && !sampler.by_record;
            }
            group.waiting
        });
    }

    /// Keeps what such processes have, which do not run, in few bytes; of those that ended it drops what the result will
    /// not have.
    pub(crate) fn cool(
        &mut self,
        newly: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool + Copy,
        has_ended: impl Fn(ProcessId) -> bool + Copy,
    ) {
        for sampler in self.samplers() {
            sampler.note_fresh();
            newly
                .iter()
                .for_each(|process| sampler.profile.cool(*process));
            if let Some(signatures) = &mut sampler.signatures {
                signatures.cool(is_cold);
            }
            if let Some(misplaced) = &mut sampler.misplaced {
                misplaced.cool(has_ended);
            }
        }
    }

    /// What is pending never becomes a sample.
    pub(crate) fn drop_pending(&mut self) {
        for number in self.waiting.drain(..) {
            let group = &mut self.groups[number];
            group.waiting = false;
            group.samplers.iter_mut().for_each(Running::drop_pending);
        }
        self.watching = false;
    }

    /// The results with their samplers' positions, after `profiled` cycles in all.
    pub(crate) fn finish(mut self, profiled: u64) -> impl Iterator<Item = (usize, SamplerResult)> {
        self.drop_pending();
        let time = self.time(profiled);
        let let_through = (0..)
            .zip(self.processes)
            .filter(|(_, it)| *it == Some(true));
        let processes: Vec<_> = let_through.map(|(id, _)| ProcessId(id)).collect();
        let processes = self.filter.process.is_some().then_some(processes);
        let samplers = self.groups.into_iter().flat_map(|group| group.samplers);
        samplers.map(move |sampler| (sampler.position, sampler.finish(time, processes.clone())))
    }
}

/// Weights that a sampler gathers before they go into its profile. That is spread over more memory than the host's
/// caches hold, and many waits for it at once cost little more than one.
const FRESH: usize = 128;

/// A sampler at work.
struct Running {
    position: usize,
    sampler: Sampler,
    policy: Box<dyn Policy>,
    /// See [`Policy::waits_for_records`].
    by_record: bool,
    profile: Profile,
    /// What is not in `profile` yet, of one process.
    fresh: Vec<(InstId, u64)>,
    process: ProcessId,
    samples: u64,
    dropped: u64,
    pending: bool,
    /// The view's time of the last trigger, and its cycle in the stream.
    triggered: u64,
    triggered_cycle: u64,
    /// Time up to which cycles are in samples.
    accounted: u64,
    signatures: Option<SignatureCounter>,
    misplaced: Option<MisplacedCounter>,
    by_context: Option<ContextTally>,
    log: Option<Vec<Sample>>,
}

impl Running {
    fn new(position: usize, sampler: Sampler) -> Self {
        let policy = sampler.profiler.policy();
        Self {
            position,
            by_record: policy.waits_for_records(),
            policy,
            sampler,
            profile: Profile::new(UNITS_PER_CYCLE),
            fresh: Vec::with_capacity(FRESH),
            process: ProcessId::BOOT,
            samples: 0,
            dropped: 0,
            pending: false,
            triggered: 0,
            triggered_cycle: 0,
            accounted: 0,
            signatures: None,
            misplaced: None,
            by_context: None,
            log: None,
        }
    }

    fn trigger(&mut self, time: u64, at: &Trigger<'_>, whose: Whose<'_>) {
        self.triggered = time;
        self.triggered_cycle = at.cycle;
        if !self.pending {
            if let Some(misplaced) = &mut self.misplaced {
                misplaced.trigger(at.span);
            }
            let outcome = self.policy.trigger(at);
            self.settle(outcome, at.span.records, whose);
        }
    }

    /// A span passes while a sample is pending.
    fn span(&mut self, span: &Span<'_>, whose: Whose<'_>) {
        if !self.by_record {
            let outcome = self.policy.span(span);
            self.settle(outcome, span.records, whose);
        }
        if span.state == State::Computing
            && self.pending
            && let Some((outcome, at)) = self.policy.records(span.commit, span.records)
        {
            self.settle(outcome, &span.records[at..=at], whose);
        }
    }

    fn groups(&mut self, before: u64, records: &[CommitRecord], whose: Whose<'_>) {
        if let Some((outcome, at)) = self.policy.groups(before, records) {
            self.settle(outcome, &records[at..=at], whose);
        }
    }

    fn record(&mut self, commit: u64, record: &CommitRecord, whose: Whose<'_>) {
        if self.pending {
            let outcome = self.policy.record(commit, record);
            self.settle(outcome, std::slice::from_ref(record), whose);
        }
    }

    fn settle(&mut self, outcome: Outcome, records: &[CommitRecord], whose: Whose<'_>) {
        self.pending = outcome == Outcome::Pending;
        let cycles = self.triggered - self.accounted;
        match outcome {
            Outcome::One(inst) => {
                let units = cycles * UNITS_PER_CYCLE;
                if let Some(signatures) = &mut self.signatures
                    && let Some(record) = records.iter().find(|record| record.inst == inst)
                {
                    signatures.add(whose.process, record, units);
                }
                self.add(whose, inst, units);
            }
            Outcome::All => {
                let share = cycles * SHARE[records.len()];
                for record in records {
                    if let Some(signatures) = &mut self.signatures {
                        signatures.add(whose.process, record, share);
                    }
                    self.add(whose, record.inst, share);
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

    fn add(&mut self, whose: Whose<'_>, inst: InstId, units: u64) {
        if self.fresh.len() == FRESH || self.process != whose.process {
            self.note_fresh();
            self.process = whose.process;
        }
        self.fresh.push((inst, units));
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.named(whose.process, inst, units);
        }
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
                cycle: self.triggered_cycle,
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

    fn drop_pending(&mut self) {
        self.dropped += u64::from(std::mem::take(&mut self.pending));
    }

    fn finish(mut self, time: u64, processes: Option<Vec<ProcessId>>) -> SamplerResult {
        self.note_fresh();
        self.profile.cool_all();
        SamplerResult {
            sampler: self.sampler,
            profile: self.profile,
            processes,
            samples: self.samples,
            dropped: self.dropped,
            tail_cycles: time - self.accounted,
            signatures: self.signatures.map(SignatureCounter::finish),
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
