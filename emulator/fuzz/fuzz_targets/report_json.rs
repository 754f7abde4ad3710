//! `report.json` and `flame.json` with some of their values changed: compared with themselves, explained, and turned into tables.
#![no_main]

mod common;

use std::sync::OnceLock;

use common::{Change, change, disassemble, evaluations, run, symbolizer};
use libfuzzer_sys::fuzz_target;
use report::{Comparison, Flame, Report, ReportInputs, Run, explain};
use serde_json::Value;

fn whole() -> (Value, Value) {
    let harts = evaluations();
    let whole = profile::Evaluation::merged(&harts[1..]).unwrap();
    let symbolizer = symbolizer();
    let report = Report::build(ReportInputs {
        of_all_harts: true,
        harts: &harts[1..],
        ..ReportInputs::new(&whole, &symbolizer, &disassemble, run())
    });
    (report.json(), serde_json::to_value(&report.common.flame).unwrap())
}

fuzz_target!(|input: (Vec<Change>, Vec<Change>, String, f64)| {
    static WHOLE: OnceLock<(Value, Value)> = OnceLock::new();
    let (report, flame) = WHOLE.get_or_init(whole);
    let (of_report, of_flame, path, number) = input;
    let (mut changed, mut changed_flame) = (report.clone(), flame.clone());
    change(&mut changed, of_report);
    change(&mut changed_flame, of_flame);
    for what in [path, number.to_string()] {
        if let Ok(answer) = explain(&changed, &what) {
            let _ = answer.text();
        }
    }
    for table in arrow_tables::REPORT_TABLES {
        let _ = arrow_tables::report_table(table, &changed, &run());
    }
    let before = serde_json::from_value::<Run>(report.clone()).unwrap();
    let Ok(after) = serde_json::from_value::<Run>(changed) else {
        return;
    };
    for (one, other) in [(&before, &after), (&after, &before)] {
        let Ok(comparison) = Comparison::new(one, other, &[]) else {
            continue;
        };
        let _ = comparison.text(20);
        let _ = serde_json::to_string(&comparison);
        let flames = [flame, &changed_flame];
        let [old, new] = flames.map(|flame| serde_json::from_value::<Flame>(flame.clone()));
        if let (Ok(old), Ok(new)) = (old, new) {
            let _ = comparison.html(&old, &new, &[]);
        }
    }
});
