//! `tipsim trace info`.

use commit_trace::{CLOCK_HZ, TraceEnd};
use report::{part_line, printable};
use serde_json::{Value, json};

use super::{metadata, open, status};
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
    let meta = metadata(&reader);
    let clock_hz = meta["clock_hz"].as_u64().unwrap_or(CLOCK_HZ).max(1);
    if args.format == Format::Json {
        let info = json!({"file": args.trace, "bytes": bytes, "end": reader.end().to_string(), "chunks": chunks.len(),
                "records": records, "start_cycle": first, "cycles": cycles,
                "seconds": cycles as f64 / clock_hz as f64, "metadata": meta});
        say_json(&format!("{info:#}\n"));
        return Ok(status(&args.trace, reader.end()));
    }
    let text = |value: &Value| printable(value.as_str().unwrap_or("-")).into_owned();
    if reader.end() != TraceEnd::Complete {
        println!("{}", part_line(&reader.end().to_string()));
    }
    println!("file      {}", args.trace.display());
    println!("run       {} (tipsim {})", text(&meta["name"]), text(&meta["tipsim"]));
    println!("core      {}, {} MHz", text(&meta["core"]["name"]), clock_hz / 1_000_000);
    let command = meta["command"].as_str().unwrap_or("-");
    println!("command   {}", command.trim_end());
    for (role, file) in meta["guest"].as_object().into_iter().flatten() {
        let id = ["build_id", "sha256"].map(|key| text(&file[key]));
        println!("{role:9} build ID {}, sha256 {}", id[0], id[1]);
    }
    println!(
        "stages    {}",
        if meta["stages"] == true { "all" } else { "decode, dispatch, commit" }
    );
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
