//! Top-down: what happens to each slot of decode, as many as the core is wide in each cycle.
//!
//! Kinds and names are those of the RISC-V performance events draft, with BOOM's definitions (riscv-boom, pull request 770) at the first level:
//! a slot that the front end leaves empty is its own while decode could take an instruction, and nobody recovers from a
//! misprediction, flush or trap; recovery lasts until the next instruction is there; a slot in which decode has to wait is the back end's.
//! Of wrong paths nothing is simulated. Behind a mispredicted branch, and behind what traps, full groups are taken to be decoded until the
//! ROB is full: bad speculation; then decode waits. Behind a serialising instruction it waits until that has committed.

use std::collections::VecDeque;

use commit_trace::{CommitRecord, CycleClass, Redirect, TeaEvents};
use isa::PerfEvent;

use super::watch::Watch;

/// What a slot is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum SlotKind {
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
    /// The first of those that wait for the oldest instruction, by its class.
    Waits,
}

/// Cycles from the restart of fetch to the decode of what it fetches, if nothing is in the way.
const REFILL: u64 = 5;

const CLASSES: usize = CycleClass::ALL.len();
const KINDS: usize = SlotKind::Waits as usize + CLASSES;

/// Slots by kind.
type SlotsByKind = [u32; KINDS];

const MEMORY: [CycleClass; 6] = [
    CycleClass::LoadL1,
    CycleClass::LoadL2,
    CycleClass::LoadLlc,
    CycleClass::LoadDram,
    CycleClass::Store,
    CycleClass::Device,
];

/// The kinds that an event is the sum of; `None`: it is no event of slots.
fn kinds(event: PerfEvent) -> Option<Vec<usize>> {
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
        E::SlotsMemoryLlc => vec![waits(C::LoadLlc)],
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

/// How much a slot of each kind counts for, and an instruction decoded, in a sum of events.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    slots: [u32; KINDS],
    decoded: u32,
}

snapshot::snapshot!(Weights { slots, decoded });

impl Weights {
    /// `None`: one of them is no event of decode.
    pub fn of(events: impl Iterator<Item = PerfEvent>) -> Option<Self> {
        let mut weights = Self {
            slots: [0; KINDS],
            decoded: 0,
        };
        for event in events {
            match event {
                PerfEvent::Decoded => weights.decoded += 1,
                _ => kinds(event)?
                    .into_iter()
                    .for_each(|kind| weights.slots[kind] += 1),
            }
        }
        Some(weights)
    }

    fn sum(&self, slots: &SlotsByKind, decoded: u32) -> u32 {
        let slots = self.slots.iter().zip(slots).map(|(a, b)| a * b);
        slots.sum::<u32>() + self.decoded * decoded
    }
}

/// A decode group, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct DecodeGroup {
    /// Instructions, and those of them that retired.
    decoded: u32,
    retired: u32,
}

snapshot::snapshot!(DecodeGroup { decoded, retired });

/// Counts slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    width: u32,
    totals: [u64; KINDS],
    decoded: u64,
    /// Its slots are not in the totals. `None`: the core woke up, and has decoded nothing.
    group: Option<DecodeGroup>,
    /// What the last instruction did to those after it: a kind.
    redirect: Option<u32>,
    /// Cycle in which it left the ROB.
    left: u64,
    /// By row in the ROB, and rows that it has: the cycle in which its last instruction leaves.
    rows: VecDeque<u64>,
    row_count: u32,
    /// Cycle in which the group was decoded, or up to which the core slept.
    cycle: u64,
    /// Cycle in which its last instruction was dispatched.
    dispatched: u64,
    /// Cycles of commits, and the class of what was the oldest instruction until then.
    heads: VecDeque<(u64, u8)>,
}

snapshot::snapshot!(Slots {
    width,
    totals,
    decoded,
    group,
    redirect,
    left,
    rows,
    row_count,
    cycle,
    dispatched,
    heads
});

/// A counter's condition of what is decoded.
#[derive(Clone, Debug, Default)]
pub(super) struct DecodeWatch {
    pub counter: usize,
    pub weights: Weights,
    pub watch: Watch,
}

snapshot::snapshot!(DecodeWatch {
    counter,
    weights,
    watch
});

/// Who is told of each cycle of decode.
pub(super) type Watches<'a> = &'a mut [DecodeWatch];

impl Slots {
    /// Those of a core so wide, with so many rows in its ROB, which has decoded in that cycle.
    pub fn new(width: u32, row_count: u32, decoded: u64) -> Self {
        Self {
            width,
            row_count,
            left: decoded,
            rows: VecDeque::new(),
            totals: [0; KINDS],
            decoded: 0,
            group: None,
            redirect: None,
            cycle: decoded,
            dispatched: decoded,
            heads: VecDeque::new(),
        }
    }

    /// Cycle of the last decode.
    pub fn decoded_in(&self) -> u64 {
        self.cycle
    }

    /// Total of an event.
    pub fn count(&self, event: PerfEvent) -> Option<u64> {
        let DecodeGroup { decoded, retired } = self.group.unwrap_or_default();
        if event == PerfEvent::Decoded {
            return Some(self.decoded + u64::from(decoded));
        }
        let kinds = kinds(event)?;
        let open = match kinds.contains(&(SlotKind::Retiring as usize)) {
            true => retired,
            false => 0,
        };
        let closed = kinds.iter().map(|&kind| self.totals[kind]).sum::<u64>();
        Some(closed + u64::from(open))
    }

    /// An instruction that left the ROB in `commit`, and was the oldest before if it did not leave with the one before.
    pub fn take(&mut self, record: &CommitRecord, commit: u64, watches: Watches<'_>) {
        let dispatched = record.dispatch(commit).saturating_sub(1);
        if record.first_of_row() {
            let decode = record.decode(commit).max(self.cycle + 1);
            self.close_group(watches);
            self.gap(decode, record.tea(), watches);
            while self.rows.front().is_some_and(|&leaves| leaves < decode) {
                self.rows.pop_front();
            }
            self.cycle = decode;
            self.rows.push_back(commit);
        }
        if let Some(leaves) = self.rows.back_mut() {
            *leaves = commit;
        }
        self.left = commit;
        self.dispatched = dispatched;
        if record.commit_delta != 0 {
            self.heads.push_back((commit, record.class() as u8));
        }
        let group = self.group.get_or_insert_default();
        group.decoded += 1;
        group.retired += u32::from(!record.is_trap());
        self.redirect = match record.redirect() {
            Redirect::None => None,
            Redirect::Mispredict => Some(SlotKind::Mispredict as u32),
            Redirect::Flush => Some(SlotKind::Flush as u32),
            Redirect::Exception if record.tea().contains(TeaEvents::FL_MO) => {
                Some(SlotKind::Order as u32)
            }
            Redirect::Exception | Redirect::Interrupt => Some(SlotKind::Trap as u32),
        };
    }

    /// The slots of the group's own cycle.
    fn close_group(&mut self, watches: Watches<'_>) {
        let Some(DecodeGroup { decoded, retired }) = self.group.take() else {
            return;
        };
        let mut slots = [0; KINDS];
        slots[SlotKind::Retiring as usize] = retired;
        let rest =
            { self.redirect }.map_or(SlotKind::FetchBandwidth as usize, |kind| kind as usize);
        slots[rest] += self.width.saturating_sub(retired);
        for (total, &more) in self.totals.iter_mut().zip(&slots) {
            *total += u64::from(more);
        }
        self.decoded += u64::from(decoded);
        for DecodeWatch { weights, watch, .. } in watches {
            watch.span(self.cycle, self.cycle + 1, weights.sum(&slots, decoded));
        }
    }

    /// The slots between the group and the next one, which is decoded in cycle `decode`, and was delayed by `tea`.
    fn gap(&mut self, decode: u64, tea: TeaEvents, watches: Watches<'_>) {
        let from = self.cycle + 1;
        if let Some(kind) = self.redirect {
            let recovers = match kind == SlotKind::Mispredict as u32 {
                true => decode.saturating_sub(REFILL),
                false => self.left + 1,
            };
            let recovers = recovers.clamp(from, decode);
            match kind == SlotKind::Flush as u32 {
                true => self.wait(from, recovers, watches),
                false => self.wrong_path(from, recovers, kind as usize, watches),
            }
            self.empty(recovers, decode, kind as usize, watches);
            return;
        }
        let waits = self.dispatched.clamp(from, decode);
        self.wait(from, waits, watches);
        let kind = if tea.contains(TeaEvents::DR_TLB) {
            SlotKind::Itlb
        } else if tea.contains(TeaEvents::DR_L1) {
            SlotKind::Icache
        } else {
            SlotKind::Resteer
        };
        self.empty(waits, decode, kind as usize, watches);
    }

    /// Wrong instructions are decoded from cycle `from` to before `to`, while the ROB has room.
    fn wrong_path(&mut self, from: u64, to: u64, kind: usize, watches: Watches<'_>) {
        let mut wrong = 0;
        for cycle in from..to {
            while self.rows.front().is_some_and(|&leaves| leaves < cycle) {
                self.rows.pop_front();
            }
            if self.rows.len() + wrong < self.row_count as usize {
                wrong += 1;
                self.empty(cycle, cycle + 1, kind, watches);
            } else {
                self.wait(cycle, cycle + 1, watches);
            }
        }
    }

    /// Decode waits from cycle `from` to before `to`: for the oldest instruction of each.
    fn wait(&mut self, from: u64, to: u64, watches: Watches<'_>) {
        let mut from = from;
        while from < to {
            match self.heads.front() {
                Some(&(commit, _)) if commit < from => {
                    self.heads.pop_front();
                }
                Some(&(commit, class)) => {
                    let waits = commit.min(to);
                    self.empty(
                        from,
                        waits,
                        SlotKind::Waits as usize + usize::from(class),
                        watches,
                    );
                    from = to.min(commit + 1);
                    self.empty(waits, from, SlotKind::Commit as usize, watches);
                }
                None => {
                    let serialize = SlotKind::Waits as usize + CycleClass::Serialize as usize;
                    self.empty(from, to, serialize, watches);
                    return;
                }
            }
        }
    }

    /// All slots of the cycles from `from` to before `to` are of a kind.
    fn empty(&mut self, from: u64, to: u64, kind: usize, watches: Watches<'_>) {
        if from >= to {
            return;
        }
        self.totals[kind] += (to - from) * u64::from(self.width);
        for DecodeWatch { weights, watch, .. } in watches {
            watch.span(from, to, weights.slots[kind] * self.width);
        }
    }

    /// The core sleeps from cycle `from` to `to`: these cycles have no slots.
    pub fn sleep(&mut self, from: u64, to: u64, watches: Watches<'_>) {
        self.close_group(watches);
        self.wait(self.cycle + 1, from + 1, watches);
        for DecodeWatch { watch, .. } in watches {
            watch.skip(to + 1);
        }
        self.cycle = self.cycle.max(to);
        self.dispatched = self.cycle;
        self.heads.clear();
        self.rows.clear();
    }
}
