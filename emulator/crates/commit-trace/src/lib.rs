//! The stream of the commit stage: records, spans, the recorder and the trace file.
//!
//! A hart's timing core pushes one [`CommitRecord`] per dynamic instruction (and per trap) into a
//! [`CommitSink`]. Records leave the hart's thread in owned [`Batch`]es; [`SpanBuilder`] turns them
//! into [`Span`]s, maximal runs of cycles in one commit state, which profilers read.

mod record;
mod sink;
mod span;

pub use record::{
    Batch, Class, CommitRecord, CycleClass, Event, HartId, InstFacts, InstId, Redirect, Seq,
    TeaEvents,
};
pub use sink::{Commit, CommitSink, NullSink};
pub use span::{Span, SpanBuilder, SpanSink, State};
