//! Sampled simulation whose units are decided while the program runs.

use serde_json::Value;

use super::{run, run_recorded};
use crate::common::{json, scratch, succeed, tipsim};

#[test]
fn units_that_are_decided_while_the_program_runs_weigh_what_they_stand_for() {
    let whole = run(&scratch("sampled-live-all"), "");
    let cycles = whole["regions"]["cycles"].as_f64().unwrap();
    let plan = "[run.sampling]\nscheme = \"live\"\nunit = 5000\nwarm_up = 10000\nevery = 100000\n";
    let dir = scratch("sampled-live");
    let part = run_recorded(&dir, "", true, &format!("{plan}store = true\n"));
    let found = &part["sampling"];
    let estimate = found["cycles"]["value"].as_f64().unwrap();
    let within = found["cycles"]["within_99_7"]["half_width"].as_f64().unwrap();
    assert!((estimate - cycles).abs() < within + 0.01 * cycles, "{estimate} ± {within}, {cycles}");
    assert!(within < 0.15 * cycles, "{within} of {cycles}");
    let all = found["instructions"].as_u64().unwrap();
    let units = found["units"].as_u64().unwrap();
    assert!((units as f64 * 100_000.0 / all as f64 - 1.0).abs() < 0.25, "{units} of {all}");

    let file = json(&dir.join("out/units.json"));
    let numbers = |key: &str| -> Vec<u64> { serde_json::from_value(file[key].clone()).unwrap() };
    let (at, weights, strata) = (numbers("at"), numbers("weights"), numbers("strata"));
    let known = numbers("strata_instructions");
    assert!(at.is_sorted_by(|a, b| a < b) && at.iter().all(|at| at % 5000 == 0), "{at:?}");
    assert!(weights.iter().all(|weight| weight.is_power_of_two() && *weight <= 16), "{weights:?}");
    assert!(weights.contains(&1) && weights.iter().any(|weight| *weight > 4));
    assert_eq!(known.iter().sum::<u64>(), all);
    assert!(known.len() > 1 && strata.iter().all(|stratum| known[*stratum as usize] > 0));
    // Weights alone say about as much: an interval is as long as two units.
    let stood_for = weights.iter().sum::<u64>() as f64 * 10_000.0;
    assert!((stood_for / all as f64 - 1.0).abs() < 0.1, "{stood_for} {all}");

    // The report counts each unit as often as it weighs, and so does whoever reads the trace.
    let report = json(&dir.join("out/report.json"));
    let committed = report["totals"]["instructions"].as_f64().unwrap();
    let weighed: u64 =
        weights.iter().zip(numbers("instructions")).map(|(weight, of)| weight * of).sum();
    assert!((committed / weighed as f64 - 1.0).abs() < 1e-3, "{committed} {weighed}");
    let mut evaluate = tipsim();
    evaluate.args(["trace", "evaluate", "--format", "json"]).arg(dir.join("out/trace.tip"));
    let replayed: Value = serde_json::from_str(&succeed(&mut evaluate)).unwrap();
    assert_eq!(replayed["instructions"], report["totals"]["instructions"]);

    // On the core of the run, stored units say what the run did.
    let mut retime = tipsim();
    succeed(retime.arg("retime").arg(dir.join("out")).arg("--out").arg(dir.join("same")));
    assert_eq!(json(&dir.join("same/units.json")), file);
    let retimed = json(&dir.join("same/run.json"));
    for key in ["fingerprint", "sampling"] {
        assert_eq!(retimed[key], part[key], "{key}");
    }

    for of_run in ["translator = \"off\"", "threads = \"one\"", "checkpoint = false"] {
        let other = scratch("sampled-live-other");
        let again = run_recorded(&other, of_run, false, plan);
        assert_eq!(json(&other.join("out/units.json")), file, "{of_run}");
        assert_eq!(again["fingerprint"], part["fingerprint"], "{of_run}");
    }
    let other = scratch("sampled-live-seed");
    run(&other, &format!("{plan}seed = 1\n"));
    assert_ne!(json(&other.join("out/units.json"))["at"], file["at"]);
}
