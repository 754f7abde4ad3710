//! Counters of a run.

use commit_trace::CycleClass;
use isa::InstClass;
use serde::Serialize;

use crate::lsu::LsuCounts;
use crate::micro_op::jump;
use crate::schedule::{Lane, lane};

/// Everything counted since reset; `run.json` carries it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// Cycle of the last commit.
    pub cycles: u64,
    /// Instructions that committed.
    pub instructions: u64,
    /// Cycles in which the ROB held instructions and none committed.
    pub cycles_stalled: u64,
    /// Cycles with an empty ROB after a misprediction, flush or trap.
    pub cycles_flushed: u64,
    /// Cycles with an empty ROB otherwise.
    pub cycles_drained: u64,
    /// Cycles asleep in `wfi`.
    pub cycles_idle: u64,
    /// Conditional branches.
    pub branches: u64,
    /// Conditional branches that were mispredicted.
    pub branch_misses: u64,
    /// Jumps, calls and returns.
    pub jumps: u64,
    /// Jumps, calls and returns whose target was mispredicted.
    pub jump_misses: u64,
    /// Exceptions taken.
    pub exceptions: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Flushes at commit (CSR accesses, fences, atomics, returns from traps).
    pub flushes: u64,
    /// Loads flushed because they had run ahead of an older store to the same bytes.
    pub order_failures: u64,
    /// Instructions that decode took and that were thrown away, about.
    pub wrong_path: u64,
    /// Fetch packets.
    pub fetch_packets: u64,
    /// Packets after which F2 restarted fetch (one bubble).
    pub redirects_f2: u64,
    /// Packets after which F3 restarted fetch (two bubbles).
    pub redirects_f3: u64,
    /// Loads, also atomics.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Loads answered by the store queue.
    pub forwards: u64,
    /// Loads that found their data bank taken by the other port.
    pub bank_conflicts: u64,
    /// Accesses to device registers.
    pub mmio: u64,
    /// Lookups of the instruction cache: packets of another line.
    pub l1i_accesses: u64,
    /// Misses of the instruction cache.
    pub l1i_misses: u64,
    /// Misses of the data cache.
    pub l1d_misses: u64,
    /// Misses of the data cache by loads and page-table reads.
    pub l1d_load_misses: u64,
    /// Lines prefetched into the data cache.
    pub l1d_prefetches: u64,
    /// Lines read from the L2.
    pub l2_accesses: u64,
    /// Misses of the L2.
    pub l2_misses: u64,
    /// Lines read from the last-level cache.
    pub llc_accesses: u64,
    /// Misses of the last-level cache.
    pub llc_misses: u64,
    /// Dirty lines written back by the data cache.
    pub writebacks: u64,
    /// Writes to lines that other harts' caches might hold too.
    pub upgrades: u64,
    /// Lines that another hart's cache supplied.
    pub transfers: u64,
    /// Lines read from and written to memory, by all harts.
    pub dram_accesses: u64,
    /// Accesses to memory that found their row open.
    pub dram_row_hits: u64,
    /// Misses of the instruction TLB.
    pub itlb_misses: u64,
    /// Misses of the data TLB.
    pub dtlb_misses: u64,
    /// First-level misses that the second level answered.
    pub l2tlb_hits: u64,
    /// Page-table walks.
    pub page_walks: u64,
    /// Cycles by which dispatch was late, by the resource that was last to be free.
    pub dispatch_stalls: Stalls,
    /// Conditional branches that were taken.
    pub branches_taken: u64,
    /// Exceptions by code.
    #[serde(skip)]
    pub exceptions_by_code: [u64; 16],
    /// Cycles in which the integer divider was busy.
    #[serde(skip)]
    pub divider_busy: u64,
    /// Cycles in which the FP divider was busy.
    #[serde(skip)]
    pub fp_divider_busy: u64,
    /// Store-conditionals that failed.
    #[serde(skip)]
    pub failed_store_conditionals: u64,
    /// Cycles of store-queue entries in use, over all entries.
    #[serde(skip)]
    pub store_queue_occupancy: u64,
    /// Flushes of all translations.
    #[serde(skip)]
    pub tlb_flushes: u64,
    /// Cycles of [`Self::cycles_stalled`], by what the oldest instruction waits for.
    #[serde(skip)]
    pub stalled: [u64; CycleClass::ALL.len()],
    /// Jumps by kind (direct, direct call, indirect, indirect call, return).
    #[serde(skip)]
    pub jumps_by_kind: [JumpTotals; jump::BOUND as usize],
    /// Conditional branches that were predicted right (not taken, taken), and that were mispredicted (not
    /// taken, taken).
    #[serde(skip)]
    pub branches_by_outcome: [u64; 4],
    /// Instructions that retired, by class, of those classes that nothing else here counts.
    #[serde(skip)]
    pub classes: [u64; InstClass::COUNT],
}

impl Stats {
    /// Returns the instructions of a class that retired.
    pub(crate) fn of_class(&self, class: InstClass, lsu: &LsuCounts) -> u64 {
        use InstClass as C;
        let jumps = |kinds: &[u8]| kinds.iter().map(|&kind| self.jumps(kind).all).sum();
        let (loads, stores) = (lsu.retired_loads(), lsu.stores());
        match class {
            C::Branch => self.branches().all,
            C::Jal => jumps(&[jump::DIRECT, jump::DIRECT_CALL]),
            C::Jalr => jumps(&[jump::INDIRECT, jump::INDIRECT_CALL, jump::RETURN]),
            C::Load => loads.integer,
            C::FpLoad => loads.fp,
            C::Store => stores.integer,
            C::FpStore => stores.fp,
            // ALU operations are all that are nothing else: they are not counted on their way, which is the shortest.
            C::IntAlu => {
                let counted = self.classes.iter().sum::<u64>() - self.classes[C::IntAlu as usize];
                let control = self.branches().all + self.all_jumps().all;
                self.instructions - counted - loads.all() - stores.all() - control
            }
            _ => self.classes[class as usize],
        }
    }

    /// Returns the jumps of a kind.
    pub(crate) fn jumps(&self, kind: u8) -> JumpTotals {
        self.jumps_by_kind[usize::from(kind % jump::BOUND)]
    }

    /// Returns the conditional branches.
    pub(crate) fn branches(&self) -> BranchTotals {
        let [right, right_taken, missed, missed_taken] = self.branches_by_outcome;
        let mispredicted = missed + missed_taken;
        let taken = right_taken + missed_taken;
        BranchTotals { all: right + right_taken + mispredicted, taken, mispredicted }
    }

    /// Returns the jumps of all kinds.
    pub(crate) fn all_jumps(&self) -> JumpTotals {
        let add = |sum: JumpTotals, kind: &JumpTotals| JumpTotals {
            all: sum.all + kind.all,
            mispredicted: sum.mispredicted + kind.mispredicted,
        };
        self.jumps_by_kind.iter().fold(JumpTotals::default(), add)
    }

    /// Fills in the totals that follow from other fields.
    pub(crate) fn summed(mut self) -> Self {
        self.cycles_stalled = self.stalled.iter().sum();
        let branches = self.branches();
        self.branches = branches.all;
        self.branches_taken = branches.taken;
        self.branch_misses = branches.mispredicted;
        let jumps = self.all_jumps();
        self.jumps = jumps.all;
        self.jump_misses = jumps.mispredicted;
        self
    }

    /// Returns the cycles with a commit.
    pub(crate) fn cycles_committing(&self) -> u64 {
        let traps = self.exceptions + self.interrupts + self.order_failures;
        let without =
            self.cycles_idle + self.cycles_stalled + self.cycles_flushed + self.cycles_drained;
        self.cycles - without - traps
    }
}

/// Totals of jumps, calls and returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JumpTotals {
    /// Jumps that committed.
    pub all: u64,
    /// Jumps whose target was mispredicted.
    pub mispredicted: u64,
}

/// Totals of conditional branches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BranchTotals {
    /// Branches that committed.
    pub all: u64,
    /// Branches that were taken.
    pub taken: u64,
    /// Branches that were mispredicted.
    pub mispredicted: u64,
}

/// Cycles by which dispatch was late, by what it waited for.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Stalls {
    /// Cycles without a free ROB row.
    pub rob: u64,
    /// Cycles without a free physical register.
    pub registers: u64,
    /// Cycles without a free load queue entry.
    pub load_queue: u64,
    /// Cycles without a free store queue entry.
    pub store_queue: u64,
    /// Cycles without a free issue-queue slot or branch tag.
    pub issue_queue: u64,
    /// Cycles in which a serialising instruction waited for an empty ROB and the memory system.
    pub serialize: u64,
    /// Cycles of [`Self::issue_queue`] without a slot of the memory, integer or FP issue queue, or without a branch
    /// tag, by [`Lane`].
    #[serde(skip)]
    pub(crate) by_lane: [u64; lane::COUNT],
    /// Cycles of [`Self::registers`] without a free FP register.
    #[serde(skip)]
    pub fp_registers: u64,
}

impl Stalls {
    /// Returns the cycles without room in a lane.
    pub(crate) fn of_lane(&self, lane: Lane) -> u64 {
        self.by_lane[lane as usize]
    }
}

snapshot::snapshot!(JumpTotals { all, mispredicted });
snapshot::snapshot!(Stats {
    cycles,
    instructions,
    cycles_stalled,
    cycles_flushed,
    cycles_drained,
    cycles_idle,
    branches,
    branch_misses,
    jumps,
    jump_misses,
    exceptions,
    interrupts,
    flushes,
    order_failures,
    wrong_path,
    fetch_packets,
    redirects_f2,
    redirects_f3,
    loads,
    stores,
    forwards,
    bank_conflicts,
    mmio,
    l1i_accesses,
    l1i_misses,
    l1d_misses,
    l1d_load_misses,
    l1d_prefetches,
    l2_accesses,
    l2_misses,
    llc_accesses,
    llc_misses,
    writebacks,
    upgrades,
    transfers,
    dram_accesses,
    dram_row_hits,
    itlb_misses,
    dtlb_misses,
    l2tlb_hits,
    page_walks,
    dispatch_stalls,
    branches_taken,
    exceptions_by_code,
    divider_busy,
    fp_divider_busy,
    failed_store_conditionals,
    store_queue_occupancy,
    tlb_flushes,
    stalled,
    jumps_by_kind,
    branches_by_outcome,
    classes
});
snapshot::snapshot!(Stalls {
    rob,
    registers,
    load_queue,
    store_queue,
    issue_queue,
    serialize,
    by_lane,
    fp_registers
});
