use commit_trace::{
    CycleClass, HartId, InstId, Redirect, Seq, TeaEvents, TraceReader, TraceWriter, synthetic,
};
use proptest::prelude::*;

use super::*;
use crate::oracle::UNITS_PER_CYCLE;
use crate::subsample::SUBSAMPLES;
use crate::topdown::Slots;
use crate::{
    Component, CycleStack, Filter, Privilege, Profiler, Schedule, Timeline, profile_error,
    sampling_error,
};

mod filters;
mod weights;

fn evaluate(batches: &[Batch], samplers: &[Sampler], region: Region) -> Evaluation {
    let mut evaluator = Evaluator::new(samplers, region);
    for batch in batches {
        evaluator.batch(batch).unwrap();
    }
    evaluator.finish()
}

/// Every profiler on a few schedules.
fn samplers(period: u64, seed: u64) -> Vec<Sampler> {
    let schedules = [
        Schedule::every(1),
        Schedule::every(period),
        Schedule { offset: period / 2, ..Schedule::every(period) },
        Schedule::every(period).randomised(seed),
    ];
    let all = schedules.into_iter().flat_map(|s| Profiler::ALL.map(|p| Sampler::new(p, s)));
    all.collect()
}

fn through_a_file(batches: &[Batch]) -> Vec<Batch> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, "test".into(), "{}").unwrap();
    batches.iter().for_each(|batch| writer.batch(batch).unwrap());
    writer.finish().unwrap();
    let mut reader = TraceReader::new(std::io::Cursor::new(bytes), "test".into()).unwrap();
    let mut found = Vec::new();
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).unwrap() {
        found.push(batch.clone());
    }
    found
}

fn check(evaluation: &Evaluation) -> Result<(), TestCaseError> {
    prop_assert_eq!(evaluation.check(), Ok(()));
    let profiled = evaluation.cycles - evaluation.idle;
    prop_assert_eq!(evaluation.oracle.total(), profiled * UNITS_PER_CYCLE);
    let stacked: u64 = evaluation.stacks.iter().map(|(_, _, stack)| stack.total()).sum();
    prop_assert_eq!(stacked, evaluation.oracle.total());
    for (process, inst, stack) in evaluation.stacks.iter() {
        prop_assert_eq!(stack.total(), evaluation.oracle.weight(process, inst));
    }
    for result in &evaluation.samplers {
        let tail = result.tail_cycles * UNITS_PER_CYCLE;
        prop_assert_eq!(result.profile.total() + tail, evaluation.oracle.total());
        let name = &result.sampler;
        prop_assert_eq!(result.samples == 0, result.profile.total() == 0, "{:?}", name);
        if result.sampler.profiler == Profiler::Tip && result.sampler.schedule.period == 1 {
            prop_assert_eq!(&result.profile, &evaluation.oracle);
        }
    }
    let id = |process, inst| (process, inst);
    prop_assert_eq!(profile_error(&evaluation.oracle, &evaluation.oracle, id), 0.0);
    let expected = sampling_error(&evaluation.oracle, 100, id);
    prop_assert!((0.0..=1.0).contains(&expected));
    Ok(())
}

/// What a damaged trace may hold where its checksum happens to agree.
fn any_record() -> impl Strategy<Value = CommitRecord> {
    let delta = prop_oneof![0..3u32, Just(u32::MAX)];
    (0..40u32, delta, any::<u32>(), any::<u32>()).prop_map(|(inst, delta, lead, flags)| {
        CommitRecord::from_packed(InstId(inst), delta, lead, flags)
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        prop_oneof![0..9u64, any::<u64>()].prop_map(|cycles| Event::Idle { cycles }),
        any::<u8>().prop_map(Event::Privilege),
        (0..8u8, prop::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(kind, bytes)| Event::SideBand { kind, bytes }),
        any::<bool>().prop_map(Event::Region),
        Just(Event::RegionAnew),
        (1..9u32).prop_map(Event::Weight),
        Just(Event::End),
    ]
}

proptest! {
    #[test]
    fn totals_are_exact_and_replay_is_equal(
        words in prop::collection::vec(any::<u32>(), 0..600),
        width in 1..=8usize,
        period in 1..200u64,
        seed in any::<u64>(),
    ) {
        let batches = synthetic::batches(&words, width);
        let samplers = samplers(period, seed);
        let live = evaluate(&batches, &samplers, Region::Whole);
        check(&live)?;
        prop_assert_eq!(live.cycles, live.stream_cycles);
        // A load whose order failed leaves a record of its own before the one of its second try.
        let records = batches.iter().flat_map(|batch| &batch.records);
        let failed = records.filter(|record| {
            record.redirect().is_trap() && record.tea().contains(TeaEvents::FL_MO)
        });
        let failed = failed.count() as u64;
        prop_assert_eq!(
            live.instructions + live.traps + failed,
            words.len() as u64
        );
        let replayed = evaluate(&through_a_file(&batches), &samplers, Region::Whole);
        prop_assert_eq!(replayed, live);
    }

    #[test]
    fn hostile_batches_are_refused_or_counted(
        records in prop::collection::vec(any_record(), 0..12),
        events in prop::collection::vec((0..12u32, any_event()), 0..6),
        start_cycle in prop_oneof![0..9u64, 0..1u64 << 50, any::<u64>()],
        first_seq in prop_oneof![0..9u64, 0..1u64 << 50, any::<u64>()].prop_map(Seq),
    ) {
        let static_info = synthetic::batches(&[0; 40], 1).remove(0).static_info;
        let hart = HartId(0);
        let batch = Batch { hart, first_seq, start_cycle, static_info, records, events, ..Batch::default() };
        let all = Profiler::ALL.map(|profiler| Sampler::new(profiler, Schedule::every(1 << 30)));
        for region in [Region::Whole, Region::Marked] {
            let mut evaluator = Evaluator::new(&all, region).of_sampled_region();
            let _ = evaluator.batch(&batch);
            let _ = evaluator.batch(&batch);
            let evaluation = evaluator.finish();
            // Samplers' totals are not exact where cycles stand for more than themselves.
            if !batch.events.iter().any(|(_, event)| matches!(event, Event::Weight(_))) {
                check(&evaluation)?;
            }
        }
    }

    #[test]
    fn regions_keep_the_totals_exact(
        words in prop::collection::vec(any::<u32>(), 0..600),
        width in 1..=8usize,
        period in 1..200u64,
        marks in prop::collection::vec(0..8u8, 600),
    ) {
        let mut words = words;
        for (word, mark) in words.iter_mut().zip(marks) {
            if mark == 0 {
                *word = *word & 0x00ff_ffff | 252 << 24;
            }
        }
        let batches = synthetic::batches(&words, width);
        let evaluation = evaluate(&batches, &samplers(period, 1), Region::Marked);
        check(&evaluation)?;
        prop_assert!(evaluation.cycles <= evaluation.stream_cycles);

        let samplers = samplers(period, 1);
        let evaluator = || {
            Evaluator::new(&samplers, Region::Marked).in_detail(width as u32).of_sampled_region()
        };
        let (mut sampled, mut slow) = (evaluator(), evaluator().span_by_span());
        for batch in &batches {
            sampled.batch(batch).unwrap();
            slow.batch(batch).unwrap();
        }
        let sampled = sampled.finish();
        prop_assert_eq!(sampled.check(), Ok(()));
        prop_assert_eq!(&slow.finish(), &sampled);
        let subsamples = || sampled.subsamples.iter();
        let committed: u64 = subsamples().map(|of| of.instructions).sum();
        prop_assert_eq!(committed, sampled.instructions);
        for (process, inst, stack) in sampled.stacks.iter() {
            let mut sum = CycleStack::default();
            subsamples().for_each(|of| sum += of.stacks.get(process, inst));
            prop_assert_eq!(sum, stack);
        }
        prop_assert_eq!(sampled.subsamples.len(), sampled.scheduler.region.len().min(SUBSAMPLES));
        let top_down = sampled.top_down.as_ref().unwrap();
        for process in (0..sampled.processes.len() as u32).map(ProcessId) {
            let (mut sum, mut expected) = (Slots::default(), Slots::default());
            subsamples().filter_map(|of| of.slots.get(&process)).for_each(|slots| sum += *slots);
            top_down.of(process).for_each(|(_, slot, slots)| expected[slot] += slots);
            prop_assert_eq!(sum, expected);
        }
        let is_first = |at: usize| {
            let profiler = samplers[at].profiler;
            samplers[..at].iter().all(|before| before.profiler != profiler)
        };
        for (at, result) in sampled.samplers.iter().enumerate() {
            let mut sum = Profile::new(UNITS_PER_CYCLE);
            let parts = result.subsamples.iter().flat_map(|part| part.iter());
            parts.for_each(|(process, inst, units)| sum.add(process, inst, units));
            let expected = if is_first(at) { result.profile.total() } else { 0 };
            prop_assert_eq!(sum.total(), expected);
            for (process, inst, units) in sum.iter() {
                prop_assert_eq!(result.profile.weight(process, inst), units);
            }
        }
    }

    #[test]
    fn a_region_that_restarts_is_as_if_there_had_been_none_before(
        words in prop::collection::vec(any::<u32>(), 1..600),
        width in 1..=8usize,
        period in 1..200u64,
        first in any::<prop::sample::Index>(),
        restart in any::<prop::sample::Index>(),
    ) {
        // The synthetic stream's own marks (252) make place for ours.
        let words: Vec<u32> = words.iter().map(|word| word & !(4 << 24)).collect();
        let mut batches = synthetic::batches(&words, width);
        let marked = |batches: &mut [Batch], at: &prop::sample::Index, event: Event| {
            let number = at.index(batches.len());
            batches[number].events.insert(0, (0, event));
        };
        marked(&mut batches, &restart, Event::Region(true));
        let alone = batches.clone();
        batches.iter_mut().flat_map(|batch| &mut batch.events).for_each(|(_, event)| {
            if *event == Event::Region(true) {
                *event = Event::RegionAnew;
            }
        });
        let earlier = first.index(restart.index(batches.len()) + 1);
        batches[earlier].events.insert(0, (0, Event::Region(true)));

        let mut samplers = samplers(period, 1);
        for region in [Region::Marked, Region::Whole] {
            for sampler in &mut samplers {
                sampler.filter.marked = region == Region::Whole;
            }
            let of = |batches: &[Batch]| {
                let mut evaluator = Evaluator::new(&samplers, region).keep_samples();
                if region == Region::Marked {
                    evaluator = evaluator.in_detail(4).with_call_stacks().of_sampled_region();
                }
                batches.iter().for_each(|batch| evaluator.batch(batch).unwrap());
                evaluator.finish()
            };
            let (restarted, alone) = (of(&batches), of(&alone));
            prop_assert_eq!(&restarted.samplers, &alone.samplers);
            prop_assert_eq!(restarted, alone);
        }
        let mut timeline = Timeline::new(Evaluator::new(&[], Region::Marked), 50);
        batches.iter().for_each(|batch| timeline.batch(batch).unwrap());
        let cycles: u64 = timeline.finish().1.iter().flat_map(|w| &w.weights).map(|w| w.2).sum();
        let alone = evaluate(&alone, &[], Region::Marked);
        prop_assert_eq!(cycles, alone.oracle.total());
    }
}

#[test]
fn random_sampling_of_every_cycle_state_is_unbiased() {
    let mut state = 9u32;
    let words: Vec<u32> = (0..200_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state ^ state >> 13
        })
        .collect();
    let batches = synthetic::batches(&words, 4);
    let samplers = samplers(50, 3);
    let evaluation = evaluate(&batches, &samplers, Region::Whole);
    let component = |_, inst: InstId| inst.0 % 16;
    for result in &evaluation.samplers {
        let error = profile_error(&result.profile, &evaluation.oracle, component);
        let expected = sampling_error(&evaluation.oracle, result.samples, component);
        if result.sampler.profiler == Profiler::Tip {
            assert!(error < 3.0 * expected, "{:?}: {error} {expected}", result.sampler);
        }
    }
}

#[test]
fn units_in_which_nothing_commits_are_units() {
    let mut batch = synthetic::batches(&[0; 3], 1).remove(0);
    let marks = (0..200).map(|n| (0, Event::Region(n % 2 == 0)));
    batch.events = marks.chain([(3, Event::End)]).collect();
    let mut evaluator = Evaluator::new(&[], Region::Marked).of_sampled_region();
    evaluator.batch(&batch).unwrap();
    let evaluation = evaluator.finish();
    assert_eq!(evaluation.check(), Ok(()));
    assert_eq!(evaluation.subsamples.iter().map(|of| of.units).sum::<u64>(), 100);
    assert_eq!(evaluation.instructions, 0);
}

#[test]
fn kept_samples_add_up_to_the_profile() {
    let words: Vec<u32> = (0..5000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let samplers = samplers(100, 5);
    let mut evaluator = Evaluator::new(&samplers, Region::Whole).keep_samples();
    for batch in synthetic::batches(&words, 4) {
        evaluator.batch(&batch).unwrap();
    }
    for result in evaluator.finish().samplers {
        let mut sum = Profile::new(UNITS_PER_CYCLE);
        for sample in &result.log {
            sum.add(sample.process, sample.inst, sample.units);
        }
        assert_eq!(sum, result.profile, "{:?}", result.sampler);
        assert!(result.log.is_sorted_by_key(|sample| sample.cycle));
        assert!(result.log.len() as u64 >= result.samples);
    }
}

#[test]
fn time_goes_to_the_process_that_runs() {
    let switch = |pid: u32| {
        let bytes = [&pid.to_le_bytes()[..], &pid.to_le_bytes(), &[b'p'; 16]].concat();
        Event::SideBand { kind: 1, bytes }
    };
    let mut batch = synthetic::batches(&[0; 30], 1).remove(0);
    batch
        .static_info
        .iter_mut()
        .for_each(|static_info| static_info.space = if static_info.id.0 < 15 { 2 } else { 3 });
    batch.events = vec![(5, switch(7)), (15, switch(8)), (20, switch(7)), (30, Event::End)];
    let evaluation = evaluate(&[batch], &samplers(3, 1), Region::Whole);
    assert_eq!(evaluation.processes.len(), 3);
    let instructions = |process| {
        let of = evaluation.stacks.iter().filter(|(p, _, _)| *p == ProcessId(process));
        of.filter(|(_, _, stack)| stack[Component::Execution] > 0).count()
    };
    assert_eq!([0, 1, 2].map(instructions), [5, 20, 5]);
    assert_eq!(evaluation.spaces[&2], ProcessId(1));
    assert_eq!(evaluation.spaces[&3], ProcessId(1));
    check(&evaluation).unwrap();

    let text = serde_json::to_string(&evaluation).unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), evaluation);
}

#[test]
fn components_follow_the_records() {
    let record = |n: u32, delta: u32, residence: u64, redirect, class, tea| {
        CommitRecord::new(InstId(n), delta, residence, 0, redirect, true, class, tea)
    };
    let static_info = synthetic::batches(&[0; 6], 1).remove(0).static_info;
    let none = TeaEvents::default();
    let dram = CycleClass::LoadDram;
    let records = vec![
        record(0, 10, 4, Redirect::None, CycleClass::Alu, TeaEvents::DR_L1),
        record(1, 10, 30, Redirect::Mispredict, dram, none),
        record(2, 10, 2, Redirect::Flush, CycleClass::Serialize, none),
        record(3, 10, 2, Redirect::Flush, dram, TeaEvents::FL_MO),
        record(4, 10, 2, Redirect::Interrupt, CycleClass::Alu, none),
        record(5, 10, 2, Redirect::None, CycleClass::Store, TeaEvents::DR_TLB),
    ];
    let batch = Batch { hart: HartId(0), static_info, records, ..Batch::default() };
    let evaluation = evaluate(&[batch], &[], Region::Whole);
    let cycles = |inst, component| {
        evaluation.stacks.get(ProcessId(0), InstId(inst))[component] / UNITS_PER_CYCLE
    };
    assert_eq!(cycles(0, Component::FrontEndCache), 5);
    assert_eq!(cycles(0, Component::Alu), 4);
    assert_eq!(cycles(1, Component::LoadDram), 9);
    assert_eq!(cycles(1, Component::Mispredict), 7);
    assert_eq!(cycles(2, Component::Serialize), 2);
    assert_eq!(cycles(2, Component::Flush), 7);
    assert_eq!(cycles(3, Component::MemoryOrdering), 7);
    assert_eq!(cycles(4, Component::Execution), 0);
    assert_eq!(cycles(4, Component::Interrupt), 8);
    assert_eq!(cycles(5, Component::Store), 2);
    assert_eq!(evaluation.instructions, 5);
    assert_eq!(evaluation.traps, 1);
}

#[test]
fn the_default_set_shares_two_clocks() {
    let samplers = Sampler::defaults(3_200_000_000);
    assert_eq!(samplers.len(), 2 * Profiler::ALL.len());
    assert_eq!(samplers[0].name, "tip@4kHz");
    let evaluator = Evaluator::new(&samplers, Region::Whole);
    assert_eq!(evaluator.run.views.len(), 1);
    assert_eq!(evaluator.run.views[0].clocks(), 2);
    let names: Vec<_> = evaluator.finish().samplers.into_iter().map(|r| r.sampler).collect();
    assert_eq!(names, samplers);
}

#[test]
fn a_clock_drives_any_number_of_samplers() {
    let words: Vec<u32> = (0..3000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let batches = synthetic::batches(&words, 1);
    let profiles = |samplers: &[Sampler]| {
        let results = evaluate(&batches, samplers, Region::Whole).samplers;
        let profiles = results.into_iter();
        profiles.map(|result| (result.profile, result.samples)).collect::<Vec<_>>()
    };
    let one = Profiler::ALL.map(|profiler| Sampler::new(profiler, Schedule::every(7)));
    let many: Vec<_> = one.iter().cycle().take(150).cloned().collect();
    let expected = profiles(&one);
    for (found, expected) in profiles(&many).iter().zip(expected.iter().cycle()) {
        assert_eq!(found, expected);
        assert!(found.1 > 0);
    }
}

/// A stream in which processes, privileges and trigger instructions come and go, and no two instructions
/// of different privileges commit in one cycle.
fn mixed(words: &[u32]) -> Vec<Batch> {
    let mut words = words.to_vec();
    for (n, word) in words.iter_mut().enumerate() {
        let event = match n % 40 {
            7 => 253,
            23 => 252,
            _ => continue,
        };
        *word = *word & 0x00ff_ffff | event << 24;
    }
    let mut batches = synthetic::batches(&words, 1);
    for static_info in batches.iter_mut().flat_map(|batch| &mut batch.static_info) {
        static_info.privilege = [0, 0, 1, 3][static_info.id.0 as usize / 8 % 4];
    }
    batches
}

#[test]
fn the_cycles_of_threads_are_those_that_were_profiled() {
    let words: Vec<u32> = (0..4000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    for region in [Region::Whole, Region::Marked] {
        let evaluation = evaluate(&mixed(&words), &[], region);
        let of = |process| {
            let threads = evaluation.threads.iter();
            let own = threads.filter(move |thread| thread.process == process);
            own.map(|thread| thread.cycles).sum::<u64>() * UNITS_PER_CYCLE
        };
        for process in &evaluation.processes {
            assert_eq!(of(process.id), evaluation.oracle.process_total(process.id));
        }
        assert!(evaluation.threads.len() > 3);
    }
}

/// A stream in which a shell starts `count` programs, one after the other. All execute a few dozen instructions.
fn processes(count: u32) -> Vec<Batch> {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let event = |kind, bytes| Event::SideBand { kind, bytes };
    let task = |pid: u32, name: &[u8; 4]| [words(&[pid, pid]), name.to_vec(), vec![0; 12]].concat();
    let mut events = vec![event(1, task(1, b"sh\0\0"))];
    for pid in 2..2 + count {
        events.push(event(5, words(&[pid, pid, 1, 1])));
        events.push(event(1, task(pid, b"sh\0\0")));
        events.push(event(2, task(pid, b"true")));
        events.push(event(4, words(&[pid, pid])));
        events.push(event(1, task(1, b"sh\0\0")));
    }
    // Each twentieth is a jump to one of the first instructions, with the fields of the others zero.
    let word = |n: u32| match n % 20 {
        0 => (n / 20 % 7) << 4 | 15,
        _ => n.wrapping_mul(2_654_435_761) & 0xff_fff0,
    };
    let stream: Vec<u32> = (0..4 * events.len() as u32).map(word).collect();
    let mut events = events.into_iter();
    let mut batches = synthetic::batches(&stream, 1);
    for batch in &mut batches {
        let places = (0..batch.records.len() as u32).step_by(4);
        let told = places.zip(&mut events);
        batch.events.extend(told);
        batch.events.sort_by_key(|(at, _)| *at);
    }
    batches
}

#[test]
fn an_evaluation_does_not_grow_with_each_process() {
    let evaluated = |count| {
        let samplers = samplers(7, 1);
        let mut evaluator =
            Evaluator::new(&samplers, Region::Whole).in_detail(4).with_call_stacks();
        for batch in processes(count) {
            evaluator.batch(&batch).unwrap();
        }
        let evaluation = evaluator.finish();
        check(&evaluation).unwrap();
        evaluation
    };
    let sizes = |evaluation: &Evaluation| {
        let contexts = evaluation.contexts.as_ref().unwrap();
        let outermost = contexts.iter().filter(|context| context.caller.is_none());
        (
            evaluation.processes.len(),
            evaluation.threads.len(),
            outermost.count(),
            evaluation.oracle.processes(),
        )
    };
    let many = evaluated(2000);
    // Boot and the shell, four processes of each command, and for each command one for all its other processes.
    assert_eq!(sizes(&many), (12, 12, 12, 12));
    assert_eq!(sizes(&evaluated(100)), sizes(&many));
    let others = many.processes.iter().filter_map(|process| process.stands_for);
    assert_eq!(others.collect::<Vec<_>>(), [1996, 1996]);
}
