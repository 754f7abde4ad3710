//! Time-proportional profilers: they look at the head of the ROB.

use commit_trace::{CommitRecord, Span, State};

use crate::{GroupTrigger, Outcome, SpanPolicy, Trigger, oldest};

/// The Oracle's rule in the trigger's cycle. In Drained the sample waits for the first instruction
/// to be dispatched, which is the one that the span names.
pub(crate) struct Tip;

impl SpanPolicy for Tip {
    const MISPLACES: bool = false;

    #[inline]
    fn trigger(at: &Trigger<'_>) -> Outcome {
        if at.span.state == State::Drained { Outcome::Pending } else { Outcome::All }
    }

    #[inline]
    fn span(_drained: &Span<'_>) -> Outcome {
        Outcome::All
    }

    #[inline(always)]
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord] {
        let waits = at.state == State::Drained && !at.is_last_of_state;
        if waits { &[] } else { at.head }
    }
}

/// The rule of [`Tip`], except that the oldest of several instructions that commit gets the whole sample.
pub(crate) struct TipIlp;

impl SpanPolicy for TipIlp {
    const MISPLACES: bool = false;

    #[inline]
    fn trigger(at: &Trigger<'_>) -> Outcome {
        match Tip::trigger(at) {
            Outcome::All => Outcome::One(at.span.records[0]),
            pending => pending,
        }
    }

    #[inline]
    fn span(drained: &Span<'_>) -> Outcome {
        Tip::span(drained)
    }

    #[inline(always)]
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord] {
        oldest(Tip::in_group(at))
    }
}
