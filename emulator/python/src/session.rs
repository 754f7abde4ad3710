//! Sessions: an experiment that Python drives in steps. The experiment is on a thread of its own; a request waits for it without
//! Python's lock, and looks now and then for Ctrl-C.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tipsim::session::{MARKS, MOUNTED, Reply, SessionOptions, SessionThread, Until, mark_names};

use crate::Error;

/// Time between two looks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);
/// Time between two calls that show progress.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// Address of the next instruction, integer registers, cycle and instructions of a hart.
type HartTuple = (u64, Vec<u64>, u64, u64);

/// An experiment that goes on.
#[pyclass(frozen, module = "tipsim", name = "SessionThread")]
pub struct Session(SessionThread);

impl Session {
    /// Waits for a reply. Ctrl-C ends the step that goes on, and is raised when the step has ended.
    fn wait<R: Send>(
        &self,
        py: Python<'_>,
        reply: Reply<R>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<R> {
        // What Python releases its lock for may be on another thread.
        let reply = std::sync::Mutex::new(reply);
        let wait =
            |at_most| py.detach(|| reply.lock().unwrap_or_else(|e| e.into_inner()).wait(at_most));
        let mut shown = Instant::now();
        loop {
            if let Some(reply) = wait(SIGNAL_PERIOD) {
                return reply.map_err(Error::new_err);
            }
            let mut interrupted = py.check_signals();
            if let Some(progress) = progress.filter(|_| shown.elapsed() >= PROGRESS_PERIOD) {
                shown = Instant::now();
                interrupted = interrupted.and(progress.call1(self.0.position()).map(drop));
            }
            if let Err(error) = interrupted {
                self.0.interrupt();
                while wait(SIGNAL_PERIOD).is_none() {}
                return Err(error);
            }
        }
    }
}

#[pymethods]
impl Session {
    /// Boots the guest of a run spec, or goes on from a checkpoint.
    #[new]
    #[pyo3(signature = (spec, out, set, guest, checkpoint, interactive))]
    fn new(
        py: Python<'_>,
        spec: PathBuf,
        out: PathBuf,
        set: Vec<String>,
        guest: Option<PathBuf>,
        checkpoint: Option<PathBuf>,
        interactive: bool,
    ) -> PyResult<Self> {
        let options = SessionOptions { spec, set, out, guest_dir: guest, checkpoint, interactive };
        let started = SessionThread::start(options);
        let (thread, ready) = started.map_err(|e| Error::new_err(e.to_string()))?;
        let session = Self(thread);
        session.wait(py, ready, None)?;
        Ok(session)
    }

    #[pyo3(signature = (instructions, cycle, mark, text, pc, progress))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword in Python")]
    fn run_until(
        &self,
        py: Python<'_>,
        instructions: Option<u64>,
        cycle: Option<u64>,
        mark: Option<String>,
        text: Option<String>,
        pc: Option<u64>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        if let Some(mark) = &mark
            && mark != MOUNTED
            && !MARKS.iter().any(|(name, _)| name == mark)
        {
            let error = format!("mark: expected one of {}; found {mark}", mark_names());
            return Err(PyValueError::new_err(error));
        }
        let until = Until { instructions, cycle, mark, text, pc };
        self.wait(py, self.0.run_until(until), progress.as_ref())
    }

    /// Ends the step that goes on in another thread.
    fn interrupt(&self) {
        self.0.interrupt();
    }

    fn set_mode(&self, py: Python<'_>, timing: bool, core: Vec<String>) -> PyResult<()> {
        self.wait(py, self.0.set_mode(timing, core), None)
    }

    fn is_timing(&self, py: Python<'_>) -> PyResult<bool> {
        self.wait(py, self.0.is_timing(), None)
    }

    fn mark_region(&self, py: Python<'_>, start: bool) -> PyResult<bool> {
        self.wait(py, self.0.mark_region(start), None)
    }

    fn console(&self, py: Python<'_>) -> PyResult<String> {
        self.wait(py, self.0.console(), None)
    }

    fn send(&self, text: &str) -> PyResult<()> {
        self.0.send(text).map_err(Error::new_err)
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let harts = self.wait(py, self.0.counters(), None)?;
        let dict = |counts: Vec<(&str, u64)>| {
            let dict = PyDict::new(py);
            counts.into_iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
            Ok(dict)
        };
        harts.into_iter().map(dict).collect()
    }

    /// Returns the state of each hart.
    fn harts(&self, py: Python<'_>) -> PyResult<Vec<HartTuple>> {
        let harts = self.wait(py, self.0.harts(), None)?;
        let state = harts.into_iter().map(|h| (h.pc, h.registers, h.cycle, h.instructions));
        Ok(state.collect())
    }

    fn read_memory<'py>(
        &self,
        py: Python<'py>,
        hart: usize,
        address: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.wait(py, self.0.read_memory(hart, address, length), None)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.wait(py, self.0.checkpoint(path), None)
    }

    fn end(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.wait(py, self.0.end(), None)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        self.wait(py, self.0.finish(), None)
    }

    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.wait(py, self.0.discard(), None)
    }
}
