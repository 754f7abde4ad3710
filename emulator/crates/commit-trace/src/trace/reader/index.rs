//! Where the chunks are: from the index, or by walking the file if it has none.

use std::io::{self, Read, Seek, SeekFrom};

use super::{ChunkHeader, TraceEnd};
use crate::trace::varint::Cursor;
use crate::trace::{INDEX_ENTRY_BYTES, INDEX_MAGIC, PART_MAGIC, TRAILER_BYTES, TRAILER_MAGIC};
use crate::{HartId, Seq};

/// One chunk of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Offset of the chunk in the file, in bytes.
    pub offset: u64,
    /// The hart whose batches the chunk holds.
    pub hart: HartId,
    /// Records in the chunk.
    pub records: u32,
    /// Number of the chunk's first record.
    pub first_seq: Seq,
    /// Last cycle before the chunk.
    pub start_cycle: u64,
    /// Last cycle in the chunk.
    pub end_cycle: u64,
}

/// Finds the chunks of a file whose first one is at `start`.
pub(super) fn read(
    input: &mut (impl Read + Seek),
    start: u64,
) -> io::Result<(Vec<ChunkInfo>, TraceEnd)> {
    let len = input.seek(SeekFrom::End(0))?;
    match from_index(input, start, len)? {
        Some(found) => Ok(found),
        None => walk(input, start, len),
    }
}

/// Reads the chunks from the index; `None` if there is no index, or it is not what a writer wrote.
fn from_index(
    input: &mut (impl Read + Seek),
    start: u64,
    len: u64,
) -> io::Result<Option<(Vec<ChunkInfo>, TraceEnd)>> {
    let Some(trailer_at) = len.checked_sub(TRAILER_BYTES).filter(|at| *at >= start) else {
        return Ok(None);
    };
    input.seek(SeekFrom::Start(trailer_at))?;
    let mut trailer = [0; TRAILER_BYTES as usize];
    input.read_exact(&mut trailer)?;
    let mut fields = Cursor(&trailer);
    let (at, index_crc, crc) = (fields.u64(), fields.u32(), fields.u32());
    let end = match fields.0 {
        magic if magic == TRAILER_MAGIC => TraceEnd::Complete,
        magic if magic == PART_MAGIC => TraceEnd::Part,
        _ => return Ok(None),
    };
    let whole = crc == Some(crc32fast::hash(&trailer[..12]));
    let Some(at) = at.filter(|at| whole && (start..trailer_at).contains(at)) else {
        return Ok(None);
    };
    input.seek(SeekFrom::Start(at))?;
    let mut index = Vec::new();
    input.by_ref().take(trailer_at - at).read_to_end(&mut index)?;
    if index_crc != Some(crc32fast::hash(&index)) {
        return Ok(None);
    }
    Ok(parse(&index).map(|chunks| (chunks, end)))
}

fn parse(index: &[u8]) -> Option<Vec<ChunkInfo>> {
    let mut input = Cursor(index);
    if input.u32()? != INDEX_MAGIC {
        return None;
    }
    let count = input.u32()?;
    if u64::from(count) * INDEX_ENTRY_BYTES != input.0.len() as u64 {
        return None;
    }
    (0..count)
        .map(|_| {
            Some(ChunkInfo {
                offset: input.u64()?,
                hart: HartId(input.u32()?),
                records: input.u32()?,
                first_seq: Seq(input.u64()?),
                start_cycle: input.u64()?,
                end_cycle: input.u64()?,
            })
        })
        .collect()
}

/// Follows the chunks from header to header.
fn walk(
    input: &mut (impl Read + Seek),
    start: u64,
    len: u64,
) -> io::Result<(Vec<ChunkInfo>, TraceEnd)> {
    let mut chunks = Vec::new();
    let mut offset = start;
    loop {
        if len - offset < 4 {
            return Ok((chunks, TraceEnd::Cut { offset }));
        }
        input.seek(SeekFrom::Start(offset))?;
        let mut bytes = [0; ChunkHeader::BYTES];
        let mut got = 0;
        while got < bytes.len() {
            match input.read(&mut bytes[got..])? {
                0 => break,
                more => got += more,
            }
        }
        if bytes.starts_with(&INDEX_MAGIC.to_le_bytes()) {
            // The index is cut, or damaged; either way every chunk is there.
            return Ok((chunks, index_end(&bytes[4..got], len, offset)));
        }
        if got < bytes.len() {
            return Ok((chunks, TraceEnd::Cut { offset }));
        }
        let header = match ChunkHeader::take(&bytes) {
            Ok(header) => header,
            Err(what) => return Ok((chunks, TraceEnd::Damaged { offset, what })),
        };
        let next = offset + ChunkHeader::BYTES as u64 + header.payload_bytes();
        if next > len {
            return Ok((chunks, TraceEnd::Cut { offset }));
        }
        chunks.push(ChunkInfo {
            offset,
            hart: HartId(header.hart),
            records: header.records,
            first_seq: Seq(header.first_seq),
            start_cycle: header.start_cycle,
            end_cycle: header.end_cycle,
        });
        offset = next;
    }
}

fn index_end(after_magic: &[u8], len: u64, offset: u64) -> TraceEnd {
    let count = Cursor(after_magic).u32().map_or(u64::MAX, u64::from);
    let whole = count
        .checked_mul(INDEX_ENTRY_BYTES)
        .is_some_and(|bytes| len - offset >= 8 + bytes + TRAILER_BYTES);
    if whole {
        TraceEnd::Damaged { offset, what: "the index's checksum is wrong" }
    } else {
        TraceEnd::Cut { offset }
    }
}
