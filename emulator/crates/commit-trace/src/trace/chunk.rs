//! One chunk: batches of one hart, self-contained.

use super::columns::{Column, Columns};
use super::context::{FactsState, put_event, put_facts, take_event, take_facts};
use super::records::{Progress, RecordDecoder, RecordEncoder};
use super::varint::{Cursor, put, put_signed};
use super::{
    CHUNK_BATCHES, CHUNK_CONTEXT_BYTES, CHUNK_MAGIC, CHUNK_RECORDS, MAX_CHUNK_RECORDS,
    MAX_COLUMN_BYTES,
};
use crate::{Batch, HartId, Seq};

/// zstd's fastest level: the columns are mostly zeros by now, higher ones gain a few percent.
const LEVEL: i32 = 1;

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
    pub(super) first_fact: u32,
    pub(super) facts: u32,
    /// Bytes per column: raw, compressed.
    pub(super) columns: [(u32, u32); Column::COUNT],
}

impl ChunkHeader {
    pub(super) const BYTES: usize = 56 + 8 * Column::COUNT;

    pub(super) fn payload_bytes(&self) -> u64 {
        self.columns
            .iter()
            .map(|(_, packed)| u64::from(*packed))
            .sum()
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(Self::BYTES);
        for word in [self.payload_crc, self.hart, self.batches, self.records] {
            body.extend(word.to_le_bytes());
        }
        for word in [self.first_seq, self.start_cycle, self.end_cycle] {
            body.extend(word.to_le_bytes());
        }
        let columns = self
            .columns
            .iter()
            .flat_map(|(raw, packed)| [*raw, *packed]);
        for word in [self.first_fact, self.facts].into_iter().chain(columns) {
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
                first_fact: input.u32()?,
                facts: input.u32()?,
                ..Self::default()
            };
            for (raw, packed) in &mut header.columns {
                (*raw, *packed) = (input.u32()?, input.u32()?);
            }
            Some(header)
        };
        let header = header().ok_or(short)?;
        let largest = header
            .columns
            .iter()
            .map(|(raw, packed)| (*raw).max(*packed))
            .max();
        if header.records > MAX_CHUNK_RECORDS || largest > Some(MAX_COLUMN_BYTES) {
            return Err("the chunk is larger than any writer makes it");
        }
        Ok(header)
    }
}

/// Collects the batches of one hart.
#[derive(Debug)]
pub(super) struct ChunkEncoder {
    header: ChunkHeader,
    columns: Columns,
    records: RecordEncoder,
    facts: FactsState,
    next_seq: u64,
}

impl ChunkEncoder {
    pub(super) fn new(hart: HartId) -> Self {
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

    pub(super) fn is_empty(&self) -> bool {
        self.header.batches == 0
    }

    /// True if the chunk should be written now.
    pub(super) fn is_full(&self) -> bool {
        let context = self.columns[Column::Facts].len() + self.columns[Column::Events].len();
        self.header.records as usize >= CHUNK_RECORDS
            || self.header.batches as usize >= CHUNK_BATCHES
            || context >= CHUNK_CONTEXT_BYTES
    }

    /// Adds a batch, unless it is one that no reader would take.
    pub(super) fn batch(&mut self, batch: &Batch) -> Result<(), &'static str> {
        let header = &mut self.header;
        let end_cycle = batch.end_cycle().ok_or("its cycle numbers overflow")?;
        if batch.records.len() + header.records as usize > MAX_CHUNK_RECORDS as usize {
            return Err("it has too many records");
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
        for count in [batch.facts.len(), batch.events.len(), batch.records.len()] {
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
            return Err("its facts or events are too large");
        }
        Ok(())
    }

    /// Compresses the chunk, appends it to `out`, and starts the next.
    pub(super) fn finish(
        &mut self,
        compressor: &mut zstd::bulk::Compressor<'_>,
        out: &mut Vec<u8>,
    ) -> std::io::Result<ChunkHeader> {
        let mut payload = Vec::new();
        for (column, sizes) in self.columns.iter().zip(&mut self.header.columns) {
            let packed = if column.is_empty() {
                Vec::new()
            } else {
                compressor.compress(column)?
            };
            *sizes = (column.len() as u32, packed.len() as u32);
            payload.extend(packed);
        }
        self.header.payload_crc = crc32fast::hash(&payload);
        self.header.put(out);
        out.extend(payload);
        let header = self.header;
        self.header = ChunkHeader {
            hart: header.hart,
            ..ChunkHeader::default()
        };
        self.columns.clear();
        self.records.clear();
        self.facts = FactsState::default();
        Ok(header)
    }
}

pub(super) fn compressor() -> std::io::Result<zstd::bulk::Compressor<'static>> {
    zstd::bulk::Compressor::new(LEVEL)
}

/// Gives a chunk's batches back, one by one.
#[derive(Debug)]
pub(super) struct ChunkDecoder {
    columns: Columns,
    records: RecordDecoder,
    progress: Progress,
    facts: FactsState,
    /// How far the context columns were read.
    at: [usize; 3],
    hart: HartId,
    batches_left: u32,
    next_seq: u64,
    cycle: u64,
}

/// The columns that hold a chunk's context, without its records.
pub(super) const CONTEXT_COLUMNS: usize = Column::Tokens as usize;

impl ChunkDecoder {
    pub(super) fn new() -> Self {
        Self {
            columns: Columns::default(),
            records: RecordDecoder::new(),
            progress: Progress::default(),
            facts: FactsState::default(),
            at: [0; 3],
            hart: HartId(0),
            batches_left: 0,
            next_seq: 0,
            cycle: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches_left == 0
    }

    /// Drops what is left of the chunk.
    pub(super) fn abandon(&mut self) {
        self.batches_left = 0;
    }

    /// Starts a chunk whose payload (or the first `columns` columns of it) is given.
    pub(super) fn start(
        &mut self,
        header: &ChunkHeader,
        mut payload: &[u8],
        columns: usize,
    ) -> Result<(), &'static str> {
        self.abandon();
        self.columns.clear();
        let mut decompressor = zstd::bulk::Decompressor::new().map_err(|_| "no memory")?;
        for (column, (raw, packed)) in self.columns.iter_mut().zip(header.columns).take(columns) {
            let (frame, rest) = payload
                .split_at_checked(packed as usize)
                .ok_or("the chunk is short")?;
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
        self.facts = FactsState::default();
        self.at = [0; 3];
        self.hart = HartId(header.hart);
        self.batches_left = header.batches;
        self.next_seq = header.first_seq;
        self.cycle = header.start_cycle;
        Ok(())
    }

    /// The next batch into `batch`, which is cleared first; without its records if `context_only`.
    pub(super) fn next(
        &mut self,
        batch: &mut Batch,
        context_only: bool,
    ) -> Result<(), &'static str> {
        batch.clear();
        self.batches_left -= 1;
        let records = self
            .context(batch)
            .ok_or("the chunk's facts and events do not parse")?;
        if !context_only {
            let cycles = self
                .records
                .decode(
                    records,
                    &self.columns,
                    &mut self.progress,
                    &mut batch.records,
                )
                .ok_or("the chunk's records do not parse")?;
            let idle = batch.events.iter().map(|(_, event)| event.idle());
            self.cycle = idle
                .chain([cycles])
                .try_fold(batch.start_cycle, u64::checked_add)
                .ok_or("cycle numbers overflow")?;
        }
        Ok(())
    }

    /// Everything but the records; returns how many there are.
    fn context(&mut self, batch: &mut Batch) -> Option<usize> {
        let [facts_at, batches_at, events_at] = self.at;
        let mut facts_in = Cursor(self.columns[Column::Facts].get(facts_at..)?);
        let mut batches_in = Cursor(self.columns[Column::Batches].get(batches_at..)?);
        let mut events_in = Cursor(self.columns[Column::Events].get(events_at..)?);
        batch.hart = self.hart;
        batch.first_seq = Seq(self.next_seq.wrapping_add(batches_in.signed()? as u64));
        batch.start_cycle = self.cycle.wrapping_add(batches_in.signed()? as u64);
        let facts: u32 = batches_in.narrow()?;
        let events: u32 = batches_in.narrow()?;
        let records: u32 = batches_in.narrow()?;
        for _ in 0..facts {
            batch
                .facts
                .push(take_facts(&mut facts_in, &mut self.facts)?);
        }
        let mut before = 0;
        for _ in 0..events {
            let (index, event) = take_event(&mut events_in, before)?;
            before = index;
            batch.events.push((index, event));
        }
        self.next_seq = batch.first_seq.0.wrapping_add(u64::from(records));
        self.at = [
            self.columns[Column::Facts].len() - facts_in.0.len(),
            self.columns[Column::Batches].len() - batches_in.0.len(),
            self.columns[Column::Events].len() - events_in.0.len(),
        ];
        Some(records as usize)
    }
}
