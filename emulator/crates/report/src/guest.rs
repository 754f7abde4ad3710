//! The guest's own samples, mapped onto the instructions that the stream saw.

use std::collections::{BTreeMap, HashMap, HashSet};

use commit_trace::InstId;
use guest_samples::{GuestProfile, GuestSample};
use profile::{Evaluation, ProcessId, Profiler};
use symbols::place::{BARE, KERNEL};

/// Weights of the guest's samples, in units as the Oracle's.
#[derive(Default)]
pub(super) struct Matched {
    pub weights: BTreeMap<(ProcessId, InstId), u64>,
    /// Units at addresses that the process never executed.
    pub unmatched: HashMap<ProcessId, u64>,
    /// Units of samples in processes that the stream does not have.
    pub strangers: u64,
    pub samples: HashMap<ProcessId, f64>,
    /// Per privilege (0 U, 1 S, 3 M): whether the event sampled it.
    pub covers: [bool; 4],
    /// The column's name.
    pub name: String,
}

impl Matched {
    /// The weights of a process, ascending by instruction.
    pub(crate) fn of(&self, process: ProcessId) -> impl Iterator<Item = (InstId, u64)> {
        let own = (process, InstId(0))..=(process, InstId(u32::MAX));
        let own = self.weights.range(own);
        own.map(|((_, inst), units)| (*inst, *units))
    }
}

/// Instruction numbers by address space and address. The first of several encodings at one address stands for all of them: reports do not tell them
/// apart.
type Index = HashMap<(u32, u64), InstId>;

/// Returns the profiler whose rule the TIP unit applied, unless this version does not know it.
pub(super) fn rule(guest: &GuestProfile) -> Option<Profiler> {
    Profiler::of_unit(guest.heuristic)
}

/// Returns the name of a guest's profile among the columns: of the rule that its unit sampled by.
fn name(guest: &GuestProfile) -> String {
    match rule(guest) {
        Some(profiler) => format!("guest-{profiler}"),
        None => format!("guest-{}", guest.heuristic),
    }
}

pub(super) fn matched(evaluation: &Evaluation, guest: &GuestProfile) -> Matched {
    let mut index = Index::new();
    let sampled = guest.samples.iter().flat_map(|sample| &sample.addresses);
    let sampled: HashSet<u64> = sampled.copied().collect();
    for fact in evaluation.static_info.iter().filter(|fact| sampled.contains(&fact.pc)) {
        index.entry((fact.space, fact.pc)).or_insert(fact.id);
    }
    let covers = [0, 1, 2, 3].map(|privilege| guest.covers(privilege));
    let mut out = Matched { covers, name: name(guest), ..Matched::default() };
    for sample in &guest.samples {
        let units = sample.period.saturating_mul(evaluation.oracle.units_per_cycle());
        let Some(process) = process_of(evaluation, sample) else {
            out.strangers = out.strangers.saturating_add(units);
            continue;
        };
        *out.samples.entry(process).or_default() += 1.0;
        let count = sample.addresses.len() as u64;
        for (at, address) in sample.addresses.iter().enumerate() {
            // The remainder goes to the first, as perf does it: the parts' sum is the whole.
            let part = units / count + u64::from((at as u64) < units % count);
            let slot = match find(evaluation, &index, process, *address) {
                Some(inst) => out.weights.entry((process, inst)).or_default(),
                None => out.unmatched.entry(process).or_default(),
            };
            *slot = slot.saturating_add(part);
        }
    }
    out
}

/// The program that ran under the sample's process id in the sampled cycle; without a cycle the
/// last program of that id, since a profile of `perf record -- program` begins with its `exec`.
fn process_of(evaluation: &Evaluation, sample: &GuestSample) -> Option<ProcessId> {
    let mut same = evaluation.processes.iter().filter(|p| p.pid == Some(sample.pid));
    match sample.cycle {
        Some(cycle) => same
            .clone()
            .find(|p| p.first_cycle <= cycle && p.end_cycle.is_none_or(|end| cycle <= end))
            .or_else(|| same.next_back()),
        None => same.next_back(),
    }
    .map(|p| p.id)
}

fn find(
    evaluation: &Evaluation,
    index: &Index,
    process: ProcessId,
    address: u64,
) -> Option<InstId> {
    let own = evaluation.spaces.iter().filter(|(_, owner)| **owner == process).map(|(s, _)| *s);
    own.chain([KERNEL, BARE])
        .find_map(|space| index.get(&(space, address)))
        .or_else(|| {
            // A space that another process owns: the same address in the parent's, after vfork.
            evaluation.spaces.keys().find_map(|space| index.get(&(*space, address)))
        })
        .copied()
}
