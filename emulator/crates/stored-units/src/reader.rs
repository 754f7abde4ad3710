//! Reads the file.

use std::io::Read;

use crc32fast::Hasher;
use timing::CoreCall;
use zstd::bulk::Decompressor;

use crate::codec::{Codec, RunBuffers};
use crate::columns::{Column, ReadColumns};
use crate::{MAGIC, MAX_CHUNK, MAX_METADATA, VERSION};

/// Why stored units cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum UnitsError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is something else.
    #[error("expected stored units of tipsim, found something else")]
    NoUnits,
    /// The file is of another version of the format.
    #[error(
        "expected stored units of format {VERSION}, found format {0}: they have to be recorded again with this version of tipsim"
    )]
    Version(u32),
    /// The file ends before its end.
    #[error("the file ends before its time: the run that wrote it was killed, or had no more room")]
    Cut,
    /// The file is not as it was written.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// There is more than a file can have.
    #[error(
        "more than {} static instructions, which is all that stored units can have",
        crate::MAX_INSTRUCTIONS
    )]
    TooMany,
}

/// Reads the calls of a core, in the order in which it got them.
pub struct UnitReader<R> {
    file: ChecksummedFile<R>,
    metadata: String,
    codec: Codec,
    columns: ReadColumns,
    buffers: RunBuffers,
    is_over: bool,
}

impl<R: Read> UnitReader<R> {
    /// Begins to read a file.
    ///
    /// # Errors
    /// If the file is something else, or of another version.
    pub fn new(file: R) -> Result<Self, UnitsError> {
        let mut file = ChecksummedFile { file, crc: Hasher::new() };
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic).map_err(|_| UnitsError::NoUnits)?;
        if magic != *MAGIC {
            return Err(UnitsError::NoUnits);
        }
        let version = number(&mut file)?;
        if version != VERSION {
            return Err(UnitsError::Version(version));
        }
        let len = number(&mut file)?;
        if len > MAX_METADATA {
            return Err(UnitsError::Damaged("too much metadata"));
        }
        let mut metadata = vec![0; len as usize];
        whole(&mut file, &mut metadata)?;
        let metadata =
            String::from_utf8(metadata).map_err(|_| UnitsError::Damaged("metadata is no text"))?;
        Ok(Self {
            file,
            metadata,
            codec: Codec::new(),
            columns: ReadColumns::default(),
            buffers: RunBuffers::default(),
            is_over: false,
        })
    }

    /// Returns what the file says of the run that wrote it.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Returns the next call; `None` at the end.
    ///
    /// # Errors
    /// If the file ends before its time or is damaged.
    pub fn next_call(&mut self) -> Result<Option<CoreCall<'_>>, UnitsError> {
        while self.codec.is_done(&self.columns) && !self.is_over {
            self.next_chunk()?;
        }
        if self.is_over {
            return Ok(None);
        }
        self.codec.read(&mut self.columns, &mut self.buffers).map(Some)
    }

    fn next_chunk(&mut self) -> Result<(), UnitsError> {
        let mut lengths = [0; Column::COUNT];
        let mut compressed = [0; Column::COUNT];
        for (len, compressed) in lengths.iter_mut().zip(&mut compressed) {
            *len = number(&mut self.file)? as usize;
            *compressed = number(&mut self.file)? as usize;
        }
        let total: usize = lengths.iter().sum();
        if total == 0 {
            let mut calls = [0; 8];
            whole(&mut self.file, &mut calls)?;
            let expected = self.file.crc.clone().finalize();
            let found = number(&mut self.file)?;
            self.is_over = true;
            if u64::from_le_bytes(calls) != self.codec.calls() {
                return Err(UnitsError::Damaged("some calls are missing"));
            }
            if found != expected || self.file.read(&mut [0])? != 0 {
                return Err(UnitsError::Damaged("the file is not as it was written"));
            }
            return Ok(());
        }
        if total > MAX_CHUNK || compressed.iter().any(|bytes| *bytes > 2 * MAX_CHUNK) {
            return Err(UnitsError::Damaged("a chunk is too long"));
        }
        let mut all = Vec::new();
        let mut decompressor = Decompressor::new()?;
        for (len, compressed) in lengths.into_iter().zip(compressed) {
            // Only as much as there is: the length of a damaged file may be anything.
            let mut frame = Vec::new();
            (&mut self.file).take(compressed as u64).read_to_end(&mut frame)?;
            if frame.len() != compressed {
                return Err(UnitsError::Cut);
            }
            if len > 0 {
                let damaged = |_| UnitsError::Damaged("a chunk is not as it was written");
                all.extend(decompressor.decompress(&frame, len).map_err(damaged)?);
            }
        }
        self.columns = ReadColumns::new(all, lengths)
            .ok_or(UnitsError::Damaged("a chunk has not as many bytes as it says"))?;
        self.codec.begin_part(&mut self.columns)?;
        match self.codec.is_done(&self.columns) {
            true => Err(UnitsError::Damaged("a chunk has no calls")),
            false => Ok(()),
        }
    }
}

/// A file, with the checksum of all that was read.
struct ChecksummedFile<R> {
    file: R,
    crc: Hasher,
}

impl<R: Read> Read for ChecksummedFile<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(bytes)?;
        self.crc.update(&bytes[..count]);
        Ok(count)
    }
}

fn number(file: &mut impl Read) -> Result<u32, UnitsError> {
    let mut bytes = [0; 4];
    whole(file, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Reads all of some bytes.
fn whole(file: &mut impl Read, bytes: &mut [u8]) -> Result<(), UnitsError> {
    file.read_exact(bytes).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => UnitsError::Cut,
        _ => e.into(),
    })
}
