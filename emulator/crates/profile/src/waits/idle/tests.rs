use super::*;
use crate::waits::{FUTEX_PRIVATE, FUTEX_SYSCALL, KernelEntry, SchedulerEvent};

/// A thread of the program, and one of another program: the kernel's number, and the evaluation's.
const MAIN: (u32, ThreadId) = (10, ThreadId(1));
const OTHER: (u32, ThreadId) = (11, ThreadId(2));
const STRANGER: (u32, ThreadId) = (12, ThreadId(3));
const IDLE: Transition = Transition::Runs(0, ThreadId(9));

fn runs((tid, thread): (u32, ThreadId)) -> Transition {
    Transition::Runs(tid, thread)
}

fn waits(number: u16, argument: u32) -> SwitchOut {
    SwitchOut::Waits(KernelEntry::Syscall { number, address: 0x5000, argument, pc: 0x104 })
}

fn idle(end: u64, events: &[(u64, u32, Transition)]) -> IdleHarts {
    let event = |&(cycle, hart, change)| SchedulerEvent { cycle, hart, change, entry: None };
    let region = std::iter::once(100..end).collect();
    let log = SchedulerLog { events: events.iter().map(event).collect(), region };
    log.idle_harts(2, |thread| thread != STRANGER.1).unwrap()
}

/// Two harts; the program's other thread leaves its hart in cycle 300, in this way, and nobody else comes.
fn left(how: SwitchOut) -> IdleHarts {
    let (tid, _) = OTHER;
    let leaves = [(300, 1, Transition::Leaves(tid, how)), (300, 1, IDLE)];
    idle(1100, &[&[(0, 0, runs(MAIN)), (0, 1, runs(OTHER))][..], &leaves].concat())
}

#[test]
fn an_idle_hart_stands_for_a_thread_that_is_off_the_harts() {
    let lock = waits(FUTEX_SYSCALL, FUTEX_PRIVATE);
    assert_eq!(left(lock), IdleHarts { locks: 800, ..IdleHarts::default() });
    assert_eq!(left(SwitchOut::Runnable), IdleHarts { ready: 800, ..IdleHarts::default() });
    let read = waits(63, 0);
    assert_eq!(left(read), IdleHarts { other: 800, ..IdleHarts::default() });
    // The end of others: pthread_join and wait4.
    for how in [waits(FUTEX_SYSCALL, 0), waits(260, 0)] {
        assert_eq!(left(how), IdleHarts { imbalance: 800, ..IdleHarts::default() });
    }
    // The thread's own end may be the end of the parallel part, or not.
    let ended = left(SwitchOut::Ended);
    assert_eq!(ended, IdleHarts { no_thread: 800, ..IdleHarts::default() });
}

/// Main runs alone, begins another thread, waits for its end, runs alone again, and begins one for whose end it does not wait.
#[test]
fn a_serial_part_is_told_from_imbalance_where_threads_wait_for_ends() {
    let join = waits(FUTEX_SYSCALL, 0);
    let (other, next) = (OTHER.0, (13, ThreadId(4)));
    let found = idle(
        2000,
        &[
            (0, 0, runs(MAIN)),
            (0, 1, IDLE),
            (300, 0, Transition::Begins(other)),
            (310, 1, runs(OTHER)),
            (400, 0, Transition::Leaves(MAIN.0, join)),
            (400, 0, IDLE),
            (700, 1, Transition::Wakes(MAIN.0, Some(other))),
            (705, 0, runs(MAIN)),
            (710, 1, Transition::Leaves(other, SwitchOut::Ended)),
            (710, 1, IDLE),
            (1000, 0, Transition::Begins(next.0)),
            (1000, 1, runs(next)),
            (1400, 1, Transition::Leaves(next.0, SwitchOut::Ended)),
            (1400, 1, IDLE),
        ],
    );
    let expected = IdleHarts {
        ready: 15,
        serial: 200 + 290,
        imbalance: 300,
        no_thread: 600,
        ..IdleHarts::default()
    };
    assert_eq!(found, expected);
}

#[test]
fn two_threads_on_three_harts_are_not_balanced() {
    let event = |(cycle, hart, change)| SchedulerEvent { cycle, hart, change, entry: None };
    let events = [
        (0, 0, runs(MAIN)),
        (0, 1, runs(OTHER)),
        (0, 2, IDLE),
        (500, 1, Transition::Leaves(OTHER.0, SwitchOut::Ended)),
        (500, 1, IDLE),
    ];
    let region = std::iter::once(0..600).collect();
    let log = SchedulerLog { events: events.into_iter().map(event).collect(), region };
    let found = log.idle_harts(3, |_| true).unwrap();
    assert_eq!(found, IdleHarts { imbalance: 500, no_thread: 200, ..IdleHarts::default() });
}

#[test]
fn threads_that_are_ready_come_before_those_that_wait() {
    let lock = waits(FUTEX_SYSCALL, FUTEX_PRIVATE);
    let found = idle(
        1000,
        &[
            (0, 0, runs(MAIN)),
            (0, 1, runs(OTHER)),
            (200, 1, Transition::Leaves(OTHER.0, lock)),
            (200, 1, IDLE),
            // Both harts are idle, and both threads wait.
            (300, 0, Transition::Leaves(MAIN.0, waits(63, 0))),
            (300, 0, IDLE),
            (500, 0, Transition::Wakes(MAIN.0, None)),
            (600, 0, runs(MAIN)),
            // The hart of the thread that waits for the lock has others to run.
            (700, 1, runs(STRANGER)),
        ],
    );
    let expected = IdleHarts { ready: 100, locks: 500, other: 200, ..IdleHarts::default() };
    assert_eq!(found, expected);
    assert_eq!(found.total(), 800);
}

#[test]
fn a_new_thread_is_ready_and_a_wakeup_may_come_before_its_wait() {
    let lock = waits(FUTEX_SYSCALL, FUTEX_PRIVATE);
    let found = idle(
        1000,
        &[
            (0, 0, runs(MAIN)),
            (0, 1, IDLE),
            (200, 0, Transition::Begins(OTHER.0)),
            (250, 1, runs(OTHER)),
            (300, 0, Transition::Wakes(OTHER.0, Some(MAIN.0))),
            (301, 1, Transition::Leaves(OTHER.0, lock)),
            (301, 1, IDLE),
            (401, 1, runs(OTHER)),
        ],
    );
    assert_eq!(found, IdleHarts { ready: 150, serial: 100, ..IdleHarts::default() });
}

#[test]
fn threads_of_others_do_not_keep_harts_idle() {
    let (tid, _) = STRANGER;
    let found = idle(
        1000,
        &[
            (0, 0, runs(MAIN)),
            (0, 1, runs(STRANGER)),
            (400, 1, Transition::Leaves(tid, waits(63, 0))),
            (400, 1, IDLE),
        ],
    );
    assert_eq!(found, IdleHarts { serial: 600, ..IdleHarts::default() });
}

#[test]
fn a_hart_whose_first_switch_tells_of_nobody_was_idle() {
    let (tid, _) = STRANGER;
    let left = Transition::Leaves(MAIN.0, SwitchOut::Runnable);
    let found = |events: &[(u64, u32, Transition)]| {
        let main = [(0, 0, runs(OTHER)), (400, 1, Transition::Wakes(tid, None))];
        // A kernel that tells who leaves does so in the end.
        let last = [(1000, 0, Transition::Leaves(OTHER.0, SwitchOut::Runnable))];
        idle(1000, &[&main[..], events, &last].concat()).total()
    };
    assert_eq!(found(&[]), 900);
    assert_eq!(found(&[(600, 1, runs(STRANGER))]), 500);
    assert_eq!(found(&[(600, 1, left), (600, 1, runs(STRANGER))]), 0);
}

#[test]
fn a_kernel_that_does_not_tell_is_not_guessed_at() {
    let events = vec![SchedulerEvent { cycle: 0, hart: 0, change: IDLE, entry: None }];
    let log = SchedulerLog { events, region: std::iter::once(0..9).collect() };
    assert_eq!(log.idle_harts(2, |_| true), None);
}

/// Harts tell of wakeups and switches independently.
#[test]
fn a_wakeup_of_a_thread_that_still_runs_may_end_its_next_wait_or_none() {
    let lock = waits(FUTEX_SYSCALL, FUTEX_PRIVATE);
    let found = |more: &[(u64, u32, Transition)]| {
        let wakes = (250, 0, Transition::Wakes(OTHER.0, Some(MAIN.0)));
        let leaves = [(300, 1, Transition::Leaves(OTHER.0, lock)), (300, 1, IDLE)];
        let begin = [(0, 0, runs(MAIN)), (0, 1, runs(OTHER)), wakes];
        idle(1000, &[&begin[..], &leaves, more].concat())
    };
    let ready = found(&[(400, 1, runs(OTHER))]);
    assert_eq!(ready, IdleHarts { ready: 100, ..IdleHarts::default() });
    // The thread waited: another wakeup ended that.
    let waited =
        found(&[(700, 0, Transition::Wakes(OTHER.0, Some(MAIN.0))), (720, 1, runs(OTHER))]);
    assert_eq!(waited, IdleHarts { ready: 20, locks: 400, ..IdleHarts::default() });
    assert_eq!(found(&[]), IdleHarts { ready: 700, ..IdleHarts::default() });
}
