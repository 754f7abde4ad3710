//! Time-proportional profilers: they look at the head of the ROB.

use commit_trace::{Span, State};

use super::{Outcome, Policy, Trigger};

/// The Oracle's rule in the trigger's cycle. In Drained the sample waits for the first instruction
/// to be dispatched, which is the one that the span names.
#[derive(Debug)]
pub(crate) struct Tip;

impl Policy for Tip {
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        if at.span.state == State::Drained {
            Outcome::Pending
        } else {
            Outcome::All
        }
    }

    fn span(&mut self, _drained: &Span<'_>) -> Outcome {
        Outcome::All
    }
}

/// As TIP, but the oldest of several that commit gets the whole sample.
#[derive(Debug)]
pub(crate) struct TipIlp;

impl Policy for TipIlp {
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        match Tip.trigger(at) {
            Outcome::All => Outcome::One(at.span.records[0].inst),
            pending => pending,
        }
    }

    fn span(&mut self, drained: &Span<'_>) -> Outcome {
        Tip.span(drained)
    }
}
