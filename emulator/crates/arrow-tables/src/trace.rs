//! The tables of a trace, piece by piece.

use std::io::{Read, Seek};
use std::ops::ControlFlow;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use commit_trace::{Batch, HartId, Position, Range, TraceReader, WalkError};

use crate::catalog::{RECORDS, SPANS, STATIC_INSTRUCTIONS};
use crate::records::Records;
use crate::schema::Table;
use crate::spans::Spans;
use crate::static_instructions::StaticInstructions;

/// How an instruction reads, by its encoding and address.
pub type Disassemble = dyn Fn(u32, u64) -> String + Send;

/// Rows of a record batch, about.
const ROWS: usize = 1 << 16;

/// Why a table has no more rows.
#[derive(Debug, thiserror::Error)]
pub enum TraceTableError {
    /// A table that is none of a trace.
    #[error("expected a table of a trace (records, spans, static_instructions), found {0}")]
    NotOfATrace(&'static str),
    /// A range that the table does not have.
    #[error("{0}: expected cycles or times as range, found the number of a record")]
    NotByRecord(&'static str),
    /// The trace cannot be read further.
    #[error(transparent)]
    Walk(#[from] WalkError),
}

impl From<TraceTableError> for ArrowError {
    fn from(error: TraceTableError) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

/// A table that grows by batches of a trace.
pub(crate) trait Grow: Send {
    /// Takes what the batch adds; break: nothing will come any more.
    fn batch(
        &mut self,
        batch: &Batch,
        disassemble: &Disassemble,
    ) -> Result<ControlFlow<()>, WalkError>;
    /// Rows that wait.
    fn rows(&self) -> usize;
    /// The columns of the rows that wait.
    fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError>;
}

/// A table of a trace: an iterator of record batches. Those before an error are whole; after it there are none.
pub struct TraceTable<R: Read + Seek> {
    schema: SchemaRef,
    reader: TraceReader<R>,
    hart: HartId,
    disassemble: Box<Disassemble>,
    grow: Box<dyn Grow>,
    batch: Batch,
    at_end: bool,
    failed: Option<TraceTableError>,
}

impl<R: Read + Seek> TraceTable<R> {
    /// The table of what `hart` recorded in `range`: spans that have any cycle in it, and static instructions whatever it is.
    ///
    /// # Errors
    /// If the trace has no such table or place.
    pub fn new(
        table: &Table,
        mut reader: TraceReader<R>,
        hart: HartId,
        range: Range,
        disassemble: Box<Disassemble>,
    ) -> Result<Self, TraceTableError> {
        let grow: Box<dyn Grow> = match table.name {
            name if name == RECORDS.name => Box::new(Records::new(hart, range)),
            name if name == SPANS.name => {
                Box::new(Spans::new(hart, range).ok_or(TraceTableError::NotByRecord(SPANS.name))?)
            }
            name if name == STATIC_INSTRUCTIONS.name => Box::new(StaticInstructions::new(hart)),
            other => return Err(TraceTableError::NotOfATrace(other)),
        };
        match range.from {
            _ if table.name == STATIC_INSTRUCTIONS.name => {}
            Position::START => {}
            Position::Record(seq) => reader.seek_seq(hart, seq).map_err(WalkError::from)?,
            Position::Cycle(cycle) => reader.seek_cycle(hart, cycle).map_err(WalkError::from)?,
        }
        Ok(Self {
            schema: table.schema(&[]),
            reader,
            hart,
            disassemble,
            grow,
            batch: Batch::default(),
            at_end: false,
            failed: None,
        })
    }

    /// The trace, which was read up to its end or an error if there are no more batches.
    pub fn reader(&self) -> &TraceReader<R> {
        &self.reader
    }

    fn fill(&mut self) -> Result<(), TraceTableError> {
        while !self.at_end && self.grow.rows() < ROWS {
            if !{ self.reader.next_batch(&mut self.batch) }.map_err(WalkError::from)? {
                self.at_end = true;
                break;
            }
            if self.batch.hart != self.hart {
                continue;
            }
            self.at_end = { self.grow.batch(&self.batch, &self.disassemble)? }.is_break();
        }
        Ok(())
    }
}

impl<R: Read + Seek> Iterator for TraceTable<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fill() {
            // What came before it is given first.
            self.at_end = true;
            self.failed = Some(error);
        }
        if self.grow.rows() > 0 {
            let columns = self.grow.take();
            return Some(columns.and_then(|c| RecordBatch::try_new(self.schema.clone(), c)));
        }
        self.failed.take().map(|error| Err(error.into()))
    }
}

impl<R: Read + Seek> RecordBatchReader for TraceTable<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
