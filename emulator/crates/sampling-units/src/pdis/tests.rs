//! The draft's rules, on instructions that are told one by one.

use commit_trace::{AccessKind, DataAccess, DataSource, Detail};

use super::*;
use crate::ctr::Kind;
use crate::{Passed, StaticKind};

const USER: u8 = 0;
/// All registers of the buffer: 4 KiB, and on.
const ON: u64 = buffer_control::EN;

fn unit(control: u64, period: u32) -> SamplingUnit {
    let mut unit = SamplingUnit::default();
    unit.set_privilege(USER);
    let initial = u64::from(0u32.wrapping_sub(period));
    unit.write(Register::Counter, initial << 32 | initial);
    unit.write(Register::BufferControl, ON);
    unit.write(Register::MachineControl, control);
    unit
}

/// One of kind `kind` at `pc` that is decoded in cycle `decode` and leaves in cycle `commit`.
fn observe(unit: &mut SamplingUnit, kind: StaticKind, pc: u64, decode: u64, commit: u64) {
    let passed = Passed { kind, cycle: commit, cycles: 1, ..Passed::at(pc) };
    let access = DataAccess {
        kind: kind.access(),
        va: pc * 16,
        source: DataSource::L1,
        ..DataAccess::default()
    };
    let detail = Detail {
        decode,
        dispatch: decode + 1,
        issue: decode + 2,
        complete: commit,
        access,
        ..Detail::default()
    };
    unit.passed(&Observed { passed: &passed, detail: &detail });
}

/// `count` of them, four bytes and ten cycles apart, each of which takes as many.
fn observe_all(unit: &mut SamplingUnit, kind: StaticKind, count: u64) {
    let begins = unit.active_until;
    for n in 0..count {
        let decode = begins + 10 * n;
        observe(unit, kind, 4 * n, decode, decode + 10);
    }
}

fn records(unit: &mut SamplingUnit) -> Vec<(u64, Record)> {
    std::iter::from_fn(|| unit.take_record()).collect()
}

#[test]
fn every_so_many_of_the_type_in_the_privilege() {
    let load = StaticKind::accessing(AccessKind::Load);
    let mut sampling = unit(control::U | control::MEM | 1, 3);
    observe_all(&mut sampling, load, 10);
    let pcs: Vec<u64> = records(&mut sampling).iter().map(|(_, r)| r.pc).collect();
    assert_eq!(pcs, [8, 20, 32]);
    observe_all(&mut sampling, StaticKind::accessing(AccessKind::Store), 10);
    sampling.set_privilege(1);
    observe_all(&mut sampling, load, 10);
    assert!(records(&mut sampling).is_empty());
}

#[test]
fn an_overflow_while_one_is_active_is_a_collision() {
    let mut sampling = unit(control::U | control::MEM, 1);
    let plain = StaticKind::default();
    observe(&mut sampling, plain, 0, 0, 100);
    observe(&mut sampling, plain, 4, 99, 101);
    observe(&mut sampling, plain, 8, 100, 102);
    let pcs: Vec<u64> = records(&mut sampling).iter().map(|(_, r)| r.pc).collect();
    assert_eq!(pcs, [0, 8]);
    assert_eq!((sampling.totals().samples, sampling.totals().collisions), (2, 1));
}

#[test]
fn after_a_discarded_record_the_next_is_selected() {
    for (acc, samples) in [(0, 0), (control::ACC, 9)] {
        let mut sampling = unit(control::U | control::MEM | acc, 10);
        sampling.write(Register::Filter, 20);
        for n in 0..100 {
            let takes = if n % 10 == 5 { 25 } else { 10 };
            observe(&mut sampling, StaticKind::default(), 4 * n, 30 * n, 30 * n + takes);
        }
        records(&mut sampling);
        assert_eq!(sampling.totals().samples, samples, "{:?}", sampling.totals());
    }
}

#[test]
fn each_selection_is_accounted_for() {
    let kinds = [
        StaticKind::default(),
        StaticKind::accessing(AccessKind::Load),
        StaticKind::accessing(AccessKind::Atomic),
        StaticKind::transfer(Kind::Taken),
        StaticKind::transfer(Kind::Return),
    ];
    let mut random = 1u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 20) % below
    };
    for case in 0..500 {
        let flags = [control::ACC, control::RAND, control::CYC, control::FETCH, control::MEM];
        let chosen = next(32);
        let flags = (0..).zip(flags).filter(|(n, _)| chosen >> n & 1 != 0);
        let flags = flags.fold(0, |all, (_, flag)| all | flag);
        let mut sampling = unit(control::U | next(5) | flags, 1 + next(40) as u32);
        sampling.write(Register::EventMask, if next(2) == 0 { 0 } else { header::ADR1V });
        sampling.write(Register::Filter, next(30) | next(2) << 12 | next(5) << 13);
        let mut cycle = 0;
        for n in 0..500 {
            cycle += next(20);
            let kind = kinds[next(kinds.len() as u64) as usize];
            observe(&mut sampling, kind, 4 * n, cycle.saturating_sub(next(30)), cycle);
            if next(100) == 0 {
                let value = sampling.read(Register::MachineControl) & !control::OF;
                sampling.write(Register::MachineControl, value);
            }
        }
        sampling.inhibit(true);
        records(&mut sampling);
        let Totals { selected, samples, collisions, filtered, dropped } = sampling.totals();
        assert_eq!(selected, samples + collisions + filtered + dropped, "case {case}");
    }
}

#[test]
fn a_single_record_is_held_until_it_is_taken() {
    let mut sampling = unit(control::U, 2);
    observe_all(&mut sampling, StaticKind::default(), 4);
    assert!(sampling.overflowed() && sampling.take_overflow() && !sampling.take_overflow());
    assert_eq!((sampling.held().pc, sampling.totals().dropped), (4, 1));
    sampling.write(Register::MachineControl, control::U);
    observe_all(&mut sampling, StaticKind::default(), 2);
    assert!(sampling.take_overflow());
    assert_eq!(sampling.held().pc, 4);
}

#[test]
fn the_buffer_wraps_or_stops_and_says_when_it_is_half_full() {
    use buffer_control::{BMI, BMIEN, BMITH_SHIFT, EMPTY, SOF, WRAP};
    for stops in [false, true] {
        let mut sampling = unit(control::U | control::MEM | control::OF, 1);
        let stop = if stops { SOF } else { 0 };
        sampling.write(Register::BufferAddress, 0x1_0000);
        sampling.write(Register::BufferControl, ON | BMIEN | 2 << BMITH_SHIFT | stop);
        assert_eq!(sampling.deadline(1000), 1000 + 1, "256 instructions may be in flight");
        observe_all(&mut sampling, StaticKind::default(), 31);
        assert!(!sampling.buffer().take_interrupt());
        observe_all(&mut sampling, StaticKind::default(), 1);
        assert!(sampling.buffer().take_interrupt());
        assert_ne!(sampling.read(Register::BufferControl) & BMI, 0);
        observe_all(&mut sampling, StaticKind::default(), 40);
        let read = sampling.read(Register::BufferControl);
        assert_eq!((read & WRAP != 0, read & EMPTY != 0), (true, false));
        let at: Vec<u64> = records(&mut sampling).iter().map(|(at, _)| *at).collect();
        assert_eq!(at.len(), if stops { 64 } else { 72 });
        assert_eq!((at[0], at[63]), (0x1_0000, 0x1_0fc0));
        assert_eq!(sampling.totals().dropped, if stops { 8 } else { 0 });
        assert_ne!(sampling.read(Register::BufferControl) & EMPTY, 0);
    }
}

/// Whatever interrupts are wanted, the hart comes by before too many records wait.
#[test]
fn records_do_not_wait_for_ever() {
    for interrupts in [0, buffer_control::BMIEN] {
        let mut sampling = unit(control::U | control::MEM | control::OF, 1000);
        let size = 10 << buffer_control::SIZE_SHIFT;
        sampling.write(Register::BufferControl, ON | size | interrupts);
        let deadline = sampling.deadline(0);
        assert!((500_000..=1_000_000).contains(&deadline), "{deadline}");
    }
}

/// The top of the address space is an address, too.
#[test]
fn the_buffer_may_end_where_addresses_do() {
    let mut sampling = unit(control::U | control::MEM, 1);
    sampling.write(Register::BufferAddress, u64::MAX);
    observe_all(&mut sampling, StaticKind::default(), 2);
    let at: Vec<u64> = records(&mut sampling).iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [0u64.wrapping_sub(64), 0u64.wrapping_sub(4096)]);
}

#[test]
fn a_page_that_cannot_be_written_stops_the_buffer() {
    use buffer_control::{TF, TFPTR_SHIFT};
    let mut sampling = unit(control::U | control::MEM, 1);
    sampling.write(Register::BufferControl, ON | 1 << buffer_control::SIZE_SHIFT);
    sampling.write(Register::BufferAddress, 0x1_1000);
    observe_all(&mut sampling, StaticKind::default(), 3);
    let (at, _) = sampling.take_record().unwrap();
    sampling.fault(at);
    assert!(sampling.buffer().take_interrupt());
    let read = sampling.read(Register::BufferControl);
    assert_eq!((read & TF != 0, read >> TFPTR_SHIFT & 0xfffff), (true, 1));
    assert_eq!((sampling.totals().samples, sampling.totals().dropped), (0, 3));
    observe_all(&mut sampling, StaticKind::default(), 1);
    assert_eq!(sampling.totals().dropped, 4);
}

/// A branch's record says whether it was taken, and where it and the transfer before went.
#[test]
fn transfers_have_their_targets() {
    let branch = StaticKind::transfer(Kind::Taken);
    let mut sampling = unit(control::U | control::MEM | control::EPT | 4, 1);
    observe(&mut sampling, branch, 0x100, 0, 5);
    observe(&mut sampling, branch, 0x200, 5, 9);
    observe(&mut sampling, StaticKind::transfer(Kind::Return), 0x204, 9, 20);
    sampling.reach(0x300);
    let bit = |kind: Kind| 1u64 << (39 + kind as u32);
    let found: Vec<_> = records(&mut sampling)
        .into_iter()
        .map(|(_, record)| (record.header & !(header::ICITV | 7), record.address1, record.address2))
        .collect();
    let both = header::ADR1V | header::ADR2V;
    let expected = [
        (both | bit(Kind::Taken), 0x200, 0),
        (both | bit(Kind::NotTaken), 0x204, 0x200),
        (both | bit(Kind::Return), 0x300, 0x204),
    ];
    assert_eq!(found, expected);
}

#[test]
fn registers_hold_what_there_is() {
    let mut sampling = SamplingUnit::default();
    for register in [
        Register::MachineControl,
        Register::SupervisorControl,
        Register::Counter,
        Register::EventMask,
        Register::EventMatch,
        Register::Filter,
        Register::BufferControl,
        Register::BufferAddress,
    ] {
        sampling.write(register, u64::MAX);
    }
    assert_eq!(sampling.read(Register::SupervisorControl) & control::M, 0);
    assert_eq!(sampling.read(Register::MachineControl) & control::SEL, 0, "7 is reserved");
    assert_eq!(sampling.read(Register::EventMask), (1 << 56) - 1);
    // LATSEL 7 is reserved.
    assert_eq!(sampling.read(Register::Filter), 0x1fff);
    assert_eq!(sampling.read(Register::BufferAddress) % RECORD_BYTES, 0);
    let size = sampling.read(Register::BufferControl) >> 1 & 31;
    assert_eq!(size, 10, "4 MiB");
}

/// Instructions that each take so many cycles, of which every tenth throws `flushed` others away; one a cycle is decoded.
fn observe_flushing(unit: &mut SamplingUnit, count: u64, cycles: u64, flushed: u32) {
    for n in 0..count {
        let passed = Passed { cycle: n * cycles + 10, cycles, ..Passed::at(4 * n) };
        let detail = Detail {
            decode: n * cycles,
            dispatch: n * cycles + 1,
            complete: n * cycles + 2,
            flushed: if n % 10 == 0 { flushed } else { 0 },
            ..Detail::default()
        };
        unit.passed(&Observed { passed: &passed, detail: &detail });
    }
}

#[test]
fn what_exceeds_an_interval_belongs_to_the_next() {
    // Cycles, of which an instruction brings several, also more than an interval has.
    for cycles in [1, 7, 50, 300] {
        let mut sampling = unit(control::U | control::MEM | control::CYC, 103);
        observe_flushing(&mut sampling, 10_000, cycles, 0);
        let totals = sampling.totals();
        assert_eq!(totals.selected, 10_000 * cycles / 103, "{cycles}");
    }
    // Instructions, with those of wrong paths.
    for (period, flushed) in [(211, 40), (16, 100)] {
        let mut sampling = unit(control::U | control::MEM, period);
        observe_flushing(&mut sampling, 10_000, 1, flushed);
        let decoded = 10_000 + 1_000 * u64::from(flushed);
        assert_eq!(sampling.totals().selected, decoded / u64::from(period));
    }
    // Fetches, of which forty instructions of a wrong path are ten packets.
    let mut sampling = unit(control::U | control::MEM | control::FETCH, 7);
    observe_flushing(&mut sampling, 10_000, 1, 40);
    assert_eq!(sampling.totals().selected, 1_000 * 10 / 7);
}

#[test]
fn after_a_wrong_path_no_instruction_is_sampled_more_often() {
    let mut sampling = unit(control::U | control::MEM, 211);
    let mut samples = [0u64; 10];
    for _ in 0..1_000 {
        // Ten times the same ten instructions, of which the first is mispredicted.
        observe_flushing(&mut sampling, 100, 1, 40);
        sampling.active_until = 0;
        for (_, record) in records(&mut sampling) {
            if record.header & header::FLUSHED == 0 {
                samples[(record.pc / 4 % 10) as usize] += 1;
            }
        }
        sampling.write(Register::BufferControl, 0);
        sampling.write(Register::BufferControl, ON);
    }
    let mean = samples.iter().sum::<u64>() as f64 / 10.0;
    for (at, count) in samples.iter().enumerate() {
        let ratio = *count as f64 / mean;
        assert!((0.8..1.2).contains(&ratio), "{at}: {samples:?}");
    }
}

#[test]
fn an_access_that_is_interrupted_counts_when_it_is_decoded_again() {
    let load = StaticKind::accessing(AccessKind::Load);
    for (select, expected) in [(1, 100), (3, 100), (0, 110)] {
        let mut sampling = unit(control::U | control::MEM | select, 1);
        for n in 0..110 {
            let again = n % 11 == 0;
            let passed = Passed {
                kind: load,
                outcome: if again { Outcome::Interrupt } else { Outcome::Retired },
                cycle: 20 * n + 10,
                cycles: 1,
                ..Passed::at(4 * n)
            };
            let detail = Detail { decode: 20 * n, ..Detail::default() };
            sampling.passed(&Observed { passed: &passed, detail: &detail });
        }
        assert_eq!(sampling.totals().selected, expected, "{select}");
    }
}

#[test]
fn an_access_that_faults_has_its_address() {
    let mut sampling = unit(control::U | control::MEM | control::PA | 2, 1);
    let passed = Passed {
        kind: StaticKind::accessing(AccessKind::Store),
        outcome: Outcome::Exception,
        cycle: 10,
        cycles: 1,
        ..Passed::at(0x1000)
    };
    let access = DataAccess { kind: AccessKind::Store, va: 0x7f_0000, ..DataAccess::default() };
    sampling.passed(&Observed { passed: &passed, detail: &Detail { access, ..Detail::default() } });
    let found = records(&mut sampling);
    let (_, record) = found[0];
    assert_eq!((record.pc, record.address1), (0x1000, 0x7f_0000));
    let bits = [header::TRAPPED, header::ADR1V, header::ADR2V].map(|bit| record.header & bit != 0);
    assert_eq!(bits, [true, true, false]);
}
