use super::*;

/// Lets a sampler go through stretches of some instructions, each of which takes as many cycles as `cpi` says at its place.
fn sampled(plan: &SamplingPlan, stretches: &[u64], cpi: impl Fn(u64) -> u64) -> Sampler {
    let mut sampler = Sampler::new(plan, &ChosenUnits::default(), None);
    let (mut retired, mut cycles, mut place) = (500, 0, 0);
    let now = |retired: u64, cycles: u64| Progress { retired, cycles, ..Progress::default() };
    for stretch in stretches {
        sampler.open(now(retired, cycles));
        let end = retired + stretch;
        while retired < end {
            let step = sampler.left(retired).min(end - retired);
            assert!(step > 0);
            if matches!(sampler.phase(), Phase::WarmUp | Phase::Unit) {
                cycles += (place..place + step).map(&cpi).sum::<u64>();
            }
            (retired, place) = (retired + step, place + step);
            if sampler.left(retired) == 0 {
                sampler.advance(now(retired, cycles));
            }
        }
        sampler.close(now(retired, cycles));
        // What is between stretches does not count.
        (retired, cycles) = (retired + 77, cycles + 1000);
    }
    sampler
}

/// Returns units that were chosen in a region of so many instructions.
fn chosen_of(units: &[PlannedUnit], surveyed: u64) -> ChosenUnits {
    ChosenUnits { units: units.to_vec(), surveyed: Some(surveyed), phases: None }
}

#[test]
fn units_lie_one_in_each_interval() {
    for scheme in [Scheme::Systematic, Scheme::Random] {
        let plan = SamplingPlan {
            scheme,
            unit: 1000,
            warm_up: 2000,
            predictors: 3000,
            every: 10_000,
            seed: 7,
            ..SamplingPlan::default()
        };
        // In one stretch, and in many that are shorter than a unit.
        for stretches in [vec![100_000], vec![500; 200], vec![100_000, 0]] {
            let total: u64 = stretches.iter().sum();
            let mut sampler = sampled(&plan, &stretches, |_| 2);
            assert_eq!(sampler.partial.retired % 1000, 0, "the last one is whole");
            sampler.end_unit();
            assert_eq!(sampler.units.len() as u64, total / 10_000);
            for (interval, unit) in (0..).zip(&sampler.units) {
                assert_eq!((unit.instructions, unit.cycles), (1000, 2000));
                let room = interval * 10_000..=interval * 10_000 + 9000;
                assert!(room.contains(&unit.planned.at), "{scheme:?} {unit:?}");
            }
            let places: std::collections::BTreeSet<u64> =
                sampler.units.iter().map(|unit| unit.planned.at % 10_000).collect();
            assert_eq!(places.len() == 1, scheme == Scheme::Systematic);
            let summary = sampler.finish().0;
            assert_eq!(summary.instructions, total);
            assert!((total / 10..=total * 3 / 10).contains(&summary.timed_instructions));
            let cycles = summary.cycles.unwrap();
            let expected = 2.0 * total as f64;
            assert_eq!((cycles.value, cycles.within_95.half_width), (expected, 0.0));
        }
    }
}

/// Returns the phases of some instructions, and how long each is.
fn phases(plan: &SamplingPlan, instructions: u64) -> Vec<(Phase, u64)> {
    let mut sampler = Sampler::new(plan, &ChosenUnits::default(), None);
    let now = |retired: u64| Progress { retired, ..Progress::default() };
    sampler.open(now(0));
    let (mut retired, mut phases) = (0, Vec::new());
    while retired < instructions {
        let left = sampler.left(retired);
        phases.push((sampler.phase(), left));
        retired += left;
        sampler.advance(now(retired));
    }
    phases
}

#[test]
fn plans_that_say_little_or_time_most_of_it_are_told() {
    let plan = |every| SamplingPlan { unit: 1000, warm_up: 2000, every, ..SamplingPlan::default() };
    let words =
        |every, instructions| sampled(&plan(every), &[instructions], |_| 1).finish().0.in_words;
    assert!(words(10_000, 100_000).contains("so few units say little"));
    assert!(!words(10_000, 1_000_000).contains("so few units"));
    assert!(words(2500, 1_000_000).contains("100 % of all was timed"));
    assert!(!words(10_000, 1_000_000).contains("was timed"));
}

#[test]
fn predictors_learn_before_each_warm_up() {
    let plan = SamplingPlan {
        unit: 1000,
        warm_up: 2000,
        predictors: 3000,
        every: 10_000,
        ..SamplingPlan::default()
    };
    let phases = phases(&plan, 30_000);
    let of = |phase| phases.iter().filter(move |found| found.0 == phase).map(|found| found.1);
    assert!(of(Phase::Learning).skip(1).all(|left| left == 3000), "{phases:?}");
    assert!(of(Phase::Warming).skip(1).all(|left| left == 4000), "{phases:?}");
    assert!(of(Phase::Learning).count() >= 3, "{phases:?}");
    let order: Vec<_> =
        phases.iter().map(|found| found.0).skip_while(|&p| p != Phase::Unit).collect();
    let unit = [Phase::Unit, Phase::Warming, Phase::Learning, Phase::WarmUp];
    assert!(order.chunks_exact(4).all(|phases| phases == unit), "{order:?}");
}

#[test]
fn caches_are_kept_warm_before_each_warm_up_alone_if_the_plan_says_so() {
    let plan = SamplingPlan {
        unit: 1000,
        warm_up: 500,
        predictors: 1500,
        caches: Some(4000),
        every: 10_000,
        ..SamplingPlan::default()
    };
    let phases = phases(&plan, 30_000);
    let from_a_unit = phases.iter().skip_while(|(phase, _)| *phase != Phase::Unit).take(5);
    let expected = [
        (Phase::Unit, 1000),
        (Phase::FastForward, 4500),
        (Phase::Warming, 2500),
        (Phase::Learning, 1500),
        (Phase::WarmUp, 500),
    ];
    assert!(from_a_unit.eq(&expected), "{phases:?}");
}

#[test]
fn some_units_are_timed_twice() {
    let plan = |caches, every| SamplingPlan {
        unit: 1000,
        warm_up: 500,
        predictors: 1500,
        caches,
        every,
        check: 2,
        ..SamplingPlan::default()
    };
    // The second unit is due, and then each second one.
    let found = phases(&plan(None, 3_000_000), 12_000_000);
    let units = found.split(|(phase, _)| *phase == Phase::Unit);
    let twice = [(Phase::Reference, 1_000_000), (Phase::WarmUp, 500)];
    for (number, before) in units.enumerate().take(4) {
        assert_eq!(before.ends_with(&twice), number % 2 == 1, "{found:?}");
    }
    let found = phases(&plan(Some(2_000_000), 20_000_000), 40_000_000);
    let expected = [
        (Phase::Unit, 1000),
        (Phase::FastForward, 20_000_000 - 1500 - 8_000_000),
        (Phase::Reference, 8_000_000),
        (Phase::WarmUp, 500),
        (Phase::Unit, 1000),
    ];
    assert!(found.windows(5).any(|phases| phases == expected), "{found:?}");
    // There is no room, or too much to log.
    for plan in [plan(None, 1_001_000), plan(Some(5_000_000), 50_000_000)] {
        let found = phases(&plan, 200_000_000);
        assert!(found.iter().all(|(phase, _)| *phase != Phase::Reference), "{found:?}");
    }
}

#[test]
fn a_region_that_ends_in_a_unit_cuts_it() {
    let plan = SamplingPlan { unit: 5000, warm_up: 0, every: 5000, ..SamplingPlan::default() };
    let (summary, units) = sampled(&plan, &[12_000], |_| 1).finish();
    assert_eq!(units.instructions, [5000, 5000, 2000]);
    assert_eq!((units.at, summary.unit_instructions), (vec![0, 5000, 10_000], 12_000));
    assert_eq!(summary.cycles.unwrap().value, 12_000.0);
}

#[test]
fn time_goes_on_as_in_recent_units() {
    let plan = SamplingPlan { unit: 1000, warm_up: 0, every: 1000, ..SamplingPlan::default() };
    assert_eq!(Sampler::new(&plan, &ChosenUnits::default(), None).rate(), 1 << 16);
    let changes = |at| if at < 20_000 { 100 } else { 3 };
    assert_eq!(sampled(&plan, &[30_000], changes).rate(), 3 << 16);
}

#[test]
fn a_region_begins_anew_with_other_units() {
    let plan = SamplingPlan { unit: 1000, warm_up: 0, every: 2000, ..SamplingPlan::default() };
    let mut sampler = sampled(&plan, &[9000], |_| 1);
    sampler.restart();
    assert!(sampler.take_anew() && !sampler.take_anew());
    assert_eq!(sampler.finish().0.instructions, 0);
}

#[test]
fn absurd_plans_have_no_unit() {
    let most = u64::MAX / 2;
    let plan = SamplingPlan { unit: most, warm_up: most, every: most, ..SamplingPlan::default() };
    let (summary, units) = sampled(&plan, &[1000, 1000], |_| 1).finish();
    assert_eq!((units.instructions, summary.unit_instructions), (vec![2000], 2000));
    let plan = SamplingPlan { every: u64::MAX, seed: 3, ..SamplingPlan::default() };
    assert_eq!(sampled(&plan, &[1000], |_| 1).finish().0.units, 0);
}

#[test]
fn units_lie_where_a_survey_chose() {
    let plan =
        SamplingPlan { unit: 1000, warm_up: 500, predictors: 700, ..SamplingPlan::default() };
    let run = |sampler: &mut Sampler| {
        let now = |retired: u64| Progress { retired, cycles: retired, ..Progress::default() };
        sampler.open(now(0));
        let mut retired = 0;
        while retired < 100_000 {
            let step = sampler.left(retired).min(100_000 - retired);
            retired += step;
            if sampler.left(retired) == 0 {
                sampler.advance(now(retired));
            }
        }
        // Once there is no further unit, nothing is kept warm.
        let has_more = sampler.unit.at != u64::MAX;
        assert_eq!(sampler.phase() == Phase::FastForward, !has_more);
        sampler.close(now(retired));
    };
    let places = [0, 7000, 8000, 60_000];
    let chosen = places.map(|at| PlannedUnit { weight: 1 + at as u32, ..PlannedUnit::at(at) });
    let mut sampler = Sampler::new(&plan, &chosen_of(&chosen, 100_900), None);
    run(&mut sampler);
    // What the region did before it began anew is forgotten, and the places are those of the region that begins then.
    sampler = Sampler::new(&plan, &chosen_of(&chosen, 100_900), None);
    sampler.restart();
    run(&mut sampler);
    let (sampled, units) = sampler.finish();
    assert_eq!((units.at, sampled.units, sampled.instructions), (places.to_vec(), 4, 100_000));
    assert!(units.instructions.iter().all(|instructions| *instructions == 1000));
    assert_eq!(units.weights, [1, 7001, 8001, 60_001]);
    for words in ["beyond", "elsewhere"] {
        assert!(!sampled.in_words.contains(words), "{}", sampled.in_words);
    }
    let far =
        [0, 7000, 200_000, 300_000].map(|at| PlannedUnit { weight: 2, ..PlannedUnit::at(at) });
    sampler = Sampler::new(&plan, &chosen_of(&far, 90_000), None);
    run(&mut sampler);
    let words = sampler.finish().0.in_words;
    assert!(
        words
            .contains("2 of the 4 units that were chosen lie beyond the region's end, with 50.0 %"),
        "{words}"
    );
}

#[test]
fn intervals_become_shorter_until_the_error_is_met() {
    // Units take 1 or 3 cycles for each instruction in turn.
    let plan = |error: &str| SamplingPlan {
        unit: 1000,
        warm_up: 0,
        every: 10_000,
        error: Some(error.parse().unwrap()),
        ..SamplingPlan::default()
    };
    let cpi = |at: u64| if (at / 10_000).is_multiple_of(2) { 1 } else { 3 };
    let first = plan("2 %");
    let told = sampled(&first, &[1_000_000], cpi).summary();
    let found = told.cycles.unwrap().margin().within_95 / told.cycles.unwrap().value;
    assert!(told.in_words.contains("; ± 2 % was wanted"), "{}", told.in_words);
    let every = first.narrower(&told).unwrap();
    let expected = 10_000.0 * (0.02 / found).powi(2) * 0.9;
    assert!(every == 1000.max(expected as u64), "{every} {expected}");
    assert_eq!(plan("50%").narrower(&told), None);
    // All is timed: there is nothing shorter.
    let all = SamplingPlan { every: 1000, ..plan("0.01 %") };
    assert_eq!(all.narrower(&told), None);
}

#[test]
fn misses_of_all_of_the_region_bring_the_estimate_near() {
    // Some thousands of instructions miss the L1 data cache each time, which takes eight cycles.
    let misses = |place: u64| u64::from(place / 1000 * 7919 % 101 < 15);
    let cpi = |place: u64| 1 + 8 * misses(place);
    let total = 1_000_000;
    let missed_in = |from: u64, to: u64| {
        let mut missed = MissCounts::default();
        missed.0[1] = (from..to).map(misses).sum();
        missed
    };
    let plan = SamplingPlan {
        unit: 1000,
        warm_up: 700,
        predictors: 0,
        every: 10_000,
        seed: 5,
        ..SamplingPlan::default()
    };
    for stretch in [total, 800] {
        let mut sampler = Sampler::new(&plan, &ChosenUnits::default(), Some([12; 5]));
        let mut now = Progress::default();
        let mut place = 0;
        // Where the timed stretch began that is open, and its unit.
        let (mut stretch_from, mut unit_from) = (0, None);
        while place < total {
            sampler.open(now);
            let end = (place + stretch).min(total);
            while place < end {
                let before = sampler.phase();
                let step = sampler.left(now.retired).min(end - place);
                let is_timed = matches!(before, Phase::WarmUp | Phase::Unit);
                if before == Phase::Unit {
                    unit_from = unit_from.or(Some(place));
                }
                if is_timed {
                    now.cycles += (place..place + step).map(cpi).sum::<u64>();
                } else {
                    now.misses = now.misses.plus(missed_in(place, place + step));
                    stretch_from = place + step;
                }
                (now.retired, place) = (now.retired + step, place + step);
                let is_cut = place == end;
                match is_cut {
                    true => sampler.close(now),
                    false => sampler.advance(now),
                }
                if before == Phase::Unit || is_timed && is_cut {
                    let unit = unit_from
                        .take()
                        .map_or(MissCounts::default(), |unit_from| missed_in(unit_from, place));
                    let stretch = missed_in(std::mem::replace(&mut stretch_from, place), place);
                    sampler.missed(Some(FunctionalWarmingMisses { stretch, unit }));
                }
                stretch_from = if is_cut { place } else { stretch_from };
            }
        }
        let truth = (0..total).map(cpi).sum::<u64>() as f64;
        let sampled = sampler.summary();
        let known = sampler.misses.as_ref().unwrap();
        assert_eq!(known.misses, missed_in(0, total));
        for unit in &sampler.units {
            assert_eq!(unit.misses, missed_in(unit.planned.at, unit.planned.at + 1000));
        }
        let plain = sampler.units.iter().map(|unit| (unit.cycles as f64, unit.instructions as f64));
        let plain = profile::Estimate::of_ratio(plain, 0.9).unwrap();
        let cycles = sampled.cycles.unwrap();
        let off = (cycles.value / truth - 1.0).abs();
        assert!(off < 0.002, "{off}");
        assert!(cycles.margin().within_95 < 0.1 * plain.margin().within_95 * total as f64);
        // Units keep their misses in the file, from which another core's estimate is made.
        let (sampled, units) = sampler.finish();
        assert_eq!(units.misses[1].kind, "l1d");
        assert_eq!(units.region_misses().unwrap().misses, missed_in(0, total));
        assert_eq!(units.unit_misses(3).0[1], units.misses[1].units[3]);
        assert_eq!(sampled.cycles, Some(cycles));
    }
    // Where a fork found nothing, units alone say what there is.
    let mut sampler = Sampler::new(&plan, &ChosenUnits::default(), Some([12; 5]));
    assert!(sampler.asks_for_misses());
    sampler.missed(None);
    assert!(!sampler.asks_for_misses() && sampler.misses.is_none());
    // Windows in which caches are warm say nothing of the rest.
    let windows = SamplingPlan { caches: Some(5000), ..plan };
    let sampler = Sampler::new(&windows, &ChosenUnits::default(), Some([12; 5]));
    assert!(!sampler.asks_for_misses());
}
