//! The profilers, one row each: what reports say of the heuristics of [`sampling_rules`].

use sampling_rules::{Heuristic, UNIT_HEURISTICS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::Level;
use crate::published::Published::{self, Below, Mean};

/// What reports say of a profiler.
struct ProfilerRow {
    /// The profiler's name at the start of a sentence.
    title: &'static str,
    /// The profiler's name at the head of a column: six characters at most.
    heading: &'static str,
    /// The profiler's name at the head of a column of the page, which has more room.
    short: &'static str,
    /// True if `errors.json` has the profiler.
    in_errors_json: bool,
    /// Published mean errors by instruction, basic block and function.
    published: [Option<Published>; 3],
    /// True if the profiler is in the instruction table of the text report, which has room for some.
    in_instruction_table: bool,
    /// True if a sample has the events of the instruction that it names (TEA, ISCA 2023).
    sees_events: bool,
}

macro_rules! profilers {
    ($($(#[$doc:meta])* $profiler:ident { $($field:ident: $value:expr),* $(,)? })*) => {
        /// A sampling profiler.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Profiler {
            $($(#[$doc])* $profiler,)*
        }

        const ROWS: &[ProfilerRow] = &[$(ProfilerRow { $($field: $value),* },)*];

        impl Profiler {
            /// All profilers, in the order of the documentation.
            pub const ALL: [Self; ROWS.len()] = [$(Self::$profiler,)*];

            /// Returns the heuristic whose rule the profiler applies: both have the same number.
            pub const fn heuristic(self) -> Heuristic {
                match self {
                    $(Self::$profiler => Heuristic::$profiler,)*
                }
            }
        }

        $(const _: () = assert!(Profiler::$profiler as usize == Heuristic::$profiler as usize);)*
    };
}

profilers! {
    /// Time-proportional: the Oracle's rule in the trigger's cycle.
    Tip {
        title: "TIP", heading: "TIP", short: "tip",
        published: [Some(Mean(0.016)), Some(Mean(0.007)), Some(Below(0.016))],
        in_errors_json: true, in_instruction_table: true, sees_events: true,
    }
    /// TIP without ILP accounting: the oldest of several that commit gets the whole sample.
    TipIlp {
        title: "TIP-ILP", heading: "T-ILP", short: "tip-ilp",
        published: [Some(Mean(0.072)), Some(Mean(0.012)), Some(Below(0.016))],
        in_errors_json: true, in_instruction_table: false, sees_events: false,
    }
    /// Next committing instruction (Intel PEBS).
    Nci {
        title: "NCI", heading: "NCI", short: "nci",
        published: [Some(Mean(0.093)), Some(Mean(0.023)), Some(Below(0.016))],
        in_errors_json: true, in_instruction_table: true, sees_events: true,
    }
    /// NCI, split over all that commit in that cycle.
    NciIlp {
        title: "NCI-ILP", heading: "N+ILP", short: "nci-ilp",
        published: [Some(Mean(0.193)), None, None],
        in_errors_json: true, in_instruction_table: false, sees_events: false,
    }
    /// Last committed instruction (external monitors, Arm CoreSight).
    Lci {
        title: "LCI", heading: "LCI", short: "lci",
        published: [Some(Mean(0.554)), Some(Mean(0.119)), Some(Below(0.016))],
        in_errors_json: true, in_instruction_table: true, sees_events: false,
    }
    /// Tags the ROB row that is dispatched next (the granularity of the published artifact).
    Dispatch {
        title: "Dispatch", heading: "Disp", short: "disp.",
        published: [Some(Mean(0.531)), None, Some(Mean(0.058))],
        in_errors_json: true, in_instruction_table: true, sees_events: true,
    }
    /// Tags one dispatched micro-op (AMD IBS, Arm SPE).
    DispatchOp {
        title: "Dispatch-op", heading: "DispOp", short: "disp. op",
        published: [None, None, None],
        in_errors_json: false, in_instruction_table: false, sees_events: false,
    }
    /// Interrupt at decode (Linux perf without hardware help), modelled without its perturbation.
    Software {
        title: "Software", heading: "SW", short: "softw.",
        published: [Some(Mean(0.618)), None, Some(Mean(0.091))],
        in_errors_json: true, in_instruction_table: true, sees_events: false,
    }
}

impl Profiler {
    const fn row(self) -> &'static ProfilerRow {
        &ROWS[self as usize]
    }

    /// Returns the profiler's name in run specs and reports.
    pub const fn name(self) -> &'static str {
        self.heuristic().name()
    }

    /// Returns the profiler's name at the start of a sentence.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// Returns the profiler's name at the head of a column, of six characters at most.
    pub const fn heading(self) -> &'static str {
        self.row().heading
    }

    /// Returns the profiler's name at the head of a column of the page.
    pub const fn short(self) -> &'static str {
        self.row().short
    }

    /// Returns the profiler of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profiler| profiler.name() == name)
    }

    /// Returns the profiler whose rule the TIP unit applies for this value of its register's field.
    pub fn of_unit(heuristic: u64) -> Option<Self> {
        let found = UNIT_HEURISTICS.get(usize::try_from(heuristic).ok()?)?;
        Some(Self::ALL[*found as usize])
    }

    /// True if `errors.json` has the profiler.
    pub const fn is_in_errors_json(self) -> bool {
        self.row().in_errors_json
    }

    /// Returns the profiler's published mean error at a level, if there is one.
    pub const fn published(self, level: Level) -> Option<Published> {
        self.row().published[level as usize]
    }

    /// True if the instruction table of the text report has a column for the profiler.
    pub const fn is_in_instruction_table(self) -> bool {
        self.row().in_instruction_table
    }

    /// True if the profiler sees the events of the instruction that a sample names.
    pub const fn sees_events(self) -> bool {
        self.row().sees_events
    }

    /// True if the profiler's samples may name an instruction that the Oracle does not charge the trigger's cycle to.
    pub(crate) const fn misplaces(self) -> bool {
        self.heuristic().misplaces()
    }

    /// True if nothing but records ends a pending sample of the profiler.
    pub(crate) const fn waits_for_records(self) -> bool {
        self.heuristic().waits_for_records()
    }
}

impl std::fmt::Display for Profiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests;
