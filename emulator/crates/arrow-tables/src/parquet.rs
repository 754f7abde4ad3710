//! Parquet files.

use std::io::Write;

use arrow_array::RecordBatchReader;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// Writes a table, compressed by Zstandard. If it breaks off, the file holds the rows before that, whole and closed, and
/// the error is returned.
///
/// # Errors
/// The table's, or if the file cannot be written.
pub fn write_parquet(
    table: impl RecordBatchReader,
    out: impl Write + Send,
) -> Result<u64, ArrowError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut writer = ArrowWriter::try_new(out, table.schema(), Some(properties)).map_err(failed)?;
    let (mut rows, mut broken) = (0, None);
    for batch in table {
        match batch {
            Ok(batch) => {
                writer.write(&batch).map_err(failed)?;
                rows += batch.num_rows() as u64;
            }
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    writer.close().map_err(failed)?;
    broken.map_or(Ok(rows), Err)
}

fn failed(error: ParquetError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}
