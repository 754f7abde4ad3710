//! Samplers that see the same cycles, on one clock per schedule.

mod running;

use commit_trace::{CommitRecord, Span};
use sampling_rules::{GroupTrigger, Trigger, WAITS_FOR_COMMIT};

use crate::block::{Group, bits};
use crate::calls::Calls;
use crate::events::Truth;
use crate::{Filter, ProcessId, Sampler, SamplerResult, SamplingClock, Schedule};
use running::{Running, Tick};

/// The samplers of one filter. Its time is the number of profiled cycles that the filter let through: until the next
/// trigger of any of them no sampler costs anything.
pub(crate) struct View {
    filter: Filter,
    open: bool,
    /// Time when the view was last opened or closed.
    elapsed: u64,
    /// Profiled cycles when the view was last opened.
    opened: u64,
    /// Per process, whether the filter lets it through; `None` if it never ran.
    processes: Vec<Option<bool>>,
    groups: Vec<ClockGroup>,
    /// The time of the next trigger of any group.
    due: u64,
    /// Groups with a pending sample.
    waiting: Vec<usize>,
    /// A pending sample waits for a span, not only for records.
    watching: bool,
}

/// Samplers that trigger together.
struct ClockGroup {
    schedule: Schedule,
    clock: SamplingClock,
    /// The group's samplers; each has a bit of a `u64`, by its index.
    samplers: Vec<Running>,
    /// A bit for each sampler with a pending sample.
    pending: u64,
    /// A bit for each sampler that looks at spans.
    by_span: u64,
    /// A bit for each sampler that waits for records alone.
    by_record: u64,
    /// The last trigger.
    tick: Tick,
}

impl ClockGroup {
    fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            clock: SamplingClock::new(&schedule),
            samplers: Vec::new(),
            pending: 0,
            by_span: 0,
            by_record: 0,
            tick: Tick::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.samplers.len() == u64::BITS as usize
    }

    fn push(&mut self, running: Running) {
        let kind = match running.profiler().waits_for_records() {
            true => &mut self.by_record,
            false => &mut self.by_span,
        };
        *kind |= 1 << self.samplers.len();
        self.samplers.push(running);
    }

    /// Takes the clock's triggers up to the end of a span, which begins after time `start` and whose cycles all count as time.
    fn trigger(
        &mut self,
        span: &Span<'_>,
        start: u64,
        last: Option<CommitRecord>,
        execution: ExecutionContext<'_>,
    ) {
        while self.clock.next() <= start + span.cycles {
            let time = self.clock.next();
            let cycle = span.start + (time - start - 1);
            self.tick = Tick { time, cycle };
            let at = Trigger { cycle, span, last };
            for (number, sampler) in self.samplers.iter_mut().enumerate() {
                if self.pending >> number & 1 == 0 {
                    let pending = sampler.trigger(&self.tick, &at, execution);
                    self.pending |= u64::from(pending) << number;
                }
            }
            self.clock.advance();
        }
    }

    /// Takes the clock's triggers up to the end of a block's group; called only if no sample waits for a span before the group.
    fn trigger_in_group(
        &mut self,
        group: &Group<'_>,
        start: u64,
        last: &CommitRecord,
        execution: ExecutionContext<'_>,
    ) {
        let mut first = None;
        while self.clock.next() <= start + group.cycles() {
            let time = self.clock.next();
            self.clock.advance();
            let after = time - start - 1;
            let (state, head, end) = group.state(after);
            let at = GroupTrigger {
                group: group.records,
                state,
                head,
                last,
                is_last: self.clock.next() > start + group.cycles(),
                is_last_of_state: self.clock.next() > start + end,
            };
            let truth = Truth { state, records: head };
            // A profiler that waits for the commit keeps the first trigger in the group: later ones find its sample pending.
            let first = *first.get_or_insert(truth);
            let cycle = group.before + 1 + after;
            self.tick = Tick { time, cycle };
            let named = at.named();
            for number in bits(self.by_span) {
                let sampler = &mut self.samplers[number];
                let profiler = sampler.profiler() as usize;
                if let (Some(records @ [_, ..]), Some(waits)) =
                    (named.get(profiler), WAITS_FOR_COMMIT.get(profiler))
                {
                    let truth = if *waits { first } else { truth };
                    sampler.sample(&self.tick, records, Some(truth), execution);
                }
            }
            for number in bits(self.by_record & !self.pending) {
                self.samplers[number].await_records(cycle, truth);
            }
            self.pending |= self.by_record;
        }
    }

    /// Calls `turn` with every sampler that has a pending sample; `turn` returns whether the sample is still pending.
    #[inline(always)]
    fn show(&mut self, mut turn: impl FnMut(&mut Running, &Tick) -> bool) {
        for number in bits(self.pending) {
            let pending = turn(&mut self.samplers[number], &self.tick);
            self.pending ^= u64::from(!pending) << number;
        }
    }
}

/// Where the stream is, as filters see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamState<'a> {
    pub process: ProcessId,
    /// The process's command.
    pub name: &'a str,
    /// The thread's name.
    pub thread: &'a str,
    /// Privilege of the instruction that the cycles are charged to.
    pub privilege: u8,
    /// True between the guest's trigger instructions.
    pub marked: bool,
}

/// Who executes what the profilers see.
#[derive(Clone, Copy)]
pub(crate) struct ExecutionContext<'a> {
    pub process: ProcessId,
    /// Calling contexts, if they are asked for.
    pub calls: Option<&'a Calls>,
    /// Weight of a cycle: how many cycles of the region it stands for.
    pub weight: u64,
    /// Index of the subsample that has the present unit; 0 if the region is not sampled.
    pub subsample: usize,
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
            due: u64::MAX,
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
        let has_room = |group: &ClockGroup| group.schedule == schedule && !group.is_full();
        let known = self.groups.iter().position(has_room);
        let number = known.unwrap_or_else(|| {
            self.groups.push(ClockGroup::new(schedule));
            self.groups.len() - 1
        });
        let group = &mut self.groups[number];
        group.push(Running::new(position, sampler));
        self.due = self.due.min(group.clock.next());
    }

    pub(crate) fn keep_samples(&mut self) {
        self.samplers().for_each(Running::keep_samples);
    }

    pub(crate) fn with_call_stacks(&mut self) {
        self.samplers().for_each(Running::with_call_stacks);
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
        self.samplers_in_order(|running, is_first| running.in_detail(is_first));
    }

    /// The first sampler of each profiler also counts by subsample of a sampled region, unless it is filtered.
    pub(crate) fn by_subsample(&mut self) {
        if self.filter != Filter::NONE {
            return;
        }
        self.samplers_in_order(|running, is_first| {
            if is_first {
                running.by_subsample();
            }
        });
    }

    /// Calls `each` with every sampler, in the order in which they were given, and whether it is the first of its profiler.
    fn samplers_in_order(&mut self, mut each: impl FnMut(&mut Running, bool)) {
        let mut running: Vec<&mut Running> = self.samplers().collect();
        running.sort_by_key(|running| running.position());
        let mut seen = Vec::new();
        for running in running {
            let profiler = running.profiler();
            each(running, !seen.contains(&profiler));
            seen.push(profiler);
        }
    }

    /// Returns the profiled cycle whose span the view must be shown next; 0: every span, as a sample is pending.
    pub(crate) fn next_due(&self) -> u64 {
        match self.waiting[..] {
            [] => self.next_look(),
            _ => 0,
        }
    }

    /// Returns the profiled cycle whose span the view must be shown next, if [`View::records`] shows it all records before that cycle; 0: every
    /// span, as a sample waits for a span.
    pub(crate) fn next_look(&self) -> u64 {
        match self.open {
            false => u64::MAX,
            true if self.watching => 0,
            true => (self.due - self.elapsed).saturating_add(self.opened),
        }
    }

    /// Opens or closes the view as the stream goes on at `place`, after `profiled` cycles.
    pub(crate) fn enter(&mut self, place: &StreamState<'_>, profiled: u64) {
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

    fn lets_through(&mut self, place: &StreamState<'_>) -> bool {
        let filter = &self.filter;
        let named = filter.process.as_ref().is_none_or(|name| {
            let index = place.process.0 as usize;
            if self.processes.len() <= index {
                self.processes.resize(index + 1, None);
            }
            *self.processes[index].get_or_insert(name == place.name)
        });
        let privileged = |privilege: crate::Privilege| privilege.encoding() == place.privilege;
        let threaded = filter.thread.as_ref().is_none_or(|name| name == place.thread);
        named
            && threaded
            && filter.privilege.is_none_or(privileged)
            && (place.marked || !filter.marked)
    }

    fn time(&self, profiled: u64) -> u64 {
        if self.open { self.elapsed + (profiled - self.opened) } else { self.elapsed }
    }

    /// Shows a span that begins after `profiled` cycles.
    pub(crate) fn span(
        &mut self,
        span: &Span<'_>,
        profiled: u64,
        last: Option<CommitRecord>,
        execution: ExecutionContext<'_>,
    ) {
        if !self.open {
            return;
        }
        let start = self.time(profiled);
        let end = start + span.cycles;
        if self.due <= end {
            self.due = u64::MAX;
            for (number, group) in self.groups.iter_mut().enumerate() {
                if group.clock.next() <= end {
                    let waited = group.pending != 0;
                    group.trigger(span, start, last, execution);
                    if !waited && group.pending != 0 {
                        self.waiting.push(number);
                    }
                }
                self.due = self.due.min(group.clock.next());
            }
        }
        if !self.waiting.is_empty() {
            self.show(|sampler, tick| sampler.span(tick, span, execution));
        }
    }

    /// Takes the triggers in a block's group, which begins after `profiled` cycles. The caller shows the records of the group to [`View::records`]
    /// next. Called only if no sample waits for a span.
    pub(crate) fn trigger_in_group(
        &mut self,
        group: &Group<'_>,
        profiled: u64,
        last: &CommitRecord,
        execution: ExecutionContext<'_>,
    ) {
        let start = self.time(profiled);
        let end = start + group.cycles();
        if !self.open || self.due > end {
            return;
        }
        self.due = u64::MAX;
        for (number, clock) in self.groups.iter_mut().enumerate() {
            if clock.clock.next() <= end {
                let waited = clock.pending != 0;
                clock.trigger_in_group(group, start, last, execution);
                if !waited && clock.pending != 0 {
                    self.waiting.push(number);
                }
            }
            self.due = self.due.min(clock.clock.next());
        }
    }

    /// Shows records that leave the ROB after cycle `before`, up to the group of the next trigger; called only if no sample
    /// waits for a span.
    pub(crate) fn records(
        &mut self,
        before: u64,
        records: &[CommitRecord],
        execution: ExecutionContext<'_>,
    ) {
        if !self.waiting.is_empty() {
            self.show(|sampler, tick| sampler.records(tick, before, records, execution));
        }
    }

    /// Calls `turn` with every sampler that has a pending sample, and forgets the groups that have none any longer.
    #[inline(always)]
    fn show(&mut self, mut turn: impl FnMut(&mut Running, &Tick) -> bool) {
        self.watching = false;
        let mut at = 0;
        while let Some(number) = self.waiting.get(at) {
            let group = &mut self.groups[*number];
            group.show(&mut turn);
            self.watching |= group.pending & group.by_span != 0;
            match group.pending {
                0 => _ = self.waiting.swap_remove(at),
                _ => at += 1,
            }
        }
    }

    /// Packs the counts of inactive processes; of those that ended it drops the counts that the result will not have.
    pub(crate) fn pack_cold(
        &mut self,
        newly: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool + Copy,
        has_ended: impl Fn(ProcessId) -> bool + Copy,
    ) {
        self.samplers().for_each(|sampler| sampler.pack_cold(newly, is_cold, has_ended));
    }

    /// Drops the samples that are pending.
    pub(crate) fn drop_pending(&mut self) {
        for number in self.waiting.drain(..) {
            self.groups[number].show(|sampler, _| {
                sampler.drop_pending();
                false
            });
        }
        self.watching = false;
    }

    /// The results with their samplers' positions, after `profiled` cycles in all.
    pub(crate) fn finish(mut self, profiled: u64) -> impl Iterator<Item = (usize, SamplerResult)> {
        self.drop_pending();
        let time = self.time(profiled);
        let let_through = (0..).zip(self.processes).filter(|(_, it)| *it == Some(true));
        let processes: Vec<_> = let_through.map(|(id, _)| ProcessId(id)).collect();
        let processes = self.filter.process.is_some().then_some(processes);
        let samplers = self.groups.into_iter().flat_map(|group| group.samplers);
        samplers.map(move |sampler| (sampler.position(), sampler.finish(time, processes.clone())))
    }
}
