//! The stream of the commit stage: records, spans, the recorder and the trace file.
//!
//! A hart's timing core pushes one [`Commit`] per dynamic instruction (and per trap) into a
//! [`CommitSink`]. The [`Recorder`] packs them into [`CommitRecord`]s, which leave the hart's thread
//! in owned [`Batch`]es; [`SpanBuilder`] turns those into [`Span`]s, maximal runs of cycles in one
//! commit state, which profilers read. [`TraceWriter`] and [`TraceReader`] keep batches in a file;
//! [`walk()`] reads it record by record, and [`expand`] writes it in other tools' formats. README.md has
//! the file's layout; `examples/hottest.rs` is a profiler in under 50 lines.
//!
//! ```
//! use commit_trace::*;
//!
//! let (mut recorder, stream) = recording(HartId(0), 0, 4);
//! recorder.define(&StaticInfo {
//!     id: InstId(0), space: 0, pc: 0x8000_0000, raw: 0x13, len: 4, privilege: 3,
//!     class: Class::Int, target: None,
//! });
//! recorder.commit(&Commit {
//!     inst: InstId(0), decode: 3, dispatch: 4, commit: 9, redirect: Redirect::None,
//!     first_of_row: true, class: CycleClass::Alu, tea: TeaEvents::default(),
//! });
//! recorder.finish().unwrap();
//!
//! struct Print(Vec<(State, u64)>);
//! impl SpanSink for Print {
//!     fn span(&mut self, span: &Span<'_>) {
//!         self.0.push((span.state, span.cycles));
//!     }
//! }
//! let mut print = Print(Vec::new());
//! let mut spans = SpanBuilder::new();
//! for batch in stream {
//!     spans.batch(&batch, &mut print).unwrap();
//! }
//! assert_eq!(print.0, [(State::Drained, 3), (State::Stalled, 5), (State::Computing, 1)]);
//! ```

mod batch;
mod detail;
mod error;
pub mod expand;
mod inst;
mod place;
mod record;
mod recorder;
mod sink;
mod span;
mod stages;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
mod tea;
mod trace;
mod walk;

pub use batch::{Batch, Event};
pub use detail::{
    AccessKind, DataAccess, DataSource, Detail, DispatchWait, PacketFetch, Translation,
};
pub use error::StreamError;
pub use inst::{Class, StaticInfo};
pub use place::{CLOCK_HZ, Place};
pub use record::{CommitRecord, CycleClass, HartId, InstId, Redirect, Seq};
pub use recorder::{
    BATCH_RECORDS, Backlog, BatchStream, RECENT, RecordError, Recorder, StreamEnded, recording,
    recordings,
};
pub use sink::{Commit, CommitSink, NullSink, SampledTotals};
pub use span::{
    Ahead, BatchProgress, MAX_COMMIT_WIDTH, MAX_CYCLE, Span, SpanBuilder, SpanSink, State, Take,
    empty_cycles, gap_spans, group_spans,
};
pub use stages::{StageCycles, Stages};
pub use tea::TeaEvents;
#[doc(hidden)]
pub use trace::varint;
pub use trace::{
    ChunkInfo, Compression, Replay, TraceEnd, TraceError, TraceReader, TraceSummary, TraceWriter,
    Written,
};
pub use walk::{Item, Position, Range, Retired, Walk, WalkError, walk};
