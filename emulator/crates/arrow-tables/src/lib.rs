//! Traces, samples and reports as tables of [Apache Arrow](https://arrow.apache.org), and those as Parquet files: for DuckDB,
//! polars, pandas and whatever else reads them.
//!
//! [`tables`] are those that there are: each has a schema whose metadata hold units and meanings. Those of a trace are
//! read piece by piece ([`TraceTable`], an iterator of record batches); those of a report come whole out of its JSON
//! ([`report_table`]). [`write_table`] writes either.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use arrow_tables::{FileFormat, SPANS, TraceTable, write_table};
//! use commit_trace::{HartId, Range, TraceReader};
//!
//! let reader = TraceReader::open("out/quickstart/trace.tip".as_ref())?;
//! let disassemble = |raw: u32, _pc: u64| format!("{raw:08x}");
//! let spans = TraceTable::new(&SPANS, reader, HartId(0), Range::ALL, Box::new(disassemble))?;
//! write_table(spans, FileFormat::Parquet, std::fs::File::create("spans.parquet")?)?;
//! # Ok(())
//! # }
//! ```

mod builders;
mod catalog;
mod context;
mod files;
mod records;
mod report;
mod report_file;
mod rows;
mod schema;
mod spans;
mod static_instructions;
mod trace;

pub use arrow_array::{RecordBatch, RecordBatchReader};
pub use arrow_schema::{ArrowError, SchemaRef};
pub use catalog::*;
pub use files::{FileFormat, NOT_WHOLE, Notices, SAMPLED, with_notices, write_table};
pub use report::{ReportError, report_table};
pub use rows::{JsonRow, batch_of_rows, batches_of_rows, one_batch};
pub use schema::{Column, ColumnType, RunColumns, Table};
pub use trace::{Disassembler, RowsBeforeError, TraceTable, TraceTableError};

#[cfg(test)]
mod tests;
