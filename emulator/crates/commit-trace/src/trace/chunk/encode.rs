//! From batches to a chunk.

use super::ChunkHeader;
use crate::trace::columns::{Column, Columns};
use crate::trace::context::{FactsState, put_event, put_facts};
use crate::trace::records::RecordEncoder;
use crate::trace::stages;
use crate::trace::varint::{put, put_signed};
use crate::trace::{
    CHUNK_BATCHES, CHUNK_CONTEXT_BYTES, CHUNK_CYCLES, CHUNK_RECORDS, MAX_CHUNK_RECORDS,
    MAX_COLUMN_BYTES,
};
use crate::{Batch, HartId};

/// zstd's fastest level: the columns are mostly zeros by now, higher ones gain a few percent.
const LEVEL: i32 = 1;

pub(in crate::trace) fn compressor() -> std::io::Result<zstd::bulk::Compressor<'static>> {
    zstd::bulk::Compressor::new(LEVEL)
}

/// Collects the batches of one hart.
#[derive(Debug)]
pub(in crate::trace) struct ChunkEncoder {
    header: ChunkHeader,
    columns: Columns,
    records: RecordEncoder,
    facts: FactsState,
    next_seq: u64,
}

impl ChunkEncoder {
    pub(in crate::trace) fn new(hart: HartId) -> Self {
        Self {
            header: ChunkHeader {
                hart: hart.0,
                ..ChunkHeader::default()
            },
            columns: Columns::default(),
            records: RecordEncoder::new(),
            facts: FactsState::default(),
            next_seq: 0,
        }
    }

    pub(in crate::trace) fn is_empty(&self) -> bool {
        self.header.batches == 0
    }

    /// True if the chunk should be written now.
    pub(in crate::trace) fn is_full(&self) -> bool {
        let context = self.columns[Column::Facts].len() + self.columns[Column::Events].len();
        self.header.records as usize >= CHUNK_RECORDS
            || self.header.batches as usize >= CHUNK_BATCHES
            || self
                .header
                .end_cycle
                .saturating_sub(self.header.start_cycle)
                >= CHUNK_CYCLES
            || context >= CHUNK_CONTEXT_BYTES
    }

    /// Adds a batch, unless it is one that no reader would take.
    pub(in crate::trace) fn batch(&mut self, batch: &Batch) -> Result<(), &'static str> {
        let header = &mut self.header;
        let end_cycle = batch.end_cycle().ok_or("its cycle numbers overflow")?;
        if batch.records.len() + header.records as usize > MAX_CHUNK_RECORDS as usize {
            return Err("it has too many records");
        }
        if !batch.stages.is_empty() && batch.stages.len() != batch.records.len() {
            return Err("it has stages for some of its records only");
        }
        if header.batches == 0 {
            header.first_seq = batch.first_seq.0;
            header.start_cycle = batch.start_cycle;
            header.end_cycle = batch.start_cycle;
            self.next_seq = batch.first_seq.0;
        }
        if header.facts == 0 {
            header.first_fact = batch.facts.first().map_or(0, |facts| facts.id.0);
        }
        let table = &mut self.columns[Column::Batches];
        put_signed(table, batch.first_seq.0.wrapping_sub(self.next_seq) as i64);
        put_signed(
            table,
            batch.start_cycle.wrapping_sub(header.end_cycle) as i64,
        );
        for count in [
            batch.facts.len(),
            batch.events.len(),
            batch.records.len(),
            batch.stages.len(),
        ] {
            put(table, count as u64);
        }
        for facts in &batch.facts {
            put_facts(&mut self.columns[Column::Facts], &mut self.facts, facts);
        }
        let mut before = 0;
        for (index, event) in &batch.events {
            put_event(&mut self.columns[Column::Events], before, *index, event);
            before = *index;
        }
        self.records.encode(&batch.records, &mut self.columns);
        stages::encode(&batch.records, &batch.stages, &mut self.columns);
        self.next_seq = batch.first_seq.0.wrapping_add(batch.records.len() as u64);
        header.batches += 1;
        header.records += batch.records.len() as u32;
        header.facts += batch.facts.len() as u32;
        header.end_cycle = end_cycle;
        if self
            .columns
            .iter()
            .any(|column| column.len() > MAX_COLUMN_BYTES as usize)
        {
            return Err("its columns are too large");
        }
        Ok(())
    }

    /// Closes the chunk, and starts the next in the memory of `spare`, another one's columns.
    pub(in crate::trace) fn close(&mut self, mut spare: Columns) -> ClosedChunk {
        spare.clear();
        let next = ChunkHeader {
            hart: self.header.hart,
            ..ChunkHeader::default()
        };
        self.records.clear();
        self.facts = FactsState::default();
        ClosedChunk {
            header: std::mem::replace(&mut self.header, next),
            columns: std::mem::replace(&mut self.columns, spare),
            compressed: 0,
            payload: Vec::new(),
        }
    }
}

/// A chunk that is whole, and is compressed one column at a time: all at once takes up to a millisecond, in which others
/// may wait.
#[derive(Debug)]
pub(in crate::trace) struct ClosedChunk {
    header: ChunkHeader,
    columns: Columns,
    compressed: usize,
    payload: Vec<u8>,
}

impl ClosedChunk {
    /// Compresses another column; false: all are.
    pub(in crate::trace) fn compress(
        &mut self,
        compressor: &mut zstd::bulk::Compressor<'_>,
    ) -> std::io::Result<bool> {
        let columns = self.columns.iter().zip(&mut self.header.columns);
        let mut rest = columns.enumerate().skip(self.compressed);
        let Some((number, (column, sizes))) = rest.find(|(_, (column, _))| !column.is_empty())
        else {
            return Ok(false);
        };
        let packed = compressor.compress(column)?;
        *sizes = (column.len() as u32, packed.len() as u32);
        self.payload.extend(packed);
        self.compressed = number + 1;
        Ok(true)
    }

    /// Appends the chunk, all of which is compressed, to `out`; its header, and its memory.
    pub(in crate::trace) fn put(self, out: &mut Vec<u8>) -> (ChunkHeader, Columns) {
        let Self {
            mut header,
            columns,
            payload,
            ..
        } = self;
        header.payload_crc = crc32fast::hash(&payload);
        header.put(out);
        out.extend(payload);
        (header, columns)
    }
}
