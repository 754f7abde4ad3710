//! Weights of the units of a sampled region, some of which stand for more of the region than others. Each weight has counts of its own, which are
//! multiplied by the weight and added up in the end.

use std::thread;

use super::details::{ContextCounts, Details};
use super::parts::Parts;
use super::subsamples::Subsamples;
use super::{Run, join, region_restart};
use crate::merge::MergedNumbers;
use crate::oracle::{Charged, Oracle};
use crate::over_time::timed;
use crate::{ContextWeights, Contexts, Evaluation, Profile};

/// Most weights that are told apart, as the counts of each take memory. A stream from elsewhere may have more weights: each further weight counts as
/// the nearest known one.
const MOST_WEIGHTS: usize = if cfg!(test) { 4 } else { 1 << 11 };

/// What is counted of cycles of one weight.
pub(super) struct WeightCounts {
    oracle: Oracle,
    parts: Parts,
    subsamples: Option<Box<Subsamples>>,
    details: Option<Box<Details>>,
    contexts: Option<ContextCounts>,
    cycles: u64,
    idle: u64,
    instructions: u64,
    traps: u64,
}

impl Run {
    /// Counts what follows with this weight: it stands for `weight` times its own length of the region.
    #[cold]
    pub(super) fn weigh(&mut self, weight: u64) {
        let weight = self.counted_weight(weight);
        if weight == self.weight {
            return;
        }
        self.count_thread();
        self.scripts.interrupt();
        if let Some(details) = &mut self.details {
            details.slots.close();
        }
        let known = self.others.iter().position(|(known, _)| *known == weight);
        let next = match known {
            Some(known) => self.others.swap_remove(known).1,
            None => self.no_counts(),
        };
        let counts = self.exchange(next);
        self.others.push((self.weight, counts));
        self.weight = weight;
        if let Some(details) = &mut self.details {
            details.select(self.process, self.busy);
        }
    }

    /// Returns the weight that is counted for `weight`: itself, unless there are too many others.
    fn counted_weight(&self, weight: u64) -> u64 {
        let known = self.others.iter().map(|(known, _)| *known).chain([self.weight]);
        match known.clone().count() < MOST_WEIGHTS {
            true => weight,
            false => known.min_by_key(|known| known.abs_diff(weight)).unwrap_or(weight),
        }
    }

    /// Returns empty counts, of all that is asked for.
    fn no_counts(&self) -> WeightCounts {
        let mut oracle = Oracle::new();
        let details = self.requested.width.map(|width| {
            oracle.count_commits();
            Box::new(Details::new(width))
        });
        WeightCounts {
            oracle,
            parts: Parts::new(self.views.iter().map(crate::view::View::filter)),
            subsamples: self.subsamples.as_ref().map(|subsamples| Box::new(subsamples.emptied())),
            details,
            contexts: self.stacks.as_ref().map(|stacks| stacks.no_counts()),
            cycles: 0,
            idle: 0,
            instructions: 0,
            traps: 0,
        }
    }

    /// Goes on with other counts, and returns those so far.
    pub(super) fn exchange(&mut self, next: WeightCounts) -> WeightCounts {
        use std::mem::replace;
        let cycles = self.profiled - replace(&mut self.weighed_from, self.profiled);
        let contexts = self.stacks.as_mut().zip(next.contexts);
        WeightCounts {
            oracle: replace(&mut self.oracle, next.oracle),
            parts: replace(&mut self.parts, next.parts),
            subsamples: replace(&mut self.subsamples, next.subsamples),
            details: replace(&mut self.details, next.details),
            contexts: contexts.map(|(stacks, next)| replace(&mut stacks.counts, next)),
            cycles: cycles + replace(&mut self.weighed, next.cycles),
            idle: replace(&mut self.idle, next.idle),
            instructions: replace(&mut self.instructions, next.instructions),
            traps: replace(&mut self.traps, next.traps),
        }
    }

    /// Takes the counts of all weights, those of the present one first.
    pub(super) fn take_counts(&mut self) -> Vec<(u64, WeightCounts)> {
        let none = self.no_counts();
        let mut counts = vec![(self.weight, self.exchange(none))];
        counts.append(&mut self.others);
        counts
    }
}

impl WeightCounts {
    /// Takes what the Oracle counted so far, also by calling context.
    pub(super) fn take_oracle(&mut self) -> (Oracle, ContextWeights) {
        let contexts = self.contexts.as_mut().map(ContextCounts::take);
        (std::mem::replace(&mut self.oracle, Oracle::new()), contexts.unwrap_or_default())
    }

    /// Instructions that committed so far.
    pub(super) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Idle cycles so far.
    pub(super) fn idle(&self) -> u64 {
        self.idle
    }

    /// Returns what was counted, and nothing of what does not depend on weights. `marked`: the profile of marked cycles is asked for.
    pub(super) fn finish(
        self,
        known: &Contexts,
        marked: bool,
        marked_before: Option<Profile>,
    ) -> Evaluation {
        let Self { oracle, parts, subsamples, details, contexts, cycles, idle, .. } = self;
        let (mut details, mut subsamples) = (details, subsamples);
        end_unit(&mut details, &mut subsamples);
        let (by_context, of_last_bin) = match contexts {
            Some(mut contexts) => {
                let of_last_bin = details.as_ref().map(|_| contexts.end_bin(known));
                (contexts.take(), of_last_bin.unwrap_or_default())
            }
            None => (Vec::new(), Vec::new()),
        };
        let (mut spinning, mut shared) = Default::default();
        let (slots, signatures, over_time) = match details.map(|details| *details) {
            Some(details) => {
                spinning = details.spinning.finish().stacks;
                shared = details.shared.finish();
                (Some(details.slots), Some(details.signatures), Some(details.over_time))
            }
            None => (None, None, None),
        };
        let (charged, bins) = match over_time {
            Some(over_time) => over_time.finish(oracle, of_last_bin, known),
            None => (oracle.finish(), Vec::new()),
        };
        let (commits, stalls) = (&charged.commits, &charged.stalls);
        let (top_down, signatures) = thread::scope(|scope| {
            let top_down = scope.spawn(|| slots.map(|slots| slots.finish(commits, stalls)));
            let signatures = signatures.map(|signatures| signatures.finish(stalls));
            (join(top_down), signatures)
        });
        let windows = top_down.as_ref().map_or(&[][..], |top_down| &top_down.windows);
        let over_time = timed(bins, windows);
        let Charged { profile, stacks, marked: of_marks, .. } = charged;
        let marked = marked.then(|| region_restart::since_restart(of_marks, marked_before));
        Evaluation {
            oracle: profile,
            stacks,
            spinning,
            shared,
            subsamples: subsamples.map_or_else(Vec::new, |subsamples| subsamples.finish()),
            by_context,
            marked,
            cycles: cycles + idle,
            idle,
            instructions: self.instructions,
            traps: self.traps,
            by_thread: parts.finish(),
            top_down,
            over_time,
            signatures,
            ..Evaluation::default()
        }
    }
}

impl Run {
    /// Ends a unit of a sampled region: its subsample takes the commit slots.
    pub(super) fn end_unit(&mut self) {
        end_unit(&mut self.details, &mut self.subsamples);
    }
}

/// Moves the commit slots since the last unit's end to the subsample that has the present unit.
fn end_unit(details: &mut Option<Box<Details>>, subsamples: &mut Option<Box<Subsamples>>) {
    if let (Some(details), Some(subsamples)) = (details, subsamples) {
        subsamples.add_slots(details.slots.take_since_last());
    }
}

/// Multiplies the counts of one stream's cycles by their weights, and adds them to `known`, which has what does not depend on weights.
pub(super) fn added_up(mut counted: Vec<(u64, Evaluation)>, known: Evaluation) -> Evaluation {
    for (weight, evaluation) in &mut counted {
        evaluation.multiply(*weight);
    }
    let numbers = MergedNumbers::same(&known);
    let parts: Vec<_> = counted.iter().map(|(_, evaluation)| (evaluation, &numbers)).collect();
    match &parts[..] {
        [] => known,
        [(first, _), ..] => Evaluation::sum(known, first, &parts),
    }
}

impl Evaluation {
    /// Takes all that was counted, where `self` has what does not depend on weights.
    pub(super) fn with_counts(self, counted: Self) -> Self {
        Self {
            contexts: self.contexts,
            samplers: self.samplers,
            static_info: self.static_info,
            first_use: self.first_use,
            kernel_text: self.kernel_text,
            stream_cycles: self.stream_cycles,
            malformed_side_band: self.malformed_side_band,
            scheduler: self.scheduler,
            processes: self.processes,
            threads: self.threads,
            scripts: self.scripts,
            ..counted
        }
    }

    /// Multiplies all counts of cycles. Samplers are left out: they have weighted each sample already.
    fn multiply(&mut self, weight: u64) {
        if weight == 1 {
            return;
        }
        self.oracle = self.oracle.times(weight);
        self.shared.iter_mut().for_each(|shared| *shared = shared.times(weight));
        self.marked = self.marked.take().map(|marked| marked.times(weight));
        for part in self.by_thread.values_mut() {
            (part.whole, part.marked) = (part.whole.times(weight), part.marked.times(weight));
        }
        let subsamples = self.subsamples.iter_mut();
        let stacks = subsamples.map(|subsample| {
            subsample.instructions = subsample.instructions.saturating_mul(weight);
            for slots in subsample.slots.values_mut().flat_map(|slots| &mut slots.0) {
                *slots = slots.saturating_mul(weight);
            }
            &mut subsample.stacks
        });
        let of_region = [&mut self.stacks, &mut self.spinning];
        let stacks = stacks.chain(of_region).flat_map(|stacks| &mut stacks.by_process);
        let top_down = self.top_down.iter_mut().flat_map(|top_down| &mut top_down.by_process);
        let signatures = self.signatures.iter_mut().flat_map(|of| &mut of.by_process);
        stacks.chain(top_down).chain(signatures).for_each(|packed| *packed = packed.times(weight));
        for (.., units) in &mut self.by_context {
            *units = units.saturating_mul(weight);
        }
        for window in self.top_down.iter_mut().flat_map(|top_down| &mut top_down.windows) {
            let spent = window.processes.iter_mut();
            let amounts =
                spent.flat_map(|(_, spent)| spent.slots.0.iter_mut().chain(&mut spent.cycles));
            for amount in amounts.chain([&mut window.cycles]) {
                *amount = amount.saturating_mul(weight);
            }
        }
        for time in self.over_time.iter_mut().flat_map(|bin| &mut bin.processes) {
            time.multiply(weight);
        }
        for amount in [&mut self.cycles, &mut self.idle, &mut self.instructions, &mut self.traps] {
            *amount = amount.saturating_mul(weight);
        }
    }
}
