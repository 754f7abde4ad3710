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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_is_profiled_whole_took_all_its_cycles() {
        let meta = |region: &str| {
            json!({"cycles": 3_200_000, "regions": {"cycles": 1_600_000}, "spec": {"run": {"region": region}},
                "core": {"clock": {"mhz": 3200}}})
        };
        let elapsed = |cycles, ms| Some(Elapsed { cycles, ms: Some(ms) });
        assert_eq!(Elapsed::of(&meta("run")), elapsed(3_200_000, 1.0));
        assert_eq!(Elapsed::of(&meta("command")), elapsed(1_600_000, 0.5));
        assert_eq!(Elapsed::of(&json!({"cycles": 5})), None);
    }
}
