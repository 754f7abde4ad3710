//! The four commit states, the timer and the FIFO, one scenario each.

use commit_trace::{Commit, CycleClass, InstId, Redirect, TeaEvents};
use snapshot::{Archive, Snapshot};
use tip_device::{Origin, Reg, TipUnit, control, flags, status};

fn commit(inst: u32, dispatch: u64, commit: u64, redirect: Redirect) -> Commit {
    Commit {
        inst: InstId(inst),
        decode: dispatch,
        dispatch,
        commit,
        redirect,
        first_of_row: true,
        class: CycleClass::Alu,
        tea: TeaEvents::default(),
    }
}

/// The instruction that stands for `sret`.
const SRET: u32 = 99;

fn origin(inst: InstId) -> Origin {
    Origin { pc: 0x1000 + 4 * u64::from(inst.0), privilege: 0, trap_return: inst.0 == SRET }
}

/// A unit that triggers once in `cycle` and then every 1000 cycles.
fn armed(cycle: u64) -> TipUnit {
    let mut tip = TipUnit::new(4, 1_000_000_000);
    tip.write(Reg::Period, 1000, 0);
    tip.write(Reg::Count, cycle, 0);
    let all = control::ENABLE | control::U | control::S | control::M | control::IRQ_ENABLE;
    tip.write(Reg::Control, all, 0);
    tip
}

fn feed(tip: &mut TipUnit, commits: &[Commit]) -> Option<u64> {
    commits.iter().filter_map(|c| tip.commit(c, &origin)).last()
}

#[test]
fn computing_names_every_committing_instruction() {
    let mut tip = armed(10);
    let none = Redirect::None;
    let rose = feed(
        &mut tip,
        &[
            commit(1, 5, 9, none),
            commit(2, 5, 10, none),
            commit(3, 5, 10, none),
            commit(4, 6, 11, none),
        ],
    );
    assert_eq!(rose, Some(10));
    assert_eq!(tip.read(Reg::Flags, 11), 0b11);
    assert_eq!(tip.read(Reg::Address0, 11), 0x1008);
    assert_eq!(tip.read(Reg::Address1, 11), 0x100c);
    assert_eq!(tip.read(Reg::Cycle, 11), 10);
    assert_eq!(tip.read(Reg::Weight, 11), 1000);
    assert!(tip.irq());
    tip.write(Reg::Pop, 1, 11);
    assert!(!tip.irq());
    assert_eq!(tip.read(Reg::Flags, 11), 0);
}

#[test]
fn stalled_names_the_head() {
    let mut tip = armed(15);
    feed(&mut tip, &[commit(1, 5, 9, Redirect::None), commit(2, 6, 40, Redirect::None)]);
    assert_eq!(tip.read(Reg::Flags, 41), 1 | flags::STALLED);
    assert_eq!(tip.read(Reg::Address0, 41), 0x1008);
}

#[test]
fn flushed_names_the_offender() {
    for (redirect, flag) in [
        (Redirect::Mispredict, flags::MISPREDICTED),
        (Redirect::Flush, flags::FLUSH),
        (Redirect::Exception, flags::EXCEPTION),
        (Redirect::Interrupt, flags::EXCEPTION),
    ] {
        let mut tip = armed(12);
        feed(&mut tip, &[commit(1, 5, 9, redirect), commit(2, 20, 40, Redirect::None)]);
        assert_eq!(tip.read(Reg::Flags, 41), 1 | flag, "{redirect:?}");
        assert_eq!(tip.read(Reg::Address0, 41), 0x1004);
    }
}

#[test]
fn drained_waits_for_the_first_dispatch() {
    let mut tip = armed(12);
    let rose =
        feed(&mut tip, &[commit(1, 5, 9, Redirect::None), commit(2, 20, 40, Redirect::None)]);
    assert_eq!(rose, Some(20));
    assert_eq!(tip.read(Reg::Flags, 41), 1 | flags::FRONTEND);
    assert_eq!(tip.read(Reg::Address0, 41), 0x1008);
}

#[test]
fn triggers_in_a_drain_add_to_the_pending_sample() {
    let mut tip = armed(12);
    tip.write(Reg::Period, 5, 0);
    tip.write(Reg::Count, 12, 0);
    feed(&mut tip, &[commit(1, 5, 9, Redirect::None), commit(2, 20, 21, Redirect::None)]);
    // Triggers in 12 and 17 are one sample, complete in 20.
    assert_eq!(tip.read(Reg::Status, 21), 1);
    assert_eq!(tip.read(Reg::Weight, 21), 10);
}

#[test]
fn full_fifo_keeps_the_cycles() {
    let mut tip = armed(1);
    tip.write(Reg::Period, 1, 0);
    tip.write(Reg::Count, 1, 0);
    feed(&mut tip, &[commit(1, 0, 100, Redirect::None)]);
    assert_eq!(tip.read(Reg::Status, 100), 16);
    assert_eq!(tip.read(Reg::Overrun, 100), 83);
    for _ in 0..16 {
        tip.write(Reg::Pop, 1, 100);
    }
    feed(&mut tip, &[commit(2, 0, 101, Redirect::None)]);
    assert_eq!(tip.read(Reg::Weight, 101), 84);
}

#[test]
fn timer_stands_still_outside_enabled_modes() {
    let mut tip = armed(10);
    tip.write(Reg::Control, control::ENABLE | control::U, 0);
    assert_eq!(tip.next_sample(), u64::MAX, "reset is machine mode");
    tip.privilege(0, 100);
    assert_eq!(tip.next_sample(), 110);
    tip.privilege(1, 104);
    assert_eq!(tip.next_sample(), u64::MAX);
    assert_eq!(tip.read(Reg::Count, 500), 6);
    tip.privilege(0, 500);
    assert_eq!(tip.next_sample(), 506);
}

#[test]
fn sleep_moves_the_trigger() {
    let mut tip = armed(100);
    feed(&mut tip, &[commit(1, 5, 9, Redirect::None)]);
    tip.slept(1000, &origin);
    assert_eq!(tip.next_sample(), 1100);
}

#[test]
fn a_trigger_that_is_set_while_the_core_rests_moves_by_the_rest_alone() {
    let mut tip = armed(100);
    feed(&mut tip, &[commit(1, 5, 9, Redirect::None)]);
    // Untimed, from cycle 10 to 1009.
    tip.write(Reg::Count, 100, 600);
    tip.slept(1000, &origin);
    assert_eq!(tip.next_sample(), 700 + 409);
    feed(&mut tip, &[commit(2, 1050, 1060, Redirect::None)]);
    tip.slept(50, &origin);
    assert_eq!(tip.next_sample(), 700 + 409 + 50);
}

#[test]
fn random_triggers_fall_once_in_each_period() {
    let mut tip = armed(1000);
    tip.write(Reg::Control, tip.read(Reg::Control, 0) | control::RANDOM, 0);
    let mut triggers = Vec::new();
    for i in 0..50 {
        let trigger = tip.next_sample();
        triggers.push(trigger);
        feed(&mut tip, &[commit(i, 0, trigger + 1, Redirect::None)]);
    }
    for (i, t) in triggers.iter().enumerate().skip(1) {
        assert_eq!((t - 1001) / 1000, i as u64 - 1, "trigger {i} at {t}");
    }
}

#[test]
fn side_band_records_come_out_whole() {
    let mut tip = armed(1);
    tip.write(Reg::SbData, 0x1122_3344_5566_7788, 0);
    let effect = tip.write(Reg::SbCommit, 2 | 3 << 16, 0);
    let record = tip_device::SideBandRecord { kind: 2, bytes: vec![0x88, 0x77, 0x66] };
    assert_eq!(effect, tip_device::WriteEffect::SideBand(record));
}

/// A unit that freezes, with the line raised by a trigger in cycle 10; the next one is due in cycle 110.
fn raised() -> TipUnit {
    let mut tip = TipUnit::new(4, 1_000_000_000);
    tip.write(Reg::Period, 100, 0);
    tip.write(Reg::Count, 10, 0);
    let modes = control::U | control::S | control::IRQ_ENABLE | control::FREEZE;
    tip.write(Reg::Control, control::ENABLE | modes, 0);
    tip.privilege(0, 0);
    assert_eq!(tip.next_sample(), 10);
    feed(&mut tip, &[commit(1, 5, 10, Redirect::None), commit(2, 6, 20, Redirect::None)]);
    assert!(tip.irq());
    assert_eq!(tip.next_sample(), 110);
    tip
}

#[test]
fn the_timer_stands_still_from_the_interrupt_to_the_return_from_it() {
    let mut tip = raised();
    feed(&mut tip, &[commit(3, 25, 30, Redirect::Interrupt)]);
    tip.privilege(1, 30);
    assert_eq!(tip.next_sample(), u64::MAX);
    // A return before the queue is empty is that of a trap inside the handler.
    feed(
        &mut tip,
        &[
            commit(4, 40, 200, Redirect::None),
            commit(SRET, 205, 210, Redirect::Flush),
            commit(5, 220, 300, Redirect::None),
        ],
    );
    tip.write(Reg::Pop, 1, 300);
    assert_eq!(tip.next_sample(), u64::MAX);
    feed(&mut tip, &[commit(SRET, 395, 400, Redirect::Flush)]);
    tip.privilege(0, 400);
    assert_eq!(tip.next_sample(), u64::MAX);
    // From its dispatch on: the 80 cycles that were left when the interrupt came.
    feed(&mut tip, &[commit(6, 412, 420, Redirect::None)]);
    assert_eq!(tip.next_sample(), 412 + 80);
    assert_eq!(tip.read(Reg::Frozen, 420), 412 - 30);
    assert_eq!(tip.read(Reg::Status, 420), 0);
    feed(&mut tip, &[commit(7, 413, 600, Redirect::None)]);
    assert_eq!(tip.read(Reg::Cycle, 600), 492);
    assert_eq!(tip.read(Reg::Weight, 600), 100);
}

#[test]
fn another_interrupt_does_not_freeze_and_neither_does_a_unit_that_was_not_told_to() {
    let mut low = raised();
    low.write(Reg::Pop, 1, 20);
    feed(&mut low, &[commit(3, 25, 30, Redirect::Interrupt)]);
    assert_eq!(low.next_sample(), 110);

    let mut plain = armed(10);
    feed(
        &mut plain,
        &[
            commit(1, 5, 10, Redirect::None),
            commit(2, 6, 20, Redirect::None),
            commit(3, 25, 30, Redirect::Interrupt),
        ],
    );
    assert_eq!(plain.next_sample(), 1010);
}

#[test]
fn a_write_to_control_ends_the_standstill() {
    let mut tip = raised();
    feed(&mut tip, &[commit(3, 25, 30, Redirect::Interrupt)]);
    let control = tip.read(Reg::Control, 50);
    tip.write(Reg::Control, control, 50);
    assert_eq!(tip.next_sample(), 50 + 80);
    assert_eq!(tip.read(Reg::Frozen, 60), 20);
}

#[test]
fn samples_before_the_interrupt_is_taken_queue_and_modes_that_do_not_count_stand_still_for_nothing()
{
    let mut tip = raised();
    feed(&mut tip, &[commit(3, 25, 350, Redirect::Interrupt)]);
    assert_eq!(tip.read(Reg::Status, 350), 4);
    assert_eq!(tip.next_sample(), u64::MAX);

    let mut user = raised();
    let control = user.read(Reg::Control, 20) & !control::S;
    user.write(Reg::Control, control, 20);
    feed(&mut user, &[commit(3, 25, 30, Redirect::Interrupt)]);
    user.privilege(1, 30);
    user.write(Reg::Pop, 1, 100);
    feed(&mut user, &[commit(SRET, 395, 400, Redirect::Flush)]);
    user.privilege(0, 400);
    feed(&mut user, &[commit(6, 412, 420, Redirect::None)]);
    assert_eq!(user.next_sample(), 412 + 80);
    // Only the refill after the return was in user mode.
    assert_eq!(user.read(Reg::Frozen, 420), 12);
}

const BASE: u64 = 0x8020_0000;
/// Samples in 4 KiB.
const CAPACITY: u64 = 64;

/// A unit that has every cycle up to `cycle` sampled into a buffer of 4 KiB.
fn buffered(threshold: u64, cycle: u64) -> TipUnit {
    let mut tip = armed(1);
    tip.write(Reg::Period, 1, 0);
    tip.write(Reg::Count, 1, 0);
    tip.write(Reg::BufferBase, BASE + 5, 0);
    tip.write(Reg::BufferConfig, threshold << 32, 0);
    tip.write(Reg::Control, tip.read(Reg::Control, 0) | control::BUFFER, 0);
    feed(&mut tip, &[commit(1, 0, cycle + 1, Redirect::None)]);
    tip
}

/// Writes what is on its way; where.
fn written(tip: &mut TipUnit) -> Vec<u64> {
    std::iter::from_fn(|| tip.next_to_write()).map(|(address, _)| address).collect()
}

#[test]
fn the_line_rises_when_the_threshold_is_in_memory_and_falls_when_software_has_taken_it() {
    let mut tip = buffered(5, 4);
    assert_eq!(written(&mut tip), [0, 64, 128, 192].map(|at| BASE + at));
    assert!(!tip.irq());
    let rose = feed(&mut tip, &[commit(2, 0, 8, Redirect::None)]);
    assert_eq!(rose, Some(5));
    // Two more, which are on their way.
    assert!(!tip.irq() && tip.has_samples_to_write());
    assert_eq!(tip.next_to_write().unwrap().0, BASE + 256);
    assert!(tip.irq());
    assert_eq!(tip.read(Reg::BufferHead, 8), 7);
    // The FIFO has none.
    assert_eq!(tip.read(Reg::Status, 8) & 0xff, 0);
    for ignored in [8, u64::MAX] {
        tip.write(Reg::BufferTail, ignored, 8);
        assert_eq!(tip.read(Reg::BufferTail, 8), 0);
    }
    tip.write(Reg::BufferTail, 3, 8);
    assert!(!tip.irq());
    tip.write(Reg::BufferTail, 2, 8);
    assert_eq!(tip.read(Reg::BufferTail, 8), 3);
}

#[test]
fn the_buffer_is_a_ring() {
    let mut tip = buffered(1, CAPACITY);
    assert_eq!(written(&mut tip).len() as u64, CAPACITY);
    tip.write(Reg::BufferTail, CAPACITY - 1, CAPACITY);
    assert!(tip.irq(), "one is left");
    feed(&mut tip, &[commit(2, 0, CAPACITY + 3, Redirect::None)]);
    assert_eq!(written(&mut tip), [BASE, BASE + 64]);
    assert_eq!(tip.read(Reg::BufferHead, 99), CAPACITY + 2);
    tip.write(Reg::BufferBase, BASE + 0x3000, 99);
    assert_eq!(tip.read(Reg::BufferHead, 99), 0);
    assert_eq!(tip.read(Reg::BufferTail, 99), 0);
    assert!(!tip.irq());
}

#[test]
fn a_full_buffer_keeps_the_cycles() {
    // More than it has is as much as it has.
    let mut tip = buffered(1000, CAPACITY + 9);
    assert_eq!(written(&mut tip).len() as u64, CAPACITY);
    assert!(tip.irq());
    assert_eq!(tip.read(Reg::Status, 99) & status::FULL, status::FULL);
    assert_eq!(tip.read(Reg::Overrun, 99), 9);
    tip.write(Reg::BufferTail, CAPACITY, 99);
    feed(&mut tip, &[commit(2, 0, CAPACITY + 11, Redirect::None)]);
    assert_eq!(tip.next_to_write().unwrap().1.weight, 10);
}

#[test]
fn what_cannot_be_written_is_lost_and_its_cycles_are_not() {
    let mut tip = buffered(100, 10);
    let (_, sample) = tip.next_to_write().unwrap();
    let (address, second) = tip.next_to_write().unwrap();
    assert_eq!((address, sample.weight), (BASE + 64, 1));
    tip.write_failed(&second);
    // The first was.
    assert_eq!(tip.read(Reg::BufferHead, 99), 1);
    assert_eq!(tip.read(Reg::Overrun, 99), 9);
    assert!(tip.irq() && !tip.has_samples_to_write());
    assert_eq!(tip.read(Reg::Status, 99) & status::FAULT, status::FAULT);
    feed(&mut tip, &[commit(2, 0, 12, Redirect::None)]);
    assert_eq!(tip.read(Reg::Overrun, 99), 10);
    tip.write(Reg::Status, status::FAULT, 99);
    assert!(!tip.irq());
    feed(&mut tip, &[commit(3, 0, 13, Redirect::None)]);
    let (address, sample) = tip.next_to_write().unwrap();
    assert_eq!((address, sample.weight), (BASE + 64, 9 + 2));
}

#[test]
fn the_timer_stands_still_by_the_threshold_too() {
    let mut tip = buffered(2, 2);
    let control = tip.read(Reg::Control, 2) | control::FREEZE;
    tip.write(Reg::Control, control, 2);
    feed(&mut tip, &[commit(2, 4, 9, Redirect::Interrupt)]);
    assert_eq!(tip.next_sample(), u64::MAX);
    let head = tip.read(Reg::BufferHead, 20);
    // One below the threshold is enough.
    tip.write(Reg::BufferTail, head - 1, 20);
    feed(&mut tip, &[commit(SRET, 30, 40, Redirect::Flush), commit(3, 52, 60, Redirect::None)]);
    assert_eq!(tip.read(Reg::Frozen, 60), 52 - 9);
}

#[test]
fn sizes_are_up_to_4_mib_and_addresses_of_56_bits() {
    let mut tip = armed(1);
    tip.write(Reg::BufferConfig, u64::MAX, 0);
    tip.write(Reg::BufferBase, u64::MAX, 0);
    assert_eq!(tip.read(Reg::BufferConfig, 0), 0xffff << 32 | 10);
    assert_eq!(tip.read(Reg::BufferBase, 0), 0x00ff_ffff_ffff_f000);
    assert_eq!(tip.read(Reg::Control, 0) & control::BUFFER, 0);
}

#[test]
fn a_checkpoint_holds_what_is_on_its_way() {
    let mut tip = buffered(6, 4);
    let _ = tip.next_to_write();
    let mut saved = Archive::saving();
    tip.snapshot(&mut saved).unwrap();
    let mut loaded = TipUnit::new(4, 1_000_000_000);
    let bytes = saved.into_bytes();
    loaded.snapshot(&mut Archive::loading(&bytes)).unwrap();
    // What was committed last is told by whoever knows.
    loaded.recall([commit(1, 0, 5, Redirect::None)].into_iter());
    let [before, after] = [tip, loaded].map(|mut tip| {
        let rose = feed(&mut tip, &[commit(2, 0, 9, Redirect::None)]);
        let samples: Vec<_> = std::iter::from_fn(|| tip.next_to_write()).collect();
        let registers = [Reg::BufferBase, Reg::BufferConfig, Reg::BufferHead];
        (rose, samples, registers.map(|reg| tip.read(reg, 9)), tip.irq())
    });
    assert_eq!(before, after);
    let (rose, samples, _, line) = before;
    assert_eq!((samples.len(), samples[0].0), (7, BASE + 64));
    assert_eq!((rose, line), (Some(6), true));
}
