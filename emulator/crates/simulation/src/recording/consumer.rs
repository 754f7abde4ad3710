//! The host's side of the stream: profilers and trace file. This page says which thread of a run does what.
//!
//! ```text
//!  thread "main"                  thread of the core (timing::ahead)      thread "host" (this file)
//!  hart: executes, follows the    pipeline: cycles, commits               drain(): evaluates, writes
//!  path                                  |
//!     |  <= 16 batches of runs           | Stream: TIP unit in band,
//!     +--------------------------------->|         Recorder out of band
//!     |<--- cycle it has come to --------+
//!                                        |  <= IN_FLIGHT batches of records (commit_trace::recordings)
//!                                        +------------------------------------------> Reader
//! ```
//!
//! - With one processor, or with several harts, there is no thread of the core: the pipeline runs where the hart does
//!   (`cores.rs` chooses, `run.threads` says so). What is simulated and recorded is the same.
//! - Each hart has a thread "translator", unless `run.threads` is one: it compiles hot code while the hart interprets (`translator`).
//! - A [`Reader`] takes batches in order, each through two stages ([`Stage`]): the profilers, then the trace. It is under one
//!   lock: the thread "host" takes it for a whole batch, others for a part of some [`RECORDS_AT_ONCE`] records, and never wait for it.
//! - Whoever waits for the other works here meanwhile ([`SpareWorker::help`], called through `timing::Lines::spare`): the hart's
//!   thread when the core has a backlog, the core's when it has nothing to do or [`URGENT_BATCHES`] batches wait.
//! - The thread "host" looks every [`BETWEEN_LOOKS`]. While others work here it leaves them the batches, up to three quarters of
//!   what the channel holds.
//! - Full chunks of the trace are compressed in pieces by the same threads, under a lock of its own.
//! - The channel is bounded: a recorder whose channel is full waits, and with it the simulation. An error (a full disk)
//!   ends the trace, or the profilers; the rest goes on, and [`StreamConsumer::finish`] tells.
//!
//! States of a session: it builds the `System` and its recorders, starts the [`StreamConsumer`], runs slices of the machine
//! (`System::run`), and ends the engine (`Engine::finish`): that ends the recorders, closes the channel, drops what other threads
//! hold of this side, and gives a [`StreamClosed`], without which nobody can wait for the rest ([`StreamConsumer::finish`]).

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use commit_trace::{
    Backlog, Batch, BatchProgress, BatchStream, Compression, StreamEnded, StreamError, TraceError,
    TraceSummary, TraceWriter, Written,
};
use profile::{Evaluation, Evaluator};
use timing::SpareWork;

use super::{Profilers, TraceOutput};
use crate::commit_stage::StreamClosed;
use crate::error::SimulationError;
use crate::options::Region;

/// Batches that may wait for this side: 4 MiB.
pub(crate) const IN_FLIGHT: usize = 128;

/// Time between two looks of the thread for waiting batches. Waking the thread for each batch would cost the hart's thread some 10 µs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Number of looks without help after which the thread assumes that nobody helps any more.
const LOOKS_WITHOUT_HELP: u32 = 8;

/// Waiting batches from which on the core's thread reads some itself: what the host's inner caches hold.
const URGENT_BATCHES: usize = 4;

/// Records that are written or evaluated at once, about: some ten microseconds of work, as another thread may come to wait for
/// the one that does it.
const RECORDS_AT_ONCE: usize = 1024;

/// The thread "host" and its state.
pub(crate) struct StreamConsumer {
    thread: JoinHandle<()>,
    spare_worker: SpareWorker,
}

/// What the host's side recorded and evaluated.
pub struct Recorded {
    /// The trace, if one was asked for and could be written.
    pub trace: Option<TraceSummary>,
    /// The profilers' verdict on each hart, if asked for.
    pub evaluations: Vec<Evaluation>,
    /// Why recording stopped early.
    pub error: Option<RecordingError>,
}

/// Why recording stopped early.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The profilers were given a damaged stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Takes batches in order, evaluates them and writes them.
struct Reader {
    stream: BatchStream,
    in_progress: Option<BatchInProgress>,
    writer: Option<TraceWriter<File>>,
    evaluators: Vec<Evaluator>,
    /// Whether the profilers stopped early.
    broken: bool,
    error: Option<RecordingError>,
}

/// A batch, and how far it is.
struct BatchInProgress {
    batch: Batch,
    stage: Stage,
}

/// The stage that a batch is in, and how far it is in it; `None`: not begun.
enum Stage {
    /// The batch goes to the profilers.
    Evaluate(Option<BatchProgress>),
    /// The profilers have the batch, and it goes into the trace.
    Write(Option<Written>),
}

/// A handle by which another thread does some of the host thread's work (evaluate, write, compress) while it would wait.
#[derive(Clone)]
pub struct SpareWorker {
    reader: Arc<Mutex<Reader>>,
    compression: Option<Arc<Compression<File>>>,
    backlog: Backlog,
    /// Whether somebody else worked here since the thread's last look.
    helps: Arc<AtomicBool>,
    /// Whether there will be no more batches, and nobody else reads them.
    ends: Arc<AtomicBool>,
}

impl SpareWorker {
    /// Works on a part of a batch, or compresses a piece of the trace, unless somebody else is at it. Returns false if there
    /// was nothing to do.
    pub fn help(&self, what: SpareWork) -> bool {
        let enough = match what {
            SpareWork::Any => 1,
            SpareWork::Urgent => URGENT_BATCHES,
        };
        if self.backlog.batches() < enough {
            return what == SpareWork::Any && self.compress();
        }
        let done = match self.reader.try_lock() {
            Ok(mut reader) => {
                self.helps.store(true, Relaxed);
                reader.do_part()
            }
            Err(_) => return what == SpareWork::Any && self.compress(),
        };
        // With a piece for each batch, a chunk is compressed long before the next one is full.
        if done == Ok(Part::Last) {
            self.compress();
        }
        matches!(done, Ok(Part::Last | Part::Some))
    }

    /// Compresses a piece of the trace.
    fn compress(&self) -> bool {
        self.compression.as_ref().is_some_and(|compression| compression.step())
    }
}

/// What was done for a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// There is no batch.
    None,
    /// A part of a batch that is not the last.
    Some,
    /// The last part of a batch.
    Last,
}

impl StreamConsumer {
    /// Creates the trace, if there is to be one, and starts the thread with the profilers of so many `harts`, whose cores commit up
    /// to `width` instructions a cycle.
    ///
    /// # Errors
    /// If the trace cannot be created, or the thread not started.
    pub(crate) fn start(
        stream: BatchStream,
        trace: Option<TraceOutput>,
        profilers: Option<&Profilers>,
        region: Region,
        (harts, width): (usize, u32),
    ) -> Result<Self, SimulationError> {
        let create = |trace: TraceOutput| {
            let TraceOutput { create, name, metadata, level } = trace;
            let file = |e: TraceError| SimulationError::file(Path::new(&name), e);
            let mut writer = TraceWriter::new(create()?, name.clone(), &metadata).map_err(file)?;
            writer.set_level(level).map_err(file)?;
            Ok::<_, SimulationError>(writer)
        };
        let mut writer = trace.map(create).transpose()?;
        let compression = writer.as_mut().map(|w| Arc::new(w.compression()));
        let region = match region.is_marked() {
            true => profile::Region::Marked,
            false => profile::Region::Whole,
        };
        let evaluators = profilers.map_or_else(Vec::new, |profilers| {
            let evaluator = || {
                let mut evaluator = Evaluator::new(&profilers.samplers, region);
                if profilers.detail {
                    evaluator = evaluator.in_detail(width);
                }
                if profilers.call_stacks {
                    evaluator = evaluator.with_call_stacks();
                }
                match profilers.sampled {
                    Some(scheme) if scheme.tells_chance() => evaluator.of_sampled_region(),
                    Some(_) => evaluator.of_chosen_units(),
                    None => evaluator,
                }
            };
            (0..harts).map(|_| evaluator()).collect()
        });
        let backlog = stream.backlog();
        let reader = Arc::new(Mutex::new(Reader {
            stream,
            in_progress: None,
            writer,
            evaluators,
            broken: false,
            error: None,
        }));
        let spare_worker = SpareWorker {
            reader,
            compression,
            backlog,
            helps: Arc::default(),
            ends: Arc::default(),
        };
        let of_thread = spare_worker.clone();
        let thread = thread::Builder::new().name("host".into()).spawn(move || drain(&of_thread));
        let thread = thread.map_err(|e| SimulationError::Recording(e.to_string()))?;
        Ok(Self { thread, spare_worker })
    }

    /// Returns a handle by which another thread can do the thread's work.
    pub(crate) fn spare_worker(&self) -> SpareWorker {
        self.spare_worker.clone()
    }

    /// Returns true once something could not be recorded.
    pub(crate) fn failed(&self) -> bool {
        // While the thread is at work the answer is not known; the next call tells.
        { self.spare_worker.reader.try_lock() }.is_ok_and(|reader| reader.error.is_some())
    }

    /// Waits until the rest of the stream is read. The argument `_closed` proves that the stream is closed: otherwise this would wait for ever.
    /// `is_part`: the run ended before its time, which the trace is to say.
    pub(crate) fn finish(
        self,
        _closed: StreamClosed,
        is_part: bool,
    ) -> Result<Recorded, SimulationError> {
        let panicked = || SimulationError::Recording("its thread panicked".to_owned());
        self.spare_worker.ends.store(true, Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| panicked())?;
        let reader = Arc::into_inner(self.spare_worker.reader).ok_or_else(panicked)?;
        let reader = reader.into_inner().map_err(|_| panicked())?;
        Ok(reader.finish(is_part))
    }
}

/// Takes what nobody else takes, until the stream ends. It leaves batches to whoever helps, as long as somebody does
/// and there is room for more: then it needs no processor of its own.
fn drain(spare_worker: &SpareWorker) {
    let mut alone = LOOKS_WITHOUT_HELP;
    loop {
        alone = match spare_worker.helps.swap(false, Relaxed) {
            true => 0,
            false => LOOKS_WITHOUT_HELP.min(alone + 1),
        };
        let waiting = spare_worker.backlog.batches();
        let taken = if alone == LOOKS_WITHOUT_HELP || spare_worker.ends.load(Relaxed) {
            // Once more, so that the end is seen.
            waiting + 1
        } else {
            waiting.saturating_sub(IN_FLIGHT * 3 / 4)
        };
        for _ in 0..taken {
            let mut reader = spare_worker.reader.lock().unwrap_or_else(PoisonError::into_inner);
            match reader.do_batch() {
                Ok(true) => {}
                Ok(false) => break,
                Err(StreamEnded) => return,
            }
            drop(reader);
            spare_worker.compress();
        }
        thread::park_timeout(BETWEEN_LOOKS);
    }
}

impl Reader {
    /// Does something for the next batch, if there is one already.
    fn do_part(&mut self) -> Result<Part, StreamEnded> {
        let in_progress = match self.in_progress.take() {
            Some(in_progress) => Some(in_progress),
            None => self
                .stream
                .look()?
                .map(|batch| BatchInProgress { batch, stage: Stage::Evaluate(None) }),
        };
        let Some(BatchInProgress { batch, stage }) = in_progress else {
            return Ok(Part::None);
        };
        let next = match stage {
            Stage::Evaluate(progress) => Some(self.evaluate(&batch, progress)),
            Stage::Write(written) => self.write(&batch, written),
        };
        Ok(match next {
            Some(stage) => {
                self.in_progress = Some(BatchInProgress { batch, stage });
                Part::Some
            }
            None => {
                self.stream.recycle(batch);
                Part::Last
            }
        })
    }

    /// Evaluates and writes all of the next batch. Returns false if there is no batch yet.
    fn do_batch(&mut self) -> Result<bool, StreamEnded> {
        loop {
            match self.do_part()? {
                Part::None => return Ok(false),
                Part::Some => {}
                Part::Last => return Ok(true),
            }
        }
    }

    /// Gives the profilers a part of a batch, and returns the stage that the batch is in then. Profilers come before the trace because they take
    /// longer for a record: they hide better than writing does that the record must come from another processor's cache.
    fn evaluate(&mut self, batch: &Batch, progress: Option<BatchProgress>) -> Stage {
        let hart = batch.hart.0 as usize;
        let Some(evaluator) = self.evaluators.get_mut(hart).filter(|_| !self.broken) else {
            return Stage::Write(None);
        };
        let mut part = || {
            let mut progress = match progress {
                Some(progress) => progress,
                None => evaluator.begin(batch)?,
            };
            let is_whole = evaluator.go_on(batch, &mut progress, RECORDS_AT_ONCE)?;
            Ok(if is_whole { Stage::Write(None) } else { Stage::Evaluate(Some(progress)) })
        };
        part().unwrap_or_else(|e: StreamError| {
            self.broken = true;
            self.error.get_or_insert(e.into());
            Stage::Write(None)
        })
    }

    /// Writes a part of a batch, and returns the stage that the batch is in then; `None`: all of it is written, or nothing can be.
    fn write(&mut self, batch: &Batch, written: Option<Written>) -> Option<Stage> {
        let writer = self.writer.as_mut()?;
        let mut part = || {
            let mut written = match written {
                Some(written) => written,
                None => writer.begin(batch)?,
            };
            let is_whole = writer.go_on(batch, &mut written, RECORDS_AT_ONCE)?;
            Ok((!is_whole).then_some(Stage::Write(Some(written))))
        };
        part().unwrap_or_else(|e: TraceError| {
            self.error.get_or_insert(e.into());
            self.writer = None;
            None
        })
    }

    fn finish(mut self, is_part: bool) -> Recorded {
        let trace = self.writer.and_then(|writer| {
            let finished = match is_part || self.error.is_some() {
                true => writer.finish_part(),
                false => writer.finish(),
            };
            let summary = finished.map_err(|e| self.error.get_or_insert(e.into()));
            summary.ok()
        });
        Recorded {
            trace,
            evaluations: self.evaluators.into_iter().map(Evaluator::finish).collect(),
            error: self.error,
        }
    }
}
