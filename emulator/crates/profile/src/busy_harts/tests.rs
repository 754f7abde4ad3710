use commit_trace::synthetic::batches;
use commit_trace::{Batch, Event};
use proptest::prelude::*;

use super::*;
use crate::{Evaluator, Region, UNITS_PER_CYCLE};

fn evaluate(batches: &[Batch], call_stacks: bool) -> Evaluation {
    let mut evaluator = Evaluator::new(&[], Region::Whole).in_detail(4);
    if call_stacks {
        evaluator = evaluator.with_call_stacks();
    }
    batches.iter().for_each(|batch| evaluator.batch(batch).unwrap());
    evaluator.finish()
}

/// Tells in each batch, before its first record, how many harts are busy.
fn told(mut batches: Vec<Batch>, busy: impl Fn(usize) -> u8) -> Vec<Batch> {
    for (at, batch) in batches.iter_mut().enumerate() {
        let (kind, bytes) = BusyHarts(busy(at)).encode();
        batch.events.insert(0, (0, Event::SideBand { kind, bytes }));
    }
    batches
}

fn elapsed(evaluation: &Evaluation) -> f64 {
    evaluation.elapsed_cycles().map(|(.., cycles)| cycles).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn one_hart_has_the_ordinary_profile(words in prop::collection::vec(any::<u32>(), 1..600)) {
        let evaluation = evaluate(&batches(&words, 4), false);
        prop_assert!(evaluation.shared.is_empty());
        let own = evaluation.oracle.iter().filter(|(process, ..)| !evaluation.is_idle_thread(*process));
        let own = own.map(|(process, inst, units)| (process, inst, units, units as f64 / UNITS_PER_CYCLE as f64));
        prop_assert!(evaluation.elapsed_cycles().eq(own));
    }

    #[test]
    fn cycles_are_shared_among_busy_harts(
        words in prop::collection::vec(any::<u32>(), 1..600),
        busy in prop::collection::vec(0..6_u8, 1..20),
    ) {
        let batches = told(batches(&words, 4), |at| busy[at % busy.len()]);
        let evaluation = evaluate(&batches, false);
        prop_assert_eq!(evaluation.check(), Ok(()));
        prop_assert_eq!(&evaluate(&batches, true).shared, &evaluation.shared);
        // Each process and instruction has its cycles while so many harts are busy, over their number.
        let shared: Vec<f64> = evaluation.shared.iter().zip(2..).map(|(of, n)| {
            of.iter().filter(|(process, ..)| !evaluation.is_idle_thread(*process))
                .map(|(.., units)| units as f64 * (1.0 - 1.0 / f64::from(n))).sum()
        }).collect();
        let own: f64 = evaluation.oracle.iter()
            .filter(|(process, ..)| !evaluation.is_idle_thread(*process))
            .map(|(.., units)| units as f64).sum();
        let expected = (own - shared.iter().sum::<f64>()) / UNITS_PER_CYCLE as f64;
        prop_assert!((elapsed(&evaluation) - expected).abs() < 1e-6 * (1.0 + expected));
        // Harts that do alike add up to the time of one.
        let same = told(batches.iter().map(|batch| Batch { events: batch.events[1..].to_vec(), ..batch.clone() }).collect(), |_| 3);
        let one = evaluate(&same, false);
        let three = Evaluation::merged(&[one.clone(), one.clone(), one.clone()]).unwrap().into_owned();
        let cycles = (one.cycles - one.idle) as f64;
        let own = one.oracle.iter().filter(|(process, ..)| !one.is_idle_thread(*process));
        let own = own.map(|(.., units)| units as f64 / UNITS_PER_CYCLE as f64).sum::<f64>();
        prop_assert!(own <= cycles + 1e-6);
        prop_assert!((elapsed(&three) - own).abs() < 1e-6 * (1.0 + own));
    }
}

#[test]
fn a_serial_part_weighs_its_cycles_and_a_parallel_part_its_share() {
    let words: Vec<u32> = (0..4_000_u32).map(|n| n.wrapping_mul(0x9e37_79b9) & 0xff).collect();
    let ordinary = evaluate(&batches(&words, 4), false);
    let parallel = evaluate(&told(batches(&words, 4), |_| 4), false);
    let (one, four) = (elapsed(&ordinary), elapsed(&parallel));
    assert!((one - 4.0 * four).abs() < 1e-6 * one && one > 1000.0, "{one} {four}");
    assert_eq!(parallel.oracle, ordinary.oracle);
}
