use std::collections::BTreeMap;

use super::*;
use crate::{Context, Evaluation, Evaluator, Region, ThreadId};

fn evaluation(seed: u32) -> Evaluation {
    let mut evaluator = Evaluator::new(&[], Region::Whole).in_detail(4).with_call_stacks();
    let words: Vec<u32> = (0..60_000u32).map(|n| n.wrapping_mul(0x9e37_79b9 + 2 * seed)).collect();
    for batch in commit_trace::synthetic::batches(&words, 4) {
        evaluator.batch(&batch).unwrap();
    }
    evaluator.finish()
}

#[test]
fn a_bin_has_the_same_time_by_context_as_by_instruction() {
    for seed in 0..3 {
        let evaluation = evaluation(seed);
        assert!(evaluation.over_time.len() > 2, "{}", evaluation.over_time.len());
        let contexts = evaluation.contexts.as_ref().unwrap();
        for bin in &evaluation.over_time {
            for time in &bin.processes {
                let mut by_context = time.other_contexts;
                for (context, _, units) in time.by_context() {
                    assert_eq!(contexts.get(context).process, time.process);
                    by_context += units;
                }
                let by_inst: u64 = time.weights().map(|(_, units)| units).sum();
                assert_eq!(by_context, by_inst + time.others);
            }
            let kept: usize = bin.processes.iter().map(|time| time.by_context().count()).sum();
            assert!(kept <= MAX_CONTEXT_SUMS, "{kept}");
        }
        let total: u64 = evaluation.by_context.iter().map(|(.., units)| units).sum();
        assert_eq!(total, evaluation.oracle.total());
    }
}

#[test]
fn of_too_many_contexts_the_largest_are_kept() {
    let own = |caller| Context { process: ProcessId(1), thread: ThreadId::NONE, caller };
    let mut contexts = Contexts::default();
    let root = contexts.add(own(None));
    let called = |n| own(Some((root, InstId(n))));
    let all = 4 * MAX_CONTEXT_SUMS as u32;
    let small: Vec<ContextId> = (0..all).map(|n| contexts.add(called(n))).collect();
    let large = contexts.add(called(all));
    let mut by_context: ContextWeights = small.iter().map(|id| (*id, InstId(7), 1)).collect();
    by_context.extend((0..all).map(|inst| (large, InstId(inst), 2 + u64::from(inst))));
    by_context.push((large, InstId(all), 100_000));
    let total: u64 = by_context.iter().map(|(.., units)| units).sum();
    let spent = Spent {
        processes: vec![(ProcessId(1), vec![(7, total)], 0)],
        by_context,
        ..Spent::default()
    };
    let bin = kept(spent, &contexts);
    let kept: Vec<_> = bin[0].by_context().collect();
    assert!(kept.len() <= MAX_CONTEXT_SUMS && kept.len() > MAX_CONTEXT_SUMS / 2);
    // No time of a context is lost: small contexts count as their caller, small instructions as the hottest.
    let of = |id| -> u64 {
        let own = kept.iter().filter(|(context, ..)| *context == id);
        own.map(|(.., units)| units).sum()
    };
    assert_eq!(of(root) + bin[0].other_contexts, u64::from(all));
    assert_eq!(of(large), total - u64::from(all));
    assert!(kept.iter().any(|(context, inst, units)| {
        (*context, *inst) == (large, InstId(all)) && *units >= 100_000
    }));
}

#[test]
fn what_contexts_have_in_all_bins_is_what_they_have_in_the_run() {
    // Lists that are so short that nothing is folded.
    let weights = |list: &[(u32, u32, u64)]| -> ContextWeights {
        list.iter()
            .map(|&(context, inst, units)| (ContextId(context), InstId(inst), units))
            .collect()
    };
    let contexts = Contexts::flat(2);
    let spent = |list: &[(u32, u32, u64)]| Spent {
        processes: vec![(ProcessId(0), vec![(1, 5)], 0), (ProcessId(1), vec![(1, 9)], 0)],
        by_context: weights(list),
        other_contexts: BTreeMap::from([(ProcessId(1), 3)]),
    };
    let bins = [
        kept(spent(&[(1, 1, 4), (0, 1, 5), (1, 1, 2)]), &contexts),
        kept(spent(&[(0, 2, 5), (1, 7, 6)]), &contexts),
    ];
    let of = |bin: &[ProcessTime], at: usize| {
        (Vec::from_iter(bin[at].by_context()), bin[at].other_contexts)
    };
    assert_eq!(of(&bins[0], 0), (weights(&[(0, 1, 5)]), 0));
    assert_eq!(of(&bins[0], 1), (weights(&[(1, 1, 6)]), 3));
    let bin = both(&bins[0], &bins[1], &contexts);
    assert_eq!(of(&bin, 0), (weights(&[(0, 1, 5), (0, 2, 5)]), 0));
    assert_eq!(of(&bin, 1), (weights(&[(1, 1, 6), (1, 7, 6)]), 6));
}

#[test]
fn of_a_context_with_much_code_the_hottest_instruction_has_the_rest() {
    let contexts = Contexts::flat(3);
    let each = MAX_CONTEXT_SUMS as u32;
    let code = |context: u32, units: u64| {
        (0..each).map(move |inst| (ContextId(context), InstId(inst), units + u64::from(inst == 7)))
    };
    let (hot, cold) = (code(0, 100), code(1, 10));
    let spent = Spent {
        processes: (0..3).map(|id| (ProcessId(id), vec![(1, 1)], 0)).collect(),
        by_context: hot.chain(cold).collect(),
        ..Spent::default()
    };
    let bin = kept(spent, &contexts);
    let sums = u64::from(each);
    assert_eq!(Vec::from_iter(bin[0].by_context()), [(ContextId(0), InstId(7), 100 * sums + 1)]);
    assert_eq!(Vec::from_iter(bin[1].by_context()), [(ContextId(1), InstId(7), 10 * sums + 1)]);
    let all: u64 = bin.iter().flat_map(|time| time.by_context()).map(|(.., units)| units).sum();
    assert_eq!(all, 110 * sums + 2);
}
