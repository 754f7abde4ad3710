//! Several harts as one: what their evaluations say, added up.

mod over_time;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use commit_trace::{InstId, StaticInfo, TeaEvents};
use rustc_hash::FxHashMap;

use crate::calls::sum_up;
use crate::events::heaviest;
use crate::packed::{Packed, summed};
use crate::stacks::COMPONENT_BITS;
use crate::topdown::{SLOT_BITS, SlotWindow, Slots};
use crate::waits::SchedulerLog;
use crate::{
    Context, ContextId, ContextWeights, Contexts, CycleStacks, Evaluation, Misplaced, Process,
    ProcessId, ProcessKey, Profile, Sample, SamplerResult, Signatures, Subsample, Thread, ThreadId,
    ThreadPart, TopDown,
};

/// Numbers of a hart's evaluation in the merged one.
pub struct MergedNumbers {
    processes: Vec<ProcessId>,
    threads: Vec<ThreadId>,
    insts: Vec<InstId>,
    contexts: Vec<ContextId>,
}

impl MergedNumbers {
    /// Returns the numbers that the entities of `evaluation` have already.
    pub(crate) fn same(evaluation: &Evaluation) -> Self {
        let contexts = evaluation.contexts.as_ref().map_or(0, Contexts::len);
        Self {
            processes: (0..evaluation.processes.len() as u32).map(ProcessId).collect(),
            threads: (0..evaluation.threads.len() as u32).map(ThreadId).collect(),
            insts: (0..evaluation.static_info.len() as u32).map(InstId).collect(),
            contexts: (0..contexts as u32).map(ContextId).collect(),
        }
    }

    /// Returns the merged number of a process.
    pub fn process(&self, process: ProcessId) -> ProcessId {
        let known = self.processes.get(process.0 as usize);
        known.copied().unwrap_or(ProcessId::BOOT)
    }

    /// Returns the merged number of a thread.
    pub fn thread(&self, thread: ThreadId) -> ThreadId {
        let known = self.threads.get(thread.0 as usize);
        known.copied().unwrap_or(ThreadId::NONE)
    }

    /// Returns the merged number of an instruction; an instruction that was not defined keeps its number.
    pub fn inst(&self, inst: InstId) -> InstId {
        self.insts.get(inst.0 as usize).copied().unwrap_or(inst)
    }

    pub(crate) fn context(&self, context: ContextId) -> ContextId {
        let known = self.contexts.get(context.0 as usize);
        known.copied().unwrap_or_default()
    }

    pub(crate) fn weights(
        &self,
        weights: impl Iterator<Item = (ContextId, InstId, u64)>,
    ) -> impl Iterator<Item = (ContextId, InstId, u64)> {
        weights.map(|(context, inst, units)| (self.context(context), self.inst(inst), units))
    }
}

/// What an instruction is known by on all harts.
type InstKey = (u32, u64, u32, u8);

/// What an address space is known by: its process and its place among the process's address spaces, or, if the process is
/// not known, the hart and the number.
type SpaceKey = Result<(ProcessId, u32), (usize, u32)>;

/// Makes the merged evaluation of several harts.
struct Merger {
    merged: Evaluation,
    processes: FxHashMap<ProcessKey, ProcessId>,
    threads: FxHashMap<(ProcessId, u32, Option<String>), ThreadId>,
    spaces: BTreeMap<SpaceKey, u32>,
    insts: FxHashMap<InstKey, InstId>,
    contexts: FxHashMap<Context, ContextId>,
}

impl Evaluation {
    /// Merges the evaluations of several harts, from the first hart on. The cycles are those of all harts, so that shares are
    /// shares of all their time. Processes, threads, instructions and calling contexts that are the same on several harts are
    /// one.
    ///
    /// A single evaluation is returned as it is; `None`, if there is none.
    pub fn merged(harts: &[Self]) -> Option<Cow<'_, Self>> {
        match harts {
            [] => None,
            [one] => Some(Cow::Borrowed(one)),
            [first, ..] => Some(Cow::Owned(Self::merge(first, harts))),
        }
    }

    /// Returns the numbers that [`Evaluation::merged`] gives to the entities of each hart.
    pub fn merged_numbers(harts: &[Self]) -> Vec<MergedNumbers> {
        let Some(first) = harts.first() else {
            return Vec::new();
        };
        let mut merger = Merger::new(first);
        harts.iter().enumerate().map(|(hart, of_hart)| merger.numbers(hart, of_hart)).collect()
    }

    fn merge(first: &Self, harts: &[Self]) -> Self {
        let mut merger = Merger::new(first);
        let numbers: Vec<MergedNumbers> =
            harts.iter().enumerate().map(|(hart, of_hart)| merger.numbers(hart, of_hart)).collect();
        let parts: Vec<(&Self, &MergedNumbers)> = harts.iter().zip(&numbers).collect();
        let mut merged = Self::sum(merger.merged, first, &parts);
        merged.stream_cycles = harts.iter().map(|of_hart| of_hart.stream_cycles).sum();
        merged.malformed_side_band = harts.iter().map(|of_hart| of_hart.malformed_side_band).sum();
        merged.kernel_text = harts.iter().find_map(|of_hart| of_hart.kernel_text.clone());
        merged.scheduler =
            SchedulerLog::merged(parts.iter().map(|(hart, numbers)| (&hart.scheduler, *numbers)));
        for (hart, numbers) in &parts {
            merged.scripts.merge(&hart.scripts, |process| numbers.process(process));
        }
        merged.samplers = (0..first.samplers.len())
            .map(|at| {
                let of = parts
                    .iter()
                    .filter_map(|(hart, numbers)| Some((hart.samplers.get(at)?, *numbers)));
                sampler(&of.collect::<Vec<_>>())
            })
            .collect();
        merged
    }

    /// Adds up all counts of cycles except those of samplers. `merged` has processes, threads, instructions and contexts, but no counts. `first`
    /// tells which counts all of `parts` have.
    pub(crate) fn sum(mut merged: Self, first: &Self, parts: &[(&Self, &MergedNumbers)]) -> Self {
        for (of_part, _) in parts {
            merged.cycles = merged.cycles.saturating_add(of_part.cycles);
            merged.idle = merged.idle.saturating_add(of_part.idle);
            merged.instructions += of_part.instructions;
            merged.traps += of_part.traps;
        }
        let profiles = |of: fn(&Self) -> &Profile| {
            profile(parts.iter().map(|(hart, numbers)| (of(hart), *numbers)))
        };
        merged.oracle = profiles(|hart| &hart.oracle);
        if first.marked.is_some() {
            merged.marked = Some(profiles(|hart| hart.marked.as_ref().unwrap_or(&hart.oracle)));
        }
        for name in first.by_thread.keys() {
            let of = |part: fn(&ThreadPart) -> &Profile| {
                let parts = parts.iter().filter_map(|(hart, numbers)| {
                    Some((part(hart.by_thread.get(name)?), *numbers))
                });
                profile(parts)
            };
            let part =
                ThreadPart { whole: of(|part| &part.whole), marked: of(|part| &part.marked) };
            merged.by_thread.insert(name.clone(), part);
        }
        let stacks = parts.iter().map(|(hart, n)| (&*hart.stacks.by_process, *n));
        merged.stacks.by_process = packed(stacks, COMPONENT_BITS);
        let spinning = parts.iter().map(|(hart, n)| (&*hart.spinning.by_process, *n));
        merged.spinning.by_process = packed(spinning, COMPONENT_BITS);
        let busy = parts.iter().map(|(hart, _)| hart.shared.len()).max().unwrap_or(0);
        let of_busy =
            |at| parts.iter().filter_map(move |(hart, n)| Some((hart.shared.get(at)?, *n)));
        merged.shared = (0..busy).map(|at| profile(of_busy(at))).collect();
        merged.subsamples = subsamples(parts);
        merged.by_context = contexts(parts.iter().map(|(hart, n)| (&hart.by_context, *n)));
        merged.signatures = first
            .signatures
            .is_some()
            .then(|| signatures(parts.iter().map(|(hart, n)| (&hart.signatures, *n))));
        let top_downs: Vec<(&TopDown, &MergedNumbers)> = parts
            .iter()
            .filter_map(|(hart, numbers)| Some((hart.top_down.as_ref()?, *numbers)))
            .collect();
        merged.over_time = over_time::merged(parts, merged.contexts.as_ref());
        merged.top_down = (!top_downs.is_empty()).then(|| top_down(&top_downs));
        merged
    }
}

impl Merger {
    fn new(first: &Evaluation) -> Self {
        let merged = Evaluation {
            oracle: Profile::new(first.oracle.units_per_cycle()),
            contexts: first.contexts.is_some().then(Default::default),
            ..Evaluation::default()
        };
        Self {
            merged,
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            spaces: BTreeMap::new(),
            insts: FxHashMap::default(),
            contexts: FxHashMap::default(),
        }
    }

    fn numbers(&mut self, hart: usize, of_hart: &Evaluation) -> MergedNumbers {
        let mut numbers = MergedNumbers {
            processes: of_hart.processes.iter().map(|process| self.process(process)).collect(),
            threads: Vec::new(),
            insts: Vec::new(),
            contexts: Vec::new(),
        };
        numbers.threads = of_hart
            .threads
            .iter()
            .map(|thread| self.thread(numbers.process(thread.process), thread))
            .collect();
        // Number of address spaces of each process: most have one.
        let mut count: BTreeMap<ProcessId, u32> = BTreeMap::new();
        let mut spaces: BTreeMap<u32, u32> = BTreeMap::new();
        for (&own, process) in &of_hart.spaces {
            let process = numbers.process(*process);
            let before = count.entry(process).or_default();
            spaces.insert(own, self.space(Ok((process, *before))));
            *before += 1;
        }
        for (at, fact) in of_hart.static_info.iter().enumerate() {
            let space = match fact.space {
                shared @ ..2 => shared,
                own => match spaces.get(&own) {
                    Some(&space) => space,
                    None => self.space(Err((hart, own))),
                },
            };
            let first_use = of_hart.first_use.get(at).copied().unwrap_or(0);
            numbers.insts.push(self.inst(fact, space, first_use));
        }
        for context in of_hart.contexts.iter().flat_map(|contexts| contexts.iter()) {
            let renumbered = Context {
                process: numbers.process(context.process),
                thread: numbers.thread(context.thread),
                // A caller's context comes first.
                caller: context
                    .caller
                    .map(|(caller, inst)| (numbers.context(caller), numbers.inst(inst))),
            };
            numbers.contexts.push(self.context(renumbered));
        }
        numbers
    }

    /// Returns the merged number of a process. The guest numbers processes for all harts, and tells all harts what it maps.
    fn process(&mut self, process: &Process) -> ProcessId {
        let list = &mut self.merged.processes;
        let id = ProcessId(list.len() as u32);
        match self.processes.entry(process.key()) {
            Entry::Occupied(known) => {
                let known = *known.get();
                let merged = &mut list[known.0 as usize];
                merged.first_cycle = merged.first_cycle.min(process.first_cycle);
                merged.end_cycle = merged.end_cycle.max(process.end_cycle);
                merged.stands_for = merged.stands_for.max(process.stands_for);
                known
            }
            Entry::Vacant(unknown) => {
                list.push(Process { id, ..process.clone() });
                *unknown.insert(id)
            }
        }
    }

    fn thread(&mut self, process: ProcessId, thread: &Thread) -> ThreadId {
        let list = &mut self.merged.threads;
        let id = ThreadId(list.len() as u32);
        // Where an entity stands for many processes, so do its threads, by name.
        let stands_for = self.merged.processes[process.0 as usize].stands_for;
        let key = match stands_for {
            None => (process, thread.tid, None),
            Some(_) => (process, 0, Some(thread.name().to_owned())),
        };
        match self.threads.entry(key) {
            Entry::Occupied(known) => {
                let known = *known.get();
                let merged = &mut list[known.0 as usize];
                merged.first_cycle = merged.first_cycle.min(thread.first_cycle);
                merged.end_cycle = merged.end_cycle.max(thread.end_cycle);
                merged.cycles += thread.cycles;
                known
            }
            Entry::Vacant(unknown) => {
                list.push(Thread { id, process, ..thread.clone() });
                *unknown.insert(id)
            }
        }
    }

    fn space(&mut self, of: SpaceKey) -> u32 {
        let next = self.spaces.len() as u32 + 2;
        let space = *self.spaces.entry(of).or_insert(next);
        if let Ok((process, _)) = of {
            self.merged.spaces.insert(space, process);
        }
        space
    }

    fn inst(&mut self, fact: &StaticInfo, space: u32, first_use: u64) -> InstId {
        let merged = &mut self.merged;
        let id = InstId(merged.static_info.len() as u32);
        match self.insts.entry((space, fact.pc, fact.raw, fact.privilege)) {
            Entry::Occupied(known) => {
                let known = *known.get();
                let merged = &mut merged.first_use[known.0 as usize];
                *merged = first_use.min(*merged);
                known
            }
            Entry::Vacant(unknown) => {
                merged.static_info.push(StaticInfo { id, space, ..*fact });
                merged.first_use.push(first_use);
                *unknown.insert(id)
            }
        }
    }

    fn context(&mut self, context: Context) -> ContextId {
        let list = self.merged.contexts.get_or_insert_default();
        *self.contexts.entry(context).or_insert_with(|| list.add(context))
    }
}

/// Weights of all harts, added up.
fn profile<'a>(parts: impl Iterator<Item = (&'a Profile, &'a MergedNumbers)> + Clone) -> Profile {
    let units = parts.clone().next().map_or(1, |(first, _)| first.units_per_cycle());
    let mut merged = Profile::new(units);
    let mut weights: BTreeMap<ProcessId, Vec<(InstId, u64)>> = BTreeMap::new();
    for (of_hart, numbers) in parts {
        for process in (0..of_hart.processes()).map(ProcessId) {
            let all = weights.entry(numbers.process(process)).or_default();
            all.extend(of_hart.of(process).map(|(inst, units)| (numbers.inst(inst), units)));
        }
    }
    for (process, weights) in weights {
        merged.set(process, summed(weights).into_iter());
    }
    merged
}

/// Adds up amounts by process and instruction of all harts; the low bits of a number are the kind of amount.
fn packed<'a>(
    parts: impl Iterator<Item = (&'a [Packed], &'a MergedNumbers)>,
    low_bits: u32,
) -> Vec<Packed> {
    let mut amounts: BTreeMap<ProcessId, Vec<(u64, u64)>> = BTreeMap::new();
    for (by_process, numbers) in parts {
        for (process, of) in (0..).map(ProcessId).zip(by_process) {
            let all = amounts.entry(numbers.process(process)).or_default();
            all.extend(of.iter().map(|(number, amount)| {
                let inst = numbers.inst(InstId((number >> low_bits) as u32));
                let low = number & ((1 << low_bits) - 1);
                (u64::from(inst.0) << low_bits | low, amount)
            }));
        }
    }
    let mut merged = Vec::new();
    for (process, amounts) in amounts {
        let packed = summed(amounts).into_iter().collect();
        crate::packed::put(&mut merged, process.0 as usize, packed);
    }
    merged
}

fn signatures<'a>(
    parts: impl Iterator<Item = (&'a Option<Signatures>, &'a MergedNumbers)>,
) -> Signatures {
    let of =
        |signatures: &'a Option<Signatures>| signatures.as_ref().map_or(&[][..], |s| &s.by_process);
    Signatures {
        by_process: packed(parts.map(|(signatures, n)| (of(signatures), n)), TeaEvents::BITS),
    }
}

/// Adds up what each subsample has: all parts have the same units.
fn subsamples(parts: &[(&Evaluation, &MergedNumbers)]) -> Vec<Subsample> {
    let count = parts.iter().map(|(of, _)| of.subsamples.len()).max().unwrap_or(0);
    let merged = (0..count).map(|at| {
        let of = parts.iter().filter_map(|(of, n)| Some((of.subsamples.get(at)?, *n)));
        let stacks = of.clone().map(|(of, n)| (&*of.stacks.by_process, n));
        Subsample {
            units: of.clone().map(|(of, _)| of.units).sum(),
            instructions: of.clone().map(|(of, _)| of.instructions).sum(),
            stacks: CycleStacks { by_process: packed(stacks, COMPONENT_BITS) },
            slots: slots(of.flat_map(|(of, n)| {
                of.slots.iter().map(|(process, slots)| (n.process(*process), *slots))
            })),
        }
    });
    merged.collect()
}

/// Adds up slots by process.
fn slots(all: impl Iterator<Item = (ProcessId, Slots)>) -> BTreeMap<ProcessId, Slots> {
    let mut sums: BTreeMap<ProcessId, Slots> = BTreeMap::new();
    all.for_each(|(process, slots)| *sums.entry(process).or_default() += slots);
    sums
}

/// Adds up the slots of all harts, and their windows, which become as long as the longest.
fn top_down(parts: &[(&TopDown, &MergedNumbers)]) -> TopDown {
    let all = || parts.iter().flat_map(|(of, n)| of.windows.iter().map(|window| (window, *n)));
    let length = all().map(|(window, _)| window.end.saturating_sub(window.start)).max();
    let length = length.unwrap_or(1).max(1);
    let mut windows: BTreeMap<u64, SlotWindow> = BTreeMap::new();
    for (window, numbers) in all() {
        let merged = windows.entry(window.start / length).or_insert_with(|| SlotWindow {
            cycles: 0,
            processes: Vec::new(),
            ..*window
        });
        merged.start = merged.start.min(window.start);
        merged.end = merged.end.max(window.end);
        merged.cycles += window.cycles;
        for (process, spent) in &window.processes {
            let process = numbers.process(*process);
            match merged.processes.binary_search_by_key(&process, |(process, _)| *process) {
                Ok(at) => merged.processes[at].1 += *spent,
                Err(at) => merged.processes.insert(at, (process, *spent)),
            }
        }
    }
    let mut windows: Vec<SlotWindow> = windows.into_values().collect();
    end_where_the_next_begins(&mut windows, |window| (window.start, &mut window.end));
    TopDown {
        width: parts[0].0.width,
        by_process: packed(parts.iter().map(|(of, n)| (&*of.by_process, *n)), SLOT_BITS),
        windows,
    }
}

/// Cuts stretches of cycles, which ascend by their begins, so that none reaches beyond the begin of the next: a stretch of one part may overlap a
/// stretch of another part.
fn end_where_the_next_begins<T>(stretches: &mut [T], ends: impl Fn(&mut T) -> (u64, &mut u64)) {
    let mut next_start = u64::MAX;
    for stretch in stretches.iter_mut().rev() {
        let (start, end) = ends(stretch);
        *end = (*end).min(next_start);
        next_start = start;
    }
}

fn contexts<'a>(
    parts: impl Iterator<Item = (&'a ContextWeights, &'a MergedNumbers)>,
) -> ContextWeights {
    let all = parts.flat_map(|(weights, numbers)| numbers.weights(weights.iter().copied()));
    let mut all: ContextWeights = all.collect();
    sum_up(&mut all);
    all
}

/// Adds up the results of one sampler on all harts. Each hart's sampler has a clock of its own.
fn sampler(parts: &[(&SamplerResult, &MergedNumbers)]) -> SamplerResult {
    let mut merged = parts[0].0.clone();
    let sum = |of: fn(&SamplerResult) -> u64| parts.iter().map(|(part, _)| of(part)).sum();
    merged.samples = sum(|part| part.samples);
    merged.dropped = sum(|part| part.dropped);
    merged.tail_cycles = sum(|part| part.tail_cycles);
    merged.profile = profile(parts.iter().map(|(part, numbers)| (&part.profile, *numbers)));
    merged.by_context = contexts(parts.iter().map(|(part, numbers)| (&part.by_context, *numbers)));
    let subsamples = parts.iter().map(|(part, _)| part.subsamples.len()).max().unwrap_or(0);
    let of_subsample =
        |at| parts.iter().filter_map(move |(part, n)| Some((part.subsamples.get(at)?, *n)));
    merged.subsamples = (0..subsamples).map(|at| profile(of_subsample(at))).collect();
    merged.processes = merged.processes.is_some().then(|| {
        let mut all: Vec<ProcessId> = parts
            .iter()
            .flat_map(|(part, n)| {
                part.processes.iter().flatten().map(|&process| n.process(process))
            })
            .collect();
        all.sort();
        all.dedup();
        all
    });
    merged.signatures = merged
        .signatures
        .is_some()
        .then(|| signatures(parts.iter().map(|(part, n)| (&part.signatures, *n))));
    let misplaced = parts.iter().flat_map(|(part, n)| {
        part.misplaced.iter().map(|misplaced| {
            let Misplaced { process, named, truth, component, units } = *misplaced;
            ((n.process(process), n.inst(named), n.inst(truth), component), units)
        })
    });
    merged.misplaced = heaviest(summed(misplaced.collect()));
    merged.log = parts
        .iter()
        .flat_map(|(part, numbers)| {
            part.log.iter().map(|sample| Sample {
                process: numbers.process(sample.process),
                inst: numbers.inst(sample.inst),
                context: numbers.context(sample.context),
                ..*sample
            })
        })
        .collect();
    merged.log.sort_by_key(|sample| sample.cycle);
    merged
}

#[cfg(test)]
mod tests;
