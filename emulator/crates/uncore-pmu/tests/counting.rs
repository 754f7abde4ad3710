//! What a driver sees of a unit.

use std::cell::Cell;

use uncore_pmu::{Event, Reg, RequestFilter, Tally, Totals, UncorePmu, Unit};

/// Totals that the test sets.
#[derive(Default)]
struct Machine {
    misses: Cell<u64>,
    lines: Cell<u64>,
}

impl Totals for Machine {
    fn total(&self, event: Event, of: RequestFilter, _: u64) -> u64 {
        match event {
            Event::Misses => self.misses.get() * if of.harts == 2 { 10 } else { 1 },
            Event::Occupancy => self.lines.get(),
            _ => 0,
        }
    }
}

const MISSES: u64 = 3;
const OCCUPANCY: u64 = 10;

fn pmu() -> UncorePmu {
    UncorePmu::new(Unit::Llc, 2, 1_000_000, |event| event != Event::Hits)
}

#[test]
fn counts_between_enable_and_inhibit() {
    let (mut pmu, machine) = (pmu(), Machine::default());
    machine.misses.set(5);
    pmu.write((Reg::Select, 3), MISSES, 0, &machine);
    pmu.write((Reg::Select, 4), MISSES | 2 << 8, 0, &machine);
    pmu.write((Reg::Enable, 0), 0x118, 0, &machine);
    machine.misses.set(6);
    assert_eq!(pmu.read((Reg::Count, 3), 0, &machine), 0, "not yet");
    pmu.write((Reg::Control, 0), 1, 10, &machine);
    machine.misses.set(8);
    assert_eq!(pmu.read((Reg::Count, 3), 20, &machine), 2);
    assert_eq!(pmu.read((Reg::Count, 4), 20, &machine), 20);
    assert_eq!(pmu.read((Reg::Cycles, 0), 20, &machine), 10);
    pmu.write((Reg::Count, 3), 100, 20, &machine);
    machine.misses.set(9);
    pmu.write((Reg::Control, 0), 0, 30, &machine);
    machine.misses.set(1000);
    assert_eq!(pmu.read((Reg::Count, 3), 40, &machine), 101);
    assert_eq!(pmu.read((Reg::Cycles, 0), 40, &machine), 20);
    let tally = |event, harts, count| Tally {
        event,
        of: RequestFilter { harts, origins: 0 },
        times: 1,
        count,
    };
    let expected = [tally(3, 0, 3), tally(3, 2, 30), tally(0, 0, 20)];
    assert_eq!(pmu.tallies(50, &machine), expected);
}

#[test]
fn an_overflow_raises_the_line_until_it_is_cleared() {
    let (mut pmu, machine) = (pmu(), Machine::default());
    pmu.write((Reg::Select, 0), MISSES, 0, &machine);
    pmu.write((Reg::Count, 0), u64::MAX - 1, 0, &machine);
    pmu.write((Reg::IrqEnable, 0), 1, 0, &machine);
    pmu.write((Reg::Enable, 0), 1, 0, &machine);
    assert_eq!(pmu.next_look(0), u64::MAX, "it does not count");
    pmu.write((Reg::Control, 0), 1, 0, &machine);
    assert_eq!(pmu.next_look(0), 1024);
    machine.misses.set(1);
    pmu.follow(1024, &machine);
    assert!(!pmu.irq());
    machine.misses.set(3);
    pmu.follow(2048, &machine);
    assert!(pmu.irq());
    assert_eq!(pmu.next_look(2048), u64::MAX, "it is known");
    assert_eq!(pmu.read((Reg::Count, 0), 2048, &machine), 1);
    assert_eq!(pmu.read((Reg::Overflow, 0), 2048, &machine), 1);
    pmu.write((Reg::Overflow, 0), 1, 2048, &machine);
    assert!(!pmu.irq());
}

#[test]
fn the_counter_of_cycles_overflows_on_the_cycle() {
    let (mut pmu, machine) = (pmu(), Machine::default());
    pmu.write((Reg::Cycles, 0), u64::MAX - 9, 0, &machine);
    pmu.write((Reg::IrqEnable, 0), 1 << 8, 0, &machine);
    pmu.write((Reg::Enable, 0), 1 << 8, 0, &machine);
    pmu.write((Reg::Control, 0), 1, 100, &machine);
    assert_eq!(pmu.next_look(100), 110);
    pmu.follow(109, &machine);
    assert!(!pmu.irq());
    pmu.follow(110, &machine);
    assert!(pmu.irq());
}

#[test]
fn a_level_is_read_as_it_is() {
    let (mut pmu, machine) = (pmu(), Machine::default());
    machine.lines.set(7);
    pmu.write((Reg::Select, 0), OCCUPANCY, 0, &machine);
    pmu.write((Reg::Enable, 0), 1, 0, &machine);
    pmu.write((Reg::Control, 0), 1, 0, &machine);
    machine.lines.set(3);
    pmu.write((Reg::Count, 0), 99, 0, &machine);
    assert_eq!(pmu.read((Reg::Count, 0), 0, &machine), 3);
    assert_eq!(pmu.read((Reg::Overflow, 0), 0, &machine), 0);
    assert!(pmu.tallies(0, &machine).is_empty());
}

#[test]
fn what_is_not_there_counts_nothing() {
    let (mut pmu, machine) = (pmu(), Machine::default());
    assert_eq!(pmu.read((Reg::Events, 0), 0, &machine), 0x7fe & !(1 << 2));
    for select in [0, 2, 63, u64::MAX] {
        pmu.write((Reg::Select, 0), select, 0, &machine);
        pmu.write((Reg::Enable, 0), u64::MAX, 0, &machine);
        pmu.write((Reg::Control, 0), u64::MAX, 0, &machine);
        machine.misses.set(machine.misses.get() + 1);
        assert_eq!(pmu.read((Reg::Count, 0), 9, &machine), 0, "{select:#x}");
    }
    for (reg, number) in [(Reg::Select, 8), (Reg::Count, 99), (Reg::Id, 1)] {
        pmu.write((reg, number), u64::MAX, 9, &machine);
    }
}

#[test]
fn state_is_saved() {
    use snapshot::{Archive, Snapshot};
    let (mut first, machine) = (pmu(), Machine::default());
    first.write((Reg::Select, 1), MISSES, 0, &machine);
    first.write((Reg::Enable, 0), 2, 0, &machine);
    first.write((Reg::Control, 0), 1, 0, &machine);
    machine.misses.set(4);
    let mut archive = Archive::saving();
    first.snapshot(&mut archive).unwrap();
    let mut second = pmu();
    let bytes = archive.into_bytes();
    second.snapshot(&mut Archive::loading(&bytes)).unwrap();
    machine.misses.set(9);
    assert_eq!(second.read((Reg::Count, 1), 0, &machine), 9);
}
