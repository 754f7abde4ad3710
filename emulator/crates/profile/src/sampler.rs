//! What to sample with, and how often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Profiler;

/// When a sampler triggers. Samplers with equal schedules and filters share one clock, so that they differ in
/// nothing but their policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
pub struct Schedule {
    /// Cycles between triggers, at least 1. Neither idle cycles nor those that are filtered out count.
    pub period: u64,
    /// The first trigger is in this profiled cycle, counted from 1; 0 means after one whole period.
    pub offset: u64,
    /// If set, each period's trigger falls on a random cycle of it, drawn from this seed.
    pub random: Option<u64>,
}

impl Schedule {
    /// A trigger at the end of every `period` cycles.
    pub const fn every(period: u64) -> Self {
        Self { period, offset: 0, random: None }
    }

    /// The schedule of `frequency` samples per second on a core of `clock` Hz; the period is rounded
    /// to the nearest cycle and at least 1.
    pub const fn frequency(frequency: u64, clock: u64) -> Self {
        let frequency = if frequency == 0 { 1 } else { frequency };
        let period = clock.saturating_add(frequency / 2) / frequency;
        Self::every(if period == 0 { 1 } else { period })
    }

    /// Returns the schedule with triggers at a random cycle of each period, drawn from `seed`.
    pub const fn randomised(self, seed: u64) -> Self {
        Self { random: Some(seed), ..self }
    }
}

/// A privilege mode.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Privilege {
    /// U.
    User,
    /// S.
    Kernel,
    /// M: the firmware.
    Machine,
}

impl Privilege {
    /// Returns the privilege mode's name in run specs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Machine => "machine",
        }
    }

    /// Returns the architectural encoding, as in [`commit_trace::StaticInfo::privilege`].
    pub const fn encoding(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Kernel => 1,
            Self::Machine => 3,
        }
    }
}

/// The cycles that a sampler sees. Its clock stands still in all others, as a counter of perf's does
/// for `tip:u` or `-p PID`; a sample that is pending when they begin is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
pub struct Filter {
    /// Only cycles of processes whose command has this name when they first run, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Only cycles of threads while they have this name, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Only cycles that the Oracle charges to instructions of this privilege, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privilege: Option<Privilege>,
    /// Only cycles between the guest's trigger instructions, if true.
    #[serde(default, skip_serializing_if = "is_false")]
    pub marked: bool,
}

impl Filter {
    /// The filter that lets everything through.
    pub const NONE: Self = Self { process: None, thread: None, privilege: None, marked: false };
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Formats the filter as in names of samplers: `quickstart:user:command`, empty for no filter.
impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            self.process.as_deref(),
            self.thread.as_deref(),
            self.privilege.map(Privilege::name),
            self.marked.then_some("command"),
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        f.pad(&parts.join(":"))
    }
}

/// One sampler of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampler {
    /// Name in reports.
    pub name: String,
    /// The profiler whose rule the sampler applies.
    pub profiler: Profiler,
    /// When the sampler triggers.
    pub schedule: Schedule,
    /// The cycles that the sampler sees.
    #[serde(default, skip_serializing_if = "no_filter")]
    pub filter: Filter,
}

fn no_filter(filter: &Filter) -> bool {
    *filter == Filter::NONE
}

impl Sampler {
    /// A sampler named after its profiler.
    pub fn new(profiler: Profiler, schedule: Schedule) -> Self {
        Self { name: profiler.name().to_owned(), profiler, schedule, filter: Filter::NONE }
    }

    /// Returns the sampler, restricted to the cycles that `filter` lets through.
    pub fn filtered(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// Every profiler at 4 kHz, the rate of the published evaluation, and at 20 kHz, on a core of
    /// `clock` Hz; named like `tip@4kHz`.
    pub fn defaults(clock: u64) -> Vec<Self> {
        let rates = [4, 20];
        let all = rates.into_iter().flat_map(|khz| Profiler::ALL.map(|profiler| (khz, profiler)));
        all.map(|(khz, profiler)| Self {
            name: format!("{profiler}@{khz}kHz"),
            profiler,
            schedule: Schedule::frequency(khz * 1000, clock),
            filter: Filter::NONE,
        })
        .collect()
    }
}
