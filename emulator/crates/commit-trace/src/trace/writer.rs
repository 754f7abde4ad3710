//! Writing a trace file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::chunk::{ChunkEncoder, ChunkHeader, ClosedChunk, Compressor};
use super::columns::Columns;
use super::{INDEX_MAGIC, MAGIC, TRAILER_MAGIC, TraceError, VERSION};
use crate::Batch;

/// What a finished trace amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSummary {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Records in it.
    pub records: u64,
    /// Chunks in it.
    pub chunks: u64,
}

/// How far a batch was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    slot: usize,
    records: usize,
}

/// Writes batches as they come. Each chunk reaches the file soon after it is full, so that a run
/// that is killed leaves a trace that ends a few milliseconds of simulation before it did.
pub struct TraceWriter<W: Write> {
    output: W,
    file: String,
    /// Bytes written whole.
    offset: u64,
    /// The open chunk of each hart.
    open: Vec<(u32, ChunkEncoder)>,
    /// The chunk that is full and not written yet, and the memory of one that is.
    full: Option<ClosedChunk>,
    spare: Columns,
    index: Vec<(u64, ChunkHeader)>,
    compressor: Compressor,
    /// Nothing more is written after an error, nor after the end.
    closed: bool,
}

impl TraceWriter<File> {
    /// Creates the file, or empties it. `metadata` is JSON that describes the run; for equal runs to
    /// give equal files it must hold nothing that tells one host or hour from another.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, metadata: &str) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        match File::create(path) {
            Ok(output) => Self::new(output, file, metadata),
            Err(source) => Err(TraceError::Write {
                file,
                offset: 0,
                source,
            }),
        }
    }
}

impl<W: Write> TraceWriter<W> {
    /// Writes to `output`, which errors call `file`. Nothing here is buffered beyond a chunk.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn new(output: W, file: String, metadata: &str) -> Result<Self, TraceError> {
        let compressor = Compressor::new().map_err(|source| TraceError::Write {
            file: file.clone(),
            offset: 0,
            source,
        })?;
        let mut writer = Self {
            output,
            file,
            offset: 0,
            open: Vec::new(),
            full: None,
            spare: Columns::default(),
            index: Vec::new(),
            compressor,
            closed: false,
        };
        let mut header = Vec::from(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((metadata.len() as u32).to_le_bytes());
        header.extend(metadata.as_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        writer.write(&header)?;
        Ok(writer)
    }

    /// Sets zstd's level for the chunks that come, 1 (the default) to 19.
    ///
    /// # Errors
    /// If zstd refuses it.
    pub fn set_level(&mut self, level: i32) -> Result<(), TraceError> {
        self.write_full()?;
        self.compressor = Compressor::with_level(level).map_err(|source| self.failed(source))?;
        Ok(())
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// If it cannot be written; what was written before stays readable, and nothing is added to it.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), TraceError> {
        let mut written = self.begin(batch)?;
        self.go_on(batch, &mut written, usize::MAX)?;
        Ok(())
    }

    /// The same in parts, for whoever has little time at once: begins it, and [`Self::go_on`] is to be called, before
    /// anything else, until that is true.
    ///
    /// # Errors
    /// As of [`Self::batch`].
    pub fn begin(&mut self, batch: &Batch) -> Result<Written, TraceError> {
        let mut written = Written {
            slot: 0,
            records: 0,
        };
        if self.closed {
            return Ok(written);
        }
        if !self.compress()? {
            self.write_full()?;
        }
        let hart = batch.hart.0;
        written.slot = match self.open.iter().position(|(number, _)| *number == hart) {
            Some(slot) => slot,
            None => {
                self.open.push((hart, ChunkEncoder::new(batch.hart)));
                self.open.len() - 1
            }
        };
        let begun = self.open[written.slot].1.begin(batch);
        begun.map_err(|what| self.refused(batch, what))?;
        Ok(written)
    }

    /// Adds so many more records of the batch that was begun; true: these were the last.
    ///
    /// # Errors
    /// As of [`Self::batch`].
    pub fn go_on(
        &mut self,
        batch: &Batch,
        written: &mut Written,
        most: usize,
    ) -> Result<bool, TraceError> {
        if self.closed {
            return Ok(true);
        }
        let Written { slot, records } = written;
        let chunk = &mut self.open[*slot].1;
        let is_whole =
            { chunk.go_on(batch, records, most) }.map_err(|what| self.refused(batch, what))?;
        if is_whole && self.open[*slot].1.is_full() {
            self.close_chunk(*slot)?;
        }
        Ok(is_whole)
    }

    fn refused(&mut self, batch: &Batch, what: &'static str) -> TraceError {
        self.closed = true;
        TraceError::Unwritable {
            file: self.file.clone(),
            seq: batch.first_seq.0,
            what,
        }
    }

    /// Writes what is still open, and the index.
    ///
    /// # Errors
    /// If that fails; the chunks that were written before stay readable.
    pub fn finish(mut self) -> Result<TraceSummary, TraceError> {
        self.write_open()?;
        if !self.closed {
            let mut bytes = index_bytes(&self.index);
            bytes.extend(trailer_bytes(self.offset, &bytes));
            self.write(&bytes)?;
            self.closed = true;
        }
        let records = self
            .index
            .iter()
            .map(|(_, header)| u64::from(header.records))
            .sum();
        Ok(TraceSummary {
            bytes: self.offset,
            records,
            chunks: self.index.len() as u64,
        })
    }

    fn write_open(&mut self) -> Result<(), TraceError> {
        for slot in 0..self.open.len() {
            if !self.closed && !self.open[slot].1.is_empty() {
                self.close_chunk(slot)?;
            }
        }
        self.write_full()
    }

    /// Closes a chunk, which is written once it is compressed. That before is written now.
    fn close_chunk(&mut self, slot: usize) -> Result<(), TraceError> {
        self.write_full()?;
        let spare = std::mem::take(&mut self.spare);
        self.full = Some(self.open[slot].1.close(spare));
        Ok(())
    }

    /// Does another part of the full chunk's compression; false: nothing is left of it.
    fn compress(&mut self) -> Result<bool, TraceError> {
        match &mut self.full {
            Some(chunk) => chunk
                .compress(&mut self.compressor)
                .map_err(|source| self.failed(source)),
            None => Ok(false),
        }
    }

    /// Writes the full chunk, if there is one.
    fn write_full(&mut self) -> Result<(), TraceError> {
        if self.closed {
            return Ok(());
        }
        while self.compress()? {}
        if let Some(chunk) = self.full.take() {
            let mut bytes = Vec::new();
            let (header, columns) = chunk.put(&mut bytes);
            self.spare = columns;
            let offset = self.offset;
            self.write(&bytes)?;
            self.index.push((offset, header));
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let written = self
            .output
            .write_all(bytes)
            .and_then(|()| self.output.flush());
        written.map_err(|source| self.failed(source))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn failed(&mut self, source: std::io::Error) -> TraceError {
        self.closed = true;
        TraceError::Write {
            file: self.file.clone(),
            offset: self.offset,
            source,
        }
    }
}

/// A writer that is dropped without [`TraceWriter::finish`] still writes its open chunks.
impl<W: Write> Drop for TraceWriter<W> {
    fn drop(&mut self) {
        if let Err(error) = self.write_open() {
            tracing::error!("{error}");
        }
    }
}

fn index_bytes(index: &[(u64, ChunkHeader)]) -> Vec<u8> {
    let mut bytes = Vec::from(INDEX_MAGIC.to_le_bytes());
    bytes.extend((index.len() as u32).to_le_bytes());
    for (offset, header) in index {
        bytes.extend(offset.to_le_bytes());
        bytes.extend(header.hart.to_le_bytes());
        bytes.extend(header.records.to_le_bytes());
        for word in [header.first_seq, header.start_cycle, header.end_cycle] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes
}

fn trailer_bytes(index_offset: u64, index: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(index_offset.to_le_bytes());
    bytes.extend(crc32fast::hash(index).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(TRAILER_MAGIC);
    bytes
}
