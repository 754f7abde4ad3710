//! Simulated time of the region: what a user of the program waits, however many harts work meanwhile.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Simulated time from the begin of the region to its end, or of its stretches if it has several.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Elapsed {
    /// Cycles of one hart, idle ones included.
    pub cycles: u64,
    /// Milliseconds at the core's clock, if that is known.
    pub ms: Option<f64>,
}

impl Elapsed {
    /// Returns the time that a run's description (run.json) tells; `None` if it is of an older version, or was made of a trace alone.
    pub(crate) fn of(meta: &Value) -> Option<Self> {
        let of_region = meta["regions"]["cycles"].as_u64()?;
        // Marks are ignored in a run that is profiled whole.
        let is_whole = meta["spec"]["run"]["region"] == "run";
        let cycles = meta["cycles"].as_u64().filter(|_| is_whole).unwrap_or(of_region);
        let mhz = meta["core"]["clock"]["mhz"].as_f64().filter(|mhz| *mhz > 0.0);
        Some(Self { cycles, ms: mhz.map(|mhz| cycles as f64 / (1e3 * mhz)) })
    }
}
