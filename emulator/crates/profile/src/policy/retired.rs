//! Profilers that see only what commits.

use commit_trace::{Span, State};

use super::{Outcome, Policy, Trigger};

/// The oldest instruction that commits in the first committing cycle at or after the trigger.
#[derive(Debug)]
pub(crate) struct Nci;

impl Policy for Nci {
    fn trigger(&mut self, _: &Trigger<'_>) -> Outcome {
        Outcome::Pending
    }

    fn span(&mut self, span: &Span<'_>) -> Outcome {
        match span.state {
            State::Computing => Outcome::One(span.records[0].inst),
            _ => Outcome::Pending,
        }
    }
}

/// As NCI, split over all that commit in that cycle.
#[derive(Debug)]
pub(crate) struct NciIlp;

impl Policy for NciIlp {
    fn trigger(&mut self, _: &Trigger<'_>) -> Outcome {
        Outcome::Pending
    }

    fn span(&mut self, span: &Span<'_>) -> Outcome {
        if span.state == State::Computing {
            Outcome::All
        } else {
            Outcome::Pending
        }
    }
}

/// The youngest instruction of the last committing cycle before the trigger; no sample if nothing
/// has committed yet.
#[derive(Debug)]
pub(crate) struct Lci;

impl Policy for Lci {
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        at.last.map_or(Outcome::Dropped, Outcome::One)
    }
}
