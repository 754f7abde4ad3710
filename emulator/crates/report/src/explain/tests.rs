use std::path::Path;

use commit_trace::synthetic;
use profile::{Evaluator, Profiler, Region, Sampler, Schedule};

use super::*;
use crate::tests::report_of;

/// A report with every part, of a synthetic stream.
fn report() -> Value {
    let words: Vec<u32> = (0..60_000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let of = |profiler, period| Sampler::new(profiler, Schedule::every(period));
    let mut samplers = [Profiler::Tip, Profiler::Nci, Profiler::Lci].map(|p| of(p, 97)).to_vec();
    samplers.extend([53, 211].map(|period| of(Profiler::Tip, period)));
    let mut evaluator = Evaluator::new(&samplers, Region::Whole).in_detail(4);
    synthetic::batches(&words, 4).iter().for_each(|batch| evaluator.batch(batch).unwrap());
    report_of(&evaluator.finish(), None).json()
}

fn explained(report: &Value, question: &str) -> Vec<Explanation> {
    match explain(report, question).unwrap() {
        Answer::Explained(list) => list,
        Answer::Many(list) => panic!("{question}: {list:?}"),
    }
}

#[test]
fn every_number_has_a_rule_and_a_path_that_leads_to_it() {
    let report = report();
    let mut all = Vec::new();
    numbers_below(&report, &report, &mut Vec::new(), &mut all);
    assert!(all.len() > 5_000, "{}", all.len());
    for part in ["top_down", "tea", "disagreements", "sensitivity"] {
        assert!(all.iter().any(|found| found.steps[0].key == part), "{part}");
    }
    for found in all.iter().step_by(7) {
        let explanation = rules::explained(&report, found);
        assert!(!explanation.meaning.contains("no rule"), "{}", found.path());
        assert_names_files(explanation.source);
        if let Some(check) = explanation.check {
            let near = (check - found.value).abs() <= 1e-9 * found.value.abs().max(1.0);
            assert!(near, "{}: {} but {check}", found.path(), found.value);
        }
        let keys: Vec<&str> = found.steps.iter().map(|step| &*step.key).collect();
        let (_, value) = resolve(&report, &keys.join(".")).unwrap();
        assert_eq!(value.as_f64(), Some(found.value), "{}", keys.join("."));
    }
}

/// Every file or folder that a source names below the crates is there. Cargo executes tests in their package's folder.
fn assert_names_files(source: &str) {
    let crates = Path::new("..");
    for word in source.split([' ', ',', ';', ':', '(', ')']) {
        if word.contains("/src/") {
            assert!(crates.join(word).exists(), "{source}");
        }
    }
}

#[test]
fn stacks_over_time_name_process_and_category() {
    let report = report();
    let path = "top_down.windows.0.stacks.all.Load stall";
    let found = explained(&report, path);
    assert_eq!(found[0].path, path);
    assert!(found[0].meaning.contains("\"Load stall\""), "{:?}", found);
    assert_eq!(Some(found[0].value), report["top_down"]["windows"][0]["stacks"]["0"][2].as_f64());
}

#[test]
fn paths_are_names_in_any_case() {
    let report = report();
    let process = report["processes"][1]["name"].as_str().unwrap();
    let found = explained(&report, &format!("Processes.{process}.errors.NCI.instruction.error"));
    assert_eq!(
        found[0].value,
        report["processes"][1]["errors"][1]["instruction"]["error"].as_f64().unwrap()
    );
    assert!(found[0].text().contains("C_correct"), "{}", found[0].text());
    // The level has two numbers.
    assert_eq!(explained(&report, "processes.all.errors.tip.block").len(), 2);
    let memory = explained(&report, "top_down.processes.all.shares.backend.memory");
    assert!(memory[0].inputs.iter().any(|(name, _)| name == "shares.backend.memory.dram"));
    assert!((memory[0].check.unwrap() - memory[0].value).abs() < 1e-9);
}

#[test]
fn a_number_is_found_as_it_shows() {
    let report = report();
    let cycles = report["totals"]["cycles"].as_u64().unwrap();
    let found = explained(&report, &cycles.to_string());
    assert!(found.iter().any(|e| e.path == "totals.cycles"), "{found:?}");
    let share = 100.0 * report["processes"][1]["share"].as_f64().unwrap();
    let found = explain(&report, &format!("{share:.7} %")).unwrap().text();
    assert!(found.contains(".share = "), "{found}");
    assert!(explain(&report, "processes").unwrap().text().contains("name one of them"));
    let refused = explain(&report, "processes.nobody.cycles").unwrap_err();
    assert!(refused.contains("expected") && refused.contains("all"), "{refused}");
    assert!(explain(&report, "-17.25").is_err());
}
