//! The sampling rules. Each profiler decides which instructions a trigger's sample names; how the
//! sample weighs, and when triggers fall, is the same for all and not decided here.

mod dispatch;
mod head;
mod retired;
mod software;

use commit_trace::{CommitRecord, InstId, Span};

use crate::Profiler;

/// A trigger of the sampling clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trigger<'a> {
    /// The cycle in which it falls.
    pub cycle: u64,
    /// The span that holds the cycle.
    pub span: &'a Span<'a>,
    /// The youngest instruction of the last committing cycle before it.
    pub last: Option<InstId>,
}

/// What became of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The sample names one instruction.
    One(InstId),
    /// The sample is split evenly over the instructions of the span.
    All,
    /// Not known yet. Triggers that arrive meanwhile add their cycles to this sample.
    Pending,
    /// No sample; its cycles go into the next one.
    Dropped,
}

/// A profiler's rule. After a trigger, and as long as it is [`Outcome::Pending`], the stream is
/// shown to the policy, beginning with the span in which the trigger fell.
pub(crate) trait Policy {
    /// The clock fires while no sample is pending.
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome;

    /// A span passes.
    fn span(&mut self, _span: &Span<'_>) -> Outcome {
        Outcome::Pending
    }

    /// An instruction leaves the ROB in cycle `commit`, in program order, by commit or by a trap.
    fn record(&mut self, _commit: u64, _record: &CommitRecord) -> Outcome {
        Outcome::Pending
    }

    /// True if nothing but [`Self::record`] ends what is pending. Then [`Self::span`] is not called.
    fn waits_for_records(&self) -> bool {
        false
    }

    /// Several instructions commit after cycle `before`, in one or more groups: as [`Self::records`].
    fn groups(&mut self, before: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        first_outcome(self, before, records, 0)
    }

    /// Several instructions commit in cycle `commit`: the first outcome that is not pending, and the
    /// index of its record.
    fn records(&mut self, commit: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        let mut outcomes = records.iter().map(|record| self.record(commit, record));
        { outcomes.by_ref().zip(0..) }.find(|(it, _)| *it != Outcome::Pending)
    }
}

/// The first outcome that is not pending when these records are shown from the one at `from` on, which comes after cycle
/// `before`; and the index of its record.
fn first_outcome<P: Policy + ?Sized>(
    policy: &mut P,
    before: u64,
    records: &[CommitRecord],
    from: usize,
) -> Option<(Outcome, usize)> {
    let mut commit = before;
    let mut outcomes = records[from..].iter().map(|record| {
        commit += u64::from(record.commit_delta);
        policy.record(commit, record)
    });
    { outcomes.by_ref().zip(from..) }.find(|(it, _)| *it != Outcome::Pending)
}

/// The policies, known by name: calls through pointers, and lists of what waits, made an evaluation with many samples take
/// a quarter longer.
#[derive(Debug)]
pub(crate) enum Rule {
    Tip(head::Tip),
    TipIlp(head::TipIlp),
    Nci(retired::Nci),
    NciIlp(retired::NciIlp),
    Lci(retired::Lci),
    Dispatch(dispatch::Dispatch),
    DispatchOp(dispatch::DispatchOp),
    Software(software::Software),
}

/// The same for whichever policy a rule is.
macro_rules! of {
    ($rule:expr, $policy:ident => $what:expr) => {
        match $rule {
            Rule::Tip($policy) => $what,
            Rule::TipIlp($policy) => $what,
            Rule::Nci($policy) => $what,
            Rule::NciIlp($policy) => $what,
            Rule::Lci($policy) => $what,
            Rule::Dispatch($policy) => $what,
            Rule::DispatchOp($policy) => $what,
            Rule::Software($policy) => $what,
        }
    };
}

impl Policy for Rule {
    #[inline(always)]
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        of!(self, policy => policy.trigger(at))
    }

    #[inline(always)]
    fn span(&mut self, span: &Span<'_>) -> Outcome {
        of!(self, policy => policy.span(span))
    }

    fn record(&mut self, commit: u64, record: &CommitRecord) -> Outcome {
        of!(self, policy => policy.record(commit, record))
    }

    #[inline(always)]
    fn waits_for_records(&self) -> bool {
        of!(self, policy => policy.waits_for_records())
    }

    #[inline(always)]
    fn groups(&mut self, before: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        of!(self, policy => policy.groups(before, records))
    }

    #[inline(always)]
    fn records(&mut self, commit: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        of!(self, policy => policy.records(commit, records))
    }
}

impl Profiler {
    /// The rule of this profiler.
    pub(crate) fn rule(self) -> Rule {
        match self {
            Self::Tip => Rule::Tip(head::Tip),
            Self::TipIlp => Rule::TipIlp(head::TipIlp),
            Self::Nci => Rule::Nci(retired::Nci),
            Self::NciIlp => Rule::NciIlp(retired::NciIlp),
            Self::Lci => Rule::Lci(retired::Lci),
            Self::Dispatch => Rule::Dispatch(dispatch::Dispatch::default()),
            Self::DispatchOp => Rule::DispatchOp(dispatch::DispatchOp::default()),
            Self::Software => Rule::Software(software::Software::default()),
        }
    }
}

#[cfg(test)]
mod tests;
