//! A profiler of one's own: where a trace's cycles go, by sampling the Oracle every 1000th cycle.
//!
//! `cargo run --release -p commit-trace --example hottest -- out/quickstart/trace.tip`

use std::{collections::HashMap, error::Error, path::Path};

use commit_trace::{Batch, Span, SpanBuilder, SpanSink, StaticInfo, TraceReader};

/// Samples by instruction, and what the instructions are.
#[derive(Default)]
struct Hottest {
    samples: HashMap<u32, u64>,
    static_info: Vec<StaticInfo>,
}

impl SpanSink for Hottest {
    fn span(&mut self, span: &Span<'_>) {
        let triggers = (span.end() - 1) / 1000 - (span.start - 1) / 1000;
        // Nobody's are the cycles in which the hart sleeps.
        if let Some(record) = span.records.first().filter(|_| triggers > 0) {
            *self.samples.entry(record.inst.0).or_default() += triggers;
        }
    }

    fn static_info(&mut self, _cycle: u64, static_info: &StaticInfo) {
        self.static_info.push(*static_info);
    }
}

/// Samples and addresses, the hottest first.
pub(crate) fn profile(trace: &Path) -> Result<Vec<(u64, u64)>, Box<dyn Error>> {
    let (mut reader, mut batch) = (TraceReader::open(trace)?, Batch::default());
    let (mut spans, mut found) = (SpanBuilder::new(), Hottest::default());
    while reader.next_batch(&mut batch)? {
        spans.batch(&batch, &mut found)?;
    }
    let pc = |inst: u32| found.static_info[inst as usize].pc;
    let mut rows: Vec<_> = found.samples.iter().map(|(i, n)| (*n, pc(*i))).collect();
    rows.sort_by(|a, b| b.cmp(a));
    Ok(rows)
}

fn main() -> Result<(), Box<dyn Error>> {
    let trace = std::env::args().nth(1).ok_or("usage: hottest TRACE")?;
    for (samples, pc) in profile(Path::new(&trace))?.iter().take(20) {
        println!("{samples:>8} {pc:#018x}");
    }
    Ok(())
}
