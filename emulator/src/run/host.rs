//! The host's side of the channel: trace file and profilers, on a thread of their own.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use commit_trace::{BatchStream, TraceSummary, TraceWriter};
use profile::{Evaluation, Evaluator, Region};

use super::Plan;
use super::description::metadata;
use crate::failure::bad_input;
use crate::spec;

/// The thread and its state.
pub struct Host {
    thread: JoinHandle<HostOutcome>,
    failed: Arc<AtomicBool>,
}

/// What came of it.
pub struct HostOutcome {
    /// The trace, if one was asked for and could be written.
    pub trace: Option<TraceSummary>,
    /// The profilers' verdict on each hart, if asked for.
    pub evaluations: Vec<Evaluation>,
    /// Why recording stopped early.
    pub error: Option<anyhow::Error>,
}

impl Host {
    /// Opens the trace and starts the thread.
    pub fn start(plan: &Plan, out: &Path, stream: BatchStream) -> anyhow::Result<Self> {
        let path = out.join("trace.tip");
        let record = &plan.spec.record;
        let create = || {
            let mut writer =
                TraceWriter::create(&path, &metadata(plan)?).map_err(|e| bad_input(&path, e))?;
            writer
                .set_level(record.level)
                .map_err(|e| bad_input(&path, e))?;
            anyhow::Ok(writer)
        };
        let writer = record.trace.then(create).transpose()?;
        let region = match plan.spec.run.region {
            spec::Region::Run => Region::Whole,
            spec::Region::Command => Region::Marked,
        };
        let profiled = if record.profilers {
            plan.spec.guest.harts
        } else {
            0
        };
        let evaluators = (0..profiled).map(|_| {
            let evaluator = Evaluator::new(&plan.samplers, region);
            match record.detail {
                true => evaluator.in_detail(plan.preset.decode.width),
                false => evaluator,
            }
        });
        let evaluators = evaluators.collect();
        let failed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&failed);
        let thread = std::thread::Builder::new()
            .name("host".into())
            .spawn(move || drain(stream, writer, evaluators, &flag))?;
        Ok(Self { thread, failed })
    }

    /// True once something could not be recorded.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Waits for the rest of the stream.
    pub fn finish(self) -> anyhow::Result<HostOutcome> {
        self.thread
            .join()
            .map_err(|_| anyhow::anyhow!("the recording thread panicked"))
    }
}

fn drain(
    mut stream: BatchStream,
    mut writer: Option<TraceWriter<File>>,
    mut evaluators: Vec<Evaluator>,
    failed: &AtomicBool,
) -> HostOutcome {
    let mut error: Option<anyhow::Error> = None;
    let mut fail = |e: anyhow::Error| {
        failed.store(true, Ordering::Relaxed);
        error.get_or_insert(e);
    };
    let mut broken = false;
    while let Some(batch) = stream.next() {
        if let Some(w) = &mut writer
            && let Err(e) = w.batch(&batch)
        {
            fail(e.into());
            writer = None;
        }
        if let Some(e) = evaluators.get_mut(batch.hart.0 as usize)
            && !broken
            && let Err(e) = e.batch(&batch)
        {
            broken = true;
            fail(e.into());
        }
        stream.recycle(batch);
    }
    let trace = writer.and_then(|w| w.finish().map_err(|e| fail(e.into())).ok());
    HostOutcome {
        trace,
        evaluations: evaluators.into_iter().map(Evaluator::finish).collect(),
        error,
    }
}
