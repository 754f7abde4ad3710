//! Trace files of any content: read, sought and replayed as far as they go.
#![no_main]

use std::io::Cursor;

use commit_trace::{Batch, HartId, TraceReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, u64)| {
    let (bytes, cycle) = input;
    let Ok(mut reader) = TraceReader::new(Cursor::new(bytes), "trace".into()) else {
        return;
    };
    let mut batch = Batch::default();
    while let Ok(true) = reader.next_batch(&mut batch) {}
    if reader.seek_cycle(HartId(0), cycle).is_ok() {
        let _ = reader.next_batch(&mut batch);
    }
});
