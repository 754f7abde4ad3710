//! Tables out of rows of JSON.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch,
    RecordBatchIterator, RecordBatchReader, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use serde_json::{Map, Value};

use crate::schema::{ColumnType, Table};
use crate::trace::ROWS_PER_BATCH;

/// A row: values by the names of columns. A column that it lacks is null.
pub type JsonRow = Map<String, Value>;

/// Returns the rows of a table as one record batch; `more` as in [`Table::schema`]. Addresses may be texts in hexadecimal.
///
/// # Errors
/// If a column that has no nulls lacks a value, or has one of another type.
pub fn batch_of_rows(
    table: &Table,
    more: &[String],
    rows: &[JsonRow],
) -> Result<RecordBatch, ArrowError> {
    let schema = table.schema(more);
    let types = table.fixed_columns().map(|column| column.column_type);
    let types = types.chain(more.iter().map(|_| ColumnType::F64));
    let columns = schema.fields().iter().zip(types).map(|(field, column_type)| {
        let values: Vec<&Value> =
            rows.iter().map(|row| row.get(field.name()).unwrap_or(&Value::Null)).collect();
        let unit = field.metadata().get("unit").map_or("", String::as_str);
        let array = column(column_type, unit, &values);
        // Arrow's own error about nulls does not name the table.
        match array.null_count() {
            0 => Ok(array),
            _ if field.is_nullable() => Ok(array),
            nulls => Err(ArrowError::InvalidArgumentError(format!(
                "table {}: {}: expected {} in every row, found {nulls} without",
                table.name,
                field.name(),
                column_type.name()
            ))),
        }
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
    RecordBatch::try_new(schema, columns)
}

/// Returns the rows of a table as record batches, for a table without columns of the run's own.
pub fn batches_of_rows(
    table: &'static Table,
    rows: impl Iterator<Item = JsonRow>,
) -> impl RecordBatchReader {
    let mut rows = rows.peekable();
    let batches = std::iter::from_fn(move || {
        rows.peek()?;
        let piece: Vec<JsonRow> = rows.by_ref().take(ROWS_PER_BATCH).collect();
        Some(batch_of_rows(table, &[], &piece))
    });
    RecordBatchIterator::new(batches, table.schema(&[]))
}

/// Returns a reader of one batch.
pub fn one_batch(batch: RecordBatch) -> impl RecordBatchReader + Send {
    let schema = batch.schema();
    RecordBatchIterator::new([Ok(batch)], schema)
}

fn column(column_type: ColumnType, unit: &str, values: &[&Value]) -> ArrayRef {
    let numbers = || values.iter().map(|value| number(value, unit));
    let texts = || values.iter().map(|value| value.as_str());
    match column_type {
        ColumnType::U64 => Arc::new(UInt64Array::from_iter(numbers())),
        ColumnType::I64 => {
            let signed = numbers().map(|number| i64::try_from(number?).ok());
            Arc::new(Int64Array::from_iter(signed))
        }
        ColumnType::U32 => {
            let narrow = numbers().map(|number| u32::try_from(number?).ok());
            Arc::new(UInt32Array::from_iter(narrow))
        }
        ColumnType::U8 => {
            let narrow = numbers().map(|number| u8::try_from(number?).ok());
            Arc::new(UInt8Array::from_iter(narrow))
        }
        ColumnType::F64 => {
            let doubles = values.iter().map(|value| value.as_f64());
            Arc::new(Float64Array::from_iter(doubles))
        }
        ColumnType::Bool => {
            let flags = values.iter().map(|value| value.as_bool());
            Arc::new(BooleanArray::from_iter(flags))
        }
        ColumnType::Text => Arc::new(StringArray::from_iter(texts())),
        ColumnType::Name => Arc::new(texts().collect::<DictionaryArray<Int32Type>>()),
        ColumnType::U32s => {
            let items = |value: &&Value| items(value, |item| u32::try_from(item.as_u64()?).ok());
            let (offsets, items) = lists(values.iter().map(items));
            list(DataType::UInt32, offsets, Arc::new(UInt32Array::from(items)))
        }
        ColumnType::Texts => {
            let items = |value: &&Value| items(value, |item| Some(item.as_str()?.to_owned()));
            let (offsets, items) = lists(values.iter().map(items));
            list(DataType::Utf8, offsets, Arc::new(StringArray::from(items)))
        }
    }
}

/// Returns a number; the text of an address is read as hexadecimal.
fn number(value: &Value, unit: &str) -> Option<u64> {
    match value {
        Value::String(text) if unit == "address" => {
            u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
        }
        other => other.as_u64(),
    }
}

fn items<T>(value: &Value, item: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    value.as_array().into_iter().flatten().filter_map(item).collect()
}

fn lists<T>(rows: impl Iterator<Item = Vec<T>>) -> (OffsetBuffer<i32>, Vec<T>) {
    let rows: Vec<Vec<T>> = rows.collect();
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(Vec::len));
    (offsets, rows.into_iter().flatten().collect())
}

fn list(item: DataType, offsets: OffsetBuffer<i32>, items: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new("item", item, false));
    Arc::new(ListArray::new(item, offsets, items, None))
}

/// Returns a row of values with names.
pub(crate) fn row<const N: usize>(cells: [(&str, Value); N]) -> JsonRow {
    cells.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
