//! The events that performance counters count: one row each. To add one, write a row here and its count in
//! `timing::Pipeline::count`, which does not compile without it.
//!
//! The low 32 bits of `mhpmevent` select. A selector below 32 is a code of the RISC-V performance events draft (v0.1.0) and names
//! one event. From 32 on its low byte is a set of the core's own events, as BOOM has them: bits 8 to 31 are a mask of the set's events,
//! and what is counted is their sum.

macro_rules! events {
    ($( #[doc = $doc:literal] $event:ident = ($set:literal, $bit:literal), $topic:literal, $name:literal; )*) => {
        /// An event that the programmable counters count.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum PerfEvent {
            $(#[doc = $doc] $event,)*
        }

        impl PerfEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$event),*];

            /// Its row of the table.
            pub fn row(self) -> PerfEventRow {
                match self {
                    $(Self::$event => PerfEventRow {
                        name: $name,
                        topic: $topic,
                        description: $doc.trim_ascii(),
                        set: $set,
                        bit: $bit,
                    },)*
                }
            }

            /// The event that a bit of a set's mask names; the draft's codes are sets of one.
            fn at(set: u8, bit: u8) -> Option<Self> {
                match (set, bit) {
                    $(($set, $bit) => Some(Self::$event),)*
                    _ => None,
                }
            }
        }
    };
}

/// What the table says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfEventRow {
    /// The draft's name, or ours in its manner.
    pub name: &'static str,
    /// What perf lists it under.
    pub topic: &'static str,
    /// A sentence.
    pub description: &'static str,
    /// The low byte of its selector: the draft's code, or the number of its set.
    pub set: u8,
    /// Its bit in the set's mask.
    pub bit: u8,
}

/// The first set of the core's own; below are the draft's codes.
const FIRST_SET: u8 = 32;
/// Where a selector's mask begins, and how many bits it has.
const MASK_SHIFT: u32 = 8;
const MASK_BITS: u32 = 24;

impl PerfEvent {
    /// Its selector.
    pub fn selector(self) -> u32 {
        let PerfEventRow { set, bit, .. } = self.row();
        match set < FIRST_SET {
            true => set.into(),
            false => u32::from(set) | 1 << (MASK_SHIFT + u32::from(bit)),
        }
    }

    /// The events whose sum a selector names; of none nothing is counted.
    pub fn selected(selector: u32) -> impl Iterator<Item = Self> {
        let set = selector as u8;
        let mask = match set < FIRST_SET {
            true => 1,
            false => selector >> MASK_SHIFT,
        };
        let mut rest = mask;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as u8;
            rest &= rest.wrapping_sub(1);
            (u32::from(bit) < MASK_BITS).then_some(bit)
        })
        .filter_map(move |bit| Self::at(set, bit))
    }
}

events! {
    /// Core cycles.
    Cycles = (1, 0), "standard", "CYCLES.HART";
    /// Instructions retired.
    Instructions = (2, 0), "standard", "INST.RET";
    /// Loads and atomics that were executed.
    L1dReads = (3, 0), "cache", "CACHE.L1.RD.DATA.ACCESS";
    /// Reads that missed in the L1 data cache, also those of page-table entries.
    L1dReadMisses = (4, 0), "cache", "CACHE.L1.RD.DATA.MISS";
    /// Branches and jumps. Those of wrong paths are not counted.
    Branches = (5, 0), "branch", "INST.BRJMP.SPEC";
    /// Mispredicted branches and jumps.
    BranchMisses = (6, 0), "branch", "INST.MISPRED.SPEC";
    /// Cycles of the reference clock, which is the core's: it never changes.
    ReferenceCycles = (10, 0), "standard", "CYCLES.REF";
    /// Fetches from the L1 instruction cache.
    L1iReads = (11, 0), "cache", "CACHE.L1I.RD.CODE.ACCESS";
    /// Fetches that missed in the L1 instruction cache.
    L1iMisses = (12, 0), "cache", "CACHE.L1I.RD.CODE.MISS";
    /// Lines read from the last-level cache by this hart.
    LastLevelReads = (13, 0), "cache", "CACHE.LL.RD.DATA.ACCESS";
    /// Lines read that the last-level cache did not have.
    LastLevelMisses = (14, 0), "cache", "CACHE.LL.RD.DATA.MISS";
    /// Loads, stores and atomics that were translated.
    DtlbReads = (15, 0), "tlb", "TLB.L1.LDST.ACCESS";
    /// Loads, stores and atomics that missed in the first-level data TLB.
    DtlbMisses = (16, 0), "tlb", "TLB.L1.LDST.MISS";
    /// Fetches that were translated.
    ItlbReads = (17, 0), "tlb", "TLB.L1I.CODE.ACCESS";
    /// Fetches that missed in the first-level instruction TLB.
    ItlbMisses = (18, 0), "tlb", "TLB.L1I.CODE.MISS";
    /// Branches that were taken, and jumps.
    TakenBranches = (19, 0), "branch", "INST.BRJMP.TK.RET";
    /// Integer operations of one cycle.
    IntAlu = (32, 0), "instruction", "INST.ALU";
    /// Integer multiplications.
    IntMul = (32, 1), "instruction", "INST.MUL";
    /// Integer divisions and remainders.
    IntDiv = (32, 2), "instruction", "INST.DIV";
    /// Conditional branches.
    BranchInst = (32, 3), "instruction", "INST.BRANCH";
    /// Direct jumps.
    Jal = (32, 4), "instruction", "INST.JAL";
    /// Indirect jumps.
    Jalr = (32, 5), "instruction", "INST.JALR";
    /// Integer loads.
    Load = (32, 6), "instruction", "INST.LOAD";
    /// Integer stores.
    Store = (32, 7), "instruction", "INST.STORE";
    /// Floating-point loads.
    FpLoad = (32, 8), "instruction", "INST.FP.LOAD";
    /// Floating-point stores.
    FpStore = (32, 9), "instruction", "INST.FP.STORE";
    /// Atomic read-modify-writes.
    Amo = (32, 10), "instruction", "INST.AMO";
    /// Load-reserved instructions.
    LoadReserved = (32, 11), "instruction", "INST.LR";
    /// Store-conditional instructions.
    StoreConditional = (32, 12), "instruction", "INST.SC";
    /// Floating-point additions, multiplications, minima and maxima, conversions between formats.
    FpArith = (32, 13), "instruction", "INST.FP.ARITH";
    /// Floating-point divisions and square roots.
    FpDivSqrt = (32, 14), "instruction", "INST.FP.DIVSQRT";
    /// Moves, conversions and comparisons from floating-point to integer registers.
    FpToInt = (32, 15), "instruction", "INST.FP.TOINT";
    /// Moves and conversions from integer to floating-point registers.
    IntToFp = (32, 16), "instruction", "INST.FP.FROMINT";
    /// Accesses to control and status registers.
    Csr = (32, 17), "instruction", "INST.CSR";
    /// Memory fences.
    Fence = (32, 18), "instruction", "INST.FENCE";
    /// Instruction-stream fences.
    FenceI = (32, 19), "instruction", "INST.FENCEI";
    /// Address-translation fences.
    SfenceVma = (32, 20), "instruction", "INST.SFENCE";
    /// Returns from traps.
    Xret = (32, 21), "instruction", "INST.XRET";
    /// Waits for an interrupt.
    Wfi = (32, 22), "instruction", "INST.WFI";
    /// Exceptions taken; the instruction is not retired.
    Exceptions = (32, 23), "instruction", "INST.EXCEPTION";
    /// Conditional branches that were taken.
    CondTaken = (33, 0), "branch", "BR.COND.TAKEN";
    /// Conditional branches that were mispredicted.
    CondMisses = (33, 1), "branch", "BR.COND.MISP";
    /// Direct jumps that are no calls.
    DirectJumps = (33, 2), "branch", "BR.JUMP";
    /// Direct calls.
    DirectCalls = (33, 3), "branch", "BR.CALL";
    /// Indirect jumps that are neither calls nor returns.
    IndirectJumps = (33, 4), "branch", "BR.IND";
    /// Indirect calls.
    IndirectCalls = (33, 5), "branch", "BR.IND.CALL";
    /// Returns.
    Returns = (33, 6), "branch", "BR.RET";
    /// Indirect jumps that are neither calls nor returns, mispredicted.
    IndirectMisses = (33, 7), "branch", "BR.IND.MISP";
    /// Indirect calls that were mispredicted.
    IndirectCallMisses = (33, 8), "branch", "BR.IND.CALL.MISP";
    /// Returns that were mispredicted.
    ReturnMisses = (33, 9), "branch", "BR.RET.MISP";
    /// Fetch packets.
    FetchPackets = (33, 10), "branch", "BR.FETCH.PACKET";
    /// Fetch packets after which stage F2 restarted fetch: one cycle is lost.
    RedirectsF2 = (33, 11), "branch", "BR.FETCH.F2";
    /// Fetch packets after which stage F3 restarted fetch: two cycles are lost.
    RedirectsF3 = (33, 12), "branch", "BR.FETCH.F3";
    /// Stores that were executed.
    L1dWrites = (34, 0), "cache", "MEM.L1D.WR";
    /// Stores and atomics that missed in the L1 data cache.
    L1dWriteMisses = (34, 1), "cache", "MEM.L1D.WR.MISS";
    /// Lines prefetched into the L1 data cache.
    L1dPrefetches = (34, 2), "cache", "MEM.L1D.PREFETCH";
    /// Dirty lines that the L1 data cache wrote back.
    Writebacks = (34, 3), "cache", "MEM.L1D.WRITEBACK";
    /// Lines read from the L2.
    L2Reads = (34, 4), "cache", "MEM.L2.ACCESS";
    /// Lines read that the L2 did not have.
    L2Misses = (34, 5), "cache", "MEM.L2.MISS";
    /// Lines read from the last-level cache behind the L2.
    LlcReads = (34, 6), "cache", "MEM.LLC.ACCESS";
    /// Lines read that the last-level cache behind the L2 did not have.
    LlcMisses = (34, 7), "cache", "MEM.LLC.MISS";
    /// Writes to lines that other harts' caches might hold too.
    Upgrades = (34, 8), "cache", "MEM.UPGRADE";
    /// Lines that another hart's cache supplied.
    Transfers = (34, 9), "cache", "MEM.TRANSFER";
    /// Loads that the store queue answered.
    Forwards = (34, 10), "cache", "MEM.FORWARD";
    /// Loads that found their data bank taken by the other port.
    BankConflicts = (34, 11), "cache", "MEM.BANK.CONFLICT";
    /// Loads that were flushed, since they had run ahead of an older store to the same bytes.
    OrderFailures = (34, 12), "cache", "MEM.ORDER.FAIL";
    /// Accesses to device registers.
    DeviceAccesses = (34, 13), "cache", "MEM.DEVICE";
    /// First-level TLB misses that the second level answered.
    L2TlbHits = (34, 14), "cache", "MEM.L2TLB.HIT";
    /// Page-table walks.
    PageWalks = (34, 15), "cache", "MEM.WALK";
    /// Cycles in which instructions commit.
    CyclesCommitting = (35, 0), "pipeline", "CYCLES.COMMIT";
    /// Cycles in which the oldest instruction is not complete.
    CyclesStalled = (35, 1), "pipeline", "CYCLES.STALLED";
    /// Cycles with an empty reorder buffer after a misprediction, flush or trap.
    CyclesFlushed = (35, 2), "pipeline", "CYCLES.FLUSHED";
    /// Cycles with an empty reorder buffer otherwise: the front end delivers nothing.
    CyclesDrained = (35, 3), "pipeline", "CYCLES.DRAINED";
    /// Cycles asleep, waiting for an interrupt.
    CyclesIdle = (35, 4), "pipeline", "CYCLES.IDLE";
    /// Cycles by which dispatch was late for want of room in the reorder buffer.
    StallsRob = (36, 0), "pipeline", "STALL.ROB";
    /// Cycles by which dispatch was late for want of a physical register.
    StallsRegisters = (36, 1), "pipeline", "STALL.REGISTERS";
    /// Cycles by which dispatch was late for want of an entry of the load queue.
    StallsLoadQueue = (36, 2), "pipeline", "STALL.LOAD.QUEUE";
    /// Cycles by which dispatch was late for want of an entry of the store queue.
    StallsStoreQueue = (36, 3), "pipeline", "STALL.STORE.QUEUE";
    /// Cycles by which dispatch was late for want of a slot of an issue queue, or a branch tag.
    StallsIssueQueue = (36, 4), "pipeline", "STALL.ISSUE.QUEUE";
    /// Cycles by which dispatch was late, as a serialising instruction waits for an empty machine.
    StallsSerialize = (36, 5), "pipeline", "STALL.SERIALIZE";
    /// Flushes at the commit of a serialising instruction.
    Flushes = (37, 0), "pipeline", "FLUSH.COMMIT";
    /// Interrupts taken.
    Interrupts = (37, 1), "pipeline", "FLUSH.INTERRUPT";
}

/// What the SBI's hardware and cache events are (SBI 3.0, section 11.2: hardware events, and
/// `0x10000 | cache << 3 | operation << 1 | result`). Bus cycles (7) have no meaning here; the data TLB does not tell writes from reads.
pub const SBI_EVENTS: &[(u32, PerfEvent)] = &[
    (1, PerfEvent::Cycles),
    (2, PerfEvent::Instructions),
    (3, PerfEvent::LastLevelReads),
    (4, PerfEvent::LastLevelMisses),
    (5, PerfEvent::Branches),
    (6, PerfEvent::BranchMisses),
    (8, PerfEvent::CyclesDrained),
    (9, PerfEvent::CyclesStalled),
    (10, PerfEvent::ReferenceCycles),
    (0x10000, PerfEvent::L1dReads),
    (0x10001, PerfEvent::L1dReadMisses),
    (0x10002, PerfEvent::L1dWrites),
    (0x10003, PerfEvent::L1dWriteMisses),
    (0x10004, PerfEvent::L1dPrefetches),
    (0x10008, PerfEvent::L1iReads),
    (0x10009, PerfEvent::L1iMisses),
    (0x10010, PerfEvent::LastLevelReads),
    (0x10011, PerfEvent::LastLevelMisses),
    (0x10018, PerfEvent::DtlbReads),
    (0x10019, PerfEvent::DtlbMisses),
    (0x1001a, PerfEvent::DtlbReads),
    (0x1001b, PerfEvent::DtlbMisses),
    (0x10020, PerfEvent::ItlbReads),
    (0x10021, PerfEvent::ItlbMisses),
    (0x10028, PerfEvent::Branches),
    (0x10029, PerfEvent::BranchMisses),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_names_its_event() {
        for &event in PerfEvent::ALL {
            assert!(
                PerfEvent::selected(event.selector()).eq([event]),
                "{event:?}"
            );
            assert!(event.row().description.ends_with('.'), "{event:?}");
        }
        let mut names: Vec<_> = PerfEvent::ALL
            .iter()
            .map(|event| event.row().name)
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PerfEvent::ALL.len());
    }

    #[test]
    fn a_mask_names_several_and_nothing_else_does() {
        let selector = PerfEvent::CyclesDrained.selector() | PerfEvent::CyclesFlushed.selector();
        let both = [PerfEvent::CyclesFlushed, PerfEvent::CyclesDrained];
        assert!(PerfEvent::selected(selector).eq(both));
        for none in [0, 7, 31, 32, 0xff_0000 << 8 | 35, 255, u32::MAX] {
            assert_eq!(PerfEvent::selected(none).count(), 0, "{none:#x}");
        }
        // A code has no mask.
        assert!(PerfEvent::selected(0xff02).eq([PerfEvent::Instructions]));
    }
}
