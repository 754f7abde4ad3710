//! The sampling rules. Each profiler decides which instructions a trigger's sample names; how the
//! sample weighs, and when triggers fall, is the same for all and not decided here.

use commit_trace::{CommitRecord, Span, State};

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
    /// Its samples may name an instruction that the Oracle does not charge the trigger's cycle to.
    const MISPLACES: bool = true;
    /// It names what commits next: a sample that waits for it has the Oracle's answer of its first trigger.
    const WAITS_FOR_COMMIT: bool = false;

    /// The clock fires while no sample is pending.
    fn trigger(at: &Trigger<'_>) -> Outcome;

    /// A span passes.
    fn span(_span: &Span<'_>) -> Outcome {
        Outcome::Pending
    }

    /// What its sample names if the clock fires in a commit group: the same, in one step; nothing if a later trigger's
    /// sample does.
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord];
}

/// The rule of a profiler that waits for records alone.
pub(crate) trait RecordPolicy {
    /// The clock fires in this cycle while no sample is pending.
    fn trigger(&mut self, cycle: u64);

    /// Instructions leave the ROB after cycle `before`, in program order, by commit or by a trap. The first are those of
    /// the first commit cycle at or after the trigger's.
    fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome;
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

/// The first of several records.
#[inline(always)]
pub(crate) fn oldest(records: &[CommitRecord]) -> &[CommitRecord] {
    &records[..records.len().min(1)]
}
