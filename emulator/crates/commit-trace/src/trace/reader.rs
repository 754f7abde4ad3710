//! Reading a trace file.

mod header;
mod index;

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::chunk::{CONTEXT_COLUMNS, ChunkDecoder, ChunkHeader};
use super::columns::Column;
use super::{TraceError, VERSION};
use crate::{Batch, Event, HartId, Seq, StaticInfo};

pub use index::ChunkInfo;

/// How a trace file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// The writer finished the trace.
    Complete,
    /// The writer finished the trace, but the run was over before its time: interrupted, or failed.
    Part,
    /// The writer was stopped: everything before `offset` is whole.
    Cut {
        /// Offset of the first byte that is not part of a whole chunk.
        offset: u64,
    },
    /// What lies at `offset` is damaged, and hides whatever follows it.
    Damaged {
        /// Offset of the damage, in bytes.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A newer version wrote the trace: what describes the run can be read, the chunks cannot.
    Newer {
        /// The trace's version.
        version: u32,
    },
}

impl Display for TraceEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => write!(f, "complete"),
            Self::Part => write!(f, "whole up to its end, but the run ended before its time"),
            Self::Cut { offset } => write!(f, "cut at offset {offset}"),
            Self::Damaged { offset, what } => write!(f, "damaged at offset {offset}: {what}"),
            Self::Newer { version } => {
                write!(f, "version {version} at offset 8, which this build cannot read")
            }
        }
    }
}

/// Reads batches back, equal to those that were written.
pub struct TraceReader<R: Read + Seek> {
    input: R,
    file: String,
    metadata: String,
    chunks: Vec<ChunkInfo>,
    end: TraceEnd,
    /// The next chunk to read.
    next: usize,
    chunk: ChunkDecoder,
    payload: Vec<u8>,
    /// After a seek: static info and events of earlier chunks, which the next batch begins with.
    context: Option<(Vec<StaticInfo>, Vec<Event>)>,
    /// True once it was reported why reading ends early.
    reported: bool,
}

impl TraceReader<BufReader<File>> {
    /// Opens a trace file.
    ///
    /// # Errors
    /// If it cannot be read or its header is damaged. A trace that was cut, or is damaged further
    /// on, opens: see [`TraceReader::end`].
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(input) => Self::new(BufReader::new(input), file),
            Err(source) => Err(TraceError::Read { file, source }),
        }
    }
}

impl<R: Read + Seek> TraceReader<R> {
    /// Reads from `input`, which errors call `file`.
    ///
    /// # Errors
    /// If the input cannot be read or its header is damaged; see [`TraceReader::open`].
    pub fn new(mut input: R, file: String) -> Result<Self, TraceError> {
        let header = header::read(&mut input, &file)?;
        let (chunks, end) = match header.version {
            VERSION => index::read(&mut input, header.bytes)
                .map_err(|source| TraceError::Read { file: file.clone(), source })?,
            version => (Vec::new(), TraceEnd::Newer { version }),
        };
        Ok(Self {
            input,
            file,
            metadata: header.metadata,
            chunks,
            end,
            next: 0,
            chunk: ChunkDecoder::new(),
            payload: Vec::new(),
            context: None,
            reported: false,
        })
    }

    /// The JSON that describes the run.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The chunks, in the order of the file.
    pub fn chunks(&self) -> &[ChunkInfo] {
        &self.chunks
    }

    /// How the file ends.
    pub fn end(&self) -> TraceEnd {
        self.end
    }

    /// Reads the next batch into `batch`; false at the end, also if the file was cut there.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged here. Reading on then continues with the next
    /// chunk, of which [`crate::SpanBuilder`] will say that it does not follow.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        while self.chunk.is_empty() {
            if self.next >= self.chunks.len() {
                return self.finished();
            }
            self.next += 1;
            self.load(self.next - 1, Column::COUNT)?;
        }
        if let Err(what) = self.chunk.next(batch, false) {
            self.chunk.abandon();
            return Err(self.damaged(self.chunks[self.next - 1].offset, what));
        }
        if let Some((static_info, events)) = self.context.take() {
            batch.static_info.splice(0..0, static_info);
            batch.events.splice(0..0, events.into_iter().map(|event| (0, event)));
        }
        Ok(true)
    }

    /// Continues with the chunk of `hart` that holds `cycle`, or with its first one if that comes later.
    /// The next batch then also carries the static info of all instructions defined earlier, and at
    /// its start the events that still matter: all side-band records, the last privilege and region.
    ///
    /// # Errors
    /// If the trace ends before, or an earlier chunk is damaged.
    pub fn seek_cycle(&mut self, hart: HartId, cycle: u64) -> Result<(), TraceError> {
        self.seek(hart, "cycle", cycle, |chunk| cycle <= chunk.end_cycle)
    }

    /// Continues with the chunk of `hart` that holds record `seq`, as [`TraceReader::seek_cycle`] does for a cycle.
    ///
    /// # Errors
    /// If the trace ends before, or an earlier chunk is damaged.
    pub fn seek_seq(&mut self, hart: HartId, seq: Seq) -> Result<(), TraceError> {
        self.seek(hart, "record", seq.0, |chunk| {
            seq.0 < chunk.first_seq.0.saturating_add(u64::from(chunk.records))
        })
    }

    fn seek(
        &mut self,
        hart: HartId,
        what: &'static str,
        target: u64,
        holds: impl Fn(&ChunkInfo) -> bool,
    ) -> Result<(), TraceError> {
        let found = self.chunks.iter().position(|chunk| chunk.hart == hart && holds(chunk));
        let Some(found) = found else {
            self.reported = false;
            self.finished()?;
            let (file, hart) = (self.file.clone(), hart.0);
            return Err(TraceError::OutOfRange { file, hart, what, target });
        };
        let (mut static_info, mut side_band) = (Vec::new(), Vec::new());
        let (mut privilege, mut weight, mut region) = (None, None, None);
        let mut batch = Batch::default();
        for earlier in 0..found {
            if self.chunks[earlier].hart != hart {
                continue;
            }
            self.load(earlier, CONTEXT_COLUMNS)?;
            while !self.chunk.is_empty() {
                if let Err(what) = self.chunk.next(&mut batch, true) {
                    self.chunk.abandon();
                    return Err(self.damaged(self.chunks[earlier].offset, what));
                }
                static_info.append(&mut batch.static_info);
                for (_, event) in batch.events.drain(..) {
                    match event {
                        Event::SideBand { .. } => side_band.push(event),
                        Event::Privilege(_) => privilege = Some(event),
                        Event::Weight(_) => weight = Some(event),
                        Event::Region(_) | Event::RegionAnew => region = Some(event),
                        Event::Idle { .. } | Event::End => {}
                    }
                }
            }
        }
        side_band.extend(privilege);
        side_band.extend(weight);
        side_band.extend(region);
        self.context = Some((static_info, side_band));
        self.next = found;
        self.chunk.abandon();
        Ok(())
    }

    /// Reads a chunk's first `columns` columns and hands them to the decoder.
    fn load(&mut self, number: usize, columns: usize) -> Result<(), TraceError> {
        let offset = self.chunks[number].offset;
        let found = read_chunk(&mut self.input, offset, &mut self.payload, columns);
        let header = match found {
            Ok(Ok(header)) => header,
            Ok(Err(what)) => return Err(self.damaged(offset, what)),
            Err(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged(offset, "the chunk is cut"));
            }
            Err(source) => {
                return Err(TraceError::Read { file: self.file.clone(), source });
            }
        };
        self.chunk.start(&header, &self.payload, columns).map_err(|what| self.damaged(offset, what))
    }

    fn finished(&mut self) -> Result<bool, TraceError> {
        if std::mem::replace(&mut self.reported, true) {
            return Ok(false);
        }
        match self.end {
            TraceEnd::Damaged { offset, what } => Err(self.damaged(offset, what)),
            TraceEnd::Newer { version } => Err(header::other_version(self.file.clone(), version)),
            TraceEnd::Complete | TraceEnd::Part | TraceEnd::Cut { .. } => Ok(false),
        }
    }

    fn damaged(&self, offset: u64, what: &'static str) -> TraceError {
        TraceError::Damaged { file: self.file.clone(), offset, what }
    }
}

/// Reads a chunk's header and payload. The payload's checksum covers it whole, so a part of it is
/// only checked by the frames' own structure.
fn read_chunk(
    input: &mut (impl Read + Seek),
    offset: u64,
    payload: &mut Vec<u8>,
    columns: usize,
) -> std::io::Result<Result<ChunkHeader, &'static str>> {
    input.seek(SeekFrom::Start(offset))?;
    let mut bytes = [0; ChunkHeader::BYTES];
    input.read_exact(&mut bytes)?;
    let header = match ChunkHeader::take(&bytes) {
        Ok(header) => header,
        Err(what) => return Ok(Err(what)),
    };
    let len: u64 = header.columns[..columns].iter().map(|(_, packed)| u64::from(*packed)).sum();
    payload.clear();
    // Grows with what is really there, whatever the header says.
    if input.by_ref().take(len).read_to_end(payload)? as u64 != len {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    if columns == Column::COUNT && crc32fast::hash(payload) != header.payload_crc {
        return Ok(Err("the chunk's checksum is wrong"));
    }
    Ok(Ok(header))
}
