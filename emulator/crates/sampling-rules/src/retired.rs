//! Profilers that see only what commits.

use commit_trace::{CommitRecord, Span, State};

use crate::{GroupTrigger, Outcome, SpanPolicy, Trigger, oldest};

/// The oldest instruction that commits in the first committing cycle at or after the trigger.
pub(crate) struct Nci;

impl SpanPolicy for Nci {
    const WAITS_FOR_COMMIT: bool = true;

    #[inline]
    fn trigger(at: &Trigger<'_>) -> Outcome {
        NciIlp::trigger(at)
    }

    #[inline]
    fn span(span: &Span<'_>) -> Outcome {
        match NciIlp::span(span) {
            Outcome::All => Outcome::One(span.records[0]),
            pending => pending,
        }
    }

    #[inline(always)]
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord] {
        oldest(NciIlp::in_group(at))
    }
}

/// The instructions that commit in the first committing cycle at or after the trigger: the sample is split evenly over them.
pub(crate) struct NciIlp;

impl SpanPolicy for NciIlp {
    const WAITS_FOR_COMMIT: bool = true;

    #[inline]
    fn trigger(_: &Trigger<'_>) -> Outcome {
        Outcome::Pending
    }

    #[inline]
    fn span(span: &Span<'_>) -> Outcome {
        match span.state {
            State::Computing => Outcome::All,
            _ => Outcome::Pending,
        }
    }

    #[inline(always)]
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord] {
        if at.is_last { at.group } else { &[] }
    }
}

/// The youngest instruction of the last committing cycle before the trigger; no sample if nothing
/// has committed yet.
pub(crate) struct Lci;

impl SpanPolicy for Lci {
    #[inline]
    fn trigger(at: &Trigger<'_>) -> Outcome {
        at.last.map_or(Outcome::Dropped, Outcome::One)
    }

    #[inline(always)]
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord] {
        std::slice::from_ref(at.last)
    }
}
