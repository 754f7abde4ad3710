//! Makes a long trace of a short one, to measure what long runs cost: its records again and again, until there are
//! as many as asked for. The guest's own records (processes, mappings) come once.
//!
//! `cargo run --release -p commit-trace --example longer -- TRACE RECORDS OUT`

use std::error::Error;
use std::path::Path;

use commit_trace::{Batch, Event, Seq, TraceReader, TraceWriter};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, records, to] = &args[..] else {
        return Err("expected TRACE RECORDS OUT".into());
    };
    let target: u64 = records.parse()?;
    let mut writer: Option<TraceWriter<_>> = None;
    let (mut seq, mut cycle, mut batch) = (0, 0, Batch::default());
    while seq < target {
        let first = writer.is_none();
        let mut reader = TraceReader::open(Path::new(from))?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(TraceWriter::create(Path::new(to), reader.metadata())?),
        };
        let start = seq;
        while seq < target && reader.next_batch(&mut batch)? {
            batch.events.retain(|(_, event)| match event {
                Event::Idle { .. } => true,
                Event::End => false,
                Event::Privilege(_)
                | Event::SideBand { .. }
                | Event::Region(_)
                | Event::RegionAnew
                | Event::Weight(_) => first,
            });
            if !first {
                batch.static_info.clear();
            }
            (batch.first_seq, batch.start_cycle) = (Seq(seq), cycle);
            writer.batch(&batch)?;
            seq += batch.records.len() as u64;
            cycle = batch.end_cycle().ok_or("too many cycles")?;
        }
        if seq == start {
            return Err("the trace holds no records".into());
        }
    }
    if let Some(writer) = writer {
        writer.finish()?;
    }
    println!("{seq} records, {cycle} cycles");
    Ok(())
}
