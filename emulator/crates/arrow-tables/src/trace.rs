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

/// Returns the text of an instruction, from its encoding and address.
pub type Disassembler = dyn Fn(u32, u64) -> String + Send;

/// Rows of a record batch, about; a batch may have some more.
pub(crate) const ROWS_PER_BATCH: usize = 1 << 16;

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
pub(crate) trait TableBuilder: Send {
    /// Adds what `batch` has for the table; break: nothing will come any more.
    fn batch(
        &mut self,
        batch: &Batch,
        disassemble: &Disassembler,
    ) -> Result<ControlFlow<()>, WalkError>;
    /// Returns the number of rows that wait to be taken.
    fn rows(&self) -> usize;
    /// Takes the columns of the rows that wait.
    fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError>;
}

/// A table of a trace: an iterator of record batches. What can be read before an error comes before it.
pub struct TraceTable<R: Read + Seek> {
    schema: SchemaRef,
    reader: TraceReader<R>,
    hart: HartId,
    disassemble: Box<Disassembler>,
    builder: Box<dyn TableBuilder>,
    batch: Batch,
    /// Why no more is read; `None` while the trace is read.
    ended: Option<Result<ControlFlow<()>, WalkError>>,
}

impl<R: Read + Seek> TraceTable<R> {
    /// Returns the table of what `hart` recorded in `range`: spans that have any cycle in it, and all static instructions
    /// whatever it is.
    ///
    /// # Errors
    /// If the trace has no such table or place.
    pub fn new(
        table: &Table,
        mut reader: TraceReader<R>,
        hart: HartId,
        range: Range,
        disassemble: Box<Disassembler>,
    ) -> Result<Self, TraceTableError> {
        let builder: Box<dyn TableBuilder> = match table.name {
            name if name == RECORDS.name => Box::new(Records::new(hart, range)),
            name if name == SPANS.name => {
                let spans = Spans::new(hart, range);
                Box::new(spans.ok_or(TraceTableError::NotByRecord(SPANS.name))?)
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
            builder,
            batch: Batch::default(),
            ended: None,
        })
    }

    /// Returns an iterator of the batches without the error that may come after them, which [`Self::end`] returns.
    pub fn rows_before_error(&mut self) -> RowsBeforeError<'_, R> {
        RowsBeforeError(self)
    }

    /// Returns the trace's reader, and why no more of it was read: break if the range ended.
    pub fn end(self) -> (TraceReader<R>, Result<ControlFlow<()>, WalkError>) {
        let ended = self.ended.unwrap_or(Ok(ControlFlow::Break(())));
        (self.reader, ended)
    }

    /// Reads on until there are rows for a record batch, or until the end.
    fn fill(&mut self) {
        while self.ended.is_none() && self.builder.rows() < ROWS_PER_BATCH {
            self.ended = match self.reader.next_batch(&mut self.batch) {
                Ok(false) => Some(Ok(ControlFlow::Continue(()))),
                Ok(true) if self.batch.hart != self.hart => None,
                Ok(true) => match self.builder.batch(&self.batch, &self.disassemble) {
                    Ok(ControlFlow::Continue(())) => None,
                    ended => Some(ended),
                },
                Err(error) => Some(Err(error.into())),
            };
        }
    }

    fn rows(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        self.fill();
        (self.builder.rows() > 0).then(|| {
            let columns = self.builder.take()?;
            RecordBatch::try_new(self.schema.clone(), columns)
        })
    }
}

impl<R: Read + Seek> Iterator for TraceTable<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(rows) = self.rows() {
            return Some(rows);
        }
        // The error is returned once.
        match self.ended.replace(Ok(ControlFlow::Break(())))? {
            Ok(_) => None,
            Err(error) => Some(Err(TraceTableError::from(error).into())),
        }
    }
}

impl<R: Read + Seek> RecordBatchReader for TraceTable<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Batches of a [`TraceTable`] up to an error: see [`TraceTable::rows_before_error`].
pub struct RowsBeforeError<'a, R: Read + Seek>(&'a mut TraceTable<R>);

impl<R: Read + Seek> Iterator for RowsBeforeError<'_, R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.rows()
    }
}

impl<R: Read + Seek> RecordBatchReader for RowsBeforeError<'_, R> {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
}
