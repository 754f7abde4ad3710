//! The specification's rules, on transfers that are told one by one.

use super::control::*;
use super::*;
use crate::StaticKind;

const USER: u8 = 0;
const SUPERVISOR: u8 = 1;
const MACHINE: u8 = 3;

fn records(control: u64) -> TransferRecords {
    let mut records = TransferRecords::default();
    records.set_privilege(USER);
    records.write(Register::MachineControl, control);
    records
}

fn transfer(kind: Kind, pc: u64) -> Passed {
    Passed { kind: StaticKind::transfer(kind), ..Passed::at(pc) }
}

fn trap(outcome: Outcome, pc: u64) -> Passed {
    Passed { outcome, ..Passed::at(pc) }
}

/// (source, target, type) of the valid records, youngest first, with what says valid and mispredicted.
fn all(records: &TransferRecords) -> Vec<(u64, u64, u64)> {
    let entry = |n| {
        let data = records.read(Register::Data(n)) & 15;
        let (source, target) = (Register::Source(n), Register::Target(n));
        (records.read(source), records.read(target), data)
    };
    let valid = |record: &(u64, u64, u64)| record.0 & 1 != 0;
    (0..=255).map(entry).filter(valid).collect()
}

#[test]
fn jumps_and_taken_branches_are_recorded_youngest_first() {
    let mut records = records(U);
    records.passed(&transfer(Kind::DirectCall, 0x100));
    records.passed(&transfer(Kind::Taken, 0x200));
    // Not taken: the next one follows it.
    records.passed(&transfer(Kind::Taken, 0x204));
    let missed = Passed { outcome: Outcome::Mispredicted, ..transfer(Kind::Return, 0x208) };
    records.passed(&missed);
    assert_eq!(all(&records), [(0x101, 0x200, 9)]);
    records.reach(0x104);
    assert_eq!(all(&records), [(0x209, 0x105, 13), (0x101, 0x200, 9)]);
    assert_eq!(records.read(Register::Status), 2);
}

#[test]
fn branches_that_are_not_taken_are_recorded_if_asked_for() {
    let mut records = records(U | NTBREN);
    records.passed(&transfer(Kind::Taken, 0x200));
    // c.beqz
    let short = Passed { kind: StaticKind::of(0xc001), ..Passed::at(0x204) };
    records.passed(&short);
    records.reach(0x206);
    assert_eq!(all(&records), [(0x205, 0x206, 4), (0x201, 0x204, 4)]);
}

#[test]
fn each_filter_stops_its_kind() {
    let numbers = [5, 8, 9, 10, 11, 12, 13, 14, 15];
    for filter in numbers {
        let mut records = records(U | 1 << (32 + filter));
        for number in numbers {
            records.passed(&transfer(Kind::of_number(number).unwrap(), 0x1000));
        }
        records.reach(0);
        let found: Vec<u64> = all(&records).iter().rev().map(|r| r.2).collect();
        let expected = numbers.iter().filter(|&&n| n != filter);
        assert_eq!(found, expected.map(|&n| n.into()).collect::<Vec<u64>>());
    }
}

/// Smctr 1.0, "Trap and Trap Return Recording".
#[test]
fn traps_and_returns_between_privileges() {
    // (recorded privileges, from, to, outcome or return) → record of 0x100 to 0x900.
    let cases = [
        (U | S, USER, SUPERVISOR, Some((0x101, 0x900))),
        (S, USER, SUPERVISOR, Some((1, 0x900))),
        (U, USER, SUPERVISOR, None),
        (M, USER, SUPERVISOR, None),
        (U | STE, USER, SUPERVISOR, Some((0x101, 0))),
        (U | STE, USER, MACHINE, None),
        (U | MTE, USER, MACHINE, None),
        (U | STE | MTE, USER, MACHINE, Some((0x101, 0))),
        (S | MTE, SUPERVISOR, MACHINE, Some((0x101, 0))),
        (S | STE, SUPERVISOR, MACHINE, None),
        (S | M, SUPERVISOR, MACHINE, Some((0x101, 0x900))),
    ];
    for outcome in [Outcome::Exception, Outcome::Interrupt] {
        for (control, from, to, expected) in cases {
            let mut records = records(control);
            records.set_privilege(from);
            records.passed(&trap(outcome, 0x100));
            records.set_privilege(to);
            records.passed(&Passed::at(0x900));
            let number = 1 + u64::from(outcome == Outcome::Interrupt);
            let expected = expected.map(|(source, target)| (source, target, number));
            assert_eq!(all(&records), Vec::from_iter(expected), "{control:#x}");
        }
    }
    let returns = [(U | S, Some((0x101, 0x900))), (S, Some((0x101, 0))), (U, None), (M, None)];
    for (control, expected) in returns {
        let mut records = records(control);
        records.set_privilege(SUPERVISOR);
        records.passed(&transfer(Kind::TrapReturn, 0x100));
        records.set_privilege(USER);
        records.reach(0x900);
        let expected = expected.map(|(source, target)| (source, target, 3));
        assert_eq!(all(&records), Vec::from_iter(expected), "{control:#x}");
    }
}

#[test]
fn external_traps_pass_the_filters_of_traps() {
    for (control, expected) in [(U | S | 3 << 33, 0), (U | STE | 3 << 33, 1)] {
        let mut records = records(control);
        records.passed(&trap(Outcome::Exception, 0x100));
        records.set_privilege(SUPERVISOR);
        records.reach(0x900);
        assert_eq!(all(&records).len(), expected);
    }
}

#[test]
fn a_load_that_is_fetched_again_is_no_transfer() {
    let mut records = records(U);
    records.passed(&trap(Outcome::Replayed, 0x100));
    records.passed(&Passed::at(0x100));
    records.reach(0x104);
    assert_eq!(all(&records), []);
}

#[test]
fn a_return_takes_the_last_call_away() {
    let mut records = records(U | RASEMU | 0xffff << 32);
    records.passed(&transfer(Kind::DirectCall, 0x100));
    records.passed(&transfer(Kind::Taken, 0x200));
    records.passed(&transfer(Kind::IndirectCall, 0x300));
    records.passed(&transfer(Kind::Return, 0x400));
    records.passed(&transfer(Kind::DirectCall, 0x304));
    records.passed(&transfer(Kind::CoroutineSwap, 0x500));
    records.reach(0x600);
    assert_eq!(all(&records), [(0x501, 0x600, 12), (0x101, 0x200, 9)]);
    // Deeper than there are calls: the pointer goes on, nothing is valid.
    for _ in 0..3 {
        records.passed(&transfer(Kind::Return, 0x600));
        records.reach(0x104);
    }
    assert_eq!(all(&records), []);
    assert_eq!(records.read(Register::Status), 31);
}

#[test]
fn cycles_of_recorded_privileges_since_the_last_record() {
    let mut records = records(U);
    let cycles = |cycles, passed| Passed { cycles, ..passed };
    records.passed(&cycles(5, transfer(Kind::DirectJump, 0x100)));
    records.passed(&cycles(3, Passed::at(0x200)));
    records.passed(&cycles(4, trap(Outcome::Interrupt, 0x204)));
    records.set_privilege(SUPERVISOR);
    records.passed(&cycles(1000, transfer(Kind::TrapReturn, 0x900)));
    records.set_privilege(USER);
    records.passed(&cycles(2, transfer(Kind::DirectJump, 0x204)));
    records.reach(0x300);
    // 3 + 4 + 2; the first one counts from where nobody knows.
    assert_eq!(records.read(Register::Data(0)), 9 << 16 | 1 << 15 | 11);
    assert_eq!(records.read(Register::Data(1)), 5 << 16 | 11);
    records.clear();
    assert_eq!(all(&records), []);
    records.passed(&cycles(6, transfer(Kind::DirectJump, 0x300)));
    records.reach(0x400);
    assert_eq!(records.read(Register::Data(0)), 6 << 16 | 11);
}

#[test]
fn a_popped_call_leaves_its_cycles() {
    let mut records = records(U | RASEMU);
    let cycles = |cycles, passed| Passed { cycles, ..passed };
    records.passed(&cycles(1, transfer(Kind::DirectCall, 0x100)));
    records.passed(&cycles(10, transfer(Kind::DirectCall, 0x200)));
    records.passed(&cycles(20, transfer(Kind::Return, 0x300)));
    records.passed(&cycles(40, transfer(Kind::DirectCall, 0x204)));
    records.reach(0x400);
    assert_eq!(records.read(Register::Data(0)), 70 << 16 | 1 << 15 | 9);
}

/// Smctr 1.0, "Cycle Counting": the formula, and the largest values.
#[test]
fn cycles_are_compressed() {
    for cycles in [0, 1, 4095, 4096, 4097, 8191, 8192, 32764, 524_224, 134_201_344] {
        assert_eq!(
            expand(compress(cycles)),
            cycles & !0 << cycles.max(1).ilog2().saturating_sub(12)
        );
    }
    assert_eq!(expand(compress(u64::MAX)), 134_201_344);
    assert_eq!(compress(8191), 1 << 12 | 4095);
}

#[test]
fn registers_hold_what_they_can() {
    let mut records = records(0);
    records.write(Register::SupervisorControl, u64::MAX);
    assert_eq!(records.read(Register::MachineControl), control::SUPERVISOR);
    records.write(Register::MachineControl, u64::MAX);
    records.write(Register::SupervisorControl, 0);
    assert_eq!(records.read(Register::MachineControl), M | MTE);
    assert_eq!(records.read(Register::SupervisorControl), 0);
    for (depth, entries) in [(0, 16), (1, 32), (2, 64), (3, 128), (4, 256)] {
        records.write(Register::Depth, depth);
        records.write(Register::Depth, 5);
        assert_eq!(records.read(Register::Depth), depth);
        records.write(Register::Status, u64::MAX);
        assert_eq!(records.read(Register::Status), 1 << 31 | (entries - 1));
        for entry in 0..=255u8 {
            records.write(Register::Source(entry), u64::MAX);
            records.write(Register::Data(entry), u64::MAX);
            let there = u64::from(entry) < entries;
            let held = |value| if there { value } else { 0 };
            assert_eq!(records.read(Register::Source(entry)), held(u64::MAX));
            assert_eq!(records.read(Register::Data(entry)), held(0xffff_800f));
        }
    }
}

#[test]
fn what_freezes_is_not_recorded() {
    let mut records = records(U | S | LCOFIFRZ);
    records.passed(&transfer(Kind::DirectJump, 0x100));
    records.passed(&trap(Outcome::Interrupt, 0x200));
    records.set_privilege(SUPERVISOR);
    records.freeze();
    assert!(!records.is_active());
    assert_eq!(all(&records), [(0x101, 0x200, 11)]);
}

#[test]
fn kinds_of_encodings() {
    let cases = [
        (0x0000_8067, Some(Kind::Return)),        // jalr x0, x1
        (0x0002_8067, Some(Kind::Return)),        // jalr x0, x5
        (0x0000_80e7, Some(Kind::IndirectCall)),  // jalr x1, x1
        (0x0002_80e7, Some(Kind::CoroutineSwap)), // jalr x1, x5
        (0x0000_82e7, Some(Kind::CoroutineSwap)), // jalr x5, x1
        (0x0005_00e7, Some(Kind::IndirectCall)),  // jalr x1, x10
        (0x0005_0067, Some(Kind::IndirectJump)),  // jalr x0, x10
        (0x0005_0567, Some(Kind::OtherIndirect)), // jalr x10, x10
        (0x0000_00ef, Some(Kind::DirectCall)),    // jal x1
        (0x0000_006f, Some(Kind::DirectJump)),    // jal x0
        (0x0000_056f, Some(Kind::OtherDirect)),   // jal x10
        (0x8082, Some(Kind::Return)),             // c.jr x1
        (0x8502, Some(Kind::IndirectJump)),       // c.jr x10
        (0x9502, Some(Kind::IndirectCall)),       // c.jalr x10
        (0x9282, Some(Kind::CoroutineSwap)),      // c.jalr x5
        (0xa001, Some(Kind::DirectJump)),         // c.j
        (0xc101, Some(Kind::Taken)),              // c.beqz
        (0x1020_0073, Some(Kind::TrapReturn)),    // sret
        (0x0000_0013, None),                      // nop
        (0x0000_0073, None),                      // ecall
    ];
    for (raw, kind) in cases {
        let found = StaticKind::of(raw);
        assert_eq!(found.kind(), kind, "{raw:#x}");
        assert_eq!(found.bytes(), if raw & 3 == 3 { 4 } else { 2 });
    }
}
