//! The load/store unit (`lsu/lsu.scala`).
//!
//! An access that issues in cycle *i* has its address in *i* + 2 (S0: TLB, request to the data cache),
//! searches the queues in *i* + 3 and answers in *i* + 4 (S2).

mod load;
mod queue;
pub(crate) mod store;

use isa::{MemAccess, StaticId};

use crate::Preset;
use crate::mem::{L1d, LINE_BITS, Level, Lower, PaddedLines, SharedMemory, TlbSide, Walk};
use crate::micro_op::{MicroOp, ring};
use crate::observe::Translated;
use crate::path::{StoreMatch, WalkReads};
use crate::schedule::Schedule;
use commit_trace::{CycleClass, TeaEvents};
use queue::Stores;

/// Cycles from issue to S0, the first stage of the data cache's pipeline.
pub(crate) const S0: u64 = 2;
/// Cycles from S0 to a load's search of the store queue.
pub(crate) const SEARCH: u64 = 1;
/// S0 to the first commit of a load, and to the issue of dependents that were not woken early.
const ANSWER: u64 = 3;
/// Cycles between two tries of a load that waits for a store, and between a refused and a repeated access.
const RETRY: u64 = 3;
/// The data cache port that stores share with the first memory port, as a bit of [`Schedule`].
pub(crate) const STORE_PORT: u32 = 1 << 9;

/// Entries that remember which row of the data cache was read in a cycle.
const BANKS: usize = 256;

/// A load or store that was executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    pub id: StaticId,
    /// Physical address of the first byte.
    pub pa: u64,
    /// True for device registers.
    pub mmio: bool,
    /// The store that a load finds before it, in program order.
    pub store: StoreMatch,
    /// What the walk reads, if it walks.
    pub walk: Option<&'a WalkReads>,
}

impl Access<'_> {
    /// Returns the access of an instruction that accesses no memory.
    pub(crate) fn none(id: StaticId) -> Self {
        Self { id, pa: 0, mmio: false, store: StoreMatch::default(), walk: None }
    }
}

/// How a memory access came out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// First cycle in which a dependent can issue.
    pub wake: u64,
    /// First cycle in which the access can commit.
    pub done: u64,
    /// What the access waited for.
    pub class: CycleClass,
    /// TEA's events of the access.
    pub tea: TeaEvents,
    /// Cycle in which the ROB knows that the load failed its order; `None`: it did not fail.
    pub failed: Option<u64>,
}

impl Answer {
    /// Returns the answer to an access without a memory-ordering failure.
    #[inline(always)]
    fn new(wake: u64, done: u64, class: CycleClass, tea: TeaEvents) -> Self {
        Self { wake, done, class, tea, failed: None }
    }
}

/// Counters of the load/store unit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LsuCounts {
    /// Loads by register file; a load that failed its order and is tried again counts twice.
    pub loads: [u64; 4],
    /// Load-reserved instructions and atomics.
    pub atomics: u64,
    /// Loads that failed their order, by register file.
    pub failed: [u64; 4],
    /// Loads that retired and waited for more than the L1 or a store, by what they waited for.
    pub late_loads: [u64; CycleClass::ALL.len()],
    pub stores: u64,
    /// Stores of FP data.
    pub fp_stores: u64,
    pub forwards: u64,
    pub bank_conflicts: u64,
    pub mmio: u64,
    pub dtlb_misses: u64,
    /// Misses of stores in the data TLB.
    pub dtlb_store_misses: u64,
    /// Loads that waited for a store to be gone, since it had not all of their bytes.
    pub partial_forwards: u64,
    /// Loads that waited for a store's data.
    pub forward_waits: u64,
    /// Loads that missed in the data TLB.
    pub load_walks: u64,
    /// Loads that were refused because a store was replayed.
    pub refused: u64,
    /// Further tries of loads that found their bank taken.
    pub bank_retries: u64,
    /// Stores that gave way to a load.
    pub delayed_stores: u64,
}

/// Accesses by the register file that data comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByRegisterFile {
    /// Accesses of integer registers, or of none.
    pub integer: u64,
    /// Accesses of FP registers.
    pub fp: u64,
}

impl ByRegisterFile {
    /// Returns the accesses of both.
    pub(crate) fn all(self) -> u64 {
        self.integer + self.fp
    }
}

impl LsuCounts {
    /// Returns the loads that were tried again, once for each reason.
    pub(crate) fn replays(&self) -> u64 {
        let waits = self.forward_waits + self.partial_forwards;
        self.load_walks + self.refused + self.bank_conflicts + waits
    }
}

snapshot::snapshot!(LsuCounts {
    loads,
    atomics,
    failed,
    late_loads,
    stores,
    fp_stores,
    forwards,
    bank_conflicts,
    mmio,
    dtlb_misses,
    dtlb_store_misses,
    partial_forwards,
    forward_waits,
    load_walks,
    refused,
    bank_retries,
    delayed_stores
});

impl LsuCounts {
    /// Returns the loads that were executed, and atomics.
    pub(crate) fn all_loads(&self) -> u64 {
        self.loads.iter().sum::<u64>() + self.atomics
    }

    /// Returns the integer and FP loads that retired.
    pub(crate) fn retired_loads(&self) -> ByRegisterFile {
        let of = |file: u8| self.loads[usize::from(file)] - self.failed[usize::from(file)];
        ByRegisterFile { integer: of(ring::NONE) + of(ring::INT), fp: of(ring::FP) }
    }

    /// Returns the loads that retired and that the L1 or a store answered.
    pub(crate) fn early_loads(&self) -> u64 {
        self.retired_loads().all() - self.late_loads.iter().sum::<u64>()
    }

    /// Integer and FP stores.
    pub(crate) fn stores(&self) -> ByRegisterFile {
        ByRegisterFile { integer: self.stores - self.fp_stores, fp: self.fp_stores }
    }

    /// Takes back a load that failed its order.
    pub(crate) fn take_back(&mut self, micro_op: &MicroOp, answer: &Answer) {
        self.failed[usize::from(micro_op.file % 4)] += 1;
        if let CycleClass::LoadL2
        | CycleClass::LoadLlc
        | CycleClass::LoadDram
        | CycleClass::LoadPeer = answer.class
        {
            self.late_loads[answer.class as usize] -= 1;
        }
    }
}

/// Load/store unit, and what it shares with the front end.
pub(crate) struct Lsu {
    pub walk: Walk,
    pub l1d: L1d,
    pub lower: Lower,
    stores: Stores,
    /// By cycle: the 16-byte row of a way that the first port reads, for a load or for the store that is written.
    rows: [(u64, u64); BANKS],
    banked: bool,
    /// Number of 16-byte rows of a way, less one.
    row_mask: u64,
    /// S0 of the last load that had to wait for a store's data: the retry port serves loads in turn.
    retried: u64,
    /// Number of loads and stores up to and with the last load that had to wait for a store's data.
    entered: u64,
    /// There is one memory port.
    single: bool,
    /// Cycle in which the last store that was written entered S0, the first stage of the data cache.
    written: u64,
    mmio_latency: u64,
    /// Cycle until which a device register access is under way.
    mmio_busy: u64,
    load_ports: LoadPorts,
    /// Lines that are accessed as if what they hold were padded.
    padded: Option<Box<PaddedLines>>,
    pub counts: LsuCounts,
    /// The access itself, while somebody observes.
    pub observed: MemAccess,
    /// How the access was translated if that was not by the first TLB, while somebody observes.
    pub translated: Translated,
}

snapshot::snapshot!(Lsu {
    walk, l1d, lower, stores, rows, retried, entered, written, mmio_busy, load_ports,
    counts
} keeps {
    observed, translated, banked, row_mask, single, mmio_latency, padded
});

impl Lsu {
    /// Returns the load/store unit of hart `hart`, connected to `memory`.
    pub(crate) fn new(preset: &Preset, memory: &SharedMemory, hart: usize) -> Self {
        let lower = Lower::new(preset, memory, hart);
        Self {
            walk: Walk::new(preset),
            l1d: L1d::new(preset, lower.coherent),
            lower,
            stores: Stores::new(),
            rows: [(0, 0); BANKS],
            row_mask: u64::from(preset.l1d.kib) * 64 / u64::from(preset.l1d.ways) - 1,
            banked: preset.l1d.banks > 1 && preset.issue.mem_width > 1,
            retried: 0,
            entered: 0,
            single: preset.issue.mem_width == 1,
            written: 0,
            mmio_latency: u64::from(preset.mmio.latency),
            mmio_busy: 0,
            load_ports: LoadPorts::default(),
            padded: PaddedLines::of(preset),
            counts: LsuCounts::default(),
            observed: MemAccess::default(),
            translated: Translated::default(),
        }
    }

    /// Returns the cycle from which the unit is drained: no store waits, no miss is outstanding.
    #[inline]
    pub(crate) fn drained(&self) -> u64 {
        self.stores.empty().max(self.l1d.idle()).max(self.mmio_busy)
    }

    /// Does to the caches what other harts asked for in their turn.
    pub(crate) fn heed_probes(&mut self) {
        self.l1d.heed_probes(&mut self.lower);
    }

    /// Drops a line that a device wrote from the data caches; the last-level cache has it from now on.
    pub(crate) fn dma_write(&mut self, line: u64) {
        self.l1d.dma_write(line);
        self.lower.dma_write(line);
    }

    /// Puts the line of an access into the L1 data cache, as if somebody had asked for it in time.
    pub(crate) fn bring(&mut self, pa: u64, cycle: u64, write: bool) {
        self.l1d.bring(self.line(pa), cycle, write, &mut self.lower);
    }

    /// Returns the line on which an address is accessed.
    #[inline(always)]
    fn line(&self, pa: u64) -> u64 {
        match &self.padded {
            None => pa >> LINE_BITS,
            Some(padded) => padded.line(pa),
        }
    }

    /// Drops cached translations.
    pub(crate) fn flush_tlb(&mut self) {
        self.walk.clear();
    }

    /// Returns S0 of an access, after a walk if its page is not in the TLB.
    #[inline(always)]
    fn translate(&mut self, s0: u64, walk: Option<&WalkReads>) -> u64 {
        match walk {
            Some(walk) => self.walk_for(s0, walk),
            None => s0,
        }
    }

    #[cold]
    #[inline(never)]
    fn walk_for(&mut self, s0: u64, walk: &WalkReads) -> u64 {
        self.counts.dtlb_misses += 1;
        let walks = self.walk.counts[TlbSide::Data as usize].walks;
        let ready =
            self.walk.translate(TlbSide::Data, s0 + 1, walk, &mut self.l1d, &mut self.lower);
        let walked = self.walk.counts[TlbSide::Data as usize].walks != walks;
        // The queue's retry: selected in the cycle after the refill, fired in the next.
        let again = ready + 2;
        self.translated = Translated::new(walked, s0, again);
        again
    }
}

/// Returns what a load that `level` answered waited for, and TEA's events.
#[inline(always)]
fn class_of(level: Level) -> (CycleClass, TeaEvents) {
    const OF_LEVEL: [(CycleClass, TeaEvents); 4] = [
        (CycleClass::LoadL2, TeaEvents::ST_L1),
        (CycleClass::LoadLlc, TeaEvents::ST_L1),
        (CycleClass::LoadDram, TeaEvents(TeaEvents::ST_L1.0 | TeaEvents::ST_LLC.0)),
        (CycleClass::LoadPeer, TeaEvents(TeaEvents::ST_L1.0 | TeaEvents::ST_PEER.0)),
    ];
    OF_LEVEL[level as usize]
}

/// Issue of loads to the memory ports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadPorts {
    /// Last cycle in which a load issued to the first port.
    last: u64,
    /// Cycles just before `last` in which loads issued to the first port, without a break.
    run: u32,
}

/// Cycles without a break in which loads took the first port, after which memory pauses for one cycle, so that a store
/// gets through (`exu/core.scala:895`).
const SATURATED: u32 = 31;

snapshot::snapshot!(LoadPorts { last, run });

/// Where a load issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issued {
    pub cycle: u64,
    /// The port's bit.
    pub port: u32,
    /// The load issued to the first memory port.
    first: bool,
    /// The load issued in a cycle in which a store was to be written, which goes later: loads come first.
    displaces: bool,
}

impl LoadPorts {
    /// Books the memory port of a load; one on the first port keeps stores from the data cache.
    #[inline(always)]
    fn issue(&mut self, schedule: &mut Schedule, ready: u64, micro_op: &MicroOp) -> Issued {
        let (cycle, port) = schedule.book(ready, micro_op.ports, micro_op.lanes);
        let first = port == 1 << crate::micro_op::port::MEM;
        let mut displaces = false;
        if first {
            displaces = schedule.mark(cycle, STORE_PORT);
            self.run = if cycle == self.last + 1 { self.run + 1 } else { 0 };
            self.last = cycle;
            if self.run == SATURATED {
                schedule.mark(cycle + 1, micro_op.ports);
            }
        }
        Issued { cycle, port, first, displaces }
    }
}
