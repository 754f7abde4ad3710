//! Reports.

use std::path::{Path, PathBuf};

use arrow_tables::{REPORT_TABLES, ReportError, report_table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::Error;
use crate::table::{Source, Table};

/// The report of a run, or of one of its harts.
#[pyclass(frozen, module = "tipsim")]
pub struct ReportFile {
    path: PathBuf,
    report: Value,
    run: Value,
}

fn json(path: &Path) -> Result<Value, String> {
    let error = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let bytes = std::fs::read(path).map_err(|e| error(&e))?;
    serde_json::from_slice(&bytes).map_err(|e| error(&e))
}

#[pymethods]
impl ReportFile {
    /// Reads `report.json` and the run's `run.json`.
    #[new]
    fn new(py: Python<'_>, report: PathBuf, run: PathBuf) -> PyResult<Self> {
        let read = py.detach(|| Ok::<_, String>((json(&report)?, json(&run)?)));
        let (found, run) = read.map_err(Error::new_err)?;
        Ok(Self { path: report, report: found, run })
    }

    /// Returns a table of the report.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let table = REPORT_TABLES.into_iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| PyValueError::new_err(format!("no table {name}")))?;
        let batch = py.detach(|| report_table(table, &self.report, &self.run));
        let batch = batch.map_err(|error| {
            // Some errors name the file themselves.
            let at = match (&error, self.path.parent()) {
                (ReportError::File { .. }, Some(folder)) => format!("{}/", folder.display()),
                _ => format!("{}: ", self.path.display()),
            };
            Error::new_err(format!("{at}{error}"))
        })?;
        Ok(Table { schema: batch.schema(), source: Source::Batch(batch) })
    }
}
