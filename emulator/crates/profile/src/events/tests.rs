use commit_trace::synthetic;
use proptest::prelude::*;

use super::*;
use crate::Profiler;
use crate::{Evaluation, Evaluator, Region, Sampler, Schedule};

fn evaluate(words: &[u32], period: u64) -> Evaluation {
    let samplers = Profiler::ALL.map(|p| Sampler::new(p, Schedule::every(period)));
    let mut evaluator = Evaluator::new(&samplers, Region::Whole).in_detail(4);
    synthetic::batches(words, 4).iter().for_each(|batch| evaluator.batch(batch).unwrap());
    evaluator.finish()
}

/// A process may begin that never does anything.
#[test]
fn what_no_process_did_does_not_matter() {
    let evaluation = evaluate(&[3_731_647_488, 4_244_635_648], 1);
    let tip = &evaluation.samplers[Profiler::Tip as usize];
    assert_eq!(evaluation.processes.len(), 2);
    assert_eq!(tip.signatures, evaluation.signatures);
}

proptest! {
    #[test]
    fn signatures_split_the_profile(words in prop::collection::vec(any::<u32>(), 1..500), period in 1u64..40) {
        let evaluation = evaluate(&words, period);
        let truth = evaluation.signatures.as_ref().unwrap();
        let mut split = Profile::new(UNITS_PER_CYCLE);
        for process in (0..evaluation.processes.len() as u32).map(ProcessId) {
            for (inst, _, units) in truth.with_base(&evaluation.oracle, process) {
                split.add(process, inst, units);
            }
        }
        prop_assert_eq!(&split, &evaluation.oracle);
        for result in &evaluation.samplers {
            let profiler = result.sampler.profiler;
            prop_assert_eq!(result.signatures.is_some(), profiler.sees_events());
            let Some(signatures) = &result.signatures else { continue };
            let of = |process| signatures.with_base(&result.profile, ProcessId(process));
            let all = (0..evaluation.processes.len() as u32).flat_map(of);
            let total: u64 = all.map(|(.., units)| units).sum();
            prop_assert_eq!(total, result.profile.total());
            // Sampling every cycle, TEA is the reference.
            if profiler == Profiler::Tip && period == 1 {
                prop_assert_eq!(signatures, truth);
            }
        }
    }

    #[test]
    fn misplaced_time_is_what_the_profiles_differ_by(words in prop::collection::vec(any::<u32>(), 1..500)) {
        let evaluation = evaluate(&words, 1);
        for result in &evaluation.samplers {
            let misplaced: u64 = result.misplaced.iter().map(|m| m.units).sum();
            match result.sampler.profiler {
                // The Oracle's rule in every cycle.
                Profiler::Tip | Profiler::TipIlp => prop_assert_eq!(misplaced, 0),
                _ => prop_assert!(misplaced <= result.profile.total()),
            }
            for m in &result.misplaced {
                prop_assert!(m.named != m.truth);
                prop_assert!(m.units <= result.profile.weight(m.process, m.named));
            }
        }
    }
}

/// A counter after a trigger in a cycle of this state, charged to one instruction.
fn misplaced_from(inst: InstId, state: State) -> MisplacedCounter {
    let mut counter = MisplacedCounter::default();
    counter.await_sample(Truth { state, records: &[CommitRecord::from_packed(inst, 1, 0, 0)] });
    counter
}

#[test]
fn the_heaviest_of_each_process_are_kept() {
    let mut counter = misplaced_from(InstId(0), State::Stalled);
    for inst in 1..=MAX_PLACES_PER_PROCESS as u32 + 50 {
        counter.named(None, ProcessId(1), InstId(inst), inst.into());
    }
    counter.named(None, ProcessId(2), InstId(7), 1);
    let kept = counter.finish();
    let of = |process| {
        let own = kept.iter().filter(move |m| m.process == ProcessId(process));
        own.map(|m| m.units)
    };
    assert!(of(1).eq((51..=MAX_PLACES_PER_PROCESS as u64 + 50).rev()));
    assert!(of(2).eq([1]));
}

#[test]
fn places_of_any_length_are_counted() {
    let mut counter = misplaced_from(InstId(9), State::Drained);
    let mut expected = Vec::new();
    for process in [0, 1, (1 << 13) - 1, 1 << 13, u32::MAX] {
        for named in [0, (1 << INST_BITS) - 1, 1 << INST_BITS, u32::MAX] {
            let (process, named) = (ProcessId(process), InstId(named));
            let place = (process, named, InstId(9), Component::FrontEnd);
            let is_short = process.0 < 1 << 13 && named.0 < 1 << INST_BITS;
            assert_eq!(pack_place(place).map(unpack_place), is_short.then_some(place));
            counter.named(None, process, named, 3);
            counter.named(None, process, named, 4);
            expected.push((process, named, 7));
        }
    }
    let found = counter.finish().into_iter();
    let found = found.map(|m| (m.process, m.named, m.units));
    assert!(found.eq(expected));
}
