//! `excerpts.zst` with some of its values changed, or of any content: read, and turned into a report's loops.
#![no_main]

mod common;

use std::sync::OnceLock;

use commit_trace::InstId;
use common::{Change, STAMP, disassemble, evaluations, run, stored_file, symbolizer};
use critical_path::{Delays, Excerpt, Excerpts, InstTimes, Widths};
use libfuzzer_sys::fuzz_target;
use profile::Evaluation;
use report::{Report, ReportInputs, stored};
use serde_json::Value;

/// Some turns of the loop of the evaluation.
fn excerpts() -> Excerpts {
    let excerpt = |from: u64| {
        let row = |n: u64| InstTimes {
            inst: InstId(n as u32 % 5),
            asked: from + n,
            delivered: from + n + 2,
            decode: from + n + 3,
            dispatch: from + n + 4,
            issue: from + n + 6,
            wake: from + n + 7,
            complete: from + n + 9,
            commit: from + n + 10,
            first_of_row: n % 2 == 0,
            ..InstTimes::default()
        };
        Excerpt { from, rows: (0..100).map(row).collect() }
    };
    Excerpts {
        widths: Widths { decode: 4, int: 3, mem: 2, fp: 2 },
        delays: Delays { load_search: 3, store_data: 2, branch_tag: 5, register: 2 },
        list: vec![excerpt(100), excerpt(5_000)],
    }
}

fuzz_target!(|input: (Vec<Change>, Option<Vec<u8>>)| {
    static STORED: OnceLock<(Evaluation, Value)> = OnceLock::new();
    let (evaluation, whole) = STORED.get_or_init(|| {
        let evaluation = evaluations().pop().unwrap();
        (evaluation, serde_json::to_value(excerpts()).unwrap())
    });
    let (changes, raw) = input;
    let Some(bytes) = stored_file::<Excerpts>(whole, changes, raw) else {
        return;
    };
    if let Ok(read) = stored::read::<Excerpts>(&*bytes, STAMP) {
        let symbolizer = symbolizer();
        let report = Report::build(ReportInputs {
            excerpts: Some(&read),
            ..ReportInputs::new(evaluation, &symbolizer, &disassemble, run())
        });
        common::write(&report);
    }
});
