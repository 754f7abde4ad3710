//! `evaluation.zst` with some of its values changed, or of any content: read, merged with another hart's, and turned into a report and
//! every export.
#![no_main]

mod common;

use std::sync::OnceLock;

use common::{Change, STAMP, disassemble, evaluations, run, stored_file, symbolizer};
use export::{Export, Format, Options};
use libfuzzer_sys::fuzz_target;
use profile::Evaluation;
use report::{Report, ReportInputs, stored};
use serde_json::Value;

fn use_all(harts: &[Evaluation]) {
    let Some(whole) = Evaluation::merged(harts) else {
        return;
    };
    let symbolizer = symbolizer();
    let report = Report::build(ReportInputs {
        of_all_harts: true,
        harts,
        ..ReportInputs::new(&whole, &symbolizer, &disassemble, run())
    });
    common::write(&report);
    let options = Options {
        name: "run",
        part: None,
        clock_hz: 1_000_000_000,
        oracle: true,
        instructions: false,
        exact: false,
        by_address: true,
        disassemble: &disassemble,
        jit_folder: None,
    };
    let export = Export::new(&whole, &[], &symbolizer, options);
    for format in Format::ALL {
        let _ = export.write(format, &mut std::io::sink());
    }
}

fuzz_target!(|input: (u8, Vec<Change>, Option<Vec<u8>>, bool)| {
    static STORED: OnceLock<Vec<(Evaluation, Value)>> = OnceLock::new();
    let all = STORED.get_or_init(|| {
        let of = |one: Evaluation| {
            let value = serde_json::to_value(&one).unwrap();
            (one, value)
        };
        evaluations().into_iter().map(of).collect()
    });
    let (which, changes, raw, merge) = input;
    let whole = &all[usize::from(which) % all.len()].1;
    let Some(bytes) = stored_file::<Evaluation>(whole, changes, raw) else {
        return;
    };
    if let Ok(read) = stored::read::<Evaluation>(&*bytes, STAMP) {
        match merge {
            true => use_all(&[read, all[0].0.clone()]),
            false => use_all(&[read]),
        }
    }
});
