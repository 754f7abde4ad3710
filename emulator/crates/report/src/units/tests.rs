use super::*;

/// Units of 100 instructions, one in 1000, that take 1 cycle for each, but for some in a row that take 1 or 5 in turn.
fn inputs() -> UnitInputs {
    let cycles = (0..100).map(|unit| match (40..50).contains(&unit) {
        true if unit % 2 == 0 => 500,
        _ => 100,
    });
    UnitInputs {
        instructions: 100_000,
        at: (0..100).map(|unit| 1000 * unit + 10).collect(),
        unit_instructions: vec![100; 100],
        cycles: cycles.collect(),
        tell_chance: true,
        ..UnitInputs::default()
    }
}

#[test]
fn the_least_certain_part_is_found() {
    let report = UnitReport::new(&inputs()).unwrap();
    assert_eq!((report.units, report.stretches.len()), (100, 50));
    assert!((report.cpi - 1.2).abs() < 1e-12);
    let sum: f64 = report.stretches.iter().filter_map(|of| of.sums.variance).sum();
    assert!((sum - 1.0).abs() < 1e-12);
    // Each of the five units is off by 380 cycles, and all others by 20.
    let expected = (380f64.powi(2) + 20f64.powi(2)) / (5.0 * 380f64.powi(2) + 95.0 * 20f64.powi(2));
    assert!((report.stretches[20].sums.variance.unwrap() - expected).abs() < 1e-12);
    assert_eq!(report.stretches[20].at, 40_000);
    assert_eq!(report.stretches[20].sums.most, Some(5.0));
    let words = report.weakest_in_words().unwrap();
    let expected = "The estimate is the least certain from 0.0 M to 0.1 M instructions: 6.0 % of the region, 57 % of the variance, 1.00 to 5.00";
    assert!(words.starts_with(expected), "{words}");
}

#[test]
fn chosen_units_stand_for_phases() {
    let phases = (0..100).map(|unit| if (40..50).contains(&unit) { 7 } else { 2 });
    let weights = (0..100).map(|unit| if (40..50).contains(&unit) { 1 } else { 3 });
    let inputs = UnitInputs { phases: phases.collect(), weights: weights.collect(), ..inputs() };
    let report = UnitReport::new(&inputs).unwrap();
    let [large, small] = report.phases[..] else { panic!("{:?}", report.phases) };
    assert_eq!((large.number, large.sums.units, large.at), (2, 90, 10));
    assert!((large.share - 270.0 / 280.0).abs() < 1e-12);
    // All units of the stratum take as long.
    assert!(large.sums.variance.unwrap() < 1e-12 && large.sums.cpi == Some(1.0));
    assert!((small.sums.variance.unwrap() - 1.0).abs() < 1e-12);
    assert_eq!((small.number, small.sums.cpi), (7, Some(3.0)));
    let over = (0..1000).map(|at| if (400..500).contains(&at) { 7 } else { 2 }).collect();
    let inputs = UnitInputs { phases_over_region: over, ..inputs };
    let report = UnitReport::new(&inputs).unwrap();
    let runs: Vec<_> = report.over_region.iter().map(|run| (run.phase, run.intervals)).collect();
    assert_eq!(runs, [(2, 400), (7, 100), (2, 500)]);
    assert_eq!(phases_of_parts(&report.over_region, 10), [2, 2, 2, 2, 7, 2, 2, 2, 2, 2]);
    assert_eq!([0, 7, 10, 61, 62].map(phase_character), ['0', '7', 'a', 'Z', '+']);
    assert_eq!(chart::chart(&report).into_string().matches("<title>phase 2</title>").count(), 2);
    let chosen = UnitReport::new(&UnitInputs { tell_chance: false, ..inputs }).unwrap();
    assert!(chosen.phases.iter().all(|phase| phase.sums.variance.is_none()));
    assert_eq!(chosen.weakest(), None);
}

#[test]
fn any_units_have_a_report_or_none() {
    assert!(UnitReport::new(&UnitInputs::default()).is_none());
    let empty = UnitInputs {
        at: vec![5],
        unit_instructions: vec![0],
        cycles: vec![9],
        ..UnitInputs::default()
    };
    assert!(UnitReport::new(&empty).is_none());
    let far = UnitInputs {
        at: vec![u64::MAX - 1, 3],
        unit_instructions: vec![u64::MAX, 1],
        cycles: vec![0, u64::MAX],
        tell_chance: true,
        ..UnitInputs::default()
    };
    let report = UnitReport::new(&far).unwrap();
    assert_eq!(report.stretches.iter().map(|of| of.sums.units).sum::<usize>(), 2);
    let picture = chart::chart(&report).into_string();
    assert!(picture.contains("<circle") && !picture.contains("NaN") && !picture.contains("inf"));
}
