//! Tables, and how they leave for Python.

use std::sync::{Mutex, PoisonError};

use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_tables::{ArrowError, SchemaRef, one_batch};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::Error;
use crate::trace::TracePart;

type Reader = Box<dyn RecordBatchReader + Send>;

/// Where a table's rows come from.
pub enum Source {
    /// A trace, read anew by whoever reads the table.
    Trace(TracePart),
    /// Rows in memory.
    Batch(RecordBatch),
}

/// A table that any library that knows Arrow can read (`pyarrow.table(t)`, `polars.DataFrame(t)`, `duckdb.sql("from
/// t")`, `pandas.DataFrame.from_arrow(t)`), as often as one likes. Iterating over a table gives its record batches one by one.
#[pyclass(frozen, module = "tipsim")]
pub struct Table {
    /// The table's schema.
    pub schema: SchemaRef,
    /// The source of the table's rows.
    pub source: Source,
}

/// An error of Arrow, or of ours that Arrow brought along.
fn failed(error: ArrowError) -> PyErr {
    Error::new_err(match error {
        ArrowError::ExternalError(inner) => inner.to_string(),
        other => other.to_string(),
    })
}

fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(failed)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

impl Table {
    fn reader(&self, py: Python<'_>) -> PyResult<Reader> {
        match &self.source {
            Source::Batch(batch) => Ok(Box::new(one_batch(batch.clone()))),
            Source::Trace(part) => py.detach(|| Ok(Box::new(part.open()?) as Reader)),
        }
    }

    fn metadata(&self, key: &str) -> &str {
        self.schema.metadata().get(key).map_or("", String::as_str)
    }
}

#[pymethods]
impl Table {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// Returns a stream of the table's batches. Nothing is cast: whoever asks for another schema gets the table's, as the
    /// interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        // The stream needs nothing of Python's: whoever reads it may let go of the interpreter meanwhile.
        let stream = FFI_ArrowArrayStream::new(self.reader(py)?);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Batches> {
        Ok(Batches(Mutex::new(self.reader(py)?)))
    }

    /// The table's name.
    #[getter]
    fn name(&self) -> &str {
        self.metadata("table")
    }

    /// What a row is.
    #[getter]
    fn about(&self) -> &str {
        self.metadata("about")
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    fn __repr__(&self) -> String {
        let rows = match &self.source {
            Source::Trace(part) => format!("of {}", part.path.display()),
            Source::Batch(batch) => format!("{} rows", batch.num_rows()),
        };
        format!("<tipsim.Table {}: {rows}, {} columns>", self.name(), self.schema.fields().len())
    }
}

/// An iterator of record batches. Those before an error are whole.
#[pyclass(frozen, module = "tipsim")]
pub struct Batches(Mutex<Reader>);

#[pymethods]
impl Batches {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        // If a thread panicked while it held the lock, the reader itself says what is wrong.
        let next = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
        next.transpose().map(|batch| batch.map(Batch)).map_err(failed)
    }
}

/// A record batch (`pyarrow.record_batch(b)`, `polars.DataFrame(b)`).
#[pyclass(frozen, module = "tipsim")]
pub struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    /// Returns the batch's schema and array for Python. Nothing is cast, as in [`Table::__arrow_c_stream__`].
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let (array, _) = to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(failed)?;
        let schema = self.__arrow_c_schema__(py)?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}
