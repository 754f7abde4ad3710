//! Counters of a run.

use serde::Serialize;

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
    /// Mispredicted ones.
    pub branch_misses: u64,
    /// Jumps, calls and returns.
    pub jumps: u64,
    /// Those whose target was mispredicted.
    pub jump_misses: u64,
    /// Exceptions taken.
    pub exceptions: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Flushes at commit (CSR accesses, fences, atomics, returns from traps).
    pub flushes: u64,
    /// Loads flushed because they had run ahead of an older store to the same bytes.
    pub order_failures: u64,
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
    /// Loads of data banks taken by the other port.
    pub bank_conflicts: u64,
    /// Accesses to device registers.
    pub mmio: u64,
    /// Lookups of the instruction cache: packets of another line.
    pub l1i_accesses: u64,
    /// Misses.
    pub l1i_misses: u64,
    /// Misses of the data cache.
    pub l1d_misses: u64,
    /// Those by loads and page-table reads.
    pub l1d_load_misses: u64,
    /// Lines prefetched into the data cache.
    pub l1d_prefetches: u64,
    /// Lines read from the L2.
    pub l2_accesses: u64,
    /// Misses.
    pub l2_misses: u64,
    /// Lines read from the last-level cache.
    pub llc_accesses: u64,
    /// Misses.
    pub llc_misses: u64,
    /// Dirty lines written back by the data cache.
    pub writebacks: u64,
    /// Writes to lines that other harts' caches might hold too.
    pub upgrades: u64,
    /// Lines that another hart's cache supplied.
    pub transfers: u64,
    /// Lines read from and written to memory, by all harts.
    pub dram_accesses: u64,
    /// Those that found their row open.
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
    /// Cycles of the dividers: integer and FP.
    #[serde(skip)]
    pub divider_busy: [u64; 2],
    /// Store-conditionals that failed.
    #[serde(skip)]
    pub failed_store_conditionals: u64,
    /// Cycles of store-queue entries in use, of all together.
    #[serde(skip)]
    pub store_queue_occupancy: u64,
    /// Flushes of all translations.
    #[serde(skip)]
    pub tlb_flushes: u64,
}

impl Stats {
    /// Cycles with a commit.
    pub(crate) fn cycles_committing(&self) -> u64 {
        let traps = self.exceptions + self.interrupts + self.order_failures;
        let without =
            self.cycles_idle + self.cycles_stalled + self.cycles_flushed + self.cycles_drained;
        self.cycles - without - traps
    }
}

/// Cycles by which dispatch was late.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Stalls {
    /// No ROB row.
    pub rob: u64,
    /// No physical register.
    pub registers: u64,
    /// No load queue entry.
    pub load_queue: u64,
    /// No store queue entry.
    pub store_queue: u64,
    /// No issue-queue slot, or no branch tag.
    pub issue_queue: u64,
    /// A serialising instruction waited for an empty ROB and the memory system.
    pub serialize: u64,
    /// Those of the issue queues: no slot of the memory, integer or FP issue queue, no branch tag.
    #[serde(skip)]
    pub by_lane: [u64; 4],
    /// Those of the registers: no FP register.
    #[serde(skip)]
    pub fp_registers: u64,
}

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
    failed_store_conditionals,
    store_queue_occupancy,
    tlb_flushes
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
