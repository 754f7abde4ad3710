//! What the guest's sampled events are in terms of the truth.

use isa::PerfEvent;
use report::perf_data::SampledEvent;
use truth::Metric;

use crate::guest_counts::events;

/// The PMU that samples instructions at decode.
const PDIS: &str = "pdis";

/// The count that an event's samples are compared with; `None` if the truth has none.
pub fn metric(event: &SampledEvent) -> Option<Metric> {
    let (base, _) = event.name.rsplit_once(':').unwrap_or((&event.name, ""));
    if event.pmu == PDIS || base.split('/').next() == Some(PDIS) {
        return selected(base);
    }
    match events(base)[..] {
        [event] => of_event(event),
        _ => None,
    }
}

/// Of sampled instructions, by the event's name among its terms. Other terms that filter let through what the truth does not tell apart.
fn selected(event: &str) -> Option<Metric> {
    // Between slashes; modifiers follow.
    let terms = event.split('/').nth(1).unwrap_or("");
    let mut metric = Metric::Selected;
    for term in terms.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        metric = match name {
            "instructions" => Metric::Selected,
            "loads" | "mem-loads" => Metric::Loads,
            "stores" | "mem-stores" => Metric::Stores,
            "mem-ldst" => Metric::Accesses,
            "branches" => Metric::Branches,
            "mispredicts" => Metric::Mispredicts,
            "l1d-misses" => Metric::L1dMisses,
            "llc-misses" => Metric::LlcMisses,
            "tlb-misses" => Metric::DtlbMisses,
            "tlb-walks" => Metric::PageWalks,
            "hitm" => Metric::PeerModified,
            "l1i-misses" => Metric::L1iMisses,
            "itlb-misses" => Metric::ItlbMisses,
            "cycles" if value != "0" => Metric::Cycles,
            "sel" => match value {
                "0" => Metric::Selected,
                "1" => Metric::Loads,
                "2" => Metric::Stores,
                "3" => Metric::Accesses,
                "4" => Metric::Branches,
                _ => return None,
            },
            "fetch" | "latsel" | "inv" | "ldlat" | "event_mask" | "event_match" if value != "0" => {
                return None;
            }
            _ => metric,
        };
    }
    Some(metric)
}

fn of_event(event: PerfEvent) -> Option<Metric> {
    use PerfEvent as E;
    Some(match event {
        E::Cycles | E::ReferenceCycles => Metric::Cycles,
        E::Instructions => Metric::Instructions,
        E::Decoded => Metric::Selected,
        E::Branches => Metric::Branches,
        E::BranchMisses => Metric::Mispredicts,
        E::L1dReads => Metric::Loads,
        E::L1dWrites => Metric::Stores,
        E::DtlbReads => Metric::Accesses,
        E::L1dReadMisses | E::RetiredL1dMiss => Metric::L1dLoadMisses,
        E::L1dWriteMisses => Metric::L1dStoreMisses,
        E::L2Reads => Metric::L1dMisses,
        E::L2Misses | E::LlcReads | E::LastLevelReads => Metric::L2Misses,
        E::LastLevelMisses | E::LlcMisses => Metric::LlcMisses,
        E::DtlbMisses | E::RetiredDtlbMiss => Metric::DtlbMisses,
        E::PageWalks => Metric::PageWalks,
        E::L1iMisses => Metric::L1iMisses,
        E::ItlbMisses => Metric::ItlbMisses,
        E::Transfers => Metric::PeerAccesses,
        E::OrderFailures => Metric::Replays,
        E::Exceptions | E::Interrupts => Metric::Traps,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<Metric> {
        metric(&SampledEvent {
            name: name.to_owned(),
            ..SampledEvent::default()
        })
    }

    #[test]
    fn events_are_counts_of_the_truth() {
        assert_eq!(of("branch-misses:upp"), Some(Metric::Mispredicts));
        assert_eq!(of("L1-dcache-load-misses"), Some(Metric::L1dLoadMisses));
        assert_eq!(of("cache-misses:u"), Some(Metric::LlcMisses));
        assert_eq!(of("r3:u"), Some(Metric::Loads));
        assert_eq!(of("cpu-clock"), None);
        assert_eq!(of("topdown.slots:u"), None);
    }

    #[test]
    fn instructions_are_sampled_by_name() {
        assert_eq!(of("pdis//u"), Some(Metric::Selected));
        assert_eq!(of("pdis/loads/"), Some(Metric::Loads));
        assert_eq!(of("pdis/stores/u"), Some(Metric::Stores));
        assert_eq!(of("pdis/mem-loads,ldlat=0/u"), Some(Metric::Loads));
        assert_eq!(of("pdis/sel=3,rand=1/"), Some(Metric::Accesses));
        assert_eq!(of("pdis/mispredicts/u"), Some(Metric::Mispredicts));
        assert_eq!(of("pdis/cycles=1/"), Some(Metric::Cycles));
        assert_eq!(of("pdis/loads,ldlat=30/"), None, "only some loads");
    }
}
