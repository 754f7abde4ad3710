//! One chunk: batches of one hart, self-contained.

mod compress;
mod decode;
mod encode;

pub(super) use compress::Compressor;
pub(super) use decode::{CONTEXT_COLUMNS, ChunkDecoder};
pub(super) use encode::{ChunkEncoder, ClosedChunk};

use super::columns::Column;
use super::varint::Cursor;
use super::{CHUNK_MAGIC, MAX_CHUNK_RECORDS, MAX_COLUMN_BYTES};

/// The fixed part before a chunk's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    pub(super) payload_crc: u32,
    pub(super) hart: u32,
    pub(super) batches: u32,
    pub(super) records: u32,
    pub(super) first_seq: u64,
    pub(super) start_cycle: u64,
    pub(super) end_cycle: u64,
    pub(super) first_inst: u32,
    /// Number of static instructions that the chunk defines, from `first_inst` on.
    pub(super) insts: u32,
    /// Bytes per column: raw, compressed.
    pub(super) columns: [(u32, u32); Column::COUNT],
}

impl ChunkHeader {
    pub(super) const BYTES: usize = 56 + 8 * Column::COUNT;

    pub(super) fn payload_bytes(&self) -> u64 {
        self.columns.iter().map(|(_, packed)| u64::from(*packed)).sum()
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(Self::BYTES);
        for word in [self.payload_crc, self.hart, self.batches, self.records] {
            body.extend(word.to_le_bytes());
        }
        for word in [self.first_seq, self.start_cycle, self.end_cycle] {
            body.extend(word.to_le_bytes());
        }
        let columns = self.columns.iter().flat_map(|(raw, packed)| [*raw, *packed]);
        for word in [self.first_inst, self.insts].into_iter().chain(columns) {
            body.extend(word.to_le_bytes());
        }
        out.extend(CHUNK_MAGIC.to_le_bytes());
        out.extend(crc32fast::hash(&body).to_le_bytes());
        out.extend(body);
    }

    /// Reads a header and checks that its sizes are ones a reader may allocate.
    pub(super) fn take(bytes: &[u8; Self::BYTES]) -> Result<Self, &'static str> {
        let mut input = Cursor(bytes);
        let short = "a short chunk header";
        if input.u32() != Some(CHUNK_MAGIC) {
            return Err("no chunk starts here");
        }
        if input.u32() != Some(crc32fast::hash(&bytes[8..])) {
            return Err("the chunk header's checksum is wrong");
        }
        let mut header = || {
            let mut header = Self {
                payload_crc: input.u32()?,
                hart: input.u32()?,
                batches: input.u32()?,
                records: input.u32()?,
                first_seq: input.u64()?,
                start_cycle: input.u64()?,
                end_cycle: input.u64()?,
                first_inst: input.u32()?,
                insts: input.u32()?,
                ..Self::default()
            };
            for (raw, packed) in &mut header.columns {
                (*raw, *packed) = (input.u32()?, input.u32()?);
            }
            Some(header)
        };
        let header = header().ok_or(short)?;
        let largest = header.columns.iter().map(|(raw, packed)| (*raw).max(*packed)).max();
        if header.records > MAX_CHUNK_RECORDS || largest > Some(MAX_COLUMN_BYTES) {
            return Err("the chunk is larger than any writer makes it");
        }
        Ok(header)
    }
}
