//! The profilers, one row each: to add one, write its rule in a file below `profilers/` and a row here.

mod dispatch;
mod head;
mod retired;
mod software;

use commit_trace::{CommitRecord, Span};
use serde::{Deserialize, Serialize};

use crate::policy::{GroupTrigger, Outcome, RecordPolicy, SpanPolicy, Trigger};
use crate::published::Level;
use crate::published::Published::{self, Below, Mean};
use dispatch::{Dispatch, DispatchOp};
use head::{Tip, TipIlp};
use retired::{Lci, Nci, NciIlp};
use software::Software;

/// What reports say of a profiler.
struct Row {
    /// In run specs and reports.
    name: &'static str,
    /// At the start of a sentence.
    title: &'static str,
    /// At the head of a column: six characters at most.
    heading: &'static str,
    /// At the head of a column of the page, which has more room.
    short: &'static str,
    /// `errors.json` has it.
    in_errors_json: bool,
    /// Published mean errors by instruction, basic block and function.
    published: [Option<Published>; 3],
    /// It is in the instruction table of the text report, which has room for some.
    in_instruction_table: bool,
    /// It is sampled with the events of what it names (TEA, ISCA 2023).
    sees_events: bool,
    /// It waits for records, not for spans.
    waits_for_records: bool,
    /// Its samples may name an instruction that the Oracle does not charge the trigger's cycle to.
    misplaces: bool,
}

macro_rules! profilers {
    (
        spans: { $($(#[$span_doc:meta])* $span:ident { $($span_field:ident: $span_value:expr),* $(,)? })* }
        records: { $($(#[$record_doc:meta])* $record:ident { $($record_field:ident: $record_value:expr),* $(,)? })* }
    ) => {
        /// A sampling profiler.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Profiler {
            $($(#[$span_doc])* $span,)*
            $($(#[$record_doc])* $record,)*
        }

        const ROWS: &[Row] = &[
            $(Row {
                waits_for_records: false,
                misplaces: <$span as SpanPolicy>::MISPLACES,
                $($span_field: $span_value),*
            },)*
            $(Row {
                waits_for_records: true,
                misplaces: true,
                $($record_field: $record_value),*
            },)*
        ];

        impl Profiler {
            /// All profilers, in the order of the documentation.
            pub const ALL: [Self; ROWS.len()] = [$(Self::$span,)* $(Self::$record,)*];

            /// The rule of this profiler.
            pub(crate) fn rule(self) -> Rule {
                match self {
                    $(Self::$span => Rule::$span,)*
                    $(Self::$record => Rule::$record($record::default()),)*
                }
            }
        }

        /// The rules, known by name: calls through pointers, and lists of what waits, made an evaluation with many samples
        /// take a quarter longer.
        #[derive(Debug)]
        pub(crate) enum Rule {
            $($span,)*
            $($record($record),)*
        }

        impl Rule {
            /// As [`SpanPolicy::trigger`] or [`RecordPolicy::trigger`].
            #[inline(always)]
            pub(crate) fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
                match self {
                    $(Self::$span => $span::trigger(at),)*
                    $(Self::$record(policy) => {
                        policy.trigger(at.cycle);
                        Outcome::Pending
                    })*
                }
            }

            /// As [`SpanPolicy::span`].
            #[inline(always)]
            pub(crate) fn span(&mut self, span: &Span<'_>) -> Outcome {
                match self {
                    $(Self::$span => $span::span(span),)*
                    $(Self::$record(_) => Outcome::Pending,)*
                }
            }

            /// As [`RecordPolicy::trigger`].
            #[inline(always)]
            pub(crate) fn await_records(&mut self, cycle: u64) {
                match self {
                    $(Self::$record(policy) => policy.trigger(cycle),)*
                    $(Self::$span => {})*
                }
            }

            /// As [`RecordPolicy::records`].
            #[inline(always)]
            pub(crate) fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome {
                match self {
                    $(Self::$record(policy) => policy.records(before, records),)*
                    $(Self::$span => Outcome::Pending,)*
                }
            }
        }

        const SPANS: usize = [$(Profiler::$span),*].len();

        impl<'a> GroupTrigger<'a> {
            /// What the samples of profilers that look at spans name, by their numbers; nothing if a later trigger's do.
            #[inline(always)]
            pub(crate) fn named(&self) -> [&'a [CommitRecord]; SPANS] {
                [$($span::in_group(self)),*]
            }
        }

        /// Which of them wait for the commit: what the Oracle charges is then that of the first trigger.
        pub(crate) const WAITS_FOR_COMMIT: [bool; SPANS] = [$(<$span as SpanPolicy>::WAITS_FOR_COMMIT),*];
    };
}

profilers! {
    spans: {
        /// Time-proportional: the Oracle's rule in the trigger's cycle.
        Tip {
            name: "tip", title: "TIP", heading: "TIP", short: "tip",
            published: [Some(Mean(0.016)), Some(Mean(0.007)), Some(Below(0.016))],
            in_errors_json: true, in_instruction_table: true, sees_events: true,
        }
        /// TIP without ILP accounting: the oldest of several that commit gets the whole sample.
        TipIlp {
            name: "tip-ilp", title: "TIP-ILP", heading: "T-ILP", short: "tip-ilp",
            published: [Some(Mean(0.072)), Some(Mean(0.012)), Some(Below(0.016))],
            in_errors_json: true, in_instruction_table: false, sees_events: false,
        }
        /// Next committing instruction (Intel PEBS).
        Nci {
            name: "nci", title: "NCI", heading: "NCI", short: "nci",
            published: [Some(Mean(0.093)), Some(Mean(0.023)), Some(Below(0.016))],
            in_errors_json: true, in_instruction_table: true, sees_events: true,
        }
        /// NCI, split over all that commit in that cycle.
        NciIlp {
            name: "nci-ilp", title: "NCI-ILP", heading: "N+ILP", short: "nci-ilp",
            published: [Some(Mean(0.193)), None, None],
            in_errors_json: true, in_instruction_table: false, sees_events: false,
        }
        /// Last committed instruction (external monitors, Arm CoreSight).
        Lci {
            name: "lci", title: "LCI", heading: "LCI", short: "lci",
            published: [Some(Mean(0.554)), Some(Mean(0.119)), Some(Below(0.016))],
            in_errors_json: true, in_instruction_table: true, sees_events: false,
        }
    }
    records: {
        /// Tags the ROB row that is dispatched next (the granularity of the published artifact).
        Dispatch {
            name: "dispatch", title: "Dispatch", heading: "Disp", short: "disp.",
            published: [Some(Mean(0.531)), None, Some(Mean(0.058))],
            in_errors_json: true, in_instruction_table: true, sees_events: true,
        }
        /// Tags one dispatched micro-op (AMD IBS, Arm SPE).
        DispatchOp {
            name: "dispatch-op", title: "Dispatch-op", heading: "DispOp", short: "disp. op",
            published: [None, None, None],
            in_errors_json: false, in_instruction_table: false, sees_events: false,
        }
        /// Interrupt at decode (Linux perf without hardware help), modelled without its perturbation.
        Software {
            name: "software", title: "Software", heading: "SW", short: "softw.",
            published: [Some(Mean(0.618)), None, Some(Mean(0.091))],
            in_errors_json: true, in_instruction_table: true, sees_events: false,
        }
    }
}

impl Profiler {
    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in run specs and reports.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Its name at the start of a sentence.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// Its name at the head of a column, of six characters at most.
    pub const fn heading(self) -> &'static str {
        self.row().heading
    }

    /// Its name at the head of a column of the page.
    pub const fn short(self) -> &'static str {
        self.row().short
    }

    /// The profiler of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|profiler| profiler.name() == name)
    }

    /// True if `errors.json` has it.
    pub const fn is_in_errors_json(self) -> bool {
        self.row().in_errors_json
    }

    /// Its published mean error, if there is one.
    pub const fn published(self, level: Level) -> Option<Published> {
        self.row().published[level as usize]
    }

    /// True if the instruction table of the text report has a column for it.
    pub const fn is_in_instruction_table(self) -> bool {
        self.row().in_instruction_table
    }

    /// True if its samples name an instruction whose events it sees.
    pub const fn sees_events(self) -> bool {
        self.row().sees_events
    }

    /// True if its samples may name an instruction that the Oracle does not charge the trigger's cycle to.
    pub(crate) const fn misplaces(self) -> bool {
        self.row().misplaces
    }

    /// True if nothing but records ends what is pending.
    pub(crate) const fn waits_for_records(self) -> bool {
        self.row().waits_for_records
    }
}

impl std::fmt::Display for Profiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests;
