//! What one run says about every profiler.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use commit_trace::{InstId, StaticInfo};
use serde::{Deserialize, Serialize};

use crate::scripts::Scripts;
use crate::waits::{ReplayChange, Replayed, SchedulerLog, ThreadPath, WaitSite, WaitUse, Waits};
use crate::{
    ContextId, ContextWeights, Contexts, CycleStacks, Misplaced, Process, ProcessId, Profile,
    Sampler, Signatures, Subsample, Thread, ThreadId, TimeBin, TopDown,
};

/// The Oracle's and every sampler's view of the cycles that were profiled: those in the region of
/// interest in which the hart did not sleep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The Oracle: every cycle, exactly. Its total is `(cycles - idle) * units_per_cycle`.
    pub oracle: Profile,
    /// The Oracle's cycle stacks: the same units by component.
    pub stacks: CycleStacks,
    /// The part of [`Self::stacks`] in loops that only wait ([`crate::spinning`]), if [`crate::Evaluator::in_detail`] asked for it.
    #[serde(default, skip_serializing_if = "CycleStacks::is_empty")]
    pub spinning: CycleStacks,
    /// The parts of [`Self::oracle`] in the cycles in which so many harts were busy, two at index 0, if
    /// [`crate::Evaluator::in_detail`] asked for it and there are several ([`crate::BusyHarts`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Profile>,
    /// The Oracle's cycle stacks in parts of a sampled region, if [`crate::Evaluator::of_sampled_region`] asked for them. All parts add up
    /// to [`Self::stacks`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsamples: Vec<Subsample>,
    /// Calling contexts, if [`crate::Evaluator::with_call_stacks`] asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Contexts>,
    /// The Oracle by calling context, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_context: ContextWeights,
    /// The part of the Oracle that lies between the guest's trigger instructions, if a sampler's filter asks
    /// for it ([`crate::Filter::marked`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<Profile>,
    /// One result per sampler, in the order they were asked for.
    pub samplers: Vec<SamplerResult>,
    /// Processes by number ([`ProcessId`]).
    pub processes: Vec<Process>,
    /// Threads by number ([`crate::ThreadId`]).
    #[serde(default)]
    pub threads: Vec<Thread>,
    /// The parts of the Oracle in threads of a name, if a sampler's filter asks for them
    /// ([`crate::Filter::thread`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_thread: BTreeMap<String, ThreadPart>,
    /// Static instructions by number ([`InstId`]).
    pub static_info: Vec<StaticInfo>,
    /// Per static instruction, a cycle shortly before its first use (that of its batch's start).
    pub first_use: Vec<u64>,
    /// The process that each user address space (`StaticInfo::space`, 2 and up) belongs to.
    pub spaces: BTreeMap<u32, ProcessId>,
    /// Where the kernel said that its text lies.
    pub kernel_text: Option<Range<u64>>,
    /// Cycles in the region of interest, the idle ones included.
    pub cycles: u64,
    /// Cycles in the region in which the hart slept in `wfi`; not profiled.
    pub idle: u64,
    /// Instructions that committed in the region.
    pub instructions: u64,
    /// Exceptions and interrupts taken in the region (not the replays of memory-ordering failures).
    pub traps: u64,
    /// Cycles in the whole stream, region or not.
    pub stream_cycles: u64,
    /// Side-band records that did not parse.
    pub malformed_side_band: u64,
    /// What the guest's kernel told of its scheduler.
    #[serde(default)]
    pub scheduler: SchedulerLog,
    /// Where the commit slots went, if [`crate::Evaluator::in_detail`] asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_down: Option<TopDown>,
    /// The Oracle over time, if [`crate::Evaluator::in_detail`] asked for it: each bin spans a few of [`TopDown::windows`]. All
    /// bins add up to [`Self::oracle`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<TimeBin>,
    /// The Oracle's time by event, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signatures: Option<Signatures>,
    /// Interpreted programs by function and line, if the simulator looked at any.
    #[serde(default, skip_serializing_if = "Scripts::is_empty")]
    pub scripts: Scripts,
}

/// A part of the Oracle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadPart {
    /// Profile of the whole part, inside and outside the marked regions.
    pub whole: Profile,
    /// Profile of the cycles between the guest's trigger instructions.
    pub marked: Profile,
}

impl Evaluation {
    /// Returns what threads waited for in the region; `None` if the guest's kernel does not tell. One of several harts knows
    /// only its own part: see [`Evaluation::merged`]. `used_for` says what a process uses a futex or a sleep for.
    pub fn waits(&self, used_for: impl Fn(ProcessId, WaitSite) -> WaitUse) -> Option<Waits> {
        self.scheduler.waits(|thread| self.process_of(thread), used_for)
    }

    /// Returns the critical path over threads in the region; `None` if the guest's kernel does not tell. See [`SchedulerLog::critical_path`].
    pub fn critical_path(
        &self,
        used_for: impl Fn(ProcessId, WaitSite) -> WaitUse,
        rank: impl Fn(ThreadId) -> u32,
    ) -> Option<ThreadPath> {
        self.scheduler.critical_path(|thread| self.process_of(thread), used_for, rank)
    }

    /// Replays the region on so many harts with a change; `None` if the guest's kernel does not tell, or too little. See [`SchedulerLog::replay`].
    pub fn replay(
        &self,
        harts: usize,
        change: &ReplayChange,
        rank: impl Fn(ThreadId) -> u32,
    ) -> Option<Replayed> {
        self.scheduler.replay(harts, change, |thread| self.process_of(thread), rank)
    }

    /// Returns a thread's process.
    fn process_of(&self, thread: ThreadId) -> ProcessId {
        let thread = self.threads.get(thread.0 as usize);
        thread.map_or(ProcessId::BOOT, |thread| thread.process)
    }

    /// Returns the part of the Oracle that a sampler's filter lets through, as far as region and thread decide.
    fn part_of(&self, result: &SamplerResult) -> &Profile {
        let filter = &result.sampler.filter;
        let of_thread = filter.thread.as_ref();
        match (of_thread.and_then(|name| self.by_thread.get(name)), &self.marked) {
            (Some(part), _) if filter.marked => &part.marked,
            (Some(part), _) => &part.whole,
            (None, Some(marked)) if filter.marked => marked,
            _ => &self.oracle,
        }
    }

    /// Returns the Oracle's part that a sampler's filter lets through: what the sampler's profile is compared with.
    pub fn oracle_of(&self, result: &SamplerResult) -> Cow<'_, Profile> {
        let filter = &result.sampler.filter;
        let whole = self.part_of(result);
        if result.processes.is_none() && filter.privilege.is_none() {
            return Cow::Borrowed(whole);
        }
        let mut part = Profile::new(whole.units_per_cycle());
        for process in (0..whole.processes()).map(ProcessId) {
            part.set(process, self.oracle_in(result, process));
        }
        Cow::Owned(part)
    }

    /// Returns one process's units in the Oracle's part that a sampler's filter lets through, ascending by instruction.
    pub fn oracle_in(
        &self,
        result: &SamplerResult,
        process: ProcessId,
    ) -> impl Iterator<Item = (InstId, u64)> {
        let filter = &result.sampler.filter;
        let whole = self.part_of(result);
        let processes = result.processes.as_ref();
        let is_in = processes.is_none_or(|some| some.contains(&process));
        let of = move |(inst, _): &(InstId, u64)| {
            let static_info = self.static_info.get(inst.0 as usize);
            filter.privilege.is_none_or(|privilege| {
                static_info.is_some_and(|static_info| static_info.privilege == privilege.encoding())
            })
        };
        let whole = is_in.then(|| whole.of(process));
        whole.into_iter().flatten().filter(of)
    }
}

/// One sampler's profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplerResult {
    /// The sampler that was asked for.
    pub sampler: Sampler,
    /// Where the sampler's samples fell. The total is that of [`Evaluation::oracle_of`] less `tail_cycles`.
    pub profile: Profile,
    /// The processes that the sampler's filter let through, in order; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<ProcessId>>,
    /// Samples taken.
    pub samples: u64,
    /// Samples that were dropped (a tagged row was squashed, the region ended); their cycles went
    /// into the next sample.
    pub dropped: u64,
    /// Cycles after the trigger of the last sample, in no sample.
    pub tail_cycles: u64,
    /// The sampler's time by event, if its profiler [sees events](crate::Profiler::sees_events) and
    /// [`crate::Evaluator::in_detail`] asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signatures: Option<Signatures>,
    /// Time that the sampler gave to other instructions than the Oracle, the most first, if asked for: the hundred of each
    /// process that weigh most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misplaced: Vec<Misplaced>,
    /// The profile by calling context, if [`crate::Evaluator::with_call_stacks`] asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_context: ContextWeights,
    /// The profile in each subsample of a sampled region ([`Evaluation::subsamples`]), if the sampler is the first of its profiler and has no
    /// filter. All of them add up to [`Self::profile`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsamples: Vec<Profile>,
    /// The single samples in order of time, if [`crate::Evaluator::keep_samples`] asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Sample>,
}

/// What a sample, or its share for one of the instructions that it was split over, says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Cycle of the trigger.
    pub cycle: u64,
    /// The process that ran.
    pub process: ProcessId,
    /// The instruction that the sample names.
    pub inst: InstId,
    /// The instruction's calling context, if there are any contexts.
    #[serde(default)]
    pub context: ContextId,
    /// Weight, in units of the profile.
    pub units: u64,
}
