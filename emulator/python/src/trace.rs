//! Traces.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use arrow_tables::{SPANS, TRACE_TABLES, Table as Schema, TraceTable, TraceTableError};
use commit_trace::{
    CLOCK_HZ, HartId, Place, Position, Range, TraceEnd, TraceError, TraceReader, WalkError,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::Error;
use crate::table::{Source, Table};

/// A trace file.
#[pyclass(frozen, module = "tipsim")]
pub struct TraceFile {
    path: PathBuf,
    /// The JSON that describes the run.
    #[pyo3(get)]
    metadata: String,
    /// How the trace ends: `complete`, or where it is cut or damaged.
    #[pyo3(get)]
    end: String,
    /// Whether the trace's writer was stopped; all records before that are whole.
    #[pyo3(get)]
    cut: bool,
    /// Number of harts.
    #[pyo3(get)]
    harts: u32,
    /// Records of all harts.
    #[pyo3(get)]
    records: u64,
    /// The last cycle before the trace, and the last one of the trace.
    #[pyo3(get)]
    cycles: (u64, u64),
    /// Cycles per second of the guest's time.
    #[pyo3(get)]
    clock_hz: u64,
}

/// A part of a trace's hart as a table.
pub struct TracePart {
    /// The trace.
    pub path: PathBuf,
    table: &'static Schema,
    hart: HartId,
    range: Range,
}

impl TracePart {
    /// Begins to read the part.
    ///
    /// # Errors
    /// If the trace cannot be read, or ends before the part begins.
    pub fn open(&self) -> PyResult<TraceTable<BufReader<File>>> {
        let reader = TraceReader::open(&self.path).map_err(|e| Error::new_err(e.to_string()))?;
        let end = reader.end();
        let disassemble = |raw: u32, pc: u64| isa::disasm(&isa::decode(raw), pc);
        let table =
            TraceTable::new(self.table, reader, self.hart, self.range, Box::new(disassemble));
        table.map_err(|error| match error {
            TraceTableError::Walk(WalkError::Trace(e @ TraceError::OutOfRange { .. })) => {
                Error::new_err(format!("{e}, which is {end}"))
            }
            TraceTableError::Walk(e) => Error::new_err(e.to_string()),
            other => PyValueError::new_err(other.to_string()),
        })
    }
}

impl TraceFile {
    fn position(&self, name: &str, place: &str) -> PyResult<Position> {
        let place: Place =
            place.parse().map_err(|e| PyValueError::new_err(format!("{name}: {e}")))?;
        Ok(place.position(self.clock_hz))
    }
}

#[pymethods]
impl TraceFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let reader = py.detach(|| TraceReader::open(&path));
        let reader = reader.map_err(|e| Error::new_err(e.to_string()))?;
        let metadata: Value = serde_json::from_str(reader.metadata()).unwrap_or(Value::Null);
        let chunks = reader.chunks();
        let (starts, ends) = (
            chunks.iter().map(|chunk| chunk.start_cycle),
            chunks.iter().map(|chunk| chunk.end_cycle),
        );
        Ok(Self {
            metadata: reader.metadata().to_owned(),
            end: reader.end().to_string(),
            cut: matches!(reader.end(), TraceEnd::Cut { .. } | TraceEnd::Part),
            // A hart that recorded nothing is not known of.
            harts: chunks.iter().map(|chunk| chunk.hart.0.saturating_add(1)).max().unwrap_or(1),
            records: chunks.iter().map(|chunk| u64::from(chunk.records)).sum(),
            cycles: (starts.min().unwrap_or(0), ends.max().unwrap_or(0)),
            clock_hz: metadata["clock_hz"].as_u64().unwrap_or(CLOCK_HZ).max(1),
            path,
        })
    }

    /// Returns a table of one hart between two places.
    #[pyo3(signature = (name, hart, start, end))]
    fn table(
        &self,
        name: &str,
        hart: u32,
        start: Option<&str>,
        end: Option<&str>,
    ) -> PyResult<Table> {
        let table = TRACE_TABLES.into_iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| PyValueError::new_err(format!("no table {name}")))?;
        if hart >= self.harts {
            let (path, last) = (self.path.display(), self.harts - 1);
            let expected = match last {
                0 => "0, the only hart".to_owned(),
                last => format!("0 to {last}"),
            };
            return Err(PyValueError::new_err(format!(
                "{path}: hart: expected {expected}, found {hart}"
            )));
        }
        let place =
            |name, place: Option<&str>| place.map(|place| self.position(name, place)).transpose();
        let range = Range {
            from: place("start", start)?.unwrap_or(Position::START),
            to: place("end", end)?,
        };
        let is_backwards = match (range.from, range.to) {
            (Position::Record(from), Some(Position::Record(to))) => from > to,
            (Position::Cycle(from), Some(Position::Cycle(to))) => from > to,
            _ => false,
        };
        if is_backwards {
            let expected = "end: expected a place that is not before start";
            return Err(PyValueError::new_err(expected));
        }
        let by_record = |position| matches!(position, Position::Record(_));
        if table.name == SPANS.name && (by_record(range.from) || range.to.is_some_and(by_record)) {
            return Err(PyValueError::new_err(
                TraceTableError::NotByRecord(SPANS.name).to_string(),
            ));
        }
        Ok(Table {
            schema: table.schema(&[]),
            source: Source::Trace(TracePart {
                path: self.path.clone(),
                table,
                hart: HartId(hart),
                range,
            }),
        })
    }
}
