//! The sampling rules. Each profiler decides which instructions a trigger's sample names; how the
//! sample weighs, and when triggers fall, is the same for all and not decided here.

mod dispatch;
mod head;
mod retired;
mod software;

use commit_trace::{CommitRecord, Span, State};

use crate::Profiler;
use crate::block::Group;

/// A trigger of the sampling clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trigger<'a> {
    /// The cycle in which it falls.
    pub cycle: u64,
    /// The span that holds the cycle.
    pub span: &'a Span<'a>,
    /// The youngest instruction of the last committing cycle before it.
    pub last: Option<CommitRecord>,
}

/// What became of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The sample names one instruction.
    One(CommitRecord),
    /// The sample is split evenly over the instructions of the span.
    All,
    /// Not known yet. Triggers that arrive meanwhile add their cycles to this sample.
    Pending,
    /// No sample; its cycles go into the next one.
    Dropped,
}

/// The rule of a profiler that looks at spans. After a trigger, and as long as it is [`Outcome::Pending`], it is shown
/// the stream, beginning with the span in which the trigger fell.
pub(crate) trait SpanPolicy {
    /// The clock fires while no sample is pending.
    fn trigger(at: &Trigger<'_>) -> Outcome;

    /// A span passes.
    fn span(_span: &Span<'_>) -> Outcome {
        Outcome::Pending
    }
}

/// The rule of a profiler that waits for records alone.
pub(crate) trait RecordPolicy {
    /// The clock fires in this cycle while no sample is pending.
    fn trigger(&mut self, cycle: u64);

    /// Instructions leave the ROB after cycle `before`, in program order, by commit or by a trap. The first are those of
    /// the first commit cycle at or after the trigger's.
    fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome;
}

/// The rules, known by name: calls through pointers, and lists of what waits, made an evaluation with many samples take
/// a quarter longer.
#[derive(Debug)]
pub(crate) enum Rule {
    Tip,
    TipIlp,
    Nci,
    NciIlp,
    Lci,
    Dispatch(dispatch::Dispatch),
    DispatchOp(dispatch::DispatchOp),
    Software(software::Software),
}

impl Rule {
    /// As [`SpanPolicy::trigger`] or [`RecordPolicy::trigger`].
    #[inline(always)]
    pub(crate) fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        match self {
            Self::Tip => head::Tip::trigger(at),
            Self::TipIlp => head::TipIlp::trigger(at),
            Self::Nci => retired::Nci::trigger(at),
            Self::NciIlp => retired::NciIlp::trigger(at),
            Self::Lci => retired::Lci::trigger(at),
            Self::Dispatch(_) | Self::DispatchOp(_) | Self::Software(_) => {
                self.await_records(at.cycle);
                Outcome::Pending
            }
        }
    }

    /// As [`SpanPolicy::span`].
    #[inline(always)]
    pub(crate) fn span(&mut self, span: &Span<'_>) -> Outcome {
        match self {
            Self::Tip => head::Tip::span(span),
            Self::TipIlp => head::TipIlp::span(span),
            Self::Nci => retired::Nci::span(span),
            Self::NciIlp => retired::NciIlp::span(span),
            Self::Lci => retired::Lci::span(span),
            Self::Dispatch(_) | Self::DispatchOp(_) | Self::Software(_) => Outcome::Pending,
        }
    }

    /// As [`RecordPolicy::trigger`].
    #[inline(always)]
    pub(crate) fn await_records(&mut self, cycle: u64) {
        match self {
            Self::Dispatch(policy) => policy.trigger(cycle),
            Self::DispatchOp(policy) => policy.trigger(cycle),
            Self::Software(policy) => policy.trigger(cycle),
            Self::Tip | Self::TipIlp | Self::Nci | Self::NciIlp | Self::Lci => {}
        }
    }

    /// As [`RecordPolicy::records`].
    #[inline(always)]
    pub(crate) fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome {
        match self {
            Self::Dispatch(policy) => policy.records(before, records),
            Self::DispatchOp(policy) => policy.records(before, records),
            Self::Software(policy) => policy.records(before, records),
            Self::Tip | Self::TipIlp | Self::Nci | Self::NciIlp | Self::Lci => Outcome::Pending,
        }
    }
}

impl Profiler {
    /// The rule of this profiler.
    pub(crate) fn rule(self) -> Rule {
        match self {
            Self::Tip => Rule::Tip,
            Self::TipIlp => Rule::TipIlp,
            Self::Nci => Rule::Nci,
            Self::NciIlp => Rule::NciIlp,
            Self::Lci => Rule::Lci,
            Self::Dispatch => Rule::Dispatch(dispatch::Dispatch::default()),
            Self::DispatchOp => Rule::DispatchOp(dispatch::DispatchOp::default()),
            Self::Software => Rule::Software(software::Software::default()),
        }
    }

    /// True if nothing but records ends what is pending.
    pub(crate) const fn waits_for_records(self) -> bool {
        matches!(self, Self::Dispatch | Self::DispatchOp | Self::Software)
    }
}

/// A trigger in the cycles of a commit group: those in which nothing commits, and the one in which it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupTrigger<'a> {
    pub group: &'a Group<'a>,
    /// The cycle's state, and whom the Oracle charges it to.
    pub state: State,
    pub head: &'a [CommitRecord],
    /// The youngest instruction of the last committing cycle before it.
    pub last: &'a CommitRecord,
    /// The clock does not fire again in the group.
    pub is_last: bool,
    /// Nor in its cycles of this state.
    pub is_last_of_state: bool,
}

impl<'a> GroupTrigger<'a> {
    /// What the samples of profilers that look at spans name, by their numbers; nothing if a later trigger's do.
    #[inline(always)]
    pub(crate) fn named(&self) -> [&'a [CommitRecord]; 5] {
        let tip = head::in_group(self);
        let nci = retired::in_group(self);
        let oldest = |records: &'a [CommitRecord]| &records[..records.len().min(1)];
        let lci = std::slice::from_ref(self.last);
        [tip, oldest(tip), oldest(nci), nci, lci]
    }
}

#[cfg(test)]
mod tests;
