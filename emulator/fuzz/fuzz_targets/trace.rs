//! Trace files with some bytes changed, cut anywhere: read and sought as far as they go.
#![no_main]

use std::io::Cursor;
use std::sync::OnceLock;

use commit_trace::{Batch, HartId, TraceReader, TraceWriter, synthetic};
use libfuzzer_sys::fuzz_target;

/// A whole trace.
fn whole() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, "trace".into(), "{}").unwrap();
    for batch in synthetic::program(20_000, 1) {
        writer.batch(&batch).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fuzz_target!(|input: (Vec<(u32, u8)>, Option<u32>, u64)| {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    let (changes, cut, cycle) = input;
    let mut bytes = WHOLE.get_or_init(whole).clone();
    let length = bytes.len();
    for (at, value) in changes {
        bytes[at as usize % length] ^= value;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut as usize % length);
    }
    let Ok(mut reader) = TraceReader::new(Cursor::new(bytes), "trace".into()) else {
        return;
    };
    let mut batch = Batch::default();
    while let Ok(true) = reader.next_batch(&mut batch) {}
    if reader.seek_cycle(HartId(0), cycle).is_ok() {
        let _ = reader.next_batch(&mut batch);
    }
});
