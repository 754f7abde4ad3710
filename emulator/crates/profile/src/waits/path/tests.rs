use proptest::prelude::*;

use super::super::tests::{FUTEX_AT, LOCK, READ, THREAD_A, THREAD_B, change, log, runs};
use super::*;
use crate::waits::{SwitchOut, Transition};

fn path_of(log: &SchedulerLog) -> ThreadPath {
    log.critical_path(|_| ProcessId(7), |_, _| WaitUse::Program, |_| 0).unwrap()
}

/// Returns the first cycle, the length, the thread and what it does of each segment.
fn segments(path: &ThreadPath) -> Vec<(u64, u64, Option<ThreadId>, PathKind)> {
    let segments = path.segments.iter();
    segments.map(|of| (of.start, of.cycles, of.thread, of.kind)).collect()
}

const A: Option<ThreadId> = Some(THREAD_A.1);
const B: Option<ThreadId> = Some(THREAD_B.1);
const SLEEP: PathKind = PathKind::Waiting(WaitReason::Syscall(63), Waker::Interrupt);

#[test]
fn the_path_goes_from_a_waiter_to_its_waker() {
    let path = path_of(&log(
        100..1000,
        &[
            (100, 0, runs(THREAD_A)),
            (150, 1, runs(THREAD_B)),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (600, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (650, 0, runs(THREAD_A)),
            (700, 1, Transition::Leaves(THREAD_B.0, READ)),
        ],
    ));
    // Nothing is known of B before it runs on hart 1.
    let expected = [
        (100, 50, None, PathKind::Unknown),
        (150, 450, B, PathKind::Running(1)),
        (600, 50, A, PathKind::Ready),
        (650, 350, A, PathKind::Running(0)),
    ];
    assert_eq!(segments(&path), expected);
    let site = WaitSite { pc: 0x104, entry: None };
    let wait =
        PathWait { reason: Some(WaitReason::Futex), futex: Some((FUTEX_AT, site)), cycles: 300 };
    let edge = PathEdge { waker: B, wait: Some(wait), context: None };
    let edges: Vec<_> = path.segments.iter().map(|segment| segment.edge).collect();
    assert_eq!(edges, [None, None, Some(edge), None]);
    assert_eq!(path.cycles(), 900);
}

#[test]
fn a_new_thread_is_followed_to_the_one_that_made_it_and_a_join_to_the_end() {
    let path = path_of(&log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (200, 0, Transition::Begins(THREAD_B.0)),
            (230, 1, runs(THREAD_B)),
            (250, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (900, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (905, 1, Transition::Leaves(THREAD_B.0, SwitchOut::Ended)),
            (920, 0, runs(THREAD_A)),
        ],
    ));
    let expected = [
        (0, 200, A, PathKind::Running(0)),
        (200, 30, B, PathKind::Ready),
        (230, 670, B, PathKind::Running(1)),
        (900, 20, A, PathKind::Ready),
        (920, 80, A, PathKind::Running(0)),
    ];
    assert_eq!(segments(&path), expected);
    assert_eq!(path.segments[1].edge.unwrap().wait, None);
}

#[test]
fn an_interrupt_is_waited_for_and_a_lost_turn_is_the_threads_own() {
    let path = path_of(&log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (300, 0, Transition::Leaves(THREAD_A.0, READ)),
            (700, 0, Transition::Wakes(THREAD_A.0, None)),
            (710, 0, runs(THREAD_A)),
            (800, 0, Transition::Leaves(THREAD_A.0, SwitchOut::Runnable)),
            (800, 0, runs(THREAD_B)),
            (850, 0, Transition::Leaves(THREAD_B.0, SwitchOut::Runnable)),
            (850, 0, runs(THREAD_A)),
        ],
    ));
    let expected = [
        (0, 300, A, PathKind::Running(0)),
        (300, 400, A, SLEEP),
        (700, 10, A, PathKind::Ready),
        (710, 90, A, PathKind::Running(0)),
        (800, 50, A, PathKind::Ready),
        (850, 150, A, PathKind::Running(0)),
    ];
    assert_eq!(segments(&path), expected);
}

/// A disk's thread is woken by the disk: the program's time before it asked for a block is the program's.
#[test]
fn from_a_wait_of_the_kernel_the_path_goes_back_to_the_thread_that_came_to_wait_for_it() {
    const KERNEL: SwitchOut = SwitchOut::Waits(KernelEntry::Kernel);
    let path = |b_waits: SwitchOut, since: u64| {
        segments(&path_of(&log(
            0..1000,
            &[
                (0, 0, runs(THREAD_A)),
                (0, 1, runs(THREAD_B)),
                (since, 1, Transition::Leaves(THREAD_B.0, b_waits)),
                (400, 0, Transition::Leaves(THREAD_A.0, READ)),
                (700, 1, Transition::Wakes(THREAD_B.0, None)),
                (710, 1, runs(THREAD_B)),
                (750, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
                (760, 1, Transition::Leaves(THREAD_B.0, b_waits)),
                (770, 0, runs(THREAD_A)),
            ],
        )))
    };
    let after = [
        (700, 10, B, PathKind::Ready),
        (710, 40, B, PathKind::Running(1)),
        (750, 20, A, PathKind::Ready),
        (770, 230, A, PathKind::Running(0)),
    ];
    let wait = PathKind::Waiting(WaitReason::Kernel, Waker::Interrupt);
    let with = |before: [(u64, u64, Option<ThreadId>, PathKind); 2]| [&before[..], &after].concat();
    let back = [(0, 400, A, PathKind::Running(0)), (400, 300, B, wait)];
    assert_eq!(path(KERNEL, 50), with(back));
    // A was waiting for B already as B began to wait.
    let stays = [(0, 500, B, PathKind::Running(1)), (500, 200, B, wait)];
    assert_eq!(path(KERNEL, 500), with(stays));
    // A program that sleeps chose itself when it goes on.
    let sleeps = [(0, 50, B, PathKind::Running(1)), (50, 650, B, SLEEP)];
    assert_eq!(path(READ, 50), with(sleeps));
}

/// A thread that was woken before it had left its hart waited for nobody.
#[test]
fn records_of_two_harts_may_come_in_either_order() {
    let path = path_of(&log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (0, 1, runs(THREAD_B)),
            (290, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (350, 0, runs(THREAD_A)),
            (500, 1, Transition::Leaves(THREAD_B.0, READ)),
        ],
    ));
    let expected = [
        (0, 300, A, PathKind::Running(0)),
        (300, 50, A, PathKind::Ready),
        (350, 650, A, PathKind::Running(0)),
    ];
    assert_eq!(segments(&path), expected);
    let late = path_of(&log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (0, 1, runs(THREAD_B)),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (350, 0, runs(THREAD_A)),
            (360, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (500, 1, Transition::Leaves(THREAD_B.0, READ)),
        ],
    ));
    let expected = [(0, 350, B, PathKind::Running(1)), (350, 650, A, PathKind::Running(0))];
    assert_eq!(segments(&late), expected);
}

/// A thread that is about to wait and is woken before it does goes on without a switch. What it waits for later has a waker of its own.
#[test]
fn a_wakeup_of_a_thread_that_did_not_wait_ends_no_later_wait() {
    let path = path_of(&log(
        0..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (0, 1, runs(THREAD_B)),
            (100, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (900, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (950, 0, runs(THREAD_A)),
            (990, 1, Transition::Leaves(THREAD_B.0, READ)),
        ],
    ));
    let expected = [
        (0, 900, B, PathKind::Running(1)),
        (900, 50, A, PathKind::Ready),
        (950, 50, A, PathKind::Running(0)),
    ];
    assert_eq!(segments(&path), expected);
}

/// What started the program is ready all the time, since its hart has others to run.
#[test]
fn the_path_ends_with_the_program_and_not_with_what_was_ready_beside_it() {
    let path_by = |b_ends: u64| {
        let log = log(
            0..1000,
            &[
                (0, 0, runs(THREAD_A)),
                (0, 1, runs(THREAD_B)),
                (50, 0, Transition::Leaves(THREAD_A.0, SwitchOut::Runnable)),
                (b_ends, 1, Transition::Leaves(THREAD_B.0, SwitchOut::Ended)),
                (b_ends + 10, 0, runs(THREAD_A)),
            ],
        );
        let rank = |thread| u32::from(thread != THREAD_B.1);
        segments(&log.critical_path(|_| ProcessId(7), |_, _| WaitUse::Program, rank).unwrap())
    };
    let expected = [(0, 960, B, PathKind::Running(1)), (960, 40, B, PathKind::Unknown)];
    assert_eq!(path_by(960), expected);
    // The program ended long before the region did.
    let expected = [
        (0, 50, A, PathKind::Running(0)),
        (50, 560, A, PathKind::Ready),
        (610, 390, A, PathKind::Running(0)),
    ];
    assert_eq!(path_by(600), expected);
}

#[test]
fn the_path_is_only_in_the_region_and_ends_with_the_thread_of_least_rank() {
    let mut log = log(
        200..1000,
        &[
            (0, 0, runs(THREAD_A)),
            (0, 1, runs(THREAD_B)),
            (990, 1, Transition::Wakes(50, Some(THREAD_B.0))),
            (995, 0, Transition::Leaves(50, READ)),
        ],
    );
    log.region = vec![200..300, 500..1000];
    assert_eq!(segments(&path_of(&log)), [(0, 600, A, PathKind::Running(0))]);
    let path = log.critical_path(
        |_| ProcessId(7),
        |_, _| WaitUse::Program,
        |thread| u32::from(thread != THREAD_B.1),
    );
    assert_eq!(segments(&path.unwrap()), [(0, 600, B, PathKind::Running(1))]);
}

proptest! {
    /// Whatever a guest says: the path is as long as the region, and each segment begins where the one before ends.
    #[test]
    fn the_path_adds_up_to_the_region(
        events in proptest::collection::vec((0..2000_u64, 0..3_u32, change()), 0..80),
        region in proptest::collection::vec((0..2000_u64, 0..2000_u64), 0..4),
    ) {
        let mut log = log(0..0, &events);
        log.events.sort_by_key(|event| event.cycle);
        log.region = region.iter().map(|(start, end)| *start..*end).collect();
        let Some(path) = log.critical_path(|_| ProcessId(0), |_, _| WaitUse::Program, |_| 0) else {
            return Ok(());
        };
        prop_assert_eq!(path.cycles(), log.region_cycles());
        for pair in path.segments.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start, "{:?}", pair);
        }
    }
}
