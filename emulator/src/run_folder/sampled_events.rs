//! What the guest's sampled events are in terms of the truth.

use guest_samples::SampledEvent;
use isa::PerfEvent;
use sampling_units::pdis::{control, header};
use truth::{Metric, RecordFilter};

use crate::run_folder::guest_counts::events;

/// The PMU that samples instructions at decode.
const PDIS: &str = "pdis";

/// Fields of the PMU's `config`, as its driver has them. `config1` and `config2` are mask and match of the record's header.
mod config {
    pub(super) const SEL: u64 = 7;
    pub(super) const CYCLES: u64 = 1 << 4;
    pub(super) const FETCH: u64 = 1 << 5;
    pub(super) const FLUSHED: u64 = 1 << 7;
    pub(super) const LATSEL_SHIFT: u32 = 8;
    pub(super) const INV: u64 = 1 << 11;
    pub(super) const LDLAT_SHIFT: u32 = 12;
}
/// Bits of the record's header that the truth does not have: counters, the second address.
const NOT_KNOWN: u64 = control::HPM | header::ADR2V;

/// Returns the count that an event's samples are compared with, or why the truth has none.
pub(crate) fn metric(event: &SampledEvent) -> Result<Metric, &'static str> {
    let (base, _) = event.name.rsplit_once(':').unwrap_or((&event.name, ""));
    if event.pmu == PDIS || base.split('/').next() == Some(PDIS) {
        return selected(event);
    }
    match events(base)[..] {
        [event] => of_event(event).ok_or("the truth has no such count"),
        _ => Err("the truth has no such event"),
    }
}

/// Returns the count for an event of the PMU that samples instructions, or why the truth has none.
fn selected(event: &SampledEvent) -> Result<Metric, &'static str> {
    let SampledEvent { config, more_config: [mask, matches], .. } = *event;
    let filter = RecordFilter {
        select: (config & config::SEL) as u8,
        fetch: config & config::FETCH != 0,
        mask,
        matches,
        latency: (config >> config::LATSEL_SHIFT & 7) as u8,
        threshold: (config >> config::LDLAT_SHIFT & 0xfff) as u16,
        below: config & config::INV != 0,
    };
    let by_latency = filter.threshold != 0 || filter.below;
    if config & config::FLUSHED != 0 {
        return Err("flushed=1: of wrong paths the truth has no addresses");
    }
    if mask & NOT_KNOWN != 0 {
        return Err(
            "event_mask: the truth has no bits of counters, and not whether a record has a second address",
        );
    }
    if !filter.is_exact() {
        return Err(
            "ldlat: the truth tells latencies apart by 1/64; from 128 on multiples of 2, from 256 on of 4, and so on, are judged",
        );
    }
    if config & config::CYCLES != 0 {
        return match by_latency || mask != 0 {
            true => Err(
                "cycles=1 with a filter: the truth has not which cycles are of executions that pass",
            ),
            false => Ok(Metric::Cycles),
        };
    }
    if filter.fetch || by_latency {
        return Ok(Metric::Filtered(filter));
    }
    let is = |bits: u64| mask == bits && matches == bits;
    Ok(match filter.select {
        0 if mask == 0 => Metric::Selected,
        1 if mask == 0 => Metric::Loads,
        2 if mask == 0 => Metric::Stores,
        3 if mask == 0 => Metric::Accesses,
        4 if mask == 0 => Metric::Branches,
        4 if is(header::MISPRED) => Metric::Mispredicts,
        3 if is(header::LLMISS) => Metric::LlcMisses,
        3 if is(header::L1TLBMISS) => Metric::DtlbMisses,
        3 if is(header::LLTLBMISS) => Metric::PageWalks,
        _ => Metric::Filtered(filter),
    })
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
        metric(&SampledEvent { name: name.to_owned(), ..SampledEvent::default() }).ok()
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

    /// Returns the count for instructions that are sampled by this configuration, or why the truth has none.
    fn sampled(config: u64, mask: u64, matches: u64) -> Result<Metric, &'static str> {
        metric(&SampledEvent {
            name: "pdis/whatever/u".to_owned(),
            config,
            more_config: [mask, matches],
            ..SampledEvent::default()
        })
    }

    #[test]
    fn instructions_are_sampled_by_configuration() {
        assert_eq!(sampled(0, 0, 0), Ok(Metric::Selected));
        assert_eq!(sampled(1, 0, 0), Ok(Metric::Loads));
        assert_eq!(sampled(2, 0, 0), Ok(Metric::Stores));
        assert_eq!(sampled(3 | 1 << 3, 0, 0), Ok(Metric::Accesses));
        assert_eq!(sampled(1 << 4, 0, 0), Ok(Metric::Cycles));
        let missed = header::MISPRED;
        assert_eq!(sampled(4, missed, missed), Ok(Metric::Mispredicts));
        let filter = RecordFilter {
            select: 1,
            latency: 3,
            threshold: 30,
            below: true,
            ..RecordFilter::default()
        };
        let config = 1 | 3 << 8 | 1 << 11 | 30 << 12;
        assert_eq!(sampled(config, 0, 0), Ok(Metric::Filtered(filter)));
        let hits = RecordFilter { select: 3, mask: header::L1MISS, ..RecordFilter::default() };
        let found = sampled(3, header::L1MISS, 0);
        assert_eq!(found, Ok(Metric::Filtered(hits)));
    }

    #[test]
    fn what_the_truth_cannot_tell_is_said() {
        let why = |config, mask| sampled(config, mask, 0).unwrap_err();
        assert!(why(1 << 7, 0).starts_with("flushed=1"));
        assert!(why(0, 1 << 3).starts_with("event_mask"));
        assert!(why(1 | 257 << 12, 0).starts_with("ldlat"));
        assert!(sampled(1 | 260 << 12, 0, 0).is_ok());
        assert!(why(1 << 4 | 30 << 12, 0).starts_with("cycles=1"));
    }
}
