//! The units of a sampled program as a file.
//!
//! Between units of a sampled run a functional hart tells a core which lines and pages it accesses, so that caches and TLBs stay
//! warm, and which path it takes, from which predictors learn; in units it tells all that it executes. The file has exactly these calls
//! ([`timing::CoreCall`]), so that a core of the same instruction set, with any other caches, predictors and widths, can be told the same
//! later ([`UnitReader`]), without the machine, its memory and its devices. Told to a core as it was, the units take the cycles that they took.
//!
//! ```text
//! file   = "TIPUNITS", version u32, metadata length u32, metadata (UTF-8), chunk..., end
//! chunk  = bytes of each column and its compressed bytes (u32 each), a zstd frame (with a checksum) of each column that has any
//! end    = a chunk of zeros, number of calls u64, crc32 of all before u32; nothing follows
//! ```
//!
//! Integers are little-endian. One thread decodes what another has encoded in the same order, and both foresee what comes next in the same
//! way (`codec.rs`), so that mostly nothing but how long that goes well is in the file.
//!
//! What the file has does not depend on when the hart's code was translated: straight pieces of the path are joined, and the path has columns of its own, from which it is read in
//! pieces between the other calls. Caches and predictors know nothing of each other, so that it does not matter between which.

mod codec;
mod columns;
mod reader;
mod writer;

pub use reader::{UnitReader, UnitsError};
pub use writer::{UnitWriter, WriterHandle};

const MAGIC: &[u8; 8] = b"TIPUNITS";
/// Version of the format.
const VERSION: u32 = 5;
/// Bytes of metadata that a reader accepts at most.
const MAX_METADATA: u32 = 1 << 24;
/// Bytes of columns from which on a chunk is written.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of columns from which on a chunk is written while predictors learn. Only rests of some million instructions have more.
const LEARNING_CHUNK_BYTES: usize = 1 << 23;
/// Bytes of all columns of a chunk that a reader accepts at most.
const MAX_CHUNK: usize = 1 << 26;
/// Static instructions of a file at most.
const MAX_INSTRUCTIONS: usize = 1 << 24;

#[cfg(test)]
mod tests;
