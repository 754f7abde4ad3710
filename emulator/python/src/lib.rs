//! The native half of the Python package `tipsim`: traces and reports as tables of Arrow, which leave by the
//! [Arrow PyCapsule interface](https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html), without copies and
//! without a dependency on any library that reads them, and sessions that drive the simulator in this process. What users see of it is in `tipsim/`, which has the documentation, too.

mod report;
mod schema;
mod session;
mod table;
mod trace;

use pyo3::exceptions::PyRuntimeError;

pyo3::create_exception!(
    tipsim,
    Error,
    PyRuntimeError,
    "A file, a trace or a run of the simulator is not as it should be; the message says which, and what was found."
);

/// `tipsim._tipsim`.
#[pyo3::pymodule]
mod _tipsim {
    #[pymodule_export]
    use super::{
        Error,
        report::ReportFile,
        schema::tables,
        session::Session,
        table::{Batch, Batches, Table},
        trace::TraceFile,
    };
}
