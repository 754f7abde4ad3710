//! What the unit that samples instructions would record.

use sampling_units::pdis::header;

use super::*;

/// `lw a0, 0(a1)`, `sw a0, 0(a1)`, `amoadd.w a0, a0, (a1)`, `beq a0, a1, +8` and `addi a0, a0, 0`.
const LOAD: u32 = 0x0005_a503;
pub(super) const STORE: u32 = 0x00a5_a023;
const ATOMIC: u32 = 0x00a5_a52f;
const BRANCH: u32 = 0x00b5_0463;
const ADD: u32 = 0x0005_0513;

/// An instruction at four bytes times its number.
pub(super) fn defined(id: u32, raw: u32) -> StaticInfo {
    StaticInfo {
        id: InstId(id),
        space: 2,
        pc: u64::from(id) * 4,
        raw,
        len: 4,
        privilege: 0,
        class: Class::Int,
        target: None,
    }
}

/// A hart whose instructions 0 to 4 are these.
fn hart() -> Hart {
    let mut hart = Hart::new(0, &SharedLines::new(1));
    for (id, raw) in (0..).zip([LOAD, STORE, ATOMIC, BRANCH, ADD]) {
        hart.collector.define(&defined(id, raw));
    }
    hart
}

impl Hart {
    /// A plain one.
    fn passes(&mut self, inst: u32, redirect: Redirect) {
        self.leaves(inst, redirect, TeaEvents::default(), Detail::default());
    }
}

/// Returns how often the filter lets an instruction pass, by its number.
fn passing(found: &[Counted], filter: RecordFilter) -> Vec<u64> {
    let times = |counted: &Counted| {
        let records = counted.counts.records.iter();
        records.map(|own| filter.passing(own).0).sum()
    };
    found.iter().map(times).collect()
}

fn select(select: u8) -> RecordFilter {
    RecordFilter { select, ..RecordFilter::default() }
}

#[test]
fn filters_select_by_type() {
    let mut hart = hart();
    hart.accesses(0, access(AccessKind::Load, 0x1000, DataSource::L1), 3);
    hart.accesses(1, access(AccessKind::Store, 0x1000, DataSource::L1), 3);
    hart.accesses(2, access(AccessKind::Atomic, 0x1000, DataSource::L1), 3);
    hart.passes(3, Redirect::None);
    hart.passes(4, Redirect::None);
    let found = by_number(hart.collector);
    let of = |number| passing(&found, select(number));
    assert_eq!(of(0), [1, 1, 1, 1, 1]);
    assert_eq!(of(1), [1, 0, 1, 0, 0]);
    assert_eq!(of(2), [0, 1, 1, 0, 0]);
    assert_eq!(of(3), [1, 1, 1, 0, 0]);
    assert_eq!(of(4), [0, 0, 0, 1, 0]);
}

#[test]
fn filters_tell_events_and_latencies_of_one_instruction_together() {
    let mut hart = hart();
    for (source, latency) in [
        (DataSource::L1, 4),
        (DataSource::Memory, 100),
        (DataSource::Memory, 200),
        (DataSource::Llc, 200),
        (DataSource::Memory, 9000),
    ] {
        hart.accesses(0, access(AccessKind::Load, 0x1000, source), latency);
    }
    let found = by_number(hart.collector);
    let missed =
        RecordFilter { mask: header::LLMISS, matches: header::LLMISS, latency: 3, ..select(1) };
    let least = |threshold| RecordFilter { threshold, ..missed };
    let load = |filter: RecordFilter| passing(&found, filter)[0];
    assert_eq!(load(missed), 3);
    assert_eq!([load(least(100)), load(least(101))], [3, 2]);
    assert_eq!(load(least(4095)), 1, "there it saturates");
    let below = RecordFilter { below: true, ..least(200) };
    assert_eq!(load(below), 1);
    let hits = RecordFilter { matches: 0, ..least(0) };
    assert_eq!(load(hits), 2);
    // Each was ten cycles in the ROB, whatever its execution took.
    let total = RecordFilter { latency: 0, ..least(11) };
    assert_eq!(load(total), 0);
    let weights: u64 = found[0].counts.records.iter().map(|own| least(150).passing(own).1).sum();
    assert_eq!(weights, 200 + 4095);
}

#[test]
fn what_comes_next_tells_whether_a_branch_is_taken() {
    let mut hart = hart();
    // The branch (3) is not taken, taken, taken and mispredicted; and last, nothing follows it.
    for (inst, redirect) in [
        (3, Redirect::None),
        (4, Redirect::None),
        (3, Redirect::None),
        (0, Redirect::None),
        (3, Redirect::Mispredict),
        (0, Redirect::None),
        (3, Redirect::None),
    ] {
        hart.passes(inst, redirect);
    }
    let found = by_number(hart.collector);
    let branch = |bits: u64| {
        let filter = RecordFilter { mask: bits, matches: bits, ..select(4) };
        passing(&found, filter)[3]
    };
    let kind = |number: u32| 1 << (header::TRANSFER_SHIFT + number);
    assert_eq!((branch(kind(4)), branch(kind(5))), (1, 3));
    assert_eq!(branch(header::MISPRED), 1);
    assert_eq!(found[3].counts.executed, 4);
}

#[test]
fn fetches_are_of_packets_and_no_instructions() {
    let mut hart = hart();
    let fetched = Detail {
        packet: PacketFetch {
            asked: 10,
            delivered: 50,
            source: DataSource::Llc,
            ..PacketFetch::default()
        },
        ..Detail::default()
    };
    hart.leaves(4, Redirect::None, TeaEvents::default(), fetched);
    hart.passes(4, Redirect::None);
    let found = by_number(hart.collector);
    let fetches = RecordFilter { fetch: true, threshold: 40, ..select(0) };
    assert_eq!(passing(&found, fetches)[4], 1);
    assert_eq!(passing(&found, select(0))[4], 2);
    let later = RecordFilter { threshold: 41, ..fetches };
    assert_eq!(passing(&found, later)[4], 0);
}

#[test]
fn long_latencies_are_told_apart_by_their_size() {
    assert_eq!([0, 1, 99, 127].map(step), [0, 1, 99, 127]);
    assert_eq!([128, 129, 200, 255].map(step), [128, 128, 200, 254]);
    assert_eq!([1000, 1007, 4095, 70_000].map(step), [1000, 1000, 4095, 4095]);
    let exact = |threshold| RecordFilter { threshold, ..RecordFilter::default() }.is_exact();
    assert_eq!([30, 128, 129, 500, 1000, 1004].map(exact), [true, true, false, true, true, false]);
}

#[test]
fn traps_and_regions_leave_no_record_out() {
    let mut hart = hart();
    hart.passes(3, Redirect::None);
    hart.passes(4, Redirect::Exception);
    hart.passes(3, Redirect::None);
    hart.collector.event(&Event::Region(false));
    hart.passes(3, Redirect::None);
    hart.collector.event(&Event::Region(true));
    hart.passes(3, Redirect::Interrupt);
    let found = by_number(hart.collector);
    let left = |n: usize| {
        let counts = &found[n].counts;
        let records: u64 = counts.records.iter().map(|own| own.all().0).sum();
        (counts.executed + counts.trapped, records)
    };
    assert_eq!((left(3), left(4)), ((3, 3), (1, 1)));
    let trapped = RecordFilter { mask: header::TRAPPED, matches: header::TRAPPED, ..select(0) };
    assert_eq!(passing(&found, trapped), [0, 0, 0, 1, 1]);
}
