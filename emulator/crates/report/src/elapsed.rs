//! Simulated time of the region: what a user of the program waits, however many harts work meanwhile.

use schemars::JsonSchema;
use serde::Serialize;

/// Simulated time from the begin of the region to its end, or of its stretches if it has several.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Elapsed {
    /// Cycles of one hart, idle ones included.
    pub cycles: u64,
    /// Milliseconds at the core's clock, if that is known.
    pub ms: Option<f64>,
}
