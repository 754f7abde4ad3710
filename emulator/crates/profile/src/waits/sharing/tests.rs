use super::*;
use crate::waits::{SchedulerEvent, SwitchOut};

const MAIN: (u32, ThreadId) = (10, ThreadId(1));
const OTHER: (u32, ThreadId) = (11, ThreadId(2));
const IDLE: Transition = Transition::Runs(IDLE_TID, ThreadId(9));

fn runs((tid, thread): (u32, ThreadId)) -> Transition {
    Transition::Runs(tid, thread)
}

fn log(events: &[(u64, u32, Transition)]) -> SchedulerLog {
    let event = |&(cycle, hart, change)| SchedulerEvent { cycle, hart, change, entry: None };
    SchedulerLog {
        events: events.iter().map(event).collect(),
        region: [100..600, 700..1100].into(),
    }
}

#[test]
fn a_serial_part_weighs_as_much_as_all_harts() {
    let ended = |(tid, _)| Transition::Leaves(tid, SwitchOut::Ended);
    let log = log(&[
        (0, 0, runs(MAIN)),
        (0, 1, IDLE),
        (300, 1, runs(OTHER)),
        (500, 1, ended(OTHER)),
        (500, 1, IDLE),
        (1000, 0, ended(MAIN)),
        (1000, 0, IDLE),
    ]);
    let found = log.elapsed_by_thread(2).unwrap();
    assert_eq!((found.idle, &found.busy[..]), (100, &[600, 200][..]));
    let of = |thread, running, elapsed| ThreadElapsed { thread, running, elapsed };
    assert_eq!(found.threads, [of(MAIN.1, 800, 700.0), of(OTHER.1, 200, 100.0)]);
}

#[test]
fn all_shares_are_the_region_and_one_hart_has_what_it_runs() {
    let mut random = 0x2013_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % limit
    };
    for harts in (1..5).cycle().take(100) {
        let mut cycle = 0;
        let mut events = vec![(0, 0, Transition::Leaves(7, SwitchOut::Runnable))];
        for _ in 0..40 {
            cycle += below(60);
            let hart = below(harts) as u32;
            let tid = 10 * hart + below(3) as u32;
            let tid = if tid == 10 * hart { IDLE_TID } else { tid };
            events.push((cycle, hart, runs((tid, ThreadId(tid)))));
        }
        let found = log(&events).elapsed_by_thread(harts as usize).unwrap();
        let busy: u64 = found.busy.iter().sum();
        assert_eq!(found.idle + busy, 900);
        let elapsed: f64 = found.threads.iter().map(|thread| thread.elapsed).sum();
        assert!((elapsed - busy as f64).abs() < 1e-9, "{elapsed} {busy}");
        let running: u64 = found.threads.iter().map(|thread| thread.running).sum();
        let expected: u64 = found.busy.iter().zip(1..).map(|(cycles, n)| cycles * n).sum();
        assert_eq!(running, expected);
        if harts == 1 {
            assert!(found.threads.iter().all(|of| of.elapsed == of.running as f64));
        }
    }
}

#[test]
fn a_kernel_that_does_not_tell_has_no_shares() {
    assert_eq!(log(&[(0, 0, runs(MAIN))]).elapsed_by_thread(1), None);
}
