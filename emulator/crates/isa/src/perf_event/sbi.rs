//! The SBI's events.

use super::{PerfEvent, Selection};

/// What one of the SBI's hardware or cache events is (SBI 3.0, section 11.2: hardware events, and
/// `0x10000 | cache << 3 | operation << 1 | result`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SbiEvent {
    /// The SBI's number.
    pub number: u32,
    /// What is counted.
    pub event: PerfEvent,
    /// True if the cycles are counted in which the event occurs at least once, instead of its occurrences.
    pub in_cycles: bool,
}

impl SbiEvent {
    /// Returns what `mhpmevent` holds for the event.
    pub fn selection(self) -> Selection {
        let threshold = u64::from(self.in_cycles) << 32;
        Selection::new(u64::from(self.event.selector()) | threshold)
    }
}

const fn occurrences(number: u32, event: PerfEvent) -> SbiEvent {
    SbiEvent { number, event, in_cycles: false }
}

const fn cycles(number: u32, event: PerfEvent) -> SbiEvent {
    SbiEvent { number, event, in_cycles: true }
}

/// The SBI's events that the core counts. Bus cycles (7) have no meaning here.
pub const SBI_EVENTS: &[SbiEvent] = &[
    occurrences(1, PerfEvent::Cycles),
    occurrences(2, PerfEvent::Instructions),
    occurrences(3, PerfEvent::LastLevelReads),
    occurrences(4, PerfEvent::LastLevelMisses),
    occurrences(5, PerfEvent::Branches),
    occurrences(6, PerfEvent::BranchMisses),
    // Cycles without an instruction from the front end, and in which decode waits for room behind it: an empty reorder buffer behind a
    // full queue is no stall of the front end.
    cycles(8, PerfEvent::SlotsFetchLatency),
    cycles(9, PerfEvent::SlotsBackend),
    occurrences(10, PerfEvent::ReferenceCycles),
    occurrences(0x10000, PerfEvent::L1dReads),
    occurrences(0x10001, PerfEvent::L1dReadMisses),
    occurrences(0x10002, PerfEvent::L1dWrites),
    occurrences(0x10003, PerfEvent::L1dWriteMisses),
    occurrences(0x10004, PerfEvent::L1dPrefetches),
    // Each prefetch counts as a miss, since only lines that the cache does not have are prefetched.
    occurrences(0x10005, PerfEvent::L1dPrefetches),
    occurrences(0x10008, PerfEvent::L1iReads),
    occurrences(0x10009, PerfEvent::L1iMisses),
    occurrences(0x1000c, PerfEvent::L1iPrefetches),
    occurrences(0x1000d, PerfEvent::L1iPrefetches),
    occurrences(0x10010, PerfEvent::LastLevelLoads),
    occurrences(0x10011, PerfEvent::LastLevelLoadMisses),
    occurrences(0x10018, PerfEvent::DtlbLoads),
    occurrences(0x10019, PerfEvent::DtlbLoadMisses),
    occurrences(0x1001a, PerfEvent::DtlbStores),
    occurrences(0x1001b, PerfEvent::DtlbStoreMisses),
    occurrences(0x10020, PerfEvent::ItlbReads),
    occurrences(0x10021, PerfEvent::ItlbMisses),
    occurrences(0x10028, PerfEvent::Branches),
    occurrences(0x10029, PerfEvent::BranchMisses),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_event_and_cycles_have_a_condition() {
        for (at, own) in SBI_EVENTS.iter().enumerate() {
            let twins = SBI_EVENTS[at + 1..].iter();
            assert!(twins.clone().all(|other| other.number != own.number), "{own:?}");
            let selection = own.selection();
            assert!(selection.events().eq([own.event]), "{own:?}");
            assert_eq!(selection.condition().is_some(), own.in_cycles, "{own:?}");
        }
    }
}
