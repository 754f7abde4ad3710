use super::*;

/// Totals in that cycle.
struct AtCycle(u64);

impl Totals for AtCycle {
    fn total(&self, event: PerfEvent) -> u64 {
        match event {
            PerfEvent::Cycles => self.0,
            _ => self.0 / 2,
        }
    }

    fn selected(&self, counter: usize) -> u64 {
        self.0 * counter as u64
    }
}

#[test]
fn fixed_counters_freeze_and_resume() {
    let mut counters = Counters::new();
    counters.write(0, 1000, &AtCycle(10));
    assert_eq!(counters.read(0, &AtCycle(15)), 1005);
    counters.set_inhibit(1);
    counters.set_privilege(Privilege::Machine, &AtCycle(20));
    assert_eq!(counters.read(0, &AtCycle(50)), 1010);
    counters.set_inhibit(0);
    counters.set_privilege(Privilege::Machine, &AtCycle(60));
    assert_eq!(counters.read(0, &AtCycle(61)), 1011);
}

#[test]
fn fixed_counters_stand_in_filtered_privileges() {
    let mut counters = Counters::new();
    counters.set_filter(0, u64::MAX);
    assert_eq!(counters.filter(0), 7 << 60);
    counters.set_filter(0, SINH | MINH);
    counters.set_filter(2, UINH);
    counters.set_privilege(Privilege::Machine, &AtCycle(100));
    assert!(counters.filtered());
    assert!(!counters.any_enabled(), "nothing can overflow");
    counters.write(0, 1, &AtCycle(120));
    counters.set_privilege(Privilege::User, &AtCycle(140));
    assert_eq!(counters.read(0, &AtCycle(150)), 11);
    assert_eq!(counters.read(2, &AtCycle(150)), 70);
    counters.set_privilege(Privilege::Supervisor, &AtCycle(160));
    assert_eq!(counters.read(0, &AtCycle(200)), 21);
    assert_eq!(counters.read(2, &AtCycle(200)), 90);
    // What is inhibited needs no filter.
    counters.set_inhibit(5);
    counters.set_privilege(Privilege::Supervisor, &AtCycle(200));
    assert!(!counters.filtered());
    counters.set_privilege(Privilege::User, &AtCycle(300));
    assert_eq!(counters.read(0, &AtCycle(400)), 21);
}

#[test]
fn filter_and_overflow() {
    let mut counters = Counters::new();
    counters.set_event(3, SINH | 1);
    counters.write(3, 0u64.wrapping_sub(50), &AtCycle(100));
    counters.set_privilege(Privilege::User, &AtCycle(100));
    assert_eq!(counters.deadline(100), 150);
    assert_eq!(counters.sync(&AtCycle(130), 0, false), Overflows::default());
    counters.set_privilege(Privilege::Supervisor, &AtCycle(130));
    assert_eq!(counters.deadline(130), u64::MAX);
    assert_eq!(counters.sync(&AtCycle(500), 0, false), Overflows::default());
    counters.set_privilege(Privilege::User, &AtCycle(500));
    assert_eq!(counters.deadline(500), 520);
    assert_eq!(counters.sync(&AtCycle(521), 0, false).interrupts, 1 << 3);
    assert_eq!(counters.overflows(), 1 << 3);
    assert_eq!(counters.read(3, &AtCycle(521)), 1);
    assert_eq!(counters.sync(&AtCycle(600), 0, false), Overflows::default());
}

#[test]
fn recorded_overflows_go_on_from_the_reload_value() {
    let mut counters = Counters::new();
    counters.set_event(3, 1);
    counters.write(3, 0u64.wrapping_sub(50), &AtCycle(0));
    counters.set_reload(3, 0u64.wrapping_sub(100));
    counters.set_recorded(1 << 3);
    counters.set_privilege(Privilege::User, &AtCycle(0));
    let once = counters.sync(&AtCycle(51), 1, false);
    let recorded =
        |periods| Overflows { interrupts: 0, recorded: vec![Awaited { counter: 3, periods }] };
    assert_eq!(once, recorded(1));
    assert_eq!(counters.read(3, &AtCycle(51)), 0u64.wrapping_sub(99));
    // Nobody looked for a while.
    assert_eq!(counters.sync(&AtCycle(355), 1, false), recorded(3));
    assert_eq!(counters.deadline(355), 450);
    // No room: as if it were not recorded.
    assert_eq!(counters.sync(&AtCycle(460), 0, false).interrupts, 1 << 3);
    assert_eq!(counters.read(3, &AtCycle(460)), 10);
}

#[test]
fn an_overflow_that_is_attributed_waits_until_its_instruction_has_left() {
    let misses = u64::from(PerfEvent::L1dReadMisses.selector());
    let slots = u64::from(PerfEvent::SlotsRetiring.selector());
    let mut counters = Counters::new();
    for (counter, event) in [(3, misses), (4, 1), (5, slots)] {
        counters.set_event(counter, event);
        counters.write(counter, 0u64.wrapping_sub(10), &AtCycle(100));
    }
    counters.set_privilege(Privilege::User, &AtCycle(100));
    // Cycles and slots are due to no instruction that has yet to leave.
    assert_eq!(counters.sync(&AtCycle(150), 0, true).interrupts, 1 << 4 | 1 << 5);
    assert_eq!(counters.read(3, &AtCycle(150)), 15, "it is counted all the same");
    assert_eq!(counters.sync(&AtCycle(150), 0, false).interrupts, 1 << 3);
}

#[test]
fn what_an_inhibited_counter_missed_is_not_counted_later() {
    let mut counters = Counters::new();
    counters.set_inhibit(u64::MAX);
    counters.set_event(3, 1);
    counters.write(3, 7, &AtCycle(0));
    counters.set_privilege(Privilege::Machine, &AtCycle(0));
    assert!(!counters.any_enabled(), "nobody calls sync");
    counters.set_inhibit(0);
    counters.set_privilege(Privilege::Machine, &AtCycle(100));
    assert_eq!(counters.read(3, &AtCycle(140)), 47);
}

#[test]
fn other_events_are_rearmed_conservatively() {
    let mut counters = Counters::new();
    counters.set_event(4, 2);
    counters.write(4, 0u64.wrapping_sub(100), &AtCycle(0));
    counters.set_privilege(Privilege::Machine, &AtCycle(0));
    assert_eq!(counters.deadline(0), 12);
}
