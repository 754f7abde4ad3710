use proptest::prelude::*;

use super::*;

/// Threads of the tests: the kernel's number, and the evaluation's.
pub(super) const THREAD_A: (u32, ThreadId) = (10, ThreadId(1));
pub(super) const THREAD_B: (u32, ThreadId) = (11, ThreadId(2));
pub(super) const FUTEX_AT: u64 = 0x5000;
pub(super) const LOCK: SwitchOut = SwitchOut::Waits(KernelEntry::Syscall {
    number: FUTEX_SYSCALL,
    address: FUTEX_AT,
    argument: FUTEX_PRIVATE,
    pc: 0x104,
});
pub(super) const READ: SwitchOut =
    SwitchOut::Waits(KernelEntry::Syscall { number: 63, address: 3, argument: 0, pc: 0x204 });

pub(super) fn runs((tid, thread): (u32, ThreadId)) -> Transition {
    Transition::Runs(tid, thread)
}

pub(super) fn log(region: Range<u64>, events: &[(u64, u32, Transition)]) -> SchedulerLog {
    let event = |&(cycle, hart, change)| SchedulerEvent { cycle, hart, change, entry: None };
    SchedulerLog { events: events.iter().map(event).collect(), region: vec![region] }
}

fn waits(log: &SchedulerLog) -> Waits {
    log.waits(|_| ProcessId(7), |_, _| WaitUse::Program).unwrap()
}

fn of(waits: &Waits, thread: ThreadId) -> &ThreadWaits {
    waits.threads.iter().find(|own| own.thread == thread).unwrap()
}

fn stretches(count: u64, cycles: u64, longest: u64) -> Intervals {
    Intervals { count, cycles, longest }
}

#[test]
fn a_thread_runs_waits_is_ready_and_runs() {
    let waits = waits(&log(
        0..1000,
        &[
            (100, 0, runs(THREAD_A)),
            (150, 1, runs(THREAD_B)),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (300, 0, Transition::Runs(0, ThreadId(9))),
            (600, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (650, 0, runs(THREAD_A)),
            (900, 0, Transition::Leaves(THREAD_A.0, SwitchOut::Ended)),
            (900, 0, Transition::Runs(0, ThreadId(9))),
        ],
    ));
    let a = of(&waits, THREAD_A.1);
    assert_eq!(a.running, stretches(2, 450, 250));
    assert_eq!(a.ready, stretches(1, 50, 50));
    let expected = ReasonWaits {
        reason: WaitReason::Futex,
        all: stretches(1, 300, 300),
        wakers: vec![(Waker::Thread(THREAD_B.1), stretches(1, 300, 300))],
    };
    assert_eq!((&a.waits, a.unknown), (&vec![expected], 0));
    assert_eq!(of(&waits, THREAD_B.1).running, stretches(1, 850, 850));
    assert_eq!(waits.threads.len(), 2, "the idle thread is none");
    let [futex] = &waits.futexes[..] else {
        panic!("{:?}", waits.futexes);
    };
    assert_eq!((futex.process, futex.address), (ProcessId(7), FUTEX_AT));
    assert_eq!(futex.pairs, [(THREAD_A.1, Waker::Thread(THREAD_B.1), stretches(1, 300, 300))]);
    let site = WaitSite { pc: 0x104, entry: None };
    assert_eq!(futex.sites, [(site, stretches(1, 300, 300))]);
    assert_eq!(futex.operations, [(FUTEX_PRIVATE, 1)]);
}

#[test]
fn stretches_count_as_far_as_they_are_in_the_region() {
    let mut log = log(
        200..400,
        &[
            (100, 0, runs(THREAD_A)),
            (150, 0, Transition::Leaves(THREAD_A.0, READ)),
            (160, 1, Transition::Wakes(THREAD_A.0, None)),
            (170, 0, runs(THREAD_A)),
            (300, 0, Transition::Leaves(THREAD_A.0, READ)),
            (900, 0, Transition::Wakes(THREAD_A.0, None)),
        ],
    );
    let whole = waits(&log);
    let a = of(&whole, THREAD_A.1);
    assert_eq!((a.running, a.ready), (stretches(1, 100, 100), Intervals::default()));
    assert_eq!(a.waits[0].all, stretches(1, 100, 100));
    assert_eq!(a.waits[0].wakers, [(Waker::Nobody, stretches(1, 100, 100))]);
    assert_eq!(a.waits[0].reason, WaitReason::Syscall(63));
    // A hole in it.
    log.region = vec![200..220, 290..400];
    assert_eq!(of(&waits(&log), THREAD_A.1).running, stretches(1, 30, 30));
}

#[test]
fn records_of_two_harts_may_come_in_either_order() {
    // Woken before its own hart has told that it waits.
    let early = waits(&log(
        0..1000,
        &[
            (100, 0, runs(THREAD_A)),
            (100, 1, runs(THREAD_B)),
            (290, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (350, 0, runs(THREAD_A)),
        ],
    ));
    let a = of(&early, THREAD_A.1);
    assert_eq!(a.ready, stretches(1, 50, 50));
    assert_eq!(a.waits[0].wakers, [(Waker::Thread(THREAD_B.1), stretches(1, 0, 0))]);
    // Running again before the other hart has told that it woke it.
    let late = waits(&log(
        0..1000,
        &[
            (100, 0, runs(THREAD_A)),
            (100, 1, runs(THREAD_B)),
            (300, 0, Transition::Leaves(THREAD_A.0, LOCK)),
            (350, 0, runs(THREAD_A)),
            (360, 1, Transition::Wakes(THREAD_A.0, Some(THREAD_B.0))),
            (500, 0, Transition::Leaves(THREAD_A.0, READ)),
        ],
    ));
    let a = of(&late, THREAD_A.1);
    let lock = (a.waits.iter()).find(|own| own.reason == WaitReason::Futex);
    assert_eq!(lock.unwrap().wakers, [(Waker::Thread(THREAD_B.1), stretches(1, 50, 50))]);
    let read = (a.waits.iter()).find(|own| own.reason == WaitReason::Syscall(63));
    assert_eq!(read.unwrap().wakers, [(Waker::Nobody, stretches(1, 500, 500))]);
}

#[test]
fn a_new_thread_is_ready_and_one_that_loses_its_turn_is_too() {
    let waits = waits(&log(
        0..1000,
        &[
            (100, 0, Transition::Begins(THREAD_A.0)),
            (130, 1, runs(THREAD_A)),
            (200, 1, Transition::Leaves(THREAD_A.0, SwitchOut::Runnable)),
            (200, 1, runs(THREAD_B)),
            (260, 0, runs(THREAD_A)),
        ],
    ));
    let a = of(&waits, THREAD_A.1);
    assert_eq!(a.ready, stretches(2, 90, 60));
    assert_eq!(a.running, stretches(2, 810, 740));
}

#[test]
fn a_switch_that_says_nothing_leaves_the_thread_unknown() {
    let events = [
        (100, 0, runs(THREAD_A)),
        (300, 0, runs(THREAD_B)),
        (400, 0, runs(THREAD_A)),
        (900, 0, Transition::Leaves(THREAD_B.0, SwitchOut::Runnable)),
    ];
    let waits = waits(&log(0..1000, &events));
    assert_eq!(of(&waits, THREAD_A.1).unknown, 100);
    // A kernel that never says: no section.
    assert_eq!(log(0..1000, &events[..3]).waits(|_| ProcessId(0), |_, _| WaitUse::Program), None);
}

#[test]
fn futex_operations() {
    let of = |argument| {
        KernelEntry::Syscall { number: FUTEX_SYSCALL, address: 0, argument, pc: 0 }
            .reason(WaitUse::Program)
    };
    // FUTEX_WAIT_BITSET of a condition, of `pthread_join`, FUTEX_WAKE.
    let reasons = [128 | 9, 256 | 128 | 9, 256 | 9, 128 | 1].map(of);
    let expected = [
        WaitReason::Futex,
        WaitReason::Futex,
        WaitReason::SharedFutex,
        WaitReason::Syscall(FUTEX_SYSCALL),
    ];
    assert_eq!(reasons, expected);
}

/// One futex that is waited for from two places of the program, and by a language's runtime.
#[test]
fn waits_are_told_apart_by_their_callers_and_by_what_they_are_for() {
    let events = [
        (0, 0, runs(THREAD_A)),
        (100, 0, Transition::Leaves(THREAD_A.0, LOCK)),
        (150, 0, runs(THREAD_A)),
        (200, 0, Transition::Leaves(THREAD_A.0, LOCK)),
        (400, 0, runs(THREAD_A)),
        (500, 0, Transition::Leaves(THREAD_A.0, LOCK)),
        (530, 0, runs(THREAD_A)),
        (600, 0, Transition::Leaves(THREAD_A.0, READ)),
    ];
    let mut log = log(0..1000, &events);
    for (event, entry) in [(1, 3), (3, 4), (5, 3), (7, 4)] {
        log.events[event].entry = Some(ContextId(entry));
    }
    let site = |entry| WaitSite { pc: 0x104, entry: Some(ContextId(entry)) };
    let futexes = |used_for: fn(ProcessId, WaitSite) -> WaitUse| {
        let waits = log.waits(|_| ProcessId(7), used_for).unwrap();
        let reasons: Vec<(WaitReason, u64)> =
            of(&waits, THREAD_A.1).waits.iter().map(|own| (own.reason, own.all.cycles)).collect();
        let sites = waits.futexes.first().map(|futex| futex.sites.clone());
        (reasons, sites.unwrap_or_default())
    };
    let read = (WaitReason::Syscall(63), 400);
    let (reasons, sites) = futexes(|_, _| WaitUse::Program);
    assert_eq!(reasons, [read, (WaitReason::Futex, 280)]);
    assert_eq!(sites, [(site(4), stretches(1, 200, 200)), (site(3), stretches(2, 80, 50))]);
    // A thread without work waits for no futex of the program, and a call that is none of a runtime's is asked of nobody.
    let (reasons, sites) = futexes(|process, site| match site.entry {
        Some(ContextId(4)) if process == ProcessId(7) => WaitUse::Idle,
        _ => WaitUse::Runtime,
    });
    let expected = [read, (WaitReason::Idle, 200), (WaitReason::Runtime, 80)];
    assert_eq!(reasons, expected);
    assert_eq!(sites, [(site(3), stretches(2, 80, 50))]);
}

pub(super) fn change() -> impl Strategy<Value = Transition> {
    let left = prop_oneof![
        Just(SwitchOut::Runnable),
        Just(LOCK),
        Just(READ),
        Just(SwitchOut::Waits(KernelEntry::Kernel)),
        Just(SwitchOut::Ended),
    ];
    let tid = 0..5_u32;
    prop_oneof![
        tid.clone().prop_map(Transition::Begins),
        tid.clone().prop_map(|tid| Transition::Runs(tid, ThreadId(tid + 20))),
        (tid.clone(), left).prop_map(|(tid, left)| Transition::Leaves(tid, left)),
        (tid.clone(), proptest::option::of(tid)).prop_map(|(tid, by)| Transition::Wakes(tid, by)),
    ]
}

#[test]
fn the_region_of_all_harts_is_from_where_its_marks_were_executed() {
    let mut log = SchedulerLog::default();
    // The second hart slept at the first mark and at the last one, the third one slept through the second stretch.
    for of_hart in [&[100..200, 300..380], &[20..210, 300..310]] {
        log.add_region(of_hart);
    }
    log.add_region(&[100..200, 300..380][..1]);
    assert_eq!(log.region, [100..210, 300..380]);
    assert_eq!(log.region_cycles(), 190);
}

proptest! {
    /// Whatever a guest says: no thread's time is longer than the region, and all of it adds up.
    #[test]
    fn nobody_lives_longer_than_the_region(
        events in proptest::collection::vec((0..2000_u64, 0..3_u32, change()), 0..80),
        region in proptest::collection::vec((0..2000_u64, 0..2000_u64), 0..4),
    ) {
        let mut log = log(0..0, &events);
        log.events.sort_by_key(|event| event.cycle);
        log.region = region.iter().map(|(start, end)| *start..*end).collect();
        let whole = Region::new(&log.region).cycles(0, u64::MAX);
        let Some(waits) = log.waits(|_| ProcessId(0), |_, _| WaitUse::Program) else {
            return Ok(());
        };
        for thread in &waits.threads {
            let waiting: u64 = thread.waits.iter().map(|own| own.all.cycles).sum();
            let life = thread.running.cycles + thread.ready.cycles + thread.unknown + waiting;
            prop_assert!(life <= whole, "{thread:?} of {whole}");
            for own in &thread.waits {
                let mut sum = Intervals::default();
                own.wakers.iter().for_each(|(_, part)| sum.merge(*part));
                prop_assert_eq!(sum, own.all);
            }
        }
        for futex in &waits.futexes {
            let mut sum = Intervals::default();
            futex.pairs.iter().for_each(|(.., part)| sum.merge(*part));
            prop_assert_eq!(sum, futex.all);
        }
    }
}
