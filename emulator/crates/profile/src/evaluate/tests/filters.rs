//! Samplers of a part: of a process, a thread, a privilege, or what is marked.

use super::*;

fn filters() -> Vec<Filter> {
    let mut filters = Vec::new();
    for process in [None, Some("boot"), Some("bbbbbbbbbbbbbbbb"), Some("nobody")] {
        for privilege in [None, Some(Privilege::User), Some(Privilege::Kernel)] {
            let own = Some("cccccccccccccccc");
            for (thread, marked) in [(None, false), (None, true), (own, false), (own, true)] {
                filters.push(Filter {
                    process: process.map(str::to_owned),
                    thread: thread.map(str::to_owned),
                    privilege,
                    marked,
                });
            }
        }
    }
    filters
}

proptest! {
    #[test]
    fn filtered_samplers_account_for_their_part_of_the_oracle(
        words in prop::collection::vec(any::<u32>(), 0..600),
        period in 1..100u64,
    ) {
        let batches = mixed(&words);
        let filtered = |filter: &Filter| {
            let samplers = samplers(period, 1).into_iter();
            samplers.map(|s| s.filtered(filter.clone())).collect::<Vec<_>>()
        };
        let all: Vec<Sampler> = filters().iter().flat_map(filtered).collect();
        for region in [Region::Whole, Region::Marked] {
            let evaluation = evaluate(&batches, &all, region);
            for result in &evaluation.samplers {
                let oracle = evaluation.oracle_of(result);
                let tail = result.tail_cycles * UNITS_PER_CYCLE;
                prop_assert_eq!(result.profile.total() + tail, oracle.total(), "{:?}", result.sampler);
                if result.sampler.profiler == Profiler::Tip && result.sampler.schedule.period == 1 {
                    prop_assert_eq!(&result.profile, oracle.as_ref(), "{:?}", result.sampler);
                }
            }
        }
    }

    #[test]
    fn a_sampler_finds_the_same_alone_as_among_others(
        words in prop::collection::vec(any::<u32>(), 0..400),
        period in 1..100u64,
        seed in any::<u64>(),
    ) {
        let batches = mixed(&words);
        let all: Vec<Sampler> = filters()
            .iter()
            .step_by(5)
            .flat_map(|filter| samplers(period, seed).into_iter().map(|s| s.filtered(filter.clone())))
            .collect();
        let together = evaluate(&batches, &all, Region::Whole);
        for (sampler, expected) in all.iter().zip(&together.samplers) {
            let alone = evaluate(&batches, std::slice::from_ref(sampler), Region::Whole);
            prop_assert_eq!(&alone.samplers[0], expected);
        }
    }
}

#[test]
fn a_filter_is_by_the_name_that_a_process_first_runs_under() {
    let words: Vec<u32> = (0..4000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let filter = Filter { process: Some("bbbbbbbbbbbbbbbb".into()), ..Filter::NONE };
    let sampler = Sampler::new(Profiler::Tip, Schedule::every(3)).filtered(filter);
    let evaluation = evaluate(&mixed(&words), &[sampler], Region::Whole);
    let result = &evaluation.samplers[0];
    let named = |p: &&crate::Process| p.name == "bbbbbbbbbbbbbbbb";
    let found: Vec<_> = evaluation.processes.iter().filter(named).map(|p| p.id).collect();
    assert_eq!(result.processes.as_ref(), Some(&found));
    assert!(result.samples > 10 && !found.is_empty());
    assert!(result.profile.iter().all(|(process, ..)| found.contains(&process)));
    let text = serde_json::to_string(&evaluation).unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), evaluation);
}

proptest! {
    #[test]
    fn what_does_not_run_may_be_packed(words in prop::collection::vec(any::<u32>(), 1..800), while_ in 1u64..300) {
        let mut samplers = samplers(7, 1);
        samplers.push(Sampler { filter: Filter { marked: true, ..Filter::NONE }, ..samplers[0].clone() });
        let evaluate = |mut evaluator: Evaluator| {
            mixed(&words).iter().for_each(|batch| evaluator.batch(batch).unwrap());
            evaluator.finish()
        };
        let evaluator = || Evaluator::new(&samplers, Region::Whole).in_detail(4);
        prop_assert_eq!(evaluate(evaluator().cooling_after(while_)), evaluate(evaluator()));
    }

    #[test]
    fn blocks_parts_and_single_spans_agree(
        words in prop::collection::vec(any::<u32>(), 0..900),
        calm in any::<bool>(),
        width in 1..=8usize,
        period in 1..300u64,
        seed in any::<u64>(),
        filter in 0..24usize,
        part in 1..200usize,
    ) {
        let mut words = words;
        if calm {
            // Few redirects and events: long blocks.
            for word in words.iter_mut().filter(|word| **word % 97 != 0) {
                *word &= 0x7ffc_0fff;
            }
        }
        let mut batches = synthetic::batches(&words, width);
        for static_info in batches.iter_mut().flat_map(|batch| &mut batch.static_info) {
            static_info.privilege = [0, 1, 3][static_info.id.0 as usize / 64 % 3];
        }
        let filter = filters().swap_remove(filter);
        let few = Profiler::ALL.map(|profiler| Sampler::new(profiler, Schedule::every(10 * period)));
        let filtered = samplers(period, seed).into_iter().map(|s| s.filtered(filter.clone()));
        let all: Vec<Sampler> = few.iter().cloned().chain(filtered).collect();
        for region in [Region::Whole, Region::Marked] {
            for samplers in [&few[..], &all[..]] {
                for detail in [false, true] {
                    let evaluator = || {
                        let evaluator = Evaluator::new(samplers, region).keep_samples();
                        if detail { evaluator.in_detail(width as u32) } else { evaluator }
                    };
                    let (mut blocks, mut spans) = (evaluator(), evaluator().span_by_span());
                    let mut parts = evaluator();
                    for batch in &batches {
                        blocks.batch(batch).unwrap();
                        spans.batch(batch).unwrap();
                        let mut progress = parts.begin(batch).unwrap();
                        while !parts.go_on(batch, &mut progress, part).unwrap() {}
                    }
                    let spans = spans.finish();
                    prop_assert_eq!(&blocks.finish(), &spans);
                    prop_assert_eq!(&parts.finish(), &spans);
                }
            }
        }
    }

    #[test]
    fn blocks_and_single_spans_find_the_same_wrong(
        records in prop::collection::vec(any_record(), 0..140),
        small in any::<bool>(),
        events in prop::collection::vec((0..140u32, any_event()), 0..3),
    ) {
        let mut records = records;
        if small {
            // No traps: what a block may hold.
            for record in &mut records {
                let (lead, flags) = record.packed();
                let delta = record.commit_delta.min(2);
                *record = CommitRecord::from_packed(record.inst, delta, lead, flags & !7);
            }
        }
        let mut events = events;
        events.sort_by_key(|(index, _)| *index);
        let static_info = synthetic::batches(&[0; 40], 1).remove(0).static_info;
        let batch = Batch { static_info, records, events, ..Batch::default() };
        // Deltas may be large: a trigger each few cycles would take its time.
        let schedule = Schedule::every(if small { 7 } else { 1 << 30 });
        let all = Profiler::ALL.map(|profiler| Sampler::new(profiler, schedule));
        let [blocks, spans] = [false, true].map(|single| {
            let evaluator = Evaluator::new(&all, Region::Whole).in_detail(4);
            let mut evaluator = if single { evaluator.span_by_span() } else { evaluator };
            let taken = evaluator.batch(&batch);
            (taken, evaluator.finish())
        });
        prop_assert_eq!(blocks, spans);
    }
}
