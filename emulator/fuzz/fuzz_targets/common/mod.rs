//! What targets for files of a run share: a run that is made up, and changes of JSON that keep its form.
#![allow(dead_code, reason = "each target takes a part of it")]

use commit_trace::synthetic;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use profile::{Evaluation, Evaluator, Profiler, Region, Sampler, Schedule};
use report::Report;
use report::stored::{self, Stored};
use serde_json::{Value, json};
use symbols::{SymbolFiles, Symbolizer};

/// What a file may say instead of a value.
#[derive(Arbitrary, Debug)]
pub enum Replacement {
    Number(u64),
    Small(u8),
    Negative(i64),
    Float(f64),
    Text(String),
    Null,
    True,
    EmptyList,
    EmptyMap,
    /// The list or map has its last element no more.
    Shorter,
    /// The list has its first element twice.
    Longer,
    /// The list is the other way round.
    Reversed,
}

/// A value, by its place among all values of a document in order, and what becomes of it.
#[derive(Arbitrary, Debug)]
pub struct Change(u32, Replacement);

/// Makes the changes, one after the other.
pub fn change(document: &mut Value, changes: Vec<Change>) {
    for Change(at, replacement) in changes {
        let mut left = at as usize % count(document).max(1);
        if let Some(value) = nth(document, &mut left) {
            replace(value, replacement);
        }
    }
}

/// The stamp of files that targets store.
pub const STAMP: &[u8] = b"stamp";

/// Makes a stored file: of any content, if there is one, else of a whole one that was changed. `None`: the changes made something that
/// cannot be stored.
pub fn stored_file<T: Stored>(
    whole: &Value,
    changes: Vec<Change>,
    content: Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match content {
        Some(content) => {
            let mut encoder = zstd::Encoder::new(&mut bytes, 1).unwrap();
            std::io::Write::write_all(&mut encoder, &[STAMP, &content].concat()).unwrap();
            encoder.finish().unwrap();
        }
        None => {
            let mut value = whole.clone();
            change(&mut value, changes);
            let changed = serde_json::from_value::<T>(value).ok()?;
            stored::write(&mut bytes, STAMP, &changed).unwrap();
        }
    }
    Some(bytes)
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum::<usize>(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| nth(value, left)),
        Value::Object(map) => map.values_mut().find_map(|value| nth(value, left)),
        _ => None,
    }
}

fn replace(value: &mut Value, replacement: Replacement) {
    match (replacement, value) {
        (Replacement::Number(number), value) => *value = json!(number),
        (Replacement::Small(number), value) => *value = json!(number),
        (Replacement::Negative(number), value) => *value = json!(number),
        (Replacement::Float(number), value) => *value = json!(number),
        (Replacement::Text(text), value) => *value = json!(text),
        (Replacement::Null, value) => *value = Value::Null,
        (Replacement::True, value) => *value = json!(true),
        (Replacement::EmptyList, value) => *value = json!([]),
        (Replacement::EmptyMap, value) => *value = json!({}),
        (Replacement::Shorter, Value::Array(list)) => drop(list.pop()),
        (Replacement::Shorter, Value::Object(map)) => {
            let last = map.keys().next_back().cloned();
            last.and_then(|key| map.remove(&key));
        }
        (Replacement::Longer, Value::Array(list)) if !list.is_empty() => {
            list.insert(0, list[0].clone());
        }
        (Replacement::Reversed, Value::Array(list)) => list.reverse(),
        _ => {}
    }
}

/// Evaluations of two harts with everything that a run asks for, and one of several programs.
pub fn evaluations() -> Vec<Evaluation> {
    let hart = |seed| {
        let samplers: Vec<Sampler> = Profiler::ALL
            .into_iter()
            .map(|profiler| Sampler::new(profiler, Schedule::every(50)))
            .collect();
        let mut evaluator =
            Evaluator::new(&samplers, Region::Whole).in_detail(4).with_call_stacks().keep_samples();
        for batch in synthetic::program(2_000, seed) {
            evaluator.batch(&batch).unwrap();
        }
        evaluator.finish()
    };
    vec![hart(1), hart(2), profile::synthetic::evaluation()]
}

pub fn symbolizer() -> Symbolizer {
    Symbolizer::new(SymbolFiles::default())
}

pub fn disassemble(raw: u32, _: u64) -> String {
    format!("{raw:08x}")
}

/// Facts about a run, as `run.json` has them.
pub fn run() -> Value {
    let hart =
        json!({ "cycles": 21_000, "idle": 1_000, "instructions": 15_000, "mispredicts": 12 });
    let counts =
        json!({ "cycles": 20_000, "inst": 15_000, "l1d.miss": 80, "topdown.retiring": 300 });
    json!({
        "name": "run", "tipsim": "0.1.0", "command": "./work", "mode": "timing", "end": "Finished", "deterministic": true,
        "cycles": 21_000, "instructions": 15_000, "clock_hz": 1_000_000_000, "seed": 0, "host_seconds": 1.5,
        "core": { "preset": "boom-4w", "name": "boom-4w", "decode": { "width": 4 }, "rob": 128 },
        "harts": [hart, hart], "counters": { "harts": [counts, counts], "events": {} },
        "samplers": [{ "name": "tip", "profiler": "tip" }], "call_stacks": true, "region": "whole",
        "spec": "name = \"run\"\n", "guest": { "exit": 0, "warnings": ["one"] }, "memory": { "bytes": 1 },
    })
}

/// Writes a report in all its forms.
pub fn write(report: &Report) {
    let _ = report.text(&report::Options::default());
    let _ = report.html("");
    let _ = report.errors_json();
    let value = report.json();
    let _ = serde_json::to_string(&report.common.flame);
    for table in arrow_tables::REPORT_TABLES {
        let _ = arrow_tables::report_table(table, &value, &run());
    }
}
