//! Writes the file: calls are encoded where the hart executes, and compressed and written by a thread of their own.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crc32fast::Hasher;
use timing::{CoreCall, CoreTap};
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use crate::codec::Codec;
use crate::columns::{Column, Columns};
use crate::reader::UnitsError;
use crate::{CHUNK_BYTES, LEARNING_CHUNK_BYTES, MAGIC, VERSION};

/// zstd level of columns of bytes. Higher levels make them longer, as what seems to be repeated there costs more than it saves.
const BYTE_COLUMN_LEVEL: i32 = 1;
/// Chunks that are encoded, wait, or are written.
const CHUNKS: usize = 3;

/// Takes the calls of a core and writes them. Dropped, it writes what is left, and the file has its end.
pub struct UnitWriter {
    codec: Codec,
    columns: Columns,
    chunks: SyncSender<(Columns, u64)>,
    /// Columns that were written, to be filled again.
    emptied: Receiver<Columns>,
    failed: Arc<AtomicBool>,
}

/// The thread that writes.
pub struct WriterHandle {
    thread: JoinHandle<Result<u64, UnitsError>>,
    failed: Arc<AtomicBool>,
}

impl UnitWriter {
    /// Begins a file whose columns of numbers are compressed at a zstd `level`. The thread that writes it calls `starts` first.
    ///
    /// # Errors
    /// If the file's header cannot be written, or the host has no more threads.
    pub fn new(
        out: Box<dyn Write + Send>,
        metadata: &str,
        level: i32,
        starts: fn(),
    ) -> Result<(Self, WriterHandle), UnitsError> {
        let len = u32::try_from(metadata.len()).map_err(|_| UnitsError::TooMany)?;
        let header = [MAGIC, &VERSION.to_le_bytes()[..], &len.to_le_bytes(), metadata.as_bytes()];
        let mut out = ChecksummedFile { out, crc: Hasher::new(), bytes: 0 };
        out.write(&header.concat())?;
        let (chunks, sent) = sync_channel::<(Columns, u64)>(CHUNKS);
        let (back, emptied) = sync_channel(CHUNKS);
        for _ in 1..CHUNKS {
            _ = back.send(Columns::default());
        }
        let failed = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&failed);
        let write = move || {
            starts();
            let written = write(&mut out, level, &sent, &back);
            of_thread.store(written.is_err(), Relaxed);
            written.map(|()| out.bytes)
        };
        let thread = thread::Builder::new().name("units".to_owned()).spawn(write)?;
        let handle = WriterHandle { thread, failed: Arc::clone(&failed) };
        let (codec, columns) = (Codec::new(), Columns::default());
        Ok((Self { codec, columns, chunks, emptied, failed }, handle))
    }

    /// Gives the thread what was encoded.
    fn send(&mut self) {
        self.columns.end();
        // If the thread is gone, it has failed, which its handle says.
        let emptied = self.emptied.recv().unwrap_or_default();
        let columns = std::mem::replace(&mut self.columns, emptied);
        _ = self.chunks.send((columns, self.codec.calls()));
    }

    /// Encodes a call, and gives the thread what is long enough.
    fn write(&mut self, call: &CoreCall<'_>) -> Result<(), UnitsError> {
        self.codec.write(&mut self.columns, call)?;
        // Where a chunk ends does not depend on when a hart gives its log of the path, unless that is very long.
        let least = if self.codec.learns() { LEARNING_CHUNK_BYTES } else { CHUNK_BYTES };
        if self.columns.len() >= least {
            self.codec.end_chunk(&mut self.columns)?;
            self.send();
        }
        Ok(())
    }

    /// Gives the thread what is left.
    fn end(&mut self) -> Result<(), UnitsError> {
        self.codec.end_path(&mut self.columns)?;
        if self.columns.len() > 0 {
            self.codec.end_chunk(&mut self.columns)?;
            self.send();
        }
        // An empty chunk is the end.
        self.columns.clear();
        self.send();
        Ok(())
    }
}

impl CoreTap for UnitWriter {
    fn call(&mut self, call: CoreCall<'_>) {
        if self.failed.load(Relaxed) {
            return;
        }
        if self.write(&call).is_err() {
            // The file gets no end, of which the thread tells.
            self.failed.store(true, Relaxed);
        }
    }
}

impl Drop for UnitWriter {
    fn drop(&mut self) {
        if self.failed.load(Relaxed) || thread::panicking() {
            return;
        }
        if self.end().is_err() {
            self.failed.store(true, Relaxed);
        }
    }
}

impl WriterHandle {
    /// Returns whether the file cannot be written.
    pub fn failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Waits until all is written, once the [`UnitWriter`] is dropped, and returns the bytes of the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(self) -> Result<u64, UnitsError> {
        let panicked = |_| UnitsError::Damaged("the thread that writes them has panicked");
        self.thread.join().map_err(panicked)?
    }
}

/// A file, with the checksum of all that was written.
struct ChecksummedFile {
    out: Box<dyn Write + Send>,
    crc: Hasher,
    bytes: u64,
}

impl ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), UnitsError> {
        self.crc.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

/// Writes chunks until an empty one comes.
fn write(
    out: &mut ChecksummedFile,
    level: i32,
    chunks: &Receiver<(Columns, u64)>,
    emptied: &SyncSender<Columns>,
) -> Result<(), UnitsError> {
    let compressor = |level: i32| -> std::io::Result<Compressor<'static>> {
        let mut compressor = Compressor::new(level)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(compressor)
    };
    let (mut of_numbers, mut of_bytes) = (compressor(level)?, compressor(BYTE_COLUMN_LEVEL)?);
    let columns_of_bytes = Column::BYTE_COLUMNS.map(|column| column as usize);
    let mut frames = Vec::new();
    for (mut columns, calls) in chunks {
        let mut header = Vec::with_capacity(8 * Column::COUNT);
        frames.clear();
        // Columns have little in common, and are shorter one by one.
        for (number, column) in columns.bytes.iter().enumerate() {
            let compressor = match columns_of_bytes.contains(&number) {
                true => &mut of_bytes,
                false => &mut of_numbers,
            };
            let frame = match column.is_empty() {
                true => Vec::new(),
                false => compressor.compress(column)?,
            };
            header.extend_from_slice(&(column.len() as u32).to_le_bytes());
            header.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            frames.extend_from_slice(&frame);
        }
        if frames.is_empty() {
            header.extend_from_slice(&calls.to_le_bytes());
            out.write(&header)?;
            let crc = out.crc.clone().finalize();
            out.write(&crc.to_le_bytes())?;
            return Ok(out.out.flush()?);
        }
        out.write(&header)?;
        out.write(&frames)?;
        columns.clear();
        // At the end nobody takes them.
        _ = emptied.try_send(columns);
    }
    // The writer is gone without an end: there are more instructions than a file can have.
    Err(UnitsError::TooMany)
}
