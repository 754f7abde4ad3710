//! What a session leaves.

use critical_path::Excerpts;
use stored_units::UnitsError;
use timing::Stats;
use truth::{Collector, SharedLines, UnitTotals};

use crate::laps::Laps;
use crate::recording::Recorded;
use crate::region::RegionSummary;
use crate::sampling::{Sampled, SampledUnits};

/// What samples should say, as the cores collected it.
pub struct CollectedTruth {
    /// Collectors by hart.
    pub collectors: Vec<Collector>,
    /// Cache lines, as all harts used them.
    pub lines: SharedLines,
    /// What became of the overflows of the units that sample instructions, by hart.
    pub units: Vec<UnitTotals>,
}

/// All that a session recorded and counted.
pub struct Finished {
    /// What the region of interest was.
    pub regions: RegionSummary,
    /// What became of its sampling, if it was sampled, and the units.
    pub sampled: Option<(Sampled, SampledUnits)>,
    /// Simulated and host time, until the profilers had read everything.
    pub laps: Laps,
    /// Counters of each hart's timing core.
    pub stats: Vec<Stats>,
    /// Counts of every event by each hart's timing core in the region of interest.
    pub counts: Option<serde_json::Value>,
    /// Cycles that each hart's TIP unit stood still, while its own interrupt was handled.
    pub tip_frozen_cycles: Vec<u64>,
    /// What last-level cache and memory counted in the region, and the guest's counters of them.
    pub uncore: serde_json::Value,
    /// What samples should say, if that was asked for.
    pub truth: Option<CollectedTruth>,
    /// Excerpts of each hart, if they were asked for.
    pub excerpts: Vec<Excerpts>,
    /// Bytes of the units that were stored, if they were to be; or why they are not whole.
    pub stored_units: Option<Result<u64, UnitsError>>,
    /// The trace and what the profilers found, if something was timed and recorded.
    pub recorded: Option<Recorded>,
}
