//! Stretches of the region that stand for more than others.

use std::collections::BTreeMap;

use super::*;
use crate::ThreadPart;

/// Returns the stream with region marks only where stretches have a weight, and without weights.
fn only_of_weight(batches: &[Batch], weight: u32) -> Vec<Batch> {
    let mut present = 1;
    let mut of_weight = batches.to_vec();
    for (_, event) in of_weight.iter_mut().flat_map(|batch| &mut batch.events) {
        match event {
            Event::Weight(new) => {
                present = *new;
                // Marks are those of stretches, which events of weight come before.
                *event = Event::Privilege(3);
            }
            Event::Region(true) if present != weight => *event = Event::Privilege(3),
            Event::RegionAnew => *event = Event::Privilege(3),
            _ => {}
        }
    }
    of_weight
}

/// Returns the stream with a weight before each stretch, and none within one.
fn weighted(batches: &[Batch]) -> Vec<Batch> {
    let (mut is_open, mut number) = (false, 0);
    let mut weighted = batches.to_vec();
    for batch in &mut weighted {
        batch.events = std::mem::take(&mut batch.events)
            .into_iter()
            .flat_map(|(at, event)| {
                let opens = event == Event::Region(true) && !is_open;
                if let Event::Region(opens) = event {
                    is_open = opens;
                }
                number += u32::from(opens);
                let weight =
                    opens.then_some((at, Event::Weight([2, 7, 1, 7][number as usize % 4])));
                let is_other = !matches!(event, Event::Weight(_) | Event::RegionAnew);
                weight.into_iter().chain(is_other.then_some((at, event)))
            })
            .collect();
    }
    weighted
}

type Amounts = BTreeMap<(u32, u64, u8, u64), u64>;

/// Adds multiples of all amounts of an evaluation, by what they are of.
fn add(amounts: &mut Amounts, evaluation: &Evaluation, weight: u64) {
    let mut add = |key, amount: u64| *amounts.entry(key).or_default() += weight * amount;
    let key = |of, inst: InstId| {
        let inst = &evaluation.static_info[inst.0 as usize];
        (inst.space, inst.pc, inst.privilege, of)
    };
    for (process, inst, units) in evaluation.oracle.iter() {
        add(key(u64::from(process.0) << 8, inst), units);
    }
    for (process, inst, stack) in evaluation.stacks.iter() {
        for component in 0..Component::COUNT {
            let of = (u64::from(process.0) << 8) + 1 + component as u64;
            add(key(of, inst), stack.0[component]);
        }
    }
    // Contexts are numbered as they are charged first.
    for (context, inst, units) in &evaluation.by_context {
        let context = evaluation.contexts.as_ref().unwrap().get(*context);
        let of = 1 << 40 | u64::from(context.process.0) << 8 | u64::from(context.caller.is_some());
        add(key(of, *inst), *units);
    }
    if let Some(top_down) = &evaluation.top_down {
        for process in (0..evaluation.processes.len() as u32).map(ProcessId) {
            for (inst, slot, slots) in top_down.of(process) {
                add(key(2 << 40 | u64::from(process.0) << 8 | slot as u64, inst), slots);
            }
        }
        let windows: u64 = top_down.windows.iter().map(|window| window.cycles).sum();
        add((0, 0, 0, 3 << 40), windows);
    }
    if let Some(signatures) = &evaluation.signatures {
        for process in (0..evaluation.processes.len() as u32).map(ProcessId) {
            for (inst, events, units) in signatures.of(process) {
                let of = 4 << 40 | u64::from(process.0) << 16 | u64::from(events.0);
                add(key(of, inst), units);
            }
        }
    }
    for (number, ThreadPart { whole, .. }) in (5..).zip(evaluation.by_thread.values()) {
        for (process, inst, units) in whole.iter() {
            add(key(number << 40 | u64::from(process.0), inst), units);
        }
    }
    for (number, thread) in (0..).zip(&evaluation.threads) {
        add((number, 0, 0, 9 << 40), thread.cycles);
    }
    let units = evaluation.subsamples.iter().flat_map(|of| of.stacks.iter());
    add((0, 0, 0, 10 << 40), units.map(|(.., stack)| stack.total()).sum());
    for (process, slots) in evaluation.subsamples.iter().flat_map(|of| &of.slots) {
        for (number, slots) in slots.0.iter().enumerate() {
            let of = 20 << 40 | u64::from(process.0) << 8 | number as u64;
            add((0, 0, 0, of), *slots);
        }
    }
    let totals = [
        evaluation.cycles,
        evaluation.idle,
        evaluation.instructions,
        evaluation.traps,
        evaluation.subsamples.iter().map(|of| of.instructions).sum(),
    ];
    for (number, total) in (11..).zip(totals) {
        add((0, 0, 0, number << 40), total);
    }
    amounts.retain(|_, amount| *amount > 0);
}

fn evaluate_all(batches: &[Batch]) -> Evaluation {
    let thread = Filter { thread: Some("a".to_owned()), ..Filter::NONE };
    let filtered = Sampler { filter: thread, ..Sampler::new(Profiler::Tip, Schedule::every(1)) };
    let every = Sampler::new(Profiler::Tip, Schedule::every(1));
    let evaluator = Evaluator::new(&[every, filtered], Region::Marked);
    let mut evaluator = evaluator.in_detail(8).of_sampled_region().with_call_stacks();
    batches.iter().for_each(|batch| evaluator.batch(batch).unwrap());
    evaluator.finish()
}

#[test]
fn weights_that_are_too_many_count_as_the_nearest() {
    let batches = weighted(&synthetic::batches(&[0x00ff_ffff; 40], 4));
    let evaluate = |weights: &[u32]| {
        let mut evaluator = Evaluator::new(&[], Region::Marked);
        for batch in &batches {
            let mut batch = batch.clone();
            let events = weights.iter().flat_map(|weight| {
                let marks = [Event::Region(false), Event::Weight(*weight), Event::Region(true)];
                marks.map(|event| (0, event))
            });
            batch.events = events.collect();
            evaluator.batch(&batch).unwrap();
        }
        evaluator.finish()
    };
    // What is marked is all behind the last weight; one is there from the beginning.
    let alone = evaluate(&[100]).cycles;
    assert_eq!(evaluate(&[2, 3, 100]).cycles, alone);
    assert_eq!(evaluate(&[2, 3, 50, 100]).cycles, alone / 2);
}

proptest! {
    #[test]
    fn weights_multiply_all_that_is_counted(
        words in prop::collection::vec(any::<u32>(), 0..600),
        width in 1..=8usize,
    ) {
        let batches = weighted(&synthetic::batches(&words, width));
        let found = evaluate_all(&through_a_file(&batches));
        prop_assert_eq!(found.check(), Ok(()));
        let mut expected = Amounts::new();
        for weight in [1, 2, 7] {
            add(&mut expected, &evaluate_all(&only_of_weight(&batches, weight)), weight.into());
        }
        let mut amounts = Amounts::new();
        add(&mut amounts, &found, 1);
        prop_assert_eq!(amounts, expected);
        // Windows of a time line have all that the whole has.
        let mut timeline = Timeline::new(Evaluator::new(&[], Region::Marked), 100);
        batches.iter().for_each(|batch| timeline.batch(batch).unwrap());
        let (evaluation, windows) = timeline.finish();
        prop_assert_eq!(&evaluation.oracle, &found.oracle);
        let of_windows = |of: fn(&crate::Window) -> u64| windows.iter().map(of).sum::<u64>();
        prop_assert_eq!(of_windows(|window| window.idle), found.idle);
        let stacked = of_windows(|window| window.stacks.iter().flat_map(|(_, of)| of).sum());
        prop_assert_eq!(stacked, found.oracle.total());
        // A sampler that samples each cycle is the Oracle, but for what it drops at the ends of stretches.
        let tip = &found.samplers[0];
        let dropped = tip.tail_cycles + tip.dropped;
        let off = found.oracle.total().abs_diff(tip.profile.total());
        prop_assert!(off <= 7 * dropped * UNITS_PER_CYCLE, "{off} {dropped}");
    }
}
