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
pub struct Trigger<'a> {
    /// The cycle in which it falls.
    pub cycle: u64,
    /// The span that holds the cycle.
    pub span: &'a Span<'a>,
    /// The youngest instruction of the last committing cycle before it.
    pub last: Option<InstId>,
}

/// What became of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
pub trait Policy: Send {
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
    /// index of its record. One call for all, as calls are what it costs.
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

impl Profiler {
    /// The rule of this profiler.
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            Self::Tip => Box::new(head::Tip),
            Self::TipIlp => Box::new(head::TipIlp),
            Self::Nci => Box::new(retired::Nci),
            Self::NciIlp => Box::new(retired::NciIlp),
            Self::Lci => Box::new(retired::Lci),
            Self::Dispatch => Box::new(dispatch::Dispatch::default()),
            Self::DispatchOp => Box::new(dispatch::DispatchOp::default()),
            Self::Software => Box::new(software::Software::default()),
        }
    }
}

#[cfg(test)]
mod tests;
