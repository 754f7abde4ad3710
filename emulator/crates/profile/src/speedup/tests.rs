use commit_trace::synthetic::batches;
use proptest::prelude::*;

use super::*;
use crate::synthetic::{QUICKSTART, evaluation};
use crate::waits::{KernelEntry, SchedulerEvent, SchedulerLog, SwitchOut, Transition};
use crate::{Evaluator, Region, Thread};

fn of(cycles: &HartCycles, component: SpeedupComponent) -> u64 {
    cycles[component as usize]
}

/// Two threads of the evaluation's program on two harts, of which the second leaves its hart for a lock in cycle `from` of 10,500.
fn waiting_since(from: u64) -> Evaluation {
    let mut evaluation = evaluation();
    let thread = |id, tid| Thread::new(ThreadId(id), QUICKSTART, tid, 0, "quickstart".to_owned());
    evaluation.threads = vec![thread(0, 42), thread(1, 50), thread(2, 0)];
    evaluation.threads[2].process = ProcessId::BOOT;
    let lock = KernelEntry::Syscall { number: 98, address: 0x5000, argument: 128, pc: 0x104 };
    let changes = [
        (0, 0, Transition::Runs(42, ThreadId(0))),
        (0, 1, Transition::Runs(50, ThreadId(1))),
        (from, 1, Transition::Leaves(50, SwitchOut::Waits(lock))),
        (from, 1, Transition::Runs(0, ThreadId(2))),
    ];
    let event = |(cycle, hart, change)| SchedulerEvent { cycle, hart, change, entry: None };
    evaluation.scheduler = SchedulerLog {
        events: changes.into_iter().map(event).collect(),
        region: std::iter::once(0..10_500).collect(),
    };
    evaluation
}

#[test]
fn user_mode_is_split_by_what_answers_loads_and_the_kernel_is_one() {
    let cycles = evaluation().hart_cycles(2);
    assert_eq!(cycles.iter().sum::<u64>(), 21_000);
    // Three quarters of instructions 0 and 10 wait for memory; instructions 8 and 9 are the kernel's.
    assert_eq!(of(&cycles, SpeedupComponent::Memory), 6_375);
    assert_eq!(of(&cycles, SpeedupComponent::Kernel), 3_500);
    assert_eq!(of(&cycles, SpeedupComponent::Base), 10_125);
    // Nobody tells why harts are idle.
    assert_eq!(of(&cycles, SpeedupComponent::Idle), 1_000);
}

#[test]
fn idle_harts_are_dealt_out_by_what_threads_wait_for() {
    let cycles = waiting_since(9_500).hart_cycles(2);
    assert_eq!(of(&cycles, SpeedupComponent::Locks), 1_000);
    assert_eq!(of(&cycles, SpeedupComponent::Idle), 0);
    // The scheduler tells of less idle time than the Oracle has: the rest stays unknown.
    let cycles = waiting_since(10_100).hart_cycles(2);
    assert_eq!(of(&cycles, SpeedupComponent::Locks), 400);
    assert_eq!(of(&cycles, SpeedupComponent::Idle), 600);
    // The scheduler tells of more idle time than the Oracle has: there is no more than the Oracle's.
    let cycles = waiting_since(500).hart_cycles(2);
    assert_eq!(of(&cycles, SpeedupComponent::Locks), 1_000);
    assert_eq!(cycles.iter().sum::<u64>(), 21_000);
    // What a hart slept before the region is not of it.
    let mut asleep = waiting_since(9_500);
    (asleep.cycles, asleep.idle) = (25_000, 5_000);
    assert_eq!(asleep.hart_cycles(2), waiting_since(9_500).hart_cycles(2));
    assert_eq!(asleep.hart_cycles(1).iter().sum::<u64>(), 25_000);
}

#[test]
fn the_idle_threads_own_cycles_are_idle() {
    let mut evaluation = waiting_since(500);
    evaluation.processes[2].pid = Some(0);
    let cycles = evaluation.hart_cycles(2);
    assert_eq!(of(&cycles, SpeedupComponent::Locks), 3_000);
    assert_eq!(of(&cycles, SpeedupComponent::Kernel), 2_000);
    assert_eq!(cycles.iter().sum::<u64>(), 21_000);
}

#[test]
fn parts_of_cycles_are_rounded_to_the_whole() {
    let mut units = [0; SpeedupComponent::COUNT];
    units[..4].copy_from_slice(&[7, 8, 15, 20]);
    let cycles = whole_cycles(&units, 10);
    assert_eq!(cycles[..4], [1, 1, 1, 2]);
    assert_eq!(cycles.iter().sum::<u64>(), 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_cycle_of_every_hart_is_in_one_component(
        harts in prop::collection::vec(prop::collection::vec(any::<u32>(), 1..400), 1..4),
    ) {
        let evaluations: Vec<Evaluation> = harts
            .iter()
            .map(|words| {
                let mut evaluator = Evaluator::new(&[], Region::Whole);
                batches(words, 4).iter().for_each(|batch| evaluator.batch(batch).unwrap());
                evaluator.finish()
            })
            .collect();
        let merged = Evaluation::merged(&evaluations).unwrap();
        let sum = merged.hart_cycles(harts.len()).iter().sum::<u64>();
        let busy = merged.cycles - merged.idle;
        prop_assert_eq!(sum, match harts.len() {
            1 => merged.cycles,
            harts => busy.max(harts as u64 * merged.scheduler.region_cycles()),
        });
    }
}
