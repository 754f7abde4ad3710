//! One pass over a stream: the Oracle and every sampler.

mod bins;
mod details;
mod marked;
mod owners;
mod parts;
mod region_restart;
mod sink;
mod so_far;
mod subsamples;
mod weights;

use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use commit_trace::{
    Ahead, Batch, BatchProgress, CommitRecord, Event, Span, SpanBuilder, SpanSink, State,
    StaticInfo, StreamError, Take, TeaEvents,
};

use crate::block::Block;
use crate::calls::Calls;
use crate::inactive::InactiveProcesses;
use crate::oracle::Oracle;
use crate::scripts::ScriptSamples;
use crate::spinning::SpinLoops;
use crate::view::{ExecutionContext, StreamState, View};
use crate::waits::SchedulerLog;
use crate::{
    BusyHarts, ContextWeights, Contexts, CycleStacks, Evaluation, GuestContext, ProcessId, Profile,
    Sampler, SamplerResult,
};
use details::{CallStacks, Details};
use marked::MarkedIntervals;
use owners::owners;
use parts::Parts;
use region_restart::RequestedDetail;
use subsamples::Subsamples;
use weights::{WeightCounts, added_up};

/// Which cycles are profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Region {
    /// All cycles.
    #[default]
    Whole,
    /// Cycles between marks, as the stream's events tell ([`Event::Region`], [`Event::RegionAnew`]).
    Marked,
}

/// Takes one hart's batches, in order, and makes an [`Evaluation`] of them. It does not matter
/// whether they come live from the recorder or from a trace file.
///
/// Sampling clocks advance with profiled cycles only: those in the region and not idle that the sampler's
/// filter lets through. A sample still pending when they end is dropped.
pub struct Evaluator {
    spans: SpanBuilder,
    run: Run,
    start_cycle: Option<u64>,
}

impl Evaluator {
    /// An evaluator of the given samplers. Equal schedules share a clock if their filters are equal too.
    pub fn new(samplers: &[Sampler], region: Region) -> Self {
        let views = region_restart::views(samplers);
        let mut run = Run {
            only_marked: region == Region::Marked,
            profiling: region == Region::Whole,
            context: GuestContext::new(),
            scripts: ScriptSamples::default(),
            process: ProcessId::BOOT,
            inactive: InactiveProcesses::default(),
            privilege: 3,
            marked: false,
            oracle: Oracle::new(),
            parts: Parts::new(views.iter().map(View::filter)),
            subsamples: None,
            counted: 0,
            units: 0,
            weight: 1,
            weighed: 0,
            weighed_from: 0,
            others: Vec::new(),
            by_privilege: views.iter().any(|view| view.filter().privilege.is_some()),
            by_mark: views.iter().any(|view| view.filter().marked),
            views,
            requested: RequestedDetail::default(),
            marked_before: None,
            region_restarts: 0,
            stretches: MarkedIntervals::default(),
            samplers: samplers.to_vec(),
            next_due: 0,
            next_look: 0,
            by_blocks: true,
            profiled: 0,
            idle: 0,
            instructions: 0,
            traps: 0,
            last: None,
            static_info: Vec::new(),
            privileges: Vec::new(),
            first_use: Vec::new(),
            details: None,
            busy: BusyHarts(1),
            spin_loops: None,
            stacks: None,
        };
        run.enter();
        Self { spans: SpanBuilder::new(), run, start_cycle: None }
    }

    /// Keeps every single sample from now on ([`SamplerResult::log`]), not only their sums.
    pub fn keep_samples(mut self) -> Self {
        self.run.views.iter_mut().for_each(View::keep_samples);
        self.run.requested.samples = true;
        self
    }

    /// Also counts what a report needs beyond profiles: commit slots (of a core that commits `width` instructions
    /// a cycle), time by event, and what the first sampler of each profiler misplaces. It takes longer.
    pub fn in_detail(mut self, width: u32) -> Self {
        self.run.details = Some(Box::new(Details::new(width)));
        self.run.spin_loops = Some(Box::default());
        self.run.oracle.count_commits();
        self.run.context.keep_scheduled();
        for view in &mut self.run.views {
            view.in_detail();
        }
        self.run.requested.width = Some(width);
        self
    }

    /// Also counts by subsample: the region is sampled, and each of its stretches is a unit ([`Evaluation::subsamples`]).
    pub fn of_sampled_region(mut self) -> Self {
        self.run.subsamples = Some(Box::new(Subsamples::new(false)));
        self.run.requested.subsamples = true;
        self.run.views.iter_mut().for_each(View::by_subsample);
        self
    }

    /// Also counts all units of a sampled region as one subsample, because the variance between units that were chosen tells nothing of the error by
    /// chance.
    pub fn of_chosen_units(mut self) -> Self {
        self.run.subsamples = Some(Box::new(Subsamples::new(true)));
        self
    }

    /// Also follows calls and returns, and counts by calling context. It takes two to three times as long.
    pub fn with_call_stacks(self) -> Self {
        self.with_contexts(Calls::default())
    }

    /// Also counts by thread: each is a calling context.
    pub fn with_threads(self) -> Self {
        self.with_contexts(Calls::flat())
    }

    fn with_contexts(mut self, mut calls: Calls) -> Self {
        self.run.by_blocks = false;
        let context = &self.run.context;
        calls.select(self.run.process, context.thread(), 0);
        self.run.stacks = Some(Box::new(CallStacks::new(calls)));
        self.run.views.iter_mut().for_each(View::with_call_stacks);
        self
    }

    /// Looks at every span: slower, with the same result.
    #[cfg(test)]
    fn span_by_span(mut self) -> Self {
        self.run.by_blocks = false;
        self
    }

    /// Packs the counts of processes that have not run for `cycles` cycles: with the same result.
    #[cfg(test)]
    fn cooling_after(mut self, cycles: u64) -> Self {
        self.run.inactive = InactiveProcesses::after(cycles, 0);
        self
    }

    /// Takes the next batch.
    ///
    /// # Errors
    /// If it does not continue the stream. What came before can still be finished.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), StreamError> {
        let mut progress = self.begin(batch)?;
        self.go_on(batch, &mut progress, usize::MAX)?;
        Ok(())
    }

    /// Begins a batch that is taken in parts: the caller calls [`Self::go_on`] until that returns true.
    ///
    /// # Errors
    /// If it does not continue the stream.
    pub fn begin(&mut self, batch: &Batch) -> Result<BatchProgress, StreamError> {
        if let Some(stacks) = &mut self.run.stacks {
            stacks.limit();
        }
        let progress = self.spans.begin(batch, &mut self.run)?;
        self.start_cycle.get_or_insert(batch.start_cycle);
        Ok(progress)
    }

    /// Takes about `records` more records of a batch after [`Self::begin`]; true if these were the last.
    ///
    /// # Errors
    /// If they do not continue the stream.
    #[inline(never)]
    pub fn go_on(
        &mut self,
        batch: &Batch,
        progress: &mut BatchProgress,
        records: usize,
    ) -> Result<bool, StreamError> {
        self.spans.go_on(batch, progress, records, &mut self.run)
    }

    /// The stream's last cycle so far.
    pub fn cycle(&self) -> u64 {
        self.spans.cycle()
    }

    /// Instructions that committed in the region so far.
    pub fn instructions(&self) -> u64 {
        let others = self.run.others.iter().map(|(_, counts)| counts.instructions());
        self.run.instructions + others.sum::<u64>()
    }

    /// Ends the pass.
    pub fn finish(self) -> Evaluation {
        let mut run = self.run;
        run.count_thread();
        let counts = run.take_counts();
        let stacks = run.stacks.take();
        let (start, end) = (self.start_cycle.unwrap_or(0), self.spans.cycle());
        let scheduler = SchedulerLog {
            events: run.context.take_scheduled(),
            region: match run.only_marked {
                true => run.stretches.until(end),
                false => std::iter::once(start..end).collect(),
            },
        };
        let (processes, threads, kernel_text, malformed_side_band) = {
            let (kernel_text, malformed) = (run.context.kernel_text(), run.context.malformed());
            let (processes, threads) = run.context.into_processes();
            (processes, threads, kernel_text, malformed)
        };
        let contexts = stacks.map(|stacks| stacks.calls.finish());
        let none = Contexts::default();
        let known = contexts.as_ref().unwrap_or(&none);
        let (views, profiled) = (run.views, run.profiled);
        let mut marked_before = run.marked_before;
        let (samplers, mut counted) = thread::scope(|scope| {
            let results = scope.spawn(move || results(views, profiled));
            let counted = counts.into_iter().map(|(weight, counts)| {
                // Where only marked cycles are profiled, there is nothing from before the region restarted.
                (weight, counts.finish(known, run.by_mark, marked_before.take()))
            });
            let counted: Vec<_> = counted.collect();
            (join(results), counted)
        });
        let of_stream = Evaluation {
            contexts,
            samplers,
            static_info: run.static_info,
            first_use: run.first_use,
            kernel_text,
            stream_cycles: end - start,
            malformed_side_band,
            scheduler,
            processes,
            threads,
            scripts: run.scripts.finish(),
            ..Evaluation::default()
        };
        let mut evaluation = match &mut counted[..] {
            // Most streams have no weights.
            [(1, alone)] => of_stream.with_counts(std::mem::take(alone)),
            _ => added_up(counted, of_stream),
        };
        evaluation.spaces = owners(&evaluation.oracle, &evaluation.static_info);
        evaluation
    }
}

/// Returns a thread's result; a panic in the thread goes on here.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns the results of all samplers after `profiled` profiled cycles, in the order in which the samplers were given.
fn results(views: Vec<View>, profiled: u64) -> Vec<SamplerResult> {
    let views = views.into_iter();
    let mut results: Vec<_> = views.flat_map(|view| view.finish(profiled)).collect();
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

struct Run {
    /// Only cycles between marks are profiled.
    only_marked: bool,
    /// The present cycle is profiled.
    profiling: bool,
    context: GuestContext,
    scripts: ScriptSamples,
    process: ProcessId,
    inactive: InactiveProcesses,
    /// Privilege of the last instruction that cycles were charged to; followed only if a filter has one.
    privilege: u8,
    /// The stream is between marks.
    marked: bool,
    oracle: Oracle,
    /// The Oracle's parts in the threads that filters name.
    parts: Parts,
    /// The Oracle's parts in subsamples of a sampled region.
    subsamples: Option<Box<Subsamples>>,
    /// Profiled cycles that have been counted for a thread.
    counted: u64,
    /// Stretches of the region so far.
    units: usize,
    /// Weight of the present profiled cycles: how many cycles of the region each of them stands for.
    weight: u64,
    /// Profiled cycles that had the present weight before it last became the present one.
    weighed: u64,
    /// Profiled cycles of all weights when the present weight last became the present one.
    weighed_from: u64,
    /// Counts of the cycles of other weights, by weight.
    others: Vec<(u64, WeightCounts)>,
    /// Some filter has a privilege.
    by_privilege: bool,
    /// Some filter lets only marked cycles through.
    by_mark: bool,
    views: Vec<View>,
    samplers: Vec<Sampler>,
    requested: RequestedDetail,
    /// The profile of marked cycles before the region restarted, if unmarked cycles are profiled too.
    marked_before: Option<Profile>,
    /// How often the region has restarted.
    region_restarts: u32,
    stretches: MarkedIntervals,
    /// First profiled cycle whose span or group some view must see; 0 if a sample is pending, because views must then see every span.
    next_due: u64,
    /// First profiled cycle whose span or group some view must see, not counting samples that wait for records alone; 0 if a sample waits for a span.
    next_look: u64,
    /// Blocks are evaluated as a whole where that is possible.
    by_blocks: bool,
    /// Profiled cycles so far.
    profiled: u64,
    idle: u64,
    instructions: u64,
    traps: u64,
    /// The youngest instruction of the last committing cycle.
    last: Option<CommitRecord>,
    static_info: Vec<StaticInfo>,
    /// The privileges in `static_info`, in an array of their own for the host's caches.
    privileges: Vec<u8>,
    first_use: Vec<u64>,
    details: Option<Box<Details>>,
    /// Number of harts that are busy; one, if nobody tells.
    busy: BusyHarts,
    /// Loops that only wait, if [`Details::spinning`] is counted.
    spin_loops: Option<Box<SpinLoops>>,
    stacks: Option<Box<CallStacks>>,
}

impl Run {
    /// Shows a span to the views: a trigger falls into it, or a sample is pending.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, span: &Span<'_>) {
        let end = self.profiled + span.cycles;
        let execution =
            execution_context(self.process, &self.stacks, self.weight, &self.subsamples);
        for view in self.views.iter_mut().filter(|view| view.next_due() <= end) {
            view.span(span, self.profiled, self.last, execution);
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        let next = self.views.iter().map(View::next_due).min();
        self.next_due = next.unwrap_or(u64::MAX);
        let next = self.views.iter().map(View::next_look).min();
        self.next_look = next.unwrap_or(u64::MAX);
    }

    /// Passes a profiled span to the samplers.
    #[inline(always)]
    fn pass(&mut self, span: &Span<'_>) {
        let end = self.profiled + span.cycles;
        if end >= self.next_due {
            self.sample(span);
        }
        self.profiled = end;
        if span.state == State::Computing {
            self.last = span.records.last().copied();
        }
    }

    /// True if all cycles of a block are charged to instructions of the present privilege.
    fn is_of_one_privilege(&self, block: &Block<'_>) -> bool {
        let same =
            |record: &CommitRecord| self.privileges[record.inst.0 as usize] == self.privilege;
        block.before.is_none_or(|(record, _)| same(record)) && block.records.iter().all(same)
    }

    /// Shows a block to the views: a trigger falls into it, or a sample is pending. Groups that concern neither are skipped.
    #[inline(never)]
    fn sample_block(&mut self, block: &Block<'_>) {
        let (mut at, mut cycle) = (0, block.cycle);
        loop {
            // The group in which the next trigger falls.
            let ahead = self.next_look.saturating_sub(self.profiled);
            let (found, before) = block.reach(at, cycle, ahead);
            let execution =
                execution_context(self.process, &self.stacks, self.weight, &self.subsamples);
            if self.next_due < self.next_look {
                for view in &mut self.views {
                    view.records(cycle, &block.records[at..found], execution);
                }
            }
            let last = match found.checked_sub(1) {
                Some(last) => Some(&block.records[last]),
                None => self.last.as_ref(),
            };
            let group = if found < block.records.len() { block.group(found, before) } else { None };
            let (Some(group), Some(last)) = (group, last) else {
                return self.schedule();
            };
            let profiled = self.profiled + (before - block.cycle);
            for view in &mut self.views {
                view.trigger_in_group(&group, profiled, last, execution);
            }
            self.schedule();
            (at, cycle) = (found, before);
        }
    }

    /// Tells the views that the process, the thread, the privilege or the region has changed.
    fn enter(&mut self) {
        let processes = self.context.processes();
        let process = processes.get(self.process.0 as usize);
        let place = StreamState {
            process: self.process,
            name: process.map_or("", |process| &process.name),
            thread: self.context.threads()[self.context.thread().0 as usize].name(),
            privilege: self.privilege,
            marked: self.marked,
        };
        for view in &mut self.views {
            view.enter(&place, self.profiled);
        }
        self.schedule();
    }

    #[cold]
    #[inline(never)]
    fn change_privilege(&mut self, privilege: u8) {
        self.privilege = privilege;
        self.enter();
    }

    /// Counts the profiled cycles since the last switch for the thread that runs.
    fn count_thread(&mut self) {
        let cycles = self.profiled - std::mem::replace(&mut self.counted, self.profiled);
        self.context.ran(cycles.saturating_mul(self.weight));
    }

    fn drop_pending(&mut self) {
        self.views.iter_mut().for_each(View::drop_pending);
        self.schedule();
    }
}

/// Returns who executes at present. The function borrows single fields, so that the views can be changed meanwhile.
fn execution_context<'a>(
    process: ProcessId,
    stacks: &'a Option<Box<CallStacks>>,
    weight: u64,
    subsamples: &Option<Box<Subsamples>>,
) -> ExecutionContext<'a> {
    let calls = stacks.as_ref().map(|stacks| &stacks.calls);
    let subsample = subsamples.as_ref().map_or(0, |subsamples| subsamples.open());
    ExecutionContext { process, calls, weight, subsample }
}

#[cfg(test)]
mod tests;
