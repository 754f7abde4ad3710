use profile::SpeedupComponent;
use serde_json::Value;

use super::*;

/// A report of two harts, each of which did what the evaluation has.
fn report() -> Report {
    let harts = [evaluation(), evaluation()];
    let merged = Evaluation::merged(&harts).unwrap();
    let (_root, symbolizer) = symbolizer();
    let own = inputs(&merged, &symbolizer);
    Report::build(ReportInputs { of_all_harts: true, harts: &harts, ..own })
}

#[test]
fn components_add_up_to_the_cycles_of_all_harts() {
    let report = report();
    let stack = report.sections.speedup.as_ref().unwrap();
    assert_eq!((stack.harts, stack.cycles), (2, 42_000));
    assert_eq!(stack.components.iter().map(|row| row.cycles).sum::<u64>(), stack.cycles);
    assert!((stack.components.iter().map(|row| row.share).sum::<f64>() - 1.0).abs() < 1e-12);
    let listed = stack.components.iter().map(|row| row.component);
    assert!(listed.eq(SpeedupComponent::ALL));
    assert_eq!(stack.cycles_of(SpeedupComponent::Memory), 12_750);
}

#[test]
fn the_section_is_as_blessed_and_every_number_is_explained() {
    let report = report();
    let mut text = String::new();
    let section: &dyn crate::section::Section = &report.sections.speedup;
    section.write(&report.common, &Options::default(), &mut text).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    golden("speedup.txt", &text);
    assert!(report.html("").contains("id=\"speedup\""));
    let mut json = report.json();
    json["speedup"]["memory"] = json!({ "bytes": 6400, "loads": 90, "waited": 270 });
    let waited = explain(&json, "speedup.memory.waited").unwrap().text();
    assert!(waited.contains("timing/src/mem/dram.rs"), "{waited}");
    for path in ["speedup.harts", "speedup.cycles", "speedup.components.2.cycles"] {
        let answer = explain(&json, path).unwrap().text();
        assert!(answer.contains("profile/src/speedup.rs"), "{path}: {answer}");
    }
    let share = explain(&json, "speedup.components.2.share").unwrap().text();
    assert!(share.contains("cycles / speedup.cycles"), "{share}");
}

#[test]
fn what_memory_did_is_told_if_it_was_counted() {
    let of = |events: Value| {
        let meta = json!({ "uncore": { "memory_controller": events } });
        let harts = [evaluation(), evaluation()];
        let merged = Evaluation::merged(&harts).unwrap();
        let (_root, symbolizer) = symbolizer();
        let own = ReportInputs::new(&merged, &symbolizer, &|raw, _| format!("op{raw:x}"), meta);
        let report = Report::build(ReportInputs { of_all_harts: true, harts: &harts, ..own });
        let text = report.text(&Options::default());
        (report.sections.speedup.unwrap().memory, text)
    };
    let all = json!({ "read_bytes": 42_000, "write_bytes": 21_000 });
    let hart = |reads, waited| json!({ "load": { "reads": reads, "queue_occupancy": waited }, "store": { "reads": 99 } });
    let (memory, text) = of(json!({ "all": all, "harts": [hart(30, 90), hart(10, 200)] }));
    assert_eq!(memory, Some(MemoryTraffic { bytes: 63_000, loads: 40, waited: 290 }));
    let words = "memory: 40 lines for loads, each 7.2 cycles in the mean in its queues; 3.00 bytes per cycle";
    assert!(text.contains(words), "{text}");
    for older in [json!(null), json!({ "all": all }), json!({ "all": {}, "harts": [] })] {
        assert_eq!(of(older).0, None);
    }
}

#[test]
fn a_single_hart_has_no_stack() {
    let report = report_of(&evaluation(), None);
    assert!(report.sections.speedup.is_none());
    assert!(!report.text(&Options::default()).contains("Speed-up"));
    assert!(report.json().get("speedup").is_none());
}

#[test]
fn one_hart_is_compared_with_two() {
    use crate::{Comparison, Run};
    let run = |report: &Report| -> Run { serde_json::from_value(report.json()).unwrap() };
    let (one, two) = (run(&report_of(&evaluation(), None)), run(&report()));
    assert_eq!(one.no_speedup_to(&two), None);
    assert!(two.no_speedup_to(&one).unwrap().contains("named first"));
    assert!(!Run::differ_in_harts(&[one.clone(), one.clone()]));
    assert!(Run::differ_in_harts(&[one.clone(), two.clone()]));
    let mut older = report().json();
    older["speedup"]["components"].as_array_mut().unwrap().remove(5);
    let older: Run = serde_json::from_value(older).unwrap();
    assert!(one.no_speedup_to(&older).unwrap().contains("of an older version"));
    let of_older = Comparison::new(&one.clone().with_stack_of(&evaluation()), &older, &[]);
    assert!(of_older.unwrap().speedup.is_none());
    let without = Comparison::new(&one, &two, &[]).unwrap();
    assert!(without.speedup.is_none() && !without.text(9).contains("times as fast"));
    let comparison = Comparison::new(&one.with_stack_of(&evaluation()), &two, &[]).unwrap();
    let speedup = comparison.speedup.as_ref().unwrap();
    // Both harts do what the one did: nothing is gained.
    assert_eq!((speedup.harts, speedup.speedup, speedup.lost), (2, 1.0, 1.0));
    assert!(
        comparison
            .text(9)
            .contains("2 harts are 1.00 times as fast as one: 0.48 of the 2 is lost to")
    );
    let flame = &report_of(&evaluation(), None).common.flame;
    let page = comparison.html(flame, flame, &[]);
    assert!(page.contains("id=\"speedup\""));
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["speedup"]["components"][2]["component"], "memory");
}
