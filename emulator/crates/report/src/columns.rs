//! The profiles that are compared with the Oracle, and their errors at three levels.

use profile::{Filter, Level, Profiler, Published, Schedule};
use serde::Serialize;

/// One profile that is compared with the Oracle.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Name, `guest-tip` for what perf measured in the guest by that rule.
    pub name: String,
    /// The sampler's rule; `None` for a profile from the guest.
    pub profiler: Option<Profiler>,
    /// Of a profile from the guest: the sampler whose rule the TIP unit applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Profiler>,
    /// When it sampled; `None` for a profile from the guest.
    pub schedule: Option<Schedule>,
    /// The cycles that it saw, of a sampler.
    pub filter: Filter,
    /// Samples taken.
    pub samples: u64,
    /// Samples dropped or lost.
    pub dropped: u64,
    /// Cycles after the last sample.
    pub tail_cycles: u64,
    /// Cycles that its samples gave to addresses that never executed.
    pub unmatched_cycles: f64,
    /// Published mean errors per level.
    pub published: Levels<Option<Published>>,
    /// The column that stands for its profiler where only one fits (the first of its kind).
    pub primary: bool,
}

impl Column {
    /// The heading of the first profile from the guest, where there is room for one.
    pub(super) const GUEST: &str = "guest";

    /// At the head of a column of the page.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Levels<T> {
    /// Of instructions.
    pub instruction: T,
    /// Of basic blocks.
    pub block: T,
    /// Of functions.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LevelError {
    /// Measured: half the L1 distance of the two distributions.
    pub error: f64,
    /// What that many independent samples of the Oracle's own distribution would leave on average.
    pub sampling: f64,
}
