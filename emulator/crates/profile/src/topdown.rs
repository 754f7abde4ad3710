//! Top-down analysis (Yasin, "A Top-Down method for performance analysis and counters architecture",
//! ISPASS 2014), counted in slots of the commit stage.
//!
//! A core of width *w* has *w* slots in every profiled cycle. A committing instruction uses one (Retiring);
//! each of the others is charged, exactly, to one cause and one instruction:
//!
//! | slots | cause, and the instruction charged |
//! |---|---|
//! | of a Stalled cycle | Backend Bound, by what the oldest waits for; the oldest |
//! | of a Flushed cycle | Bad Speculation; the instruction that emptied the ROB |
//! | of a Drained cycle | Frontend Latency; the first to enter next. Backend Bound in the cycles in which it had been decoded and dispatch refused it (full store queue, serialisation) |
//! | left over in a committing cycle: | |
//! | – the last to commit redirected the front end | Bad Speculation; that one |
//! | – the next is not in the ROB | Frontend Bandwidth, or Backend Bound if dispatch refused it; the next |
//! | – the next is in the ROB and of the same row | Backend Bound, by what the next waits for; the next |
//! | – the row ends, and all of it committed at once | Frontend Bandwidth (a short row); the next |
//! | – the row ends, and its start committed earlier | Backend Bound; the oldest of this cycle, which was late |
//!
//! The method counts where micro-ops are allocated; counted at commit a slot is time that was really lost, as in
//! the Oracle, and the sums agree with its cycles. What differs: wrong-path instructions are not in the stream, so
//! Bad Speculation is what commit lost by them, from the redirect to the refill's end (which Intel's later versions
//! put under Frontend Latency, "Branch Resteers"), and not slots that they took while commit had other work.
//! Flushes by CSR accesses, fences and atomics, exceptions and interrupts are Machine Clears. An atomic that
//! misses the last-level cache waits for DRAM, one whose line another hart has waits for that; any other is Serialising. A wait
//! for dispatch of more than 4,095 cycles (the record's limit) counts as Frontend beyond that.

mod count;
mod lost;
mod rules;

use commit_trace::InstId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProcessId;
use crate::packed::Packed;

pub(crate) use count::{Counter, WINDOWS};

/// What a slot was used for or lost to: a leaf of the method's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Slot {
    /// An instruction committed.
    Retiring = 0,
    /// Bad Speculation: a mispredicted branch or jump.
    Mispredict,
    /// Bad Speculation: any other flush of the pipeline.
    MachineClear,
    /// Frontend Latency: an L1 instruction cache miss.
    FetchCache,
    /// Frontend Latency: an instruction TLB miss.
    FetchTlb,
    /// Frontend Latency: anything else.
    FetchOther,
    /// Frontend Bandwidth.
    FetchBandwidth,
    /// Memory Bound: a load that hits in the L1 (its latency, translation, banks, forwarding).
    L1,
    /// Memory Bound: a load served by the L2.
    L2,
    /// Memory Bound: a load served by the last-level cache.
    Llc,
    /// Memory Bound: a load served by memory.
    Dram,
    /// Memory Bound: a load or an atomic whose line another hart's cache supplied or had to give up.
    Peer,
    /// Memory Bound: a store, or a full store queue.
    Store,
    /// Memory Bound: a device register.
    Device,
    /// Core Bound: an unpipelined divider.
    Divider,
    /// Core Bound: a CSR access, fence or atomic.
    Serialize,
    /// Core Bound: operands, execution units and ports.
    Ports,
}

impl Slot {
    /// Number of leaves.
    pub const COUNT: usize = Self::ALL.len();

    /// All leaves, in numeric order.
    pub const ALL: [Self; 17] = [
        Self::Retiring,
        Self::Mispredict,
        Self::MachineClear,
        Self::FetchCache,
        Self::FetchTlb,
        Self::FetchOther,
        Self::FetchBandwidth,
        Self::L1,
        Self::L2,
        Self::Llc,
        Self::Dram,
        Self::Peer,
        Self::Store,
        Self::Device,
        Self::Divider,
        Self::Serialize,
        Self::Ports,
    ];
}

/// Slots per leaf, in the order of [`Slot`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots(pub [u64; Slot::COUNT]);

impl Slots {
    /// Slots of all leaves.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl std::ops::Index<Slot> for Slots {
    type Output = u64;
    fn index(&self, slot: Slot) -> &u64 {
        &self.0[slot as usize]
    }
}

impl std::ops::IndexMut<Slot> for Slots {
    fn index_mut(&mut self, slot: Slot) -> &mut u64 {
        &mut self.0[slot as usize]
    }
}

impl std::ops::AddAssign for Slots {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// What time was spent on, as commit slots and as cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotsAndCycles {
    /// Commit slots per leaf.
    pub slots: Slots,
    /// Cycles per published category, in the order of [`crate::Category::ALL`].
    pub cycles: [u64; 7],
}

impl std::ops::AddAssign for SlotsAndCycles {
    fn add_assign(&mut self, other: Self) {
        self.slots += other.slots;
        for (mine, theirs) in self.cycles.iter_mut().zip(other.cycles) {
            *mine += theirs;
        }
    }
}

/// A run's slots. The slots of a process are `width` times its profiled cycles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopDown {
    /// Slots per cycle: the commit width.
    pub width: u32,
    /// Slots by process number. Each key is an instruction's number, with the leaf in the low [`SLOT_BITS`].
    pub(crate) by_process: Vec<Packed>,
    /// Slots and cycle stacks over time.
    pub windows: Vec<SlotWindow>,
}

/// Width of a [`Slot`] number, the low bits of a key in `by_process`.
pub(crate) const SLOT_BITS: u32 = 5;
const _: () = assert!(Slot::COUNT <= 1 << SLOT_BITS);

impl TopDown {
    /// Returns the slots of each instruction of a process that has any, by leaf; ascending.
    pub fn of(&self, process: ProcessId) -> impl Iterator<Item = (InstId, Slot, u64)> {
        let packed = self.by_process.get(process.0 as usize).into_iter();
        packed.flat_map(Packed::iter).map(|(number, slots)| {
            let inst = InstId((number >> SLOT_BITS) as u32);
            let leaf = number as usize & ((1 << SLOT_BITS) - 1);
            (inst, Slot::ALL[leaf], slots)
        })
    }
}

/// A stretch of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotWindow {
    /// The window's first cycle.
    pub start: u64,
    /// First cycle after the window.
    pub end: u64,
    /// Profiled cycles in the window: neither idle nor outside of the region of interest.
    pub cycles: u64,
    /// What each process spent, ascending.
    pub processes: Vec<(ProcessId, SlotsAndCycles)>,
}

/// A node of the method's tree.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Node {
    /// Unique name: the path of the parent, a dot, and the node's own name.
    pub path: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// 1 for the roots.
    pub level: u8,
    /// Share of all slots above which the method says to look closer, if the parent's threshold says so too. It is the seed
    /// documents' threshold where they name one (mispredicts 5 %, frontend bandwidth 10 %, ports 25 %), else that of Intel's
    /// TMA metrics for Skylake.
    pub threshold: Option<f64>,
    /// The node's first and last leaf.
    #[serde(skip)]
    leaves: (Slot, Slot),
}

const fn node(
    path: &'static str,
    name: &'static str,
    level: u8,
    threshold: f64,
    leaves: (Slot, Slot),
) -> Node {
    let threshold = if threshold > 0.0 { Some(threshold) } else { None };
    Node { path, name, level, threshold, leaves }
}

/// The tree, parents before their children.
pub const NODES: [Node; 23] = {
    use Slot::*;
    [
        node("retiring", "Retiring", 1, 0.7, (Retiring, Retiring)),
        node("bad_speculation", "Bad Speculation", 1, 0.15, (Mispredict, MachineClear)),
        node(
            "bad_speculation.mispredicts",
            "Branch Mispredicts",
            2,
            0.05,
            (Mispredict, Mispredict),
        ),
        node("bad_speculation.clears", "Machine Clears", 2, 0.1, (MachineClear, MachineClear)),
        node("frontend", "Frontend Bound", 1, 0.15, (FetchCache, FetchBandwidth)),
        node("frontend.latency", "Latency", 2, 0.1, (FetchCache, FetchOther)),
        node("frontend.latency.icache", "I-cache misses", 3, 0.05, (FetchCache, FetchCache)),
        node("frontend.latency.itlb", "ITLB misses", 3, 0.05, (FetchTlb, FetchTlb)),
        node("frontend.latency.other", "Other", 3, 0.0, (FetchOther, FetchOther)),
        node("frontend.bandwidth", "Bandwidth", 2, 0.1, (FetchBandwidth, FetchBandwidth)),
        node("backend", "Backend Bound", 1, 0.2, (L1, Ports)),
        node("backend.memory", "Memory", 2, 0.2, (L1, Device)),
        node("backend.memory.l1", "L1", 3, 0.1, (L1, L1)),
        node("backend.memory.l2", "L2", 3, 0.05, (L2, L2)),
        node("backend.memory.llc", "LLC", 3, 0.05, (Llc, Llc)),
        node("backend.memory.dram", "DRAM", 3, 0.1, (Dram, Dram)),
        node("backend.memory.peer", "Other harts", 3, 0.05, (Peer, Peer)),
        node("backend.memory.store", "Store", 3, 0.2, (Store, Store)),
        node("backend.memory.device", "Device registers", 3, 0.0, (Device, Device)),
        node("backend.core", "Core", 2, 0.1, (Divider, Ports)),
        node("backend.core.divider", "Divider", 3, 0.2, (Divider, Divider)),
        node("backend.core.serializing", "Serialising", 3, 0.1, (Serialize, Serialize)),
        node("backend.core.ports", "Ports", 3, 0.25, (Ports, Ports)),
    ]
};

impl Node {
    /// Returns the node's slots.
    pub fn of(&self, slots: &Slots) -> u64 {
        slots.0[self.leaves.0 as usize..=self.leaves.1 as usize].iter().sum()
    }

    /// The node's path without its last name; `None` for roots.
    pub fn parent(&self) -> Option<&'static str> {
        self.path.rsplit_once('.').map(|(parent, _)| parent)
    }
}

#[cfg(test)]
mod tests;
