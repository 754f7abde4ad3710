//! `tipsim trace info`.

use commit_trace::TraceEnd;
use report::{part_line, printable, sampled_line, sampled_words};
use serde_json::json;

use super::{metadata, open, raw_metadata, status};
use crate::cli::{Format, TraceArgs};
use crate::failure::bad_input;
use crate::host::terminal::say_json;

/// Says what a trace holds and whether it is whole.
pub fn info(args: &TraceArgs) -> anyhow::Result<u8> {
    let reader = open(&args.trace)?;
    let bytes = std::fs::metadata(&args.trace).map_err(|e| bad_input(&args.trace, e))?.len();
    let chunks = reader.chunks();
    let records: u64 = chunks.iter().map(|c| u64::from(c.records)).sum();
    let first = chunks.iter().map(|c| c.start_cycle).min().unwrap_or(0);
    let cycles = chunks.iter().map(|c| c.end_cycle).max().unwrap_or(0);
    let meta = metadata(&args.trace, &reader)?;
    let clock_hz = meta.clock_hz.max(1);
    if args.format == Format::Json {
        let info = json!({"file": args.trace, "bytes": bytes, "end": reader.end().to_string(), "chunks": chunks.len(),
                "records": records, "start_cycle": first, "cycles": cycles,
                "seconds": cycles as f64 / clock_hz as f64, "metadata": raw_metadata(&reader)});
        say_json(&format!("{info:#}\n"));
        return Ok(status(&args.trace, reader.end()));
    }
    let text = |value: Option<&str>| printable(value.unwrap_or("-")).into_owned();
    if reader.end() != TraceEnd::Complete {
        println!("{}", part_line(&reader.end().to_string()));
    }
    if let Some(words) = sampled_words(&raw_metadata(&reader)) {
        println!("{}", sampled_line(&words));
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
    println!("size      {bytes} bytes, {:.3} per record", bytes as f64 / records.max(1) as f64);
    Ok(status(&args.trace, reader.end()))
}
