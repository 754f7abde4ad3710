//! Tables as files.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Apache Parquet, compressed by Zstandard.
    Parquet,
    /// Apache Arrow's IPC stream.
    Arrow,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Parquet, Self::Arrow];

    /// Returns the name of the format on the command line and in names of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// Returns a description of the format in one line.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Parquet => "Apache Parquet: tables for DuckDB, polars, pandas",
            Self::Arrow => "Apache Arrow's IPC stream: the same tables",
        }
    }
}

/// Key of the metadata of a table that is not of a whole run; the value says why not, in words.
pub const NOT_WHOLE: &str = "not_whole";

/// Key of the metadata of a table that is of units of a sampled run; the value says which, in words.
pub const SAMPLED: &str = "sampled";

/// What has to be known first of the run that a table is of, in words.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// Why it is not a whole run ([`NOT_WHOLE`]).
    pub part: Option<String>,
    /// How it was sampled ([`SAMPLED`]).
    pub sampled: Option<String>,
}

/// Returns `table` with metadata that have the notices.
pub fn with_notices<R: RecordBatchReader>(table: R, notices: &Notices) -> RecordBatchIterator<R> {
    let mut schema = (*table.schema()).clone();
    for (key, words) in [(NOT_WHOLE, &notices.part), (SAMPLED, &notices.sampled)] {
        if let Some(words) = words {
            schema.metadata.insert(key.to_owned(), words.clone());
        }
    }
    RecordBatchIterator::new(table, Arc::new(schema))
}

/// Writes a table and says how many rows it has. If it breaks off, the file holds the rows before that, whole and
/// closed, and the error is returned.
///
/// # Errors
/// The table's, or if the file cannot be written.
pub fn write_table(
    table: impl RecordBatchReader,
    format: FileFormat,
    out: impl Write + Send,
) -> Result<u64, ArrowError> {
    match format {
        FileFormat::Parquet => {
            let level = Compression::ZSTD(ZstdLevel::default());
            // Arrow's own copy of the schema has them, too, but who does not use Arrow reads no text there.
            let schema = table.schema();
            let notes = schema.metadata().iter();
            let mut notes: Vec<KeyValue> =
                notes.map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
            notes.sort_by(|a, b| a.key.cmp(&b.key));
            let properties = WriterProperties::builder()
                .set_compression(level)
                .set_key_value_metadata(Some(notes))
                .build();
            let writer = ArrowWriter::try_new(out, schema, Some(properties));
            let mut writer = writer.map_err(failed)?;
            let rows = copy(table, |batch| writer.write(batch).map_err(failed));
            writer.close().map_err(failed)?;
            rows
        }
        FileFormat::Arrow => {
            let mut writer = StreamWriter::try_new(out, &table.schema())?;
            let rows = copy(table, |batch| writer.write(batch));
            writer.finish()?;
            rows
        }
    }
}

fn copy(
    table: impl RecordBatchReader,
    mut write: impl FnMut(&RecordBatch) -> Result<(), ArrowError>,
) -> Result<u64, ArrowError> {
    let mut rows = 0;
    for batch in table {
        let batch = batch?;
        write(&batch)?;
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// Turns an error of Parquet into one of Arrow; an I/O error inside keeps its kind.
fn failed(error: ParquetError) -> ArrowError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => ArrowError::IoError(error.to_string(), *error),
            Err(inner) => ArrowError::ExternalError(inner),
        },
        other => ArrowError::ExternalError(Box::new(other)),
    }
}
