//! From a chunk to batches.

use super::ChunkHeader;
use crate::trace::columns::{Column, Columns};
use crate::trace::context::{StaticInfoState, take_event, take_static_info};
use crate::trace::records::{Progress, RecordDecoder};
use crate::trace::stages;
use crate::trace::varint::Cursor;
use crate::{Batch, HartId, Seq};

/// Gives a chunk's batches back, one by one.
pub(in crate::trace) struct ChunkDecoder {
    columns: Columns,
    /// The decompressor, kept from chunk to chunk: a new one's memory is fresh pages.
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    records: RecordDecoder,
    progress: Progress,
    stages: stages::Progress,
    static_info: StaticInfoState,
    /// How far the context columns were read.
    at: [usize; 3],
    hart: HartId,
    batches_left: u32,
    next_seq: u64,
    cycle: u64,
}

/// The columns that hold a chunk's context, without its records.
pub(in crate::trace) const CONTEXT_COLUMNS: usize = Column::Tokens as usize;

impl ChunkDecoder {
    pub(in crate::trace) fn new() -> Self {
        Self {
            columns: Columns::default(),
            decompressor: None,
            records: RecordDecoder::new(),
            progress: Progress::default(),
            stages: stages::Progress::default(),
            static_info: StaticInfoState::default(),
            at: [0; 3],
            hart: HartId(0),
            batches_left: 0,
            next_seq: 0,
            cycle: 0,
        }
    }

    pub(in crate::trace) fn is_empty(&self) -> bool {
        self.batches_left == 0
    }

    /// Drops what is left of the chunk.
    pub(in crate::trace) fn abandon(&mut self) {
        self.batches_left = 0;
    }

    /// Starts a chunk whose payload (or the first `columns` columns of it) is given.
    pub(in crate::trace) fn start(
        &mut self,
        header: &ChunkHeader,
        mut payload: &[u8],
        columns: usize,
    ) -> Result<(), &'static str> {
        self.abandon();
        self.columns.clear();
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(|_| "no memory")?),
        };
        for (column, (raw, packed)) in self.columns.iter_mut().zip(header.columns).take(columns) {
            let (frame, rest) =
                payload.split_at_checked(packed as usize).ok_or("the chunk is short")?;
            payload = rest;
            if packed == 0 && raw == 0 {
                continue;
            }
            column.reserve(raw as usize);
            let found = decompressor
                .decompress_to_buffer(frame, column)
                .map_err(|_| "a column does not decompress")?;
            if found != raw as usize {
                return Err("a column's length is wrong");
            }
        }
        self.records.clear();
        self.progress = Progress::default();
        self.stages = stages::Progress::default();
        self.static_info = StaticInfoState::default();
        self.at = [0; 3];
        self.hart = HartId(header.hart);
        self.batches_left = header.batches;
        self.next_seq = header.first_seq;
        self.cycle = header.start_cycle;
        Ok(())
    }

    /// Reads the next batch into `batch`, which is cleared first; without its records if `context_only`.
    pub(in crate::trace) fn next(
        &mut self,
        batch: &mut Batch,
        context_only: bool,
    ) -> Result<(), &'static str> {
        // The records stay: they are written over.
        let mut kept = std::mem::take(&mut batch.records);
        batch.clear();
        self.batches_left -= 1;
        let (records, staged) =
            self.context(batch).ok_or("the chunk's static info and events do not parse")?;
        if !context_only {
            let cycles = self
                .records
                .decode(records, &self.columns, &mut self.progress, &mut kept)
                .ok_or("the chunk's records do not parse")?;
            batch.records = kept;
            if staged {
                let Batch { records, stages, .. } = batch;
                stages::decode(records, &self.columns, &mut self.stages, stages)
                    .ok_or("the chunk's stages do not parse")?;
            }
            let idle = batch.events.iter().map(|(_, event)| event.idle());
            self.cycle = idle
                .chain([cycles])
                .try_fold(batch.start_cycle, u64::checked_add)
                .ok_or("cycle numbers overflow")?;
        }
        Ok(())
    }

    /// Reads all of a batch but its records; returns how many records there are, and whether there are stages of them.
    fn context(&mut self, batch: &mut Batch) -> Option<(usize, bool)> {
        let [static_info_at, batches_at, events_at] = self.at;
        let mut static_info_in = Cursor(self.columns[Column::StaticInfo].get(static_info_at..)?);
        let mut batches_in = Cursor(self.columns[Column::Batches].get(batches_at..)?);
        let mut events_in = Cursor(self.columns[Column::Events].get(events_at..)?);
        batch.hart = self.hart;
        batch.first_seq = Seq(self.next_seq.wrapping_add(batches_in.signed()? as u64));
        batch.start_cycle = self.cycle.wrapping_add(batches_in.signed()? as u64);
        let insts: u32 = batches_in.narrow()?;
        let events: u32 = batches_in.narrow()?;
        let records: u32 = batches_in.narrow()?;
        let stages: u32 = batches_in.narrow()?;
        if stages != 0 && stages != records {
            return None;
        }
        for _ in 0..insts {
            batch.static_info.push(take_static_info(&mut static_info_in, &mut self.static_info)?);
        }
        let mut before = 0;
        for _ in 0..events {
            let (index, event) = take_event(&mut events_in, before)?;
            before = index;
            batch.events.push((index, event));
        }
        self.next_seq = batch.first_seq.0.wrapping_add(u64::from(records));
        self.at = [
            self.columns[Column::StaticInfo].len() - static_info_in.0.len(),
            self.columns[Column::Batches].len() - batches_in.0.len(),
            self.columns[Column::Events].len() - events_in.0.len(),
        ];
        Some((records as usize, stages != 0))
    }
}
