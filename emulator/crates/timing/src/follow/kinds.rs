//! Kinds of slots, and which of them events count.

use commit_trace::{CommitRecord, CycleClass, InstId, TeaEvents};
use isa::PerfEvent;

use crate::window::Restart;

/// What a slot is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum SlotKind {
    Retiring,
    FetchBandwidth,
    Icache,
    Itlb,
    Resteer,
    Mispredict,
    Flush,
    Order,
    Trap,
    /// Decode waits though something commits.
    Commit,
    /// Decode waits for the oldest instruction: the first of the kinds, one for each [`CycleClass`].
    Waits,
}

pub(super) const RETIRING: usize = SlotKind::Retiring as usize;
pub(super) const FETCH_BANDWIDTH: usize = SlotKind::FetchBandwidth as usize;
pub(super) const COMMIT: usize = SlotKind::Commit as usize;

const CLASSES: usize = CycleClass::ALL.len();
pub(super) const KINDS: usize = SlotKind::Waits as usize + CLASSES;

const MEMORY: [CycleClass; 7] = [
    CycleClass::LoadL1,
    CycleClass::LoadL2,
    CycleClass::LoadLlc,
    CycleClass::LoadDram,
    CycleClass::LoadPeer,
    CycleClass::Store,
    CycleClass::Device,
];

/// Returns the kinds that an event is the sum of; `None`: it is no event of slots.
pub(super) fn kinds(event: PerfEvent) -> Option<Vec<usize>> {
    use {CycleClass as C, PerfEvent as E, SlotKind as K};
    let kind = |kind: SlotKind| vec![kind as usize];
    let waits = |class: CycleClass| K::Waits as usize + class as usize;
    let all = |kinds: &[SlotKind]| kinds.iter().map(|&kind| kind as usize).collect();
    let clears = [K::Flush, K::Order, K::Trap];
    let latency = [K::Icache, K::Itlb, K::Resteer];
    let memory = || MEMORY.map(waits).to_vec();
    let core = || {
        let classes = [C::Alu, C::Divider, C::Serialize].map(waits);
        [vec![K::Commit as usize], classes.to_vec()].concat()
    };
    Some(match event {
        E::Slots => (0..KINDS).collect(),
        E::SlotsRetiring => kind(K::Retiring),
        E::SlotsFrontend => [all(&latency), kind(K::FetchBandwidth)].concat(),
        E::SlotsBackend => [memory(), core()].concat(),
        E::SlotsBadSpeculation => [all(&clears), kind(K::Mispredict)].concat(),
        E::SlotsFetchLatency => all(&latency),
        E::SlotsFetchBandwidth => kind(K::FetchBandwidth),
        E::SlotsIcache => kind(K::Icache),
        E::SlotsItlb => kind(K::Itlb),
        E::SlotsResteer => kind(K::Resteer),
        E::SlotsMispredict => kind(K::Mispredict),
        E::SlotsMachineClear => all(&clears),
        E::SlotsFlush => kind(K::Flush),
        E::SlotsOrder => kind(K::Order),
        E::SlotsTrap => kind(K::Trap),
        E::SlotsMemory => memory(),
        E::SlotsCore => core(),
        E::SlotsMemoryL1 => vec![waits(C::LoadL1)],
        E::SlotsMemoryL2 => vec![waits(C::LoadL2)],
        E::SlotsMemoryLlc => vec![waits(C::LoadLlc), waits(C::LoadPeer)],
        E::SlotsMemoryDram => vec![waits(C::LoadDram)],
        E::SlotsMemoryStore => vec![waits(C::Store)],
        E::SlotsMemoryDevice => vec![waits(C::Device)],
        E::SlotsCoreDivider => vec![waits(C::Divider)],
        E::SlotsCoreSerialize => vec![waits(C::Serialize)],
        E::SlotsCoreExecution => vec![waits(C::Alu)],
        E::SlotsCoreCommit => kind(K::Commit),
        _ => return None,
    })
}

impl SlotKind {
    /// Returns the kind of slots lost by a restart of the front end.
    pub(super) fn of(restart: Restart) -> Self {
        match restart {
            Restart::Mispredict => Self::Mispredict,
            Restart::Flush => Self::Flush,
            Restart::Order => Self::Order,
            Restart::Trap => Self::Trap,
        }
    }
}

/// Returns the kind of slots that are empty because the next instruction is late, by the reason in the mark of its
/// record.
#[inline(always)]
pub(super) fn late(mark: u32) -> SlotKind {
    let tea = CommitRecord::from_packed(InstId(0), 0, 0, mark).tea();
    if tea.contains(TeaEvents::DR_TLB) {
        SlotKind::Itlb
    } else if tea.contains(TeaEvents::DR_L1) {
        SlotKind::Icache
    } else {
        SlotKind::Resteer
    }
}

/// Returns true if the event is of some of the slots in which decode waits, but not of all.
pub(super) fn is_of_some_waits(event: PerfEvent) -> bool {
    let waits = |kind: &usize| *kind >= COMMIT;
    let of = kinds(event).map_or(0, |kinds| kinds.iter().filter(|&kind| waits(kind)).count());
    of != 0 && of != KINDS - COMMIT
}

/// Returns true if the event is one of slots.
pub(super) fn is_of_slots(event: PerfEvent) -> bool {
    kinds(event).is_some()
}

/// How much a slot of each kind, and an instruction decoded, counts for in a sum of events.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    pub slots: [u32; KINDS],
    decoded: u32,
}

snapshot::snapshot!(Weights { slots, decoded });

impl Weights {
    /// Returns the weights of a sum of events; `None`: one of them is no event of decode.
    pub(super) fn of(events: impl Iterator<Item = PerfEvent>) -> Option<Self> {
        let mut weights = Self { slots: [0; KINDS], decoded: 0 };
        for event in events {
            match event {
                PerfEvent::Decoded => weights.decoded += 1,
                _ => kinds(event)?.into_iter().for_each(|kind| weights.slots[kind] += 1),
            }
        }
        Some(weights)
    }

    /// Returns true if not all slots in which decode waits count for the same.
    pub(super) fn tells_waits(&self) -> bool {
        let waits = &self.slots[COMMIT..];
        waits.iter().any(|weight| *weight != waits[0])
    }

    /// Returns what a decode group counts for: of its `decoded` instructions `retired` retire, and its other slots, up
    /// to `width`, are of kind `rest`.
    #[inline(always)]
    pub(super) fn of_group(&self, width: u32, decoded: u32, retired: u32, rest: usize) -> u32 {
        let lost = width.saturating_sub(retired);
        self.slots[SlotKind::Retiring as usize] * retired
            + self.slots[rest] * lost
            + self.decoded * decoded
    }
}
