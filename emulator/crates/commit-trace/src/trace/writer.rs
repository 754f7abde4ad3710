//! Writing a trace file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chunk::{ChunkEncoder, ChunkHeader, ClosedChunk, Compressor};
use super::columns::Columns;
use super::{INDEX_MAGIC, MAGIC, PART_MAGIC, TRAILER_MAGIC, TraceError, VERSION};
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

/// How much of a batch was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    slot: usize,
    records: usize,
}

/// Writes batches as they come. Each chunk reaches the file soon after it is full, so that a run
/// that is killed leaves a trace that ends a few milliseconds of simulation before it did.
pub struct TraceWriter<W: Write> {
    /// The open chunk of each hart.
    open: Vec<(u32, ChunkEncoder)>,
    output: Arc<Shared<W>>,
    /// Somebody else has a [`Compression`].
    apart: bool,
    /// Nothing more is written after an error, nor after the end.
    closed: bool,
}

/// Compresses full chunks and writes them to the file, a piece at a time, while the [`TraceWriter`] takes batches on
/// another thread. The writer does whatever is left of it when the next chunk is full.
pub struct Compression<W: Write>(Arc<Shared<W>>);

/// What a writer and its [`Compression`]s share.
struct Shared<W> {
    output: Mutex<Output<W>>,
    /// True while a full chunk waits to be compressed and written.
    waits: AtomicBool,
    /// True once something could not be written.
    failed: AtomicBool,
}

/// The file, and what goes there next.
struct Output<W> {
    output: W,
    file: String,
    /// Bytes written whole.
    offset: u64,
    /// The full chunk that is not written yet.
    full: Option<ClosedChunk>,
    /// The columns of a chunk that was written, for their memory.
    spare: Columns,
    index: Vec<(u64, ChunkHeader)>,
    compressor: Compressor,
    /// What went wrong, until the writer tells.
    error: Option<TraceError>,
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
            Err(source) => Err(TraceError::Write { file, offset: 0, source }),
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
        let mut output = Output {
            output,
            file,
            offset: 0,
            full: None,
            spare: Columns::default(),
            index: Vec::new(),
            compressor,
            error: None,
        };
        let mut header = Vec::from(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((metadata.len() as u32).to_le_bytes());
        header.extend(metadata.as_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        output.write(&header)?;
        Ok(Self {
            open: Vec::new(),
            output: Arc::new(Shared {
                output: Mutex::new(output),
                waits: AtomicBool::new(false),
                failed: AtomicBool::new(false),
            }),
            apart: false,
            closed: false,
        })
    }

    /// Sets zstd's level for the chunks that come, 1 (the default) to 19.
    ///
    /// # Errors
    /// If zstd refuses it.
    pub fn set_level(&mut self, level: i32) -> Result<(), TraceError> {
        self.with_output(|output| {
            output.write_full()?;
            output.compressor =
                Compressor::with_level(level).map_err(|source| output.failed(source))?;
            Ok(())
        })
    }

    /// Leaves compression to whoever has what this returns.
    pub fn compression(&mut self) -> Compression<W> {
        self.apart = true;
        Compression(self.output.clone())
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

    /// Begins a batch that is added in parts, so that no call takes long: the caller calls [`Self::go_on`], before anything
    /// else, until that returns true.
    ///
    /// # Errors
    /// If the batch cannot be written; see [`Self::batch`].
    pub fn begin(&mut self, batch: &Batch) -> Result<Written, TraceError> {
        let mut written = Written { slot: 0, records: 0 };
        if self.closed {
            return Ok(written);
        }
        if !self.apart {
            self.output.step();
        }
        if self.output.failed.load(Relaxed) {
            self.with_output(|_| Ok(()))?;
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

    /// Adds up to `most` more records of the batch that was begun, and returns true if these were the last.
    ///
    /// # Errors
    /// If the batch cannot be written; see [`Self::batch`].
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
            chunk.go_on(batch, records, most).map_err(|what| self.refused(batch, what))?;
        if is_whole && self.open[*slot].1.is_full() {
            self.close_chunk(*slot)?;
        }
        Ok(is_whole)
    }

    fn refused(&mut self, batch: &Batch, what: &'static str) -> TraceError {
        self.closed = true;
        TraceError::Unwritable {
            file: self.output.lock().file.clone(),
            seq: batch.first_seq.0,
            what,
        }
    }

    /// Writes what is still open, and the index.
    ///
    /// # Errors
    /// If that fails; the chunks that were written before stay readable.
    pub fn finish(self) -> Result<TraceSummary, TraceError> {
        self.finish_with(TRAILER_MAGIC)
    }

    /// Finishes a trace whose run was over before its time, for instance because it was interrupted: readers know it for a part
    /// ([`TraceEnd::Part`](super::TraceEnd::Part)).
    ///
    /// # Errors
    /// If the file cannot be written; the chunks that were written before stay readable.
    pub fn finish_part(self) -> Result<TraceSummary, TraceError> {
        self.finish_with(PART_MAGIC)
    }

    fn finish_with(mut self, magic: &[u8; 8]) -> Result<TraceSummary, TraceError> {
        self.write_open()?;
        let ends = !std::mem::replace(&mut self.closed, true);
        self.with_output(|output| {
            if ends {
                let mut bytes = index_bytes(&output.index);
                bytes.extend(trailer_bytes(output.offset, &bytes, magic));
                output.write(&bytes)?;
            }
            let index = &output.index;
            Ok(TraceSummary {
                bytes: output.offset,
                records: index.iter().map(|(_, h)| u64::from(h.records)).sum(),
                chunks: index.len() as u64,
            })
        })
    }

    fn write_open(&mut self) -> Result<(), TraceError> {
        for slot in 0..self.open.len() {
            if !self.closed && !self.open[slot].1.is_empty() {
                self.close_chunk(slot)?;
            }
        }
        match self.closed {
            true => Ok(()),
            false => self.with_output(Output::write_full),
        }
    }

    /// Closes the open chunk of a hart: it is compressed from now on, a piece at a time, and written when the next one closes.
    /// Before that it writes the chunk that was closed last.
    fn close_chunk(&mut self, slot: usize) -> Result<(), TraceError> {
        let spare = self.with_output(|output| {
            output.write_full()?;
            Ok(std::mem::take(&mut output.spare))
        })?;
        let chunk = self.open[slot].1.close(spare);
        self.with_output(|output| {
            output.full = Some(chunk);
            Ok(())
        })?;
        self.output.waits.store(true, Relaxed);
        Ok(())
    }

    /// Does something with the output, unless that failed before; nothing more is written if it fails.
    fn with_output<R>(
        &mut self,
        work: impl FnOnce(&mut Output<W>) -> Result<R, TraceError>,
    ) -> Result<R, TraceError> {
        let mut output = self.output.lock();
        let done = match output.error.take() {
            Some(error) => Err(error),
            None => work(&mut output),
        };
        drop(output);
        done.inspect_err(|_| self.closed = true)
    }
}

impl<W: Write> Compression<W> {
    /// Does another piece, and returns false if there was none or somebody else is at it. The writer reports what goes wrong.
    pub fn step(&self) -> bool {
        self.0.step()
    }
}

impl<W: Write> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, Output<W>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self) -> bool {
        if !self.waits.load(Relaxed) {
            return false;
        }
        let Ok(mut output) = self.output.try_lock() else {
            return false;
        };
        let more = output.step().unwrap_or_else(|error| {
            output.error = Some(error);
            self.failed.store(true, Relaxed);
            false
        });
        if !more {
            self.waits.store(false, Relaxed);
        }
        true
    }
}

impl<W: Write> Output<W> {
    /// Does another part of the full chunk's compression, or writes it; returns false if nothing is left. The chunk is gone if
    /// that fails.
    fn step(&mut self) -> Result<bool, TraceError> {
        let Some(mut chunk) = self.full.take() else {
            return Ok(false);
        };
        let compressed = chunk.compress(&mut self.compressor);
        if compressed.map_err(|source| self.failed(source))? {
            self.full = Some(chunk);
            return Ok(true);
        }
        let mut bytes = Vec::new();
        let (header, columns) = chunk.put(&mut bytes);
        self.spare = columns;
        let offset = self.offset;
        self.write(&bytes)?;
        self.index.push((offset, header));
        Ok(false)
    }

    /// Writes the full chunk, if there is one.
    fn write_full(&mut self) -> Result<(), TraceError> {
        while self.step()? {}
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let written = self.output.write_all(bytes).and_then(|()| self.output.flush());
        written.map_err(|source| self.failed(source))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> TraceError {
        TraceError::Write { file: self.file.clone(), offset: self.offset, source }
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

fn trailer_bytes(index_offset: u64, index: &[u8], magic: &[u8; 8]) -> Vec<u8> {
    let mut bytes = Vec::from(index_offset.to_le_bytes());
    bytes.extend(crc32fast::hash(index).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(magic);
    bytes
}
