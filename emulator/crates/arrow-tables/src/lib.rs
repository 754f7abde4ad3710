//! Traces, samples and reports as tables of [Apache Arrow](https://arrow.apache.org), and those as Parquet files: for DuckDB,
//! polars, pandas and whatever else reads them.
//!
//! [`TABLES`] says what tables there are: each has a schema whose metadata hold units and meanings. Those of a trace are
//! read piece by piece ([`TraceTable`], an iterator of record batches); those of a report come whole out of its JSON
//! ([`report_table`]). [`write_parquet`] writes either.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use arrow_tables::{SPANS, TraceTable, write_parquet};
//! use commit_trace::{HartId, Range, TraceReader};
//!
//! let reader = TraceReader::open("out/quickstart/trace.tip".as_ref())?;
//! let disassemble = |raw: u32, _pc: u64| format!("{raw:08x}");
//! let spans = TraceTable::new(&SPANS, reader, HartId(0), Range::ALL, Box::new(disassemble))?;
//! write_parquet(spans, std::fs::File::create("spans.parquet")?)?;
//! # Ok(())
//! # }
//! ```

mod builders;
mod catalog;
mod context;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod report;
mod rows;
mod schema;
mod spans;
mod static_instructions;
mod trace;

pub use arrow_array::{RecordBatch, RecordBatchReader};
pub use arrow_schema::{ArrowError, SchemaRef};
pub use catalog::*;
#[cfg(feature = "parquet")]
pub use parquet::write_parquet;
pub use report::{ReportError, report_table};
pub use rows::{batch_of_rows, one_batch};
pub use schema::{Column, Kind, More, Table};
pub use trace::{Disassemble, TraceTable, TraceTableError};

#[cfg(test)]
mod tests;
