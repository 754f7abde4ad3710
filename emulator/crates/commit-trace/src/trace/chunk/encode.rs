//! From batches to a chunk.

use super::{ChunkHeader, Compressor};
use crate::trace::columns::{Column, Columns};
use crate::trace::context::{StaticInfoState, put_event, put_static_info};
use crate::trace::records::RecordEncoder;
use crate::trace::stages;
use crate::trace::varint::{put, put_signed};
use crate::trace::{
    CHUNK_BATCHES, CHUNK_CONTEXT_BYTES, CHUNK_CYCLES, CHUNK_RECORDS, MAX_CHUNK_RECORDS,
    MAX_COLUMN_BYTES,
};
use crate::{Batch, HartId};

/// Collects the batches of one hart.
#[derive(Debug)]
pub(in crate::trace) struct ChunkEncoder {
    header: ChunkHeader,
    columns: Columns,
    records: RecordEncoder,
    static_info: StaticInfoState,
    next_seq: u64,
}

impl ChunkEncoder {
    pub(in crate::trace) fn new(hart: HartId) -> Self {
        Self {
            header: ChunkHeader { hart: hart.0, ..ChunkHeader::default() },
            columns: Columns::default(),
            records: RecordEncoder::new(),
            static_info: StaticInfoState::default(),
            next_seq: 0,
        }
    }

    pub(in crate::trace) fn is_empty(&self) -> bool {
        self.header.batches == 0
    }

    /// True if the chunk should be written now.
    pub(in crate::trace) fn is_full(&self) -> bool {
        let context = self.columns[Column::StaticInfo].len() + self.columns[Column::Events].len();
        self.header.records as usize >= CHUNK_RECORDS
            || self.header.batches as usize >= CHUNK_BATCHES
            || self.header.end_cycle.saturating_sub(self.header.start_cycle) >= CHUNK_CYCLES
            || context >= CHUNK_CONTEXT_BYTES
    }

    /// Begins a batch, unless it is one that no reader would take. [`Self::go_on`] then adds its records.
    pub(in crate::trace) fn begin(&mut self, batch: &Batch) -> Result<(), &'static str> {
        let header = &mut self.header;
        let overflows = "its cycle numbers overflow";
        let after_events = batch.after_events().ok_or(overflows)?;
        // Far from the limit the records need not be added up.
        batch.bound().or_else(|| batch.end_cycle()).ok_or(overflows)?;
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
        if header.insts == 0 {
            header.first_inst = batch.static_info.first().map_or(0, |static_info| static_info.id.0);
        }
        let table = &mut self.columns[Column::Batches];
        put_signed(table, batch.first_seq.0.wrapping_sub(self.next_seq) as i64);
        put_signed(table, batch.start_cycle.wrapping_sub(header.end_cycle) as i64);
        for count in
            [batch.static_info.len(), batch.events.len(), batch.records.len(), batch.stages.len()]
        {
            put(table, count as u64);
        }
        for static_info in &batch.static_info {
            put_static_info(
                &mut self.columns[Column::StaticInfo],
                &mut self.static_info,
                static_info,
            );
        }
        let mut before = 0;
        for (index, event) in &batch.events {
            put_event(&mut self.columns[Column::Events], before, *index, event);
            before = *index;
        }
        self.next_seq = batch.first_seq.0.wrapping_add(batch.records.len() as u64);
        header.batches += 1;
        header.records += batch.records.len() as u32;
        header.insts += batch.static_info.len() as u32;
        // The cycles of the batch's records are added with the records.
        header.end_cycle = after_events;
        Ok(())
    }

    /// Adds up to `most` of the batch's records after the first `done`, and returns true if these were the last.
    pub(in crate::trace) fn go_on(
        &mut self,
        batch: &Batch,
        done: &mut usize,
        most: usize,
    ) -> Result<bool, &'static str> {
        let rest = &batch.records[*done..];
        let records = &rest[..rest.len().min(most)];
        self.header.end_cycle += self.records.encode(records, &mut self.columns);
        *done += records.len();
        if *done < batch.records.len() {
            return Ok(false);
        }
        stages::encode(&batch.records, &batch.stages, &mut self.columns);
        if self.columns.iter().any(|column| column.len() > MAX_COLUMN_BYTES as usize) {
            return Err("its columns are too large");
        }
        Ok(true)
    }

    /// Closes the chunk, and starts the next in the memory of `spare`, the columns of an earlier chunk.
    pub(in crate::trace) fn close(&mut self, mut spare: Columns) -> ClosedChunk {
        spare.clear();
        let next = ChunkHeader { hart: self.header.hart, ..ChunkHeader::default() };
        self.records.clear();
        self.static_info = StaticInfoState::default();
        ClosedChunk {
            header: std::mem::replace(&mut self.header, next),
            columns: std::mem::replace(&mut self.columns, spare),
            column: 0,
            done: 0,
            payload: Vec::new(),
        }
    }
}

/// A chunk that has all its records, and is compressed a piece at a time.
#[derive(Debug)]
pub(in crate::trace) struct ClosedChunk {
    header: ChunkHeader,
    columns: Columns,
    /// Number of the column that is compressed next.
    column: usize,
    /// Bytes of that column that are compressed already.
    done: usize,
    payload: Vec<u8>,
}

impl ClosedChunk {
    /// Compresses another piece, and returns false if there is none left.
    pub(in crate::trace) fn compress(
        &mut self,
        compressor: &mut Compressor,
    ) -> std::io::Result<bool> {
        let mut rest = self.columns.iter().enumerate().skip(self.column);
        let Some((number, column)) = rest.find(|(_, column)| !column.is_empty()) else {
            return Ok(false);
        };
        self.column = number;
        let (_, packed) = &mut self.header.columns[number];
        let before = self.payload.len();
        let is_whole = compressor.piece(column, &mut self.done, &mut self.payload)?;
        *packed += (self.payload.len() - before) as u32;
        if is_whole {
            self.header.columns[number].0 = column.len() as u32;
            (self.column, self.done) = (number + 1, 0);
        }
        Ok(true)
    }

    /// Appends the chunk, all of which is compressed, to `out`; returns its header, and its columns for their memory.
    pub(in crate::trace) fn put(self, out: &mut Vec<u8>) -> (ChunkHeader, Columns) {
        let Self { mut header, columns, payload, .. } = self;
        header.payload_crc = crc32fast::hash(&payload);
        header.put(out);
        out.extend(payload);
        (header, columns)
    }
}
