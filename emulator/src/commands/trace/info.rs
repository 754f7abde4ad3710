//! `tipsim trace info`.

use std::collections::BTreeMap;

use commit_trace::{Batch, TraceEnd};
use report::{part_line, printable, sampled_line};
use serde_json::json;

use super::gaps::UnitGaps;
use super::{Reader, is_sampled, metadata, open, raw_metadata, run_description, status};
use crate::cli::{Format, TraceArgs};
use crate::failure::bad_input;
use crate::host::terminal::say_json;

/// Says what a trace holds and whether it is whole.
pub(super) fn info(args: &TraceArgs) -> anyhow::Result<u8> {
    let mut reader = open(&args.trace)?;
    let bytes = std::fs::metadata(&args.trace).map_err(|e| bad_input(&args.trace, e))?.len();
    let gaps = is_sampled(&reader).then(|| unit_gaps(&mut reader));
    let chunks = reader.chunks();
    let records: u64 = chunks.iter().map(|c| u64::from(c.records)).sum();
    let first = chunks.iter().map(|c| c.start_cycle).min().unwrap_or(0);
    let cycles = chunks.iter().map(|c| c.end_cycle).max().unwrap_or(0);
    let meta = metadata(&args.trace, &reader)?;
    let clock_hz = meta.clock_hz.max(1);
    if args.format == Format::Json {
        let mut info = json!({"file": args.trace, "bytes": bytes, "end": reader.end().to_string(), "chunks": chunks.len(),
                "records": records, "start_cycle": first, "cycles": cycles,
                "seconds": cycles as f64 / clock_hz as f64, "metadata": raw_metadata(&reader)});
        if let Some((count, cycles)) = gaps {
            info["between_units"] = json!({"count": count, "cycles": cycles});
        }
        say_json(&format!("{info:#}\n"));
        return Ok(status(&args.trace, reader.end()));
    }
    let text = |value: Option<&str>| printable(value.unwrap_or("-")).into_owned();
    if reader.end() != TraceEnd::Complete {
        println!("{}", part_line(&reader.end().to_string()));
    }
    if let Some(words) = run_description(&reader).sampled_words() {
        println!("{}", sampled_line(words));
    }
    println!("file      {}", args.trace.display());
    println!("run       {} (tipsim {})", text(meta.name.as_deref()), text(meta.tipsim.as_deref()));
    println!("core      {}, {} MHz", text(meta.core["name"].as_str()), clock_hz / 1_000_000);
    let command = meta.command.as_deref().unwrap_or("-");
    println!("command   {}", command.trim_end());
    for (role, file) in &meta.guest {
        let (build_id, sha256) = (text(file.build_id.as_deref()), text(file.sha256.as_deref()));
        println!("{role:9} build ID {build_id}, sha256 {sha256}");
    }
    println!("stages    {}", if meta.stages { "all" } else { "decode, dispatch, commit" });
    println!("end       {}", reader.end());
    println!("chunks    {}", chunks.len());
    println!("records   {records}");
    println!(
        "cycles    {first} to {cycles}: guest time {:.6} s to {:.6} s",
        first as f64 / clock_hz as f64,
        cycles as f64 / clock_hz as f64
    );
    if let Some((count, cycles)) = gaps {
        println!("gaps      {count} between units, {cycles} cycles");
    }
    println!("size      {bytes} bytes, {:.3} per record", bytes as f64 / records.max(1) as f64);
    Ok(status(&args.trace, reader.end()))
}

/// Returns the number of gaps between the units of a sampled run's trace, and their cycles, as far as the trace is whole.
fn unit_gaps(reader: &mut Reader) -> (u64, u64) {
    let mut harts: BTreeMap<u32, UnitGaps> = BTreeMap::new();
    let mut batch = Batch::default();
    while let Ok(true) = reader.next_batch(&mut batch) {
        let gaps = harts.entry(batch.hart.0).or_insert_with(|| UnitGaps::new(true, true));
        let mut records = 0;
        for (at, event) in &batch.events {
            if *at > records {
                gaps.works();
                records = *at;
            }
            gaps.event(event);
        }
        if batch.records.len() > records as usize {
            gaps.works();
        }
    }
    harts.values().fold((0, 0), |(count, cycles), gaps| (count + gaps.count, cycles + gaps.cycles))
}
