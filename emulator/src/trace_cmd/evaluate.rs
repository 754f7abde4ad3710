//! `tipsim trace evaluate`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::path::Path;

use commit_trace::{Batch, HartId, StreamError};
use profile::{Evaluation, Evaluator, Region, Sampler, profile_error, sampling_error};
use serde_json::{Value, json};

use super::{CLOCK_HZ, Reader, ended, metadata, open};
use crate::cli::{EvaluateArgs, Format};
use crate::failure::{BadInput, bad_input};
use crate::spec::{self, Spec};

/// A number that two evaluations share only if every weight of every profile is equal.
pub fn fingerprint(evaluation: &Evaluation) -> Value {
    let mut profiles = vec![("oracle", &evaluation.oracle)];
    profiles.extend(
        evaluation
            .samplers
            .iter()
            .map(|s| (s.sampler.name.as_str(), &s.profile)),
    );
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

/// The samplers and the region that the run was profiled with.
pub fn profiled(path: &Path, meta: &Value) -> anyhow::Result<(Vec<Sampler>, Region)> {
    let samplers = serde_json::from_value(meta["samplers"].clone())
        .map_err(|e| bad_input(path, format!("metadata: samplers: {e}")))?;
    let region = match serde_json::from_value(meta["region"].clone()) {
        Ok(spec::Region::Command) => Region::Marked,
        _ => Region::Whole,
    };
    Ok((samplers, region))
}

/// Gives every batch of a trace's first hart to `take`.
pub fn replay(
    path: &Path,
    reader: &mut Reader,
    mut take: impl FnMut(&Batch) -> Result<(), StreamError>,
) -> anyhow::Result<()> {
    let mut batch = Batch::default();
    while { reader.next_batch(&mut batch) }.map_err(|e| BadInput(e.to_string()))? {
        if batch.hart == HartId(0) {
            take(&batch).map_err(|e| bad_input(path, e))?;
        }
    }
    Ok(())
}

/// Replays a trace into the profilers of its run or of another spec, as far as it goes.
pub fn evaluate(args: &EvaluateArgs) -> anyhow::Result<()> {
    let mut reader = open(&args.trace)?;
    let meta = metadata(&reader);
    let (mut samplers, region) = profiled(&args.trace, &meta)?;
    if let Some(path) = &args.samplers {
        let spec = Spec::load(path, &[])?;
        let clock_hz = meta["clock_hz"].as_u64().unwrap_or(CLOCK_HZ) as f64;
        samplers =
            crate::samplers::samplers(&spec.sampler, clock_hz).map_err(|e| bad_input(path, e))?;
    }
    let mut evaluator = Evaluator::new(&samplers, region);
    let mut batch = Batch::default();
    let start = std::time::Instant::now();
    let read = loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => {}
            Ok(false) => break Ok(ControlFlow::Continue(())),
            Err(e) => break Err(e.into()),
        }
        if batch.hart == HartId(args.hart)
            && let Err(e) = evaluator.batch(&batch)
        {
            break Err(e.into());
        }
    };
    let evaluation = evaluator.finish();
    if evaluation.cycles > 0 {
        print(&evaluation, start.elapsed().as_secs_f64(), args.format);
    }
    ended(&args.trace, &reader, read)
}

fn print(evaluation: &Evaluation, seconds: f64, format: Format) {
    let (by_instruction, oracle) = (|p, i| (p, i), &evaluation.oracle);
    let rows: Vec<Value> = evaluation
        .samplers
        .iter()
        .map(|s| {
            let oracle = evaluation.oracle_of(s);
            json!({"sampler": s.sampler.name, "period": s.sampler.schedule.period,
                "samples": s.samples, "error": profile_error(&s.profile, &oracle, by_instruction),
                "sampling_error": sampling_error(&oracle, s.samples, by_instruction)})
        })
        .collect();
    let (cycles, instructions) = (evaluation.cycles, evaluation.instructions);
    if format == Format::Json {
        println!(
            "{:#}",
            json!({"cycles": cycles, "idle": evaluation.idle, "instructions": instructions,
                "oracle_cycles": oracle.total() / oracle.units_per_cycle(), "samplers": rows,
                "fingerprint": fingerprint(evaluation), "seconds": seconds})
        );
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
        let percent = |key: &str| format!("{:.2} %", 100.0 * row[key].as_f64().unwrap_or(f64::NAN));
        println!(
            "{:24} {:>10} {:>10} {:>9} {:>15}",
            row["sampler"].as_str().unwrap_or("-"),
            row["period"].to_string(),
            row["samples"].to_string(),
            percent("error"),
            percent("sampling_error"),
        );
    }
}
