use std::cell::RefCell;
use std::rc::Rc;

use super::*;

/// Raises its line at every event and lowers it on a write; remembers the cycles of its events.
struct Ticker {
    seen: Rc<RefCell<Vec<u64>>>,
    level: bool,
}

snapshot::snapshot!(Ticker { level } keeps { seen });

impl Device for Ticker {
    fn read(&mut self, offset: u64, _: u8, cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        Ok(offset + cx.now)
    }

    fn write(&mut self, _: u64, _: u8, value: u64, cx: &mut Cx<'_>) -> Result<(), AccessFault> {
        self.level = false;
        cx.schedule(value);
        Ok(())
    }

    fn event(&mut self, cx: &mut Cx<'_>) {
        self.seen.borrow_mut().push(cx.now);
        self.level = true;
        if cx.now < 150 {
            cx.schedule(cx.now + 50);
        }
    }

    fn irq_level(&self) -> bool {
        self.level
    }
}

fn bus() -> (Bus, Rc<RefCell<Vec<u64>>>) {
    let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let ticker = Ticker { seen: seen.clone(), level: false };
    bus.add_device(0x5000_0000, 0x100, Some(4), Box::new(ticker)).unwrap();
    (bus, seen)
}

#[test]
fn events_run_at_their_own_cycle() {
    let (mut bus, seen) = bus();
    assert_eq!(bus.next_event(), u64::MAX);
    bus.store(0x5000_0000, 4, 100).unwrap();
    assert_eq!(bus.next_event(), 100);
    bus.advance(99);
    assert!(seen.borrow().is_empty());
    bus.advance(1000);
    assert_eq!(*seen.borrow(), [100, 150]);
    assert_eq!(bus.next_event(), u64::MAX);
    assert_eq!(bus.load(0x5000_0008, 8), Ok(1008));
}

#[test]
fn lines_reach_mip_through_the_plic() {
    let (mut bus, _) = bus();
    bus.store(PLIC_BASE + 4 * 4, 4, 1).unwrap();
    bus.store(PLIC_BASE + 0x2080, 4, 1 << 4).unwrap();
    bus.store(0x5000_0000, 4, 10).unwrap();
    bus.advance(10);
    assert_eq!(bus.mip(0), 1 << 9);
    assert_eq!(bus.load(PLIC_BASE + 0x20_1004, 4), Ok(4));
    assert_eq!(bus.mip(0), 0);
}

#[test]
fn timer_and_software_lines() {
    let (mut bus, _) = bus();
    bus.store(CLINT_BASE, 4, 1).unwrap();
    bus.store(CLINT_BASE + 0x4000, 8, 2).unwrap();
    assert_eq!(bus.mip(0), 1 << 3);
    assert_eq!(bus.next_event(), 640);
    assert_eq!(bus.cycle_of_mtime(2), 640);
    bus.advance(640);
    assert_eq!(bus.mip(0), 1 << 3 | 1 << 7);
    assert_eq!(bus.mip(1), 0);
}

#[test]
fn holes_and_misalignment_fault() {
    let (mut bus, _) = bus();
    for (pa, size) in [(0, 8), (0x5000_0100, 1), (0x5000_0001, 2), (0x5000_0000, 3), (u64::MAX, 1)]
    {
        assert_eq!(bus.load(pa, size), Err(AccessFault), "{pa:#x}");
        assert_eq!(bus.store(pa, size, 0), Err(AccessFault), "{pa:#x}");
    }
}

#[test]
fn overlaps_are_refused() {
    let (mut bus, seen) = bus();
    for base in [0x5000_00ff, 0x4fff_ff01, CLINT_BASE, 0x8000_0000, u64::MAX - 0xff] {
        let ticker = Ticker { seen: seen.clone(), level: false };
        let result = bus.add_device(base, 0x100, None, Box::new(ticker));
        assert_eq!(result.is_ok(), base > 0x9000_0000, "{base:#x}");
    }
}
