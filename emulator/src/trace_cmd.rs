//! `tipsim trace`.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Write};
use std::path::Path;

use commit_trace::{
    Batch, Event, HartId, InstFacts, Seq, SpanBuilder, SpanSink, State, StreamError, TraceEnd,
    TraceReader,
};
use profile::{Evaluation, Evaluator, Region, Sampler, profile_error, sampling_error};
use serde_json::{Value, json};

use crate::cli::{DumpArgs, Format, TraceArgs, TraceCommand};
use crate::failure::{BadInput, bad_input};
use crate::spec;

/// A trace file.
pub type Reader = TraceReader<BufReader<File>>;

/// Runs one of the trace commands.
pub fn trace(command: &TraceCommand) -> anyhow::Result<()> {
    match command {
        TraceCommand::Info(args) => info(args),
        TraceCommand::Dump(args) => dump(args),
        TraceCommand::Verify(args) => verify(args),
        TraceCommand::Evaluate(args) => evaluate(args),
    }
}

/// Opens a trace.
pub fn open(path: &Path) -> anyhow::Result<Reader> {
    Ok(Reader::open(path).map_err(|e| BadInput(e.to_string()))?)
}

fn end_of(reader: &Reader) -> String {
    match reader.end() {
        TraceEnd::Complete => "complete".into(),
        TraceEnd::Cut { offset } => format!("cut at offset {offset}"),
        TraceEnd::Damaged { offset, what } => format!("damaged at offset {offset}: {what}"),
    }
}

/// What the trace says of the run.
pub fn metadata(reader: &Reader) -> Value {
    serde_json::from_str(reader.metadata()).unwrap_or(Value::Null)
}

fn info(args: &TraceArgs) -> anyhow::Result<()> {
    let reader = open(&args.trace)?;
    let bytes = std::fs::metadata(&args.trace)
        .map_err(|e| bad_input(&args.trace, e))?
        .len();
    let records: u64 = reader.chunks().iter().map(|c| u64::from(c.records)).sum();
    let cycles = reader
        .chunks()
        .iter()
        .map(|c| c.end_cycle)
        .max()
        .unwrap_or(0);
    let meta = metadata(&reader);
    let text = |key: &str| meta[key].as_str().unwrap_or("-").to_owned();
    if args.format == Format::Json {
        let chunks = reader.chunks().len();
        println!(
            "{:#}",
            json!({"file": args.trace, "bytes": bytes, "end": end_of(&reader), "chunks": chunks,
                "records": records, "cycles": cycles, "metadata": meta})
        );
        return Ok(());
    }
    println!("file      {}", args.trace.display());
    println!("run       {} (tipsim {})", text("name"), text("tipsim"));
    println!("core      {}", meta["core"]["name"].as_str().unwrap_or("-"));
    println!("command   {}", text("command"));
    println!("end       {}", end_of(&reader));
    println!("chunks    {}", reader.chunks().len());
    println!("records   {records}");
    println!("cycles    {cycles}");
    println!(
        "size      {bytes} bytes, {:.3} per record",
        bytes as f64 / records.max(1) as f64
    );
    Ok(())
}

/// Prints records with absolute cycles, one a line.
fn dump(args: &DumpArgs) -> anyhow::Result<()> {
    let mut reader = open(&args.trace)?;
    let bad = |e: commit_trace::TraceError| BadInput(e.to_string());
    reader.seek_seq(HartId(0), Seq(args.from)).map_err(bad)?;
    let mut batch = Batch::default();
    let mut facts: Vec<InstFacts> = Vec::new();
    let mut left = args.count;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:>10} {:>12} {:>12} {:>12}  {:18} instruction",
        "record", "decode", "dispatch", "commit", "pc"
    )?;
    while left > 0 && reader.next_batch(&mut batch).map_err(bad)? {
        facts.extend(batch.facts.iter().copied());
        let mut cycle = batch.start_cycle;
        let mut events = batch.events.iter().peekable();
        for (n, record) in batch.records.iter().enumerate() {
            while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= n) {
                if let Event::Idle { cycles } = event {
                    cycle += cycles;
                }
                if batch.first_seq.0 + n as u64 >= args.from {
                    writeln!(out, "{:>10} {event:?}", "")?;
                }
            }
            cycle += u64::from(record.commit_delta);
            let seq = batch.first_seq.0 + n as u64;
            if seq < args.from {
                continue;
            }
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let dispatch = cycle.saturating_sub(u64::from(record.residence()));
            let decode = dispatch.saturating_sub(u64::from(record.decode_lead()));
            let (pc, text) = facts
                .get(record.inst.0 as usize)
                .map_or((0, "?".into()), |f| {
                    (f.pc, crate::report_cmd::disassemble(f.raw, f.pc))
                });
            let redirect = match record.redirect() {
                commit_trace::Redirect::None => String::new(),
                redirect => format!("  <{redirect:?}>"),
            };
            writeln!(
                out,
                "{seq:>10} {decode:>12} {dispatch:>12} {cycle:>12}  {pc:#018x} {text}{redirect}"
            )?;
        }
    }
    Ok(())
}

/// Cycles by commit state.
#[derive(Default)]
struct Totals {
    cycles: BTreeMap<&'static str, u64>,
    instructions: u64,
}

impl SpanSink for Totals {
    fn span(&mut self, span: &commit_trace::Span<'_>) {
        let name = match span.state {
            State::Computing => "computing",
            State::Stalled => "stalled",
            State::Flushed => "flushed",
            State::Drained => "drained",
            State::Idle => "idle",
        };
        *self.cycles.entry(name).or_default() += span.cycles;
        if span.state == State::Computing {
            self.instructions += span.records.len() as u64;
        }
    }
}

fn verify(args: &TraceArgs) -> anyhow::Result<()> {
    let mut reader = open(&args.trace)?;
    let (mut spans, mut totals) = (SpanBuilder::new(), Totals::default());
    replay(&args.trace, &mut reader, |batch| {
        spans.batch(batch, &mut totals)
    })?;
    let sum: u64 = totals.cycles.values().sum();
    anyhow::ensure!(
        sum == spans.cycle(),
        "{} cycles in spans, {} in the stream",
        sum,
        spans.cycle()
    );
    if reader.end() != TraceEnd::Complete {
        return Err(bad_input(&args.trace, end_of(&reader)).into());
    }
    if args.format == Format::Json {
        println!(
            "{:#}",
            json!({"cycles": sum, "states": totals.cycles, "instructions": totals.instructions})
        );
        return Ok(());
    }
    println!("whole: {} instructions, {sum} cycles", totals.instructions);
    for (state, cycles) in totals.cycles {
        println!(
            "{state:10} {cycles:>14}  {:5.1} %",
            100.0 * cycles as f64 / sum.max(1) as f64
        );
    }
    Ok(())
}

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

/// Gives every batch of a trace to `take`.
pub fn replay(
    path: &Path,
    reader: &mut Reader,
    mut take: impl FnMut(&Batch) -> Result<(), StreamError>,
) -> anyhow::Result<()> {
    let mut batch = Batch::default();
    while reader
        .next_batch(&mut batch)
        .map_err(|e| BadInput(e.to_string()))?
    {
        take(&batch).map_err(|e| bad_input(path, e))?;
    }
    Ok(())
}

fn evaluate(args: &TraceArgs) -> anyhow::Result<()> {
    let mut reader = open(&args.trace)?;
    let meta = metadata(&reader);
    let (samplers, region) = profiled(&args.trace, &meta)?;
    let mut evaluator = Evaluator::new(&samplers, region);
    let start = std::time::Instant::now();
    replay(&args.trace, &mut reader, |batch| evaluator.batch(batch))?;
    let evaluation = evaluator.finish();
    let seconds = start.elapsed().as_secs_f64();
    let (by_instruction, oracle) = (|p, i| (p, i), &evaluation.oracle);
    let rows: Vec<Value> = evaluation
        .samplers
        .iter()
        .map(|s| {
            json!({"sampler": s.sampler.name, "period": s.sampler.schedule.period,
                "samples": s.samples, "error": profile_error(&s.profile, oracle, by_instruction),
                "sampling_error": sampling_error(oracle, s.samples, by_instruction)})
        })
        .collect();
    let (cycles, instructions) = (evaluation.cycles, evaluation.instructions);
    if args.format == Format::Json {
        println!(
            "{:#}",
            json!({"cycles": cycles, "idle": evaluation.idle, "instructions": instructions,
                "oracle_cycles": oracle.total() / oracle.units_per_cycle(), "samplers": rows,
                "fingerprint": fingerprint(&evaluation), "seconds": seconds})
        );
        return Ok(());
    }
    println!(
        "{instructions} instructions, {cycles} cycles ({:.1} M instructions/s)",
        instructions as f64 / seconds / 1e6
    );
    println!(
        "{:20} {:>10} {:>10} {:>9} {:>15}",
        "sampler", "period", "samples", "error", "sampling alone"
    );
    for row in rows {
        let percent = |key: &str| format!("{:.2} %", 100.0 * row[key].as_f64().unwrap_or(f64::NAN));
        println!(
            "{:20} {:>10} {:>10} {:>9} {:>15}",
            row["sampler"].as_str().unwrap_or("-"),
            row["period"].to_string(),
            row["samples"].to_string(),
            percent("error"),
            percent("sampling_error"),
        );
    }
    Ok(())
}
