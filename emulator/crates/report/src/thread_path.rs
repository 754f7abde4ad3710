//! The critical path over threads: what the region's end waited for, from wakeup to wakeup.

mod build;
mod page;
pub(crate) mod rules;
mod text;

use maud::Markup;
use schemars::JsonSchema;
use serde::Serialize;

use super::model::Common;
use super::options::Options;
use super::section::Section;
pub(super) use build::{PathInputs, thread_path};

/// The section's content.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ThreadPathReport {
    /// Cycles of the region, which are those of the path.
    pub cycles: u64,
    /// Number of harts.
    pub harts: usize,
    /// What the threads on the path do, the longest first. All rows together are the whole path.
    pub kinds: Vec<PathKindRow>,
    /// Threads on the path, the longest first. All rows together are the whole path.
    pub threads: Vec<PathThread>,
    /// Functions that run on the path, the most expensive first. How the running time of a thread is split over functions is
    /// estimated, from the hart's profile in stretches of [`stretch`](Self::stretch) cycles.
    pub functions: Vec<PathFunction>,
    /// Number of functions that are not listed.
    pub more_functions: usize,
    /// Longest stretch of time by which a hart's profile tells when a function ran, in cycles; 0 if it does not.
    pub stretch: u64,
    /// Whether the hart's profile tells threads of one process apart within a stretch, as calls were followed.
    pub by_thread: bool,
    /// Wakeups by which the path goes from thread to thread, the most frequent first.
    pub edges: Vec<PathEdgeRow>,
    /// Number of kinds of wakeups that are not listed.
    pub more_edges: usize,
    /// The path's first segments in order of time.
    pub segments: Vec<PathSegmentRow>,
    /// Number of segments that are not listed.
    pub more_segments: usize,
}

/// What a thread on the path does.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// A hart runs the thread.
    Running,
    /// The thread could run, and waits for a hart.
    Ready,
    /// The thread waits, and no thread is known to have ended the wait: a timer or a device.
    Waiting,
    /// Nothing is known.
    Unknown,
}

/// Cycles of the path in which its threads do one thing.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PathKindRow {
    /// What the threads do.
    pub state: PathState,
    /// What the threads wait for and who ends the waits, if they wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Cycles of the path.
    pub cycles: u64,
    /// Share of the path.
    pub share: f64,
}

/// A thread on the path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PathThread {
    /// Index into [`processes`](Common::processes), if the report has the process.
    pub process: Option<usize>,
    /// The thread's name and number; `?` if the thread is not known.
    pub thread: String,
    /// Number of segments.
    pub segments: u64,
    /// Cycles of the path.
    pub cycles: u64,
    /// Share of the path.
    pub share: f64,
    /// Share of the path in which a hart runs the thread.
    pub running: f64,
    /// Share of the path in which the thread is ready, but on no hart.
    pub ready: f64,
    /// Share of the path in which the thread waits for a timer or a device.
    pub waiting: f64,
}

/// A function that runs on the path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PathFunction {
    /// The thread's name and number.
    pub thread: String,
    /// The function; `?` if it is not known.
    pub function: String,
    /// Cycles of the path, estimated.
    pub cycles: f64,
    /// Share of the path, estimated.
    pub share: f64,
}

/// Wakeups of one kind by which the path goes from one thread to another.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PathEdgeRow {
    /// The thread that waits: the path goes on in it.
    pub waiter: String,
    /// The thread that wakes it, which the path comes from.
    pub waker: String,
    /// What the thread waits for, as in [`super::WaitRow::reason`]; `new thread` for the start of a thread, `?` if that is not known.
    pub reason: String,
    /// The futex, by its data object and address, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futex: Option<String>,
    /// The function that waits, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The function of the program that wakes, if calls were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waker_place: Option<String>,
    /// Number of wakeups.
    pub count: u64,
    /// Cycles for which the threads had waited, summed over the wakeups; the path does not lead through these, but through what the wakers
    /// did meanwhile.
    pub waited: u64,
}

/// A segment of the path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PathSegmentRow {
    /// The first cycle.
    pub start: u64,
    /// The first cycle after the segment.
    pub end: u64,
    /// Index into [`threads`](ThreadPathReport::threads).
    pub thread: usize,
    /// What the thread does.
    pub state: PathState,
    /// The hart that runs the thread, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hart: Option<u32>,
}

impl Section for ThreadPathReport {
    fn write(&self, common: &Common, _: &Options, out: &mut String) -> std::fmt::Result {
        text::write(self, common, out)
    }

    fn page(&self, common: &Common) -> Markup {
        page::page(self, common)
    }
}
