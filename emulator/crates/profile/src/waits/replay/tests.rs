use super::super::tests::{FUTEX_AT, LOCK, READ, THREAD_A, THREAD_B, change, log, runs};
use super::*;
use crate::waits::{SwitchOut, Transition};
use proptest::prelude::*;

const PROCESS: ProcessId = ProcessId(7);

fn futex() -> BTreeSet<FutexKey> {
    std::iter::once((PROCESS, FUTEX_AT)).collect()
}

fn replayed(log: &SchedulerLog, harts: usize, change: &ReplayChange) -> Replayed {
    log.replay(harts, change, |_| PROCESS, |_| 0).unwrap()
}

/// Thread A starts B, and runs while B waits for its lock; then A waits for B's end.
fn contended() -> SchedulerLog {
    let join = SwitchOut::Waits(crate::waits::KernelEntry::Syscall {
        number: 98,
        address: 0x9000,
        argument: 9,
        pc: 0x204,
    });
    log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (100, 0, Transition::Begins(THREAD_B.0)),
            (100, 1, runs(THREAD_B)),
            (110, 1, Transition::Leaves(THREAD_B.0, LOCK)),
            (500, 0, Transition::Wakes(THREAD_B.0, Some(THREAD_A.0))),
            (500, 1, runs(THREAD_B)),
            (520, 0, Transition::Leaves(THREAD_A.0, join)),
            (900, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (900, 0, runs(THREAD_A)),
            (901, 1, Transition::Leaves(THREAD_B.0, SwitchOut::Ended)),
        ],
    )
}

#[test]
fn a_free_lock_lets_both_run_at_once() {
    let found = replayed(&contended(), 2, &ReplayChange { free: futex(), ..Default::default() });
    assert_eq!((found.recorded, found.waits), (1000, 1));
    assert_eq!(found.unchanged, 1000);
    // A runs to 520; B from 100 for 10 and 401 cycles to 511; then 100 cycles of A.
    assert_eq!(found.changed, 620);
    // One hart has all of the work one after the other: B may wait as long as A runs.
    let one = replayed(&contended(), 1, &ReplayChange { free: futex(), ..Default::default() });
    assert_eq!(one.changed, 520 + 411 + 100);
}

#[test]
fn work_before_a_barrier_becomes_the_mean() {
    // A has 600 cycles of work, B 200, and each 300 and 100 more; A is the last to come both times.
    let log = log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (0, 1, runs(THREAD_B)),
            (200, 1, Transition::Leaves(THREAD_B.0, LOCK)),
            (600, 0, Transition::Wakes(THREAD_B.0, Some(THREAD_A.0))),
            (600, 1, runs(THREAD_B)),
            (700, 1, Transition::Leaves(THREAD_B.0, LOCK)),
            (900, 0, Transition::Wakes(THREAD_B.0, Some(THREAD_A.0))),
            (900, 1, runs(THREAD_B)),
        ],
    );
    let found = replayed(&log, 2, &ReplayChange { even: futex(), ..Default::default() });
    assert_eq!((found.unchanged, found.waits), (1000, 2));
    assert_eq!(found.changed, 400 + 200 + 100);
}

#[test]
fn sleep_takes_as_long_as_it_did_and_turns_are_taken() {
    let log = log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (200, 0, Transition::Leaves(THREAD_A.0, READ)),
            (600, 0, Transition::Wakes(THREAD_A.0, None)),
            (600, 0, runs(THREAD_A)),
            (700, 0, Transition::Leaves(THREAD_A.0, SwitchOut::Runnable)),
            (700, 0, runs(THREAD_B)),
            (800, 0, Transition::Leaves(THREAD_B.0, READ)),
            (800, 0, runs(THREAD_A)),
        ],
    );
    assert_eq!(replayed(&log, 1, &ReplayChange::default()).unchanged, 900);
    assert_eq!(replayed(&log, 2, &ReplayChange::default()).unchanged, 900);
}

proptest! {
    /// Whatever a guest says: a replay comes to an end.
    #[test]
    fn a_replay_ends(
        events in proptest::collection::vec((0..2000_u64, 0..3_u32, change()), 0..80),
        start in 0..1000_u64,
    ) {
        let mut log = log(start..1500, &events);
        log.events.sort_by_key(|event| event.cycle);
        let change = ReplayChange { free: futex(), even: futex() };
        log.replay(2, &change, |_| PROCESS, |_| 0);
        let even = ReplayChange { even: futex(), ..ReplayChange::default() };
        log.replay(2, &even, |_| PROCESS, |_| 0);
    }
}
