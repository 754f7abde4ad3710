//! Maximal runs of cycles in one commit state.

use crate::{Batch, Event, InstFacts, InstId};

/// State of the commit stage (TIP, MICRO'21, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// At least one instruction commits.
    Computing,
    /// The ROB holds instructions, none commits.
    Stalled,
    /// The ROB is empty after a mispredict, a flush, or a trap.
    Flushed,
    /// The ROB is empty because the front end delivers nothing.
    Drained,
    /// The hart sleeps in `wfi`.
    Idle,
}

/// A run of cycles in one state.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// State.
    pub state: State,
    /// First cycle.
    pub start: u64,
    /// Number of cycles (at least 1). Computing spans have exactly one.
    pub cycles: u64,
    /// Indices into `batch.records` … see [`SpanBuilder`].
    pub insts: &'a [InstId],
}

/// Receives spans.
pub trait SpanSink {
    /// The next run of cycles; spans are contiguous.
    fn span(&mut self, span: &Span<'_>);
    /// Static facts, before their first use.
    fn facts(&mut self, _facts: &InstFacts) {}
    /// An event between spans.
    fn event(&mut self, _cycle: u64, _event: &Event) {}
}

/// Turns batches into spans.
#[derive(Debug, Default)]
pub struct SpanBuilder {}

impl SpanBuilder {
    /// Feeds one batch.
    pub fn batch(&mut self, _batch: &Batch, _sink: &mut impl SpanSink) {}
}
