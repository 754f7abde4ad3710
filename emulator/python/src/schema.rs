//! What tables there are.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Every table as a dictionary: `name`, `about`, and `columns` with `name`, `type`, `nullable`, `unit` and `about` each. Columns that
/// depend on the run are the last, under a name that says what they are.
#[pyfunction]
pub(crate) fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let found = PyList::empty(py);
    for table in arrow_tables::tables() {
        let columns = PyList::empty(py);
        let more = table
            .run_columns
            .iter()
            .map(|more| (more.names, "double", true, more.unit, more.about));
        let own = table.fixed_columns().map(|column| {
            let (kind, optional) = (column.column_type.name(), column.optional);
            (column.name, kind, optional, column.unit, column.about)
        });
        for (name, kind, nullable, unit, about) in own.chain(more) {
            let column = PyDict::new(py);
            column.set_item("name", name)?;
            column.set_item("type", kind)?;
            column.set_item("nullable", nullable)?;
            column.set_item("unit", unit)?;
            column.set_item("about", about)?;
            columns.append(column)?;
        }
        let entry = PyDict::new(py);
        entry.set_item("name", table.name)?;
        entry.set_item("about", table.about)?;
        entry.set_item("columns", columns)?;
        found.append(entry)?;
    }
    Ok(found)
}
