//! The sampling rules: which instructions a trigger's sample names, by [`Heuristic`]. The TIP unit, which the guest
//! programs, and the profilers that the host evaluates apply the same [`Rule`]s. How much a sample weighs, and when triggers
//! fall, does not depend on the heuristic and is not decided here.
//!
//! A rule is shown [`Span`]s, as [`commit_trace::SpanBuilder`] makes them. Where the host has whole commit groups at once,
//! it asks [`GroupTrigger::named`] instead, which gives the same result in one step.
//!
//! ```
//! use commit_trace::{CommitRecord, CycleClass, InstId, Redirect, Span, State, TeaEvents};
//! use sampling_rules::{Heuristic, Outcome, Rule, Trigger};
//!
//! let record = CommitRecord::new(
//!     InstId(7), 40, 38, 2, Redirect::None, true, CycleClass::LoadDram, TeaEvents::default(),
//! );
//! let stalled = Span { state: State::Stalled, start: 3, cycles: 37, records: &[record], commit: 40 };
//! let trigger = Trigger { cycle: 20, span: &stalled, last: None };
//! assert_eq!(Rule::new(Heuristic::Tip).trigger(&trigger), Outcome::All);
//! assert_eq!(Rule::new(Heuristic::Nci).trigger(&trigger), Outcome::Pending);
//! assert_eq!(Rule::new(Heuristic::Lci).trigger(&trigger), Outcome::Dropped);
//! ```

mod dispatch;
mod head;
mod retired;
mod software;

use commit_trace::{CommitRecord, Span, State};

use dispatch::{Dispatch, DispatchOp};
use head::{Tip, TipIlp};
use retired::{Lci, Nci, NciIlp};
use software::Software;

/// A trigger of the sampling clock.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// The cycle in which the trigger falls.
    pub cycle: u64,
    /// The span that holds the cycle.
    pub span: &'a Span<'a>,
    /// The youngest instruction of the last committing cycle before the trigger's cycle.
    pub last: Option<CommitRecord>,
}

/// What became of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The sample names one instruction.
    One(CommitRecord),
    /// The sample is split evenly over the instructions of the span.
    All,
    /// The sample's instructions are not known yet. Triggers that arrive meanwhile add their cycles to this sample.
    Pending,
    /// No sample is taken; the trigger's cycles go into the next one.
    Dropped,
}

/// The rule of a heuristic that looks at spans. After a trigger, and as long as it is [`Outcome::Pending`], it is shown
/// the stream, beginning with the span in which the trigger fell.
trait SpanPolicy {
    /// True if samples may name an instruction that the Oracle does not charge the trigger's cycle to.
    const MISPLACES: bool = true;
    /// True if samples name what commits next. Where several triggers wait for one commit, their sample is compared with what
    /// the Oracle charges at the first of them.
    const WAITS_FOR_COMMIT: bool = false;

    /// Tells what becomes of a trigger: the clock fires while no sample is pending.
    fn trigger(at: &Trigger<'_>) -> Outcome;

    /// Tells what becomes of the pending sample when a span passes.
    fn span(_span: &Span<'_>) -> Outcome {
        Outcome::Pending
    }

    /// Returns what the sample of a trigger in a commit group names, as [`Self::trigger`] and [`Self::span`] would find it;
    /// nothing if a later trigger's sample names it.
    fn in_group<'a>(at: &GroupTrigger<'a>) -> &'a [CommitRecord];
}

/// The rule of a heuristic that waits for records alone.
trait RecordPolicy {
    /// Starts a sample: the clock fires in `cycle` while no sample is pending.
    fn trigger(&mut self, cycle: u64);

    /// Tells what becomes of the pending sample when instructions leave the ROB after cycle `before`, in program order, by
    /// commit or by a trap. The first records shown are those of the first commit cycle at or after the trigger's cycle.
    fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome;
}

/// A trigger in the cycles of a commit group: the cycles in which nothing commits, and the one in which the group commits.
#[derive(Clone, Copy, Debug)]
pub struct GroupTrigger<'a> {
    /// The instructions that commit.
    pub group: &'a [CommitRecord],
    /// The state of the trigger's cycle.
    pub state: State,
    /// The instructions that the Oracle charges the trigger's cycle to.
    pub head: &'a [CommitRecord],
    /// The youngest instruction of the last committing cycle before the trigger's cycle.
    pub last: &'a CommitRecord,
    /// True if the clock does not fire again in the group's cycles.
    pub is_last: bool,
    /// True if the clock does not fire again in the group's cycles of this state.
    pub is_last_of_state: bool,
}

/// Returns the first of several records; none if there are none.
#[inline(always)]
fn oldest(records: &[CommitRecord]) -> &[CommitRecord] {
    &records[..records.len().min(1)]
}

macro_rules! rules {
    (
        spans: { $($(#[$span_doc:meta])* $span:ident $span_name:literal $span_says:literal)* }
        records: { $($(#[$record_doc:meta])* $record:ident $record_name:literal $record_says:literal)* }
    ) => {
        /// A way to choose the instructions that a sample names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Heuristic {
            $($(#[$span_doc])* $span,)*
            $($(#[$record_doc])* $record,)*
        }

        /// Number of heuristics that look at spans. They come first in [`Heuristic`].
        pub const SPANS: usize = [$(Heuristic::$span),*].len();

        /// Whether each heuristic that looks at spans waits for the next commit, so that its sample is compared with what the
        /// Oracle charges at the first of the triggers that wait.
        pub const WAITS_FOR_COMMIT: [bool; SPANS] = [$(<$span as SpanPolicy>::WAITS_FOR_COMMIT),*];

        impl Heuristic {
            /// All heuristics, those that look at spans first.
            pub const ALL: &[Self] = &[$(Self::$span,)* $(Self::$record,)*];

            /// Returns the heuristic's name in run specs, reports, and events of the guest's perf.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$span => $span_name,)*
                    $(Self::$record => $record_name,)*
                }
            }

            /// Returns what samples of the heuristic name, in words.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Self::$span => $span_says,)*
                    $(Self::$record => $record_says,)*
                }
            }

            /// True if only records, not spans, end a pending sample.
            pub const fn waits_for_records(self) -> bool {
                self as usize >= SPANS
            }

            /// True if samples may name an instruction that the Oracle does not charge the trigger's cycle to.
            pub const fn misplaces(self) -> bool {
                match self {
                    $(Self::$span => <$span as SpanPolicy>::MISPLACES,)*
                    $(Self::$record => true,)*
                }
            }
        }

        /// The rule of a heuristic, with the state of its pending sample. An enum, because calls through pointers, and lists of
        /// what waits, made an evaluation with many samplers take a quarter longer.
        #[derive(Clone, Debug)]
        pub struct Rule(Kind);

        #[derive(Clone, Debug)]
        enum Kind {
            $($span,)*
            $($record($record),)*
        }

        impl Rule {
            /// Creates the rule of `heuristic`, with no sample pending.
            pub fn new(heuristic: Heuristic) -> Self {
                Self(match heuristic {
                    $(Heuristic::$span => Kind::$span,)*
                    $(Heuristic::$record => Kind::$record($record::default()),)*
                })
            }

            /// Returns the heuristic whose rule this is.
            pub fn heuristic(&self) -> Heuristic {
                match &self.0 {
                    $(Kind::$span => Heuristic::$span,)*
                    $(Kind::$record(_) => Heuristic::$record,)*
                }
            }

            /// Tells what becomes of a trigger: the clock fires while no sample is pending. As long as the sample is
            /// pending, the rule must be shown the stream by [`Self::span`] and [`Self::records`], beginning with the trigger's span.
            #[inline(always)]
            pub fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
                match &mut self.0 {
                    $(Kind::$span => $span::trigger(at),)*
                    $(Kind::$record(policy) => {
                        policy.trigger(at.cycle);
                        Outcome::Pending
                    })*
                }
            }

            /// Tells what becomes of the pending sample when a span passes.
            #[inline(always)]
            pub fn span(&mut self, span: &Span<'_>) -> Outcome {
                match &mut self.0 {
                    $(Kind::$span => $span::span(span),)*
                    $(Kind::$record(policy) => match (span.state, span.records) {
                        (State::Computing, [first, ..]) => {
                            policy.records(span.commit - u64::from(first.commit_delta), span.records)
                        }
                        _ => Outcome::Pending,
                    },)*
                }
            }

            /// Starts a sample of a heuristic that waits for records: the clock fires in `cycle` while no sample is pending.
            #[inline(always)]
            pub fn await_records(&mut self, cycle: u64) {
                match &mut self.0 {
                    $(Kind::$record(policy) => policy.trigger(cycle),)*
                    $(Kind::$span => {})*
                }
            }

            /// Tells what becomes of the pending sample when instructions leave the ROB after cycle `before` other than in a
            /// span that passes: by a trap, or many at once.
            #[inline(always)]
            pub fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome {
                match &mut self.0 {
                    $(Kind::$record(policy) => policy.records(before, records),)*
                    $(Kind::$span => Outcome::Pending,)*
                }
            }
        }

        impl<'a> GroupTrigger<'a> {
            /// Returns what the samples of heuristics that look at spans name, by the heuristic's number; nothing where a later
            /// trigger's sample names it.
            #[inline(always)]
            pub fn named(&self) -> [&'a [CommitRecord]; SPANS] {
                [$($span::in_group(self)),*]
            }
        }
    };
}

rules! {
    spans: {
        /// Time-proportional: the Oracle's rule in the trigger's cycle.
        Tip "tip"
            "all that commit in the trigger's cycle; if none does, the one that the commit stage waits for, or that emptied the ROB"
        /// TIP without ILP accounting: the oldest of several that commit gets the whole sample.
        TipIlp "tip-ilp"
            "as tip, but of several that commit the oldest"
        /// Next committing instruction (Intel PEBS).
        Nci "nci"
            "the oldest instruction that commits in the next committing cycle"
        /// NCI with the sample split evenly over all instructions that commit in that cycle.
        NciIlp "nci-ilp"
            "all that commit in the next committing cycle"
        /// Last committed instruction (external monitors, Arm CoreSight).
        Lci "lci"
            "the youngest instruction that committed before the trigger's cycle"
    }
    records: {
        /// Tags the ROB row that is dispatched next (the granularity of the published artifact).
        Dispatch "dispatch"
            "the first instruction dispatched at or after the trigger; no sample if it was on a wrong path"
        /// Tags one dispatched micro-op (AMD IBS, Arm SPE).
        DispatchOp "dispatch-op"
            "one of the micro-ops dispatched in the next dispatching cycle, each in its turn"
        /// Interrupt at decode (Linux perf without hardware help), modelled without its perturbation.
        Software "software"
            "the first instruction decoded at or after the trigger: where an interrupt would return to"
    }
}

/// Heuristics of the TIP unit, by their values in its register `CONTROL.HEURISTIC` and in the configuration of perf's event.
/// `dispatch-op` is not one of them: it may wait for several commit groups, and a checkpoint would have to hold them.
pub const UNIT_HEURISTICS: &[Heuristic] = &[
    Heuristic::Tip,
    Heuristic::TipIlp,
    Heuristic::Nci,
    Heuristic::NciIlp,
    Heuristic::Lci,
    Heuristic::Dispatch,
    Heuristic::Software,
];

/// Saves a rule with a pending sample.
impl snapshot::Snapshot for Rule {
    fn snapshot(&mut self, archive: &mut snapshot::Archive<'_>) -> snapshot::Result {
        let mut number = self.heuristic() as usize;
        number.snapshot(archive)?;
        let found = Heuristic::ALL.get(number).copied();
        archive.check(found.is_some(), || format!("rule: found number {number}"))?;
        if let Some(found) = found.filter(|found| *found != self.heuristic()) {
            *self = Self::new(found);
        }
        let heuristic = self.heuristic();
        match &mut self.0 {
            Kind::Dispatch(dispatch) => dispatch.snapshot(archive),
            Kind::Software(software) => software.snapshot(archive),
            // The rules of heuristics that look at spans hold no state.
            _ if !heuristic.waits_for_records() => Ok(()),
            // `dispatch-op`, which the TIP unit does not have.
            _ => Err(snapshot::SnapshotError::Unsaved(format!(
                "a sample of {} is pending",
                heuristic.name()
            ))),
        }
    }
}
