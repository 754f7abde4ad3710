//! `run.json` with some of its values changed, or of any content: what a report says of the run.
#![no_main]

mod common;

use std::sync::OnceLock;

use common::{Change, change, disassemble, evaluations, run, symbolizer};
use libfuzzer_sys::fuzz_target;
use profile::Evaluation;
use report::{CounterInputs, Report, ReportInputs};

fuzz_target!(|input: (Vec<Change>, Option<String>)| {
    static EVALUATION: OnceLock<Evaluation> = OnceLock::new();
    let evaluation = EVALUATION.get_or_init(|| evaluations().pop().unwrap());
    let (changes, text) = input;
    let meta = match text {
        Some(text) => match serde_json::from_str(&text) {
            Ok(meta) => meta,
            Err(_) => return,
        },
        None => {
            let mut meta = run();
            change(&mut meta, changes);
            meta
        }
    };
    let counters = report::counted(&meta, None);
    let report = Report::build(ReportInputs {
        counters: counters.map(|events| CounterInputs { events, guest: Vec::new() }),
        ..ReportInputs::new(evaluation, &symbolizer(), &disassemble, meta.clone())
    });
    common::write(&report);
    let value = report.json();
    for table in arrow_tables::REPORT_TABLES {
        let _ = arrow_tables::report_table(table, &value, &meta);
    }
});
