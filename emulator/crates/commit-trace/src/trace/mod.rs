//! The trace file: one run's batches, compressed, readable up to wherever it was cut.
//!
//! ```text
//! file    = header, chunk..., [index]
//! header  = "TIPTRACE", version u32, metadata length u32, metadata (UTF-8 JSON), crc32 u32
//! chunk   = chunk header (152 bytes: see chunk.rs), one zstd frame per column
//! index   = "TIDX", chunk count u32, 40 bytes per chunk, trailer (24 bytes)
//! trailer = offset of the index u64, crc32 of the index u32, crc32 of the trailer's start u32, "TIPTREND"
//! ```
//!
//! Integers are little-endian. Chunks stand alone: nothing but the static info of instructions and
//! the guest's context carries over from earlier ones, and those lie in columns of their own, so
//! that a seek reads little. There are no time stamps and no host paths: equal runs give equal files.

mod chunk;
mod columns;
mod context;
mod error;
mod reader;
mod records;
mod replay;
mod stages;
pub mod varint;
mod writer;

pub use error::TraceError;
pub use reader::{ChunkInfo, TraceEnd, TraceReader};
pub use replay::Replay;
pub use writer::{Compression, TraceSummary, TraceWriter, Written};

const MAGIC: &[u8; 8] = b"TIPTRACE";
/// The format's version. 4: tokens hold larger deltas, decode leads follow from them. 3: tokens as they are, and larger
/// tables of what is predicted. 2: columns for stages.
const VERSION: u32 = 4;
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"TCHK");
const INDEX_MAGIC: u32 = u32::from_le_bytes(*b"TIDX");
const TRAILER_MAGIC: &[u8; 8] = b"TIPTREND";
/// Ends, in place of [`TRAILER_MAGIC`], a trace whose run was over before its time. A reader that does not know it takes the
/// trace for a cut one.
const PART_MAGIC: &[u8; 8] = b"TIPTPART";
const TRAILER_BYTES: u64 = 24;
const INDEX_ENTRY_BYTES: u64 = 40;

/// A chunk is written when it holds this many records (some 10 ms of simulation), so that a killed
/// run loses little, and compression and prediction still have something to learn from.
const CHUNK_RECORDS: usize = 256 * 1024;
/// A chunk is also written when it spans this many cycles (about a second of a hart that mostly sleeps).
const CHUNK_CYCLES: u64 = 1 << 32;
/// A chunk is also written when it holds this many batches.
const CHUNK_BATCHES: usize = 128;
/// A chunk is also written when it holds this many bytes of static info and events.
const CHUNK_CONTEXT_BYTES: usize = 1 << 20;

/// Records that a reader accepts in a chunk at most: a hostile file must not make it allocate without bound.
const MAX_CHUNK_RECORDS: u32 = 1 << 22;
/// Bytes that a reader accepts in a column at most.
const MAX_COLUMN_BYTES: u32 = 1 << 26;
/// Bytes that a reader accepts as metadata at most.
const MAX_METADATA_BYTES: u32 = 1 << 24;

#[cfg(test)]
mod tests;
