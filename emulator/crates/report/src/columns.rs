//! The profiles that are compared with the Oracle, and their errors at three levels.

use profile::{ErrorSums, ErrorTotals, Filter, Level, Margin, Profiler, Published, Schedule};
use schemars::JsonSchema;
use serde::Serialize;

/// One profile that is compared with the Oracle.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Column {
    /// Name of the profile; `guest-tip`, for example, is what perf measured in the guest by the rule `tip`.
    pub name: String,
    /// The sampler's rule; `None` for a profile from the guest.
    pub profiler: Option<Profiler>,
    /// The sampler whose rule the TIP unit applied; only a profile from the guest has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Profiler>,
    /// Times at which the sampler took samples; `None` for a profile from the guest.
    pub schedule: Option<Schedule>,
    /// The cycles that the sampler saw.
    pub filter: Filter,
    /// Samples taken.
    pub samples: u64,
    /// Samples dropped or lost.
    pub dropped: u64,
    /// Cycles after the last sample.
    pub tail_cycles: u64,
    /// Cycles that the profile's samples gave to addresses that never executed.
    pub unmatched_cycles: f64,
    /// Published mean errors per level.
    pub published: Levels<Option<Published>>,
    /// The column that stands for its profiler where only one fits (the first of its kind).
    pub primary: bool,
}

impl Column {
    /// The heading of the first profile from the guest, where there is room for one.
    pub(super) const GUEST: &str = "guest";

    /// Returns the heading of the column on the page.
    pub(super) fn short(&self) -> &str {
        match self.profiler {
            Some(profiler) => profiler.short(),
            None if self.primary => Self::GUEST,
            None => &self.name,
        }
    }

    /// The profiler's name without its rate.
    pub fn label(&self) -> &str {
        self.profiler.map_or(&self.name, |profiler| profiler.name())
    }
}

/// One value per level.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "LevelsOf{T}")]
pub struct Levels<T> {
    /// The value by instruction.
    pub instruction: T,
    /// The value by basic block.
    pub block: T,
    /// The value by function.
    pub function: T,
}

impl<T> Levels<T> {
    /// The values that `value` gives per level.
    pub fn from_fn(mut value: impl FnMut(Level) -> T) -> Self {
        Self {
            instruction: value(Level::Instruction),
            block: value(Level::Block),
            function: value(Level::Function),
        }
    }

    /// The value of a level.
    pub fn get(&self, level: Level) -> &T {
        match level {
            Level::Instruction => &self.instruction,
            Level::Block => &self.block,
            Level::Function => &self.function,
        }
    }
}

/// A profile error, as fractions from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct LevelError {
    /// The measured error: half the L1 distance of the two distributions.
    pub error: f64,
    /// The average error of as many independent samples of the Oracle's own distribution.
    pub sampling: f64,
    /// How far the measured error may be off by chance, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margin>,
}

impl LevelError {
    /// Returns the errors of the symbols that were added up.
    pub(crate) fn of(sums: &ErrorSums, totals: &ErrorTotals) -> Self {
        Self { error: sums.measured(totals), sampling: sums.sampling(totals), margin: None }
    }
}
