//! Firefox Profiler's processed profile
//! (<https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>),
//! in version 55, which later versions upgrade when they load it.
//!
//! The profile has a thread per profiler, process and thread name; a sample's weight is its cycles. This crate writes the
//! tables itself, since the crate `fxprof-processed-profile` has no source lines or inlined functions.

mod tables;

use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::ProcessId;
use serde::Serialize;
use serde_json::{Value, json};
use symbols::BuildId;

use super::model::{CycleSample, Series};
use super::{Export, Format};
use tables::{Builder, Tables};

/// Version of the format, not of this program.
const VERSION: u32 = 55;

#[derive(Serialize)]
struct Profile {
    meta: Value,
    libs: Vec<Value>,
    threads: Vec<Thread>,
    pages: [u8; 0],
    counters: [u8; 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thread {
    name: String,
    is_main_thread: bool,
    process_type: &'static str,
    process_name: String,
    pid: String,
    tid: String,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: Option<f64>,
    paused_ranges: [u8; 0],
    markers: Value,
    samples: Samples,
    #[serde(flatten)]
    tables: Tables,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    length: usize,
    weight_type: &'static str,
    stack: Vec<usize>,
    /// Times of the samples, in milliseconds.
    time: Vec<f64>,
    weight: Vec<u64>,
    /// The weight in nanoseconds, from which the timeline shows how busy the thread is.
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: Vec<u64>,
}

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut threads = Vec::new();
    let mut weights = Vec::new();
    for (series, samples) in export.series().iter().zip(&export.timed().samples) {
        for (key, samples) in by_thread(export, samples) {
            weights.push(samples.iter().map(|sample| sample.cycles).sum::<u64>());
            threads.push(thread(export, series, key, &samples));
        }
    }
    // The thread with the most cycles is selected at first.
    let selected = (0..threads.len()).max_by_key(|at| (weights[*at], std::cmp::Reverse(*at)));
    let profile = Profile {
        meta: meta(export, selected),
        libs: export.symbols.modules.iter().map(library).collect(),
        threads,
        pages: [],
        counters: [],
    };
    serde_json::to_writer(out, &profile).map_err(io::Error::from)
}

/// A process, and the name of its threads if that differs from the process's.
type ThreadKey<'a> = (ProcessId, Option<&'a str>);

fn by_thread<'a>(
    export: &Export<'a>,
    samples: &[CycleSample],
) -> BTreeMap<ThreadKey<'a>, Vec<CycleSample>> {
    let mut threads: BTreeMap<ThreadKey<'a>, Vec<CycleSample>> = BTreeMap::new();
    for sample in samples {
        let key = (export.rows()[sample.row].process, export.own_name(sample.row));
        threads.entry(key).or_default().push(*sample);
    }
    for samples in threads.values_mut() {
        samples.sort_by_key(|sample| sample.cycle);
    }
    threads
}

fn thread(
    export: &Export<'_>,
    series: &Series<'_>,
    (id, own_name): ThreadKey<'_>,
    samples: &[CycleSample],
) -> Thread {
    let millis = |cycle: u64| export.nanos(cycle) as f64 / 1e6;
    let mut builder = Builder::new(export);
    let samples = Samples {
        length: samples.len(),
        weight_type: "samples",
        stack: samples.iter().map(|sample| builder.stack(sample.row)).collect(),
        time: samples.iter().map(|sample| millis(sample.cycle)).collect(),
        weight: samples.iter().map(|sample| sample.cycles).collect(),
        thread_cpu_delta: samples.iter().map(|sample| export.nanos(sample.cycles)).collect(),
    };
    let process = export.evaluation.processes.get(id.0 as usize);
    let start = process.map_or(0.0, |process| millis(process.first_cycle));
    let end = process.and_then(|process| process.end_cycle).map(millis);
    let process_name = export.process_name(id);
    let with_profiler = |name| format!("{name} ({})", series.name);
    let pid = format!("{}.{}-{}", export.pid(id), id.0, series.name);
    Thread {
        name: with_profiler(own_name.unwrap_or(process_name)),
        is_main_thread: own_name.is_none(),
        process_type: "default",
        process_name: with_profiler(process_name),
        // Process ids are made unique per profiler and `execve`: the guest's pid stays the same over an `execve`.
        tid: match own_name {
            Some(name) => format!("{pid}-{name}"),
            None => pid.clone(),
        },
        pid,
        process_startup_time: start,
        process_shutdown_time: end,
        register_time: start,
        unregister_time: end,
        paused_ranges: [],
        markers: json!({"length": 0, "category": [], "data": [], "endTime": [], "name": [],
            "phase": [], "startTime": []}),
        samples,
        tables: builder.finish(),
    }
}

fn meta(export: &Export<'_>, selected: Option<usize>) -> Value {
    let period = export.series().iter().map(|series| series.period).min();
    let category = |name, color| json!({"name": name, "color": color, "subcategories": ["Other"]});
    json!({
        "version": 24,
        "preprocessedProfileVersion": VERSION,
        "product": export.title(),
        "interval": export.nanos(period.unwrap_or(1)) as f64 / 1e6,
        "startTime": 0.0,
        "processType": 0,
        "debug": false,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "oscpu": "riscv64 Linux",
        "importedFrom": export.exporter(Format::Firefox),
        "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
        "categories": tables::CATEGORIES.map(|(name, color)| category(name, color)),
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "markerSchema": [],
        "initialSelectedThreads": selected.into_iter().collect::<Vec<_>>(),
    })
}

fn library(module: &symbols::Module) -> Value {
    let path = match &module.file {
        Some(file) => file.display().to_string(),
        None => module.path.to_string(),
    };
    let id = module.build_id.clone().unwrap_or(BuildId(Vec::new()));
    json!({
        "name": module.name(),
        "path": path,
        "debugName": module.name(),
        "debugPath": path,
        "breakpadId": breakpad_id(&id.0),
        "codeId": module.build_id.as_ref().map(BuildId::to_string),
        "arch": "riscv64",
    })
}

/// A build id as Firefox has it: its first 16 bytes as a GUID, whose first three fields are
/// little-endian, then an age.
fn breakpad_id(build_id: &[u8]) -> String {
    let mut id = [0; 16];
    id.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    id[..4].reverse();
    id[4..6].reverse();
    id[6..8].reverse();
    let hex: String = id.iter().map(|byte| format!("{byte:02X}")).collect();
    hex + "0"
}
