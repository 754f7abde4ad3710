//! Time by event: TEA (Gottschall, Eeckhout, Jahre, "TEA: Time-Proportional Event Analysis", ISCA 2023).
//!
//! Each instruction's cycles are split by its *signature*: which of the events it met ([`TeaEvents`]). The reference has
//! every cycle, charged as the Oracle charges it; TEA has TIP's samples, each with the signature of the instruction that
//! it names. The other profilers that see the events of the instruction they name (NCI as PEBS, Dispatch as IBS and SPE) are
//! given the same bits, so that they differ from TEA only in the instruction that they name.

use commit_trace::{CommitRecord, InstId, MAX_COMMIT_WIDTH, Span, State, TeaEvents};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::block::{Block, bits};
use crate::counts::{OwnedTally, packed};
use crate::dense::{DenseTally, Sum};
use crate::oracle::{SHARE, UNITS_PER_CYCLE};
use crate::packed::Packed;
use crate::stacks::COMPONENT_BITS;
use crate::stalls::counted_as;
use crate::tally::Tally;
use crate::{Component, ProcessId, Profile};

/// Units per process, instruction and signature, for signatures with any event. The rest of an instruction's units in a
/// profile met no event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signatures {
    /// Units by process number. Each key is an instruction's number, with the events in the low [`TeaEvents::BITS`].
    pub(crate) by_process: Vec<Packed>,
}

impl Signatures {
    /// Every weight of a process, ascending by instruction and events.
    pub fn of(&self, process: ProcessId) -> impl Iterator<Item = (InstId, TeaEvents, u64)> {
        let packed = self.by_process.get(process.0 as usize).into_iter();
        packed.flat_map(Packed::iter).map(|(number, units)| {
            let events = number as u16 & TeaEvents::ALL.0;
            let inst = InstId((number >> TeaEvents::BITS) as u32);
            (inst, TeaEvents(events), units)
        })
    }

    /// Returns every weight of a process, ascending by instruction and events, also the units of `profile` without an event.
    pub fn with_base(
        &self,
        profile: &Profile,
        process: ProcessId,
    ) -> Vec<(InstId, TeaEvents, u64)> {
        let mut out: Vec<_> = self.of(process).collect();
        let mut base: Vec<(InstId, u64)> = profile.of(process).collect();
        for (inst, _, units) in &out {
            if let Ok(at) = base.binary_search_by_key(inst, |(inst, _)| *inst) {
                base[at].1 = base[at].1.saturating_sub(*units);
            }
        }
        let none = base.into_iter().filter(|(_, units)| *units > 0);
        out.extend(none.map(|(inst, units)| (inst, TeaEvents::default(), units)));
        // Both are in order already, which a stable sort makes use of.
        out.sort_by_key(|(inst, events, _)| (*inst, events.0));
        out
    }
}

/// Counts the [`Signatures`] of all cycles.
#[derive(Debug)]
pub(crate) struct CycleSignatures(DenseTally<{ TeaEvents::BITS }>);

impl CycleSignatures {
    pub(crate) fn new() -> Self {
        let mut signatures = Self(DenseTally::default());
        signatures.select(ProcessId::BOOT);
        signatures
    }

    /// A process runs from here on.
    pub(crate) fn select(&mut self, process: ProcessId) {
        self.0.select(process.0 as usize);
    }

    /// Charges a profiled span as the Oracle does, except stalls, which [`Self::finish`] is given.
    #[inline(always)]
    pub(crate) fn span(&mut self, span: &Span<'_>) {
        match span.state {
            State::Computing => {
                let share = SHARE[span.records.len()];
                span.records.iter().for_each(|record| self.add(record, share));
            }
            State::Drained | State::Flushed => {
                if let Some(record) = span.records.first() {
                    self.add(record, span.cycles * UNITS_PER_CYCLE);
                }
            }
            State::Stalled | State::Idle => {}
        }
    }

    #[inline(always)]
    fn add(&mut self, record: &CommitRecord, units: u64) {
        let events = record.tea().0;
        if events != 0 {
            self.0.add(record.inst, events.into(), units);
        }
    }

    /// Charges a block's cycles with a commit.
    #[inline(always)]
    pub(crate) fn block(&mut self, block: &Block<'_>) {
        // Few records met an event.
        let shares = bits(block.events).map(|at| {
            let record = &block.records[at];
            let share = SHARE[block.size_of(at)] as u32;
            (record.inst, Sum::new(record.tea().0.into(), share))
        });
        self.0.add_each(shares);
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn pack_cold(
        &mut self,
        processes: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool,
    ) {
        let processes = processes.iter().map(|process| process.0 as usize);
        let is_cold = |process| is_cold(ProcessId(process as u32));
        self.0.pack_cold(processes, is_cold);
    }

    /// The result; `stalls` are each process's, as the Oracle counts them.
    pub(crate) fn finish(self, stalls: &[Packed]) -> Signatures {
        let events = |record: &CommitRecord| {
            let events = record.tea().0;
            (events != 0).then_some((events.into(), UNITS_PER_CYCLE))
        };
        let mut others = self.0.owners();
        let owners = others.count().max(stalls.len());
        let by_process = packed(owners, |process, all| {
            others.next_into(all);
            let stalls = stalls.get(process).into_iter().flat_map(Packed::iter);
            all.extend(counted_as(stalls, TeaEvents::BITS, events));
        });
        Signatures { by_process }
    }
}

/// Counts the [`Signatures`] of samples, which are few.
#[derive(Debug, Default)]
pub(crate) struct SampleSignatures(OwnedTally<{ TeaEvents::BITS }>);

impl SampleSignatures {
    /// Gives `units` to a record's instruction and events.
    #[inline]
    pub(crate) fn add(&mut self, process: ProcessId, record: &CommitRecord, units: u64) {
        let events = record.tea().0;
        if events == 0 {
            return;
        }
        self.0.add(process.0 as usize, record.inst, events.into(), units);
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn pack_cold(&mut self, is_cold: impl Fn(ProcessId) -> bool) {
        self.0.pack_cold(|process| is_cold(ProcessId(process as u32)));
    }

    pub(crate) fn finish(self) -> Signatures {
        Signatures { by_process: self.0.finish() }
    }
}

/// Time that a profiler gave to one instruction while the Oracle, in the cycles of the samples' triggers, had
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misplaced {
    /// The process that ran.
    pub process: ProcessId,
    /// The instruction that the profiler named.
    pub named: InstId,
    /// The instruction that the Oracle charged (the oldest, if several committed).
    pub truth: InstId,
    /// The component that the Oracle charged the instruction for.
    pub component: Component,
    /// Units of the profile.
    pub units: u64,
}

/// The process, the instruction that was named, the one that the Oracle charged, and its component.
type Place = (ProcessId, InstId, InstId, Component);

/// Places below which a search for those of ended processes is not worth its time.
const WORTH: usize = if cfg!(test) { 1 } else { 1 << 14 };

/// Places of a process that are kept. A sampler has nearly as many places as samples, and nearly all weigh next to nothing.
const MAX_PLACES_PER_PROCESS: usize = 100;

/// The commit state of a cycle, and the records that the Oracle charges the cycle to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth<'a> {
    pub(crate) state: State,
    pub(crate) records: &'a [CommitRecord],
}

/// A [`Truth`] that is kept from a trigger until its sample.
#[derive(Debug)]
struct KeptTruth {
    state: State,
    records: [CommitRecord; MAX_COMMIT_WIDTH],
    len: usize,
}

impl Default for KeptTruth {
    fn default() -> Self {
        Self {
            state: State::Idle,
            records: [CommitRecord::from_packed(InstId(0), 0, 0, 0); MAX_COMMIT_WIDTH],
            len: 0,
        }
    }
}

/// Counts [`Misplaced`] time.
#[derive(Debug, Default)]
pub(crate) struct MisplacedCounter {
    /// The truth of the cycle in which the pending sample was triggered.
    truth: KeptTruth,
    /// Units by place, as [`pack_place`] packs it.
    units: Tally,
    /// Units of the places that [`pack_place`] cannot pack.
    others: FxHashMap<Place, u64>,
    /// Places of ended processes, cut to [`MAX_PLACES_PER_PROCESS`].
    ended: Vec<Misplaced>,
    /// Places that remained after the last search for those of ended processes.
    left: usize,
}

impl MisplacedCounter {
    /// Keeps the truth of a trigger whose sample is pending.
    #[inline(always)]
    pub(crate) fn await_sample(&mut self, truth: Truth<'_>) {
        let kept = &mut self.truth;
        (kept.state, kept.len) = (truth.state, 0);
        for (place, record) in kept.records.iter_mut().zip(truth.records) {
            *place = *record;
            kept.len += 1;
        }
    }

    /// Counts the `units` that a sample gives to `named`, if they are misplaced. Without `truth`, the truth is the pending
    /// sample's.
    #[inline(always)]
    pub(crate) fn named(
        &mut self,
        truth: Option<Truth<'_>>,
        process: ProcessId,
        named: InstId,
        units: u64,
    ) {
        let Truth { state, records } = truth.unwrap_or(Truth {
            state: self.truth.state,
            records: &self.truth.records[..self.truth.len],
        });
        if let Some(first) = records.first()
            && records.iter().all(|record| record.inst != named)
        {
            let component = crate::oracle::component(state, first);
            self.add((process, named, first.inst, component), units);
        }
    }

    fn add(&mut self, place: Place, units: u64) {
        match pack_place(place) {
            Some(number) => self.units.add(number, units),
            None => *self.others.entry(place).or_default() += units,
        }
    }

    fn len(&self) -> usize {
        self.units.len() + self.others.len()
    }

    /// Cuts the places of ended processes. The search looks at all places: therefore it waits until there are twice as many places as after the last
    /// search.
    pub(crate) fn pack_cold(&mut self, has_ended: impl Fn(ProcessId) -> bool) {
        if self.len() < 2 * self.left.max(WORTH) {
            return;
        }
        let has_ended = |place: Place| has_ended(place.0);
        let ended = self.units.take(|number| has_ended(unpack_place(number))).into_iter();
        let ended = ended.map(|(number, units)| (unpack_place(number), units));
        let others = self.others.extract_if(|place, _| has_ended(*place));
        self.ended.extend(heaviest(ended.chain(others)));
        self.left = self.len();
    }

    /// The places with the most units first, up to [`MAX_PLACES_PER_PROCESS`] of each process.
    pub(crate) fn finish(mut self) -> Vec<Misplaced> {
        // A process that ran after it ended, as the kernel frees its resources, is in both.
        for m in std::mem::take(&mut self.ended) {
            self.add((m.process, m.named, m.truth, m.component), m.units);
        }
        let units = self.units.into_sums();
        let units = units.map(|(number, units)| (unpack_place(number), units));
        heaviest(units.chain(self.others))
    }
}

/// Bits of an instruction's number in what [`pack_place`] returns. The process has the bits that the two instructions and the
/// component leave.
const INST_BITS: u32 = 23;

/// Packs a place into a number, if its parts fit. Neighbouring named instructions are neighbouring numbers.
fn pack_place((process, named, truth, component): Place) -> Option<u64> {
    let is_short = (named.0 | truth.0) >> INST_BITS == 0
        && process.0 >> (u64::BITS - 2 * INST_BITS - COMPONENT_BITS) == 0;
    let number = u64::from(process.0) << COMPONENT_BITS | component as u64;
    let number = (number << INST_BITS | u64::from(truth.0)) << INST_BITS | u64::from(named.0);
    is_short.then_some(number)
}

/// Returns the place that [`pack_place`] packed.
fn unpack_place(number: u64) -> Place {
    let inst = |number: u64| InstId(number as u32 & ((1 << INST_BITS) - 1));
    let rest = number >> (2 * INST_BITS);
    let component = Component::ALL[rest as usize & ((1 << COMPONENT_BITS) - 1)];
    let process = ProcessId((rest >> COMPONENT_BITS) as u32);
    (process, inst(number), inst(number >> INST_BITS), component)
}

/// The places with the most units first, up to [`MAX_PLACES_PER_PROCESS`] of each process.
pub(crate) fn heaviest(units: impl IntoIterator<Item = (Place, u64)>) -> Vec<Misplaced> {
    let misplaced = |((process, named, truth, component), units)| Misplaced {
        process,
        named,
        truth,
        component,
        units,
    };
    let order =
        |m: &Misplaced| (std::cmp::Reverse(m.units), m.process, m.named, m.truth, m.component);
    let mut by_process = FxHashMap::<ProcessId, Vec<Misplaced>>::default();
    for m in units.into_iter().map(misplaced) {
        by_process.entry(m.process).or_default().push(m);
    }
    let mut kept = Vec::new();
    for mut list in by_process.into_values() {
        if list.len() > MAX_PLACES_PER_PROCESS {
            list.select_nth_unstable_by_key(MAX_PLACES_PER_PROCESS, order);
            list.truncate(MAX_PLACES_PER_PROCESS);
        }
        kept.extend(list);
    }
    kept.sort_unstable_by_key(order);
    kept.shrink_to_fit();
    kept
}

#[cfg(test)]
mod tests;
