//! The SBI's events.

use super::PerfEvent;

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
    // Only what the cache does not have is prefetched.
    (0x10005, PerfEvent::L1dPrefetches),
    (0x10008, PerfEvent::L1iReads),
    (0x10009, PerfEvent::L1iMisses),
    (0x1000c, PerfEvent::L1iPrefetches),
    (0x1000d, PerfEvent::L1iPrefetches),
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
