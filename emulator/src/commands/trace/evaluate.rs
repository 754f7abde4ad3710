//! `tipsim trace evaluate`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::path::Path;

use commit_trace::{Batch, HartId, StreamError, TraceEnd, WalkError};
use profile::{Evaluation, Evaluator, OracleLevel, Region, Sampler};
use report::{part_line, printable, sampled_line};
use serde::Serialize;
use serde_json::{Value, json};

use super::{check_hart, ended, metadata, open, run_description};
use crate::cli::{EvaluateArgs, Format};
use crate::failure::{BadInput, bad_input};
use crate::host::terminal::say_json;
use crate::run_folder::trace_metadata::TraceMetadata;
use crate::spec::Spec;

/// What is printed of a sampler: its period in cycles, and errors by instruction as fractions.
#[derive(Serialize)]
struct SamplerRow<'a> {
    sampler: &'a str,
    period: u64,
    samples: u64,
    error: f64,
    sampling_error: f64,
}

/// A number that two evaluations share only if every weight of every profile is equal.
pub(crate) fn fingerprint(evaluation: &Evaluation) -> Value {
    let mut profiles = vec![("oracle", &evaluation.oracle)];
    profiles.extend(evaluation.samplers.iter().map(|s| (s.sampler.name.as_str(), &s.profile)));
    let hash = |profile: &profile::Profile| {
        let mut hasher = DefaultHasher::new();
        for (process, inst, weight) in profile.iter() {
            (process.0, inst.0, weight).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    };
    profiles
        .into_iter()
        .map(|(name, profile)| (name.to_owned(), json!(hash(profile))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns the samplers and the region that the run of the trace at `path` was profiled with.
pub(crate) fn profiled(
    path: &Path,
    metadata: &TraceMetadata,
) -> Result<(Vec<Sampler>, Region), BadInput> {
    if metadata.samplers.is_empty() {
        let error = "metadata: samplers: expected those of a run of tipsim, found none";
        return Err(bad_input(path, error));
    }
    let region = match metadata.region.is_marked() {
        true => Region::Marked,
        false => Region::Whole,
    };
    Ok((metadata.samplers.clone(), region))
}

/// Batches that are read ahead, on a thread of their own.
const AHEAD: usize = 8;

/// Gives every batch of one of a trace's harts to `take`.
pub(crate) fn replay(
    path: &Path,
    hart: u32,
    take: impl FnMut(&Batch) -> Result<(), StreamError>,
) -> anyhow::Result<()> {
    match batches(path, HartId(hart), take)? {
        Ok(()) => Ok(()),
        Err(WalkError::Trace(e)) => Err(BadInput(e.to_string()).into()),
        Err(e) => Err(bad_input(path, e).into()),
    }
}

/// Gives `take` the batches of a trace's `hart` up to the first error in it.
fn batches(
    path: &Path,
    hart: HartId,
    mut take: impl FnMut(&Batch) -> Result<(), StreamError>,
) -> anyhow::Result<Result<(), WalkError>> {
    let reader = open(path)?;
    check_hart(path, &reader, hart.0)?;
    let mut replay = reader.replay(AHEAD);
    let mut found = hart.0 == 0;
    while let Some(batch) = replay.next() {
        let taken = match batch {
            Ok(batch) => {
                let taken = if batch.hart == hart {
                    found = true;
                    take(&batch)
                } else {
                    Ok(())
                };
                replay.recycle(batch);
                taken.map_err(WalkError::from)
            }
            Err(e) => Err(e.into()),
        };
        if taken.is_err() {
            return Ok(taken);
        }
    }
    if !found {
        let why = format!("--hart: the trace has nothing of hart {}", hart.0);
        return Err(bad_input(path, why).into());
    }
    Ok(Ok(()))
}

/// Replays a trace into the profilers of its run or of another spec, as far as it goes.
pub(super) fn evaluate(args: &EvaluateArgs) -> anyhow::Result<u8> {
    let reader = open(&args.trace)?;
    let meta = metadata(&args.trace, &reader)?;
    let (mut samplers, region) = profiled(&args.trace, &meta)?;
    if let Some(path) = &args.samplers {
        let spec = Spec::load(path, &[])?;
        samplers = crate::spec::samplers::samplers(&spec.sampler, meta.clock_hz as f64)
            .map_err(|e| bad_input(path, e))?;
    }
    let mut evaluator = Evaluator::new(&samplers, region);
    let start = std::time::Instant::now();
    let read = batches(&args.trace, HartId(args.hart), |batch| evaluator.batch(batch))?;
    let evaluation = evaluator.finish();
    if reader.end() != TraceEnd::Complete && args.format == Format::Text {
        println!("{}", part_line(&format!("the trace is {}", reader.end())));
    }
    let run = run_description(&reader);
    if let Some(words) = run.sampled_words().filter(|_| args.format == Format::Text) {
        println!("{}", sampled_line(words));
    }
    if evaluation.cycles > 0 {
        print(&evaluation, start.elapsed().as_secs_f64(), args.format);
    }
    ended(&args.trace, &reader, None, read.map(ControlFlow::Continue))
}

fn print(evaluation: &Evaluation, seconds: f64, format: Format) {
    let oracle = &evaluation.oracle;
    // Most samplers have the same filter: the truth is computed once for each filter.
    let mut levels = HashMap::new();
    let rows: Vec<SamplerRow<'_>> = evaluation
        .samplers
        .iter()
        .map(|s| {
            let level = levels
                .entry(&s.sampler.filter)
                .or_insert_with(|| OracleLevel::new(&evaluation.oracle_of(s), |p, i| (p, i)));
            SamplerRow {
                sampler: &s.sampler.name,
                period: s.sampler.schedule.period,
                samples: s.samples,
                error: level.error(&s.profile),
                sampling_error: level.sampling_error(s.samples),
            }
        })
        .collect();
    let (cycles, instructions) = (evaluation.cycles, evaluation.instructions);
    if format == Format::Json {
        let evaluated = json!({"cycles": cycles, "idle": evaluation.idle, "instructions": instructions,
                "oracle_cycles": oracle.total() / oracle.units_per_cycle(), "samplers": rows,
                "fingerprint": fingerprint(evaluation), "seconds": seconds});
        say_json(&format!("{evaluated:#}\n"));
        return;
    }
    println!(
        "{instructions} instructions, {cycles} cycles ({:.1} M instructions/s)",
        instructions as f64 / seconds / 1e6
    );
    println!(
        "{:24} {:>10} {:>10} {:>9} {:>15}",
        "sampler", "period", "samples", "error", "sampling alone"
    );
    for row in rows {
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        println!(
            "{:24} {:>10} {:>10} {:>9} {:>15}",
            printable(row.sampler),
            row.period,
            row.samples,
            percent(row.error),
            percent(row.sampling_error),
        );
    }
}
