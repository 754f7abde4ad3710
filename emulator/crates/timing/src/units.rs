//! The state of execution units that the issue schedule does not have.

use crate::Preset;
use crate::micro_op::PortMap;

/// The unpipelined units.
pub(crate) struct Units {
    /// Cycles from which on they take an operation.
    pub divider_free: u64,
    pub fp_divider_free: u64,
    /// The port whose ALU writes back with the multiplier.
    pub mul_port: u32,
    /// Latency and port of FP data on its way to the store queue.
    pub fp_data: (u64, u32),
}

snapshot::snapshot!(Units { divider_free, fp_divider_free } keeps { mul_port, fp_data });

impl Units {
    pub fn new(preset: &Preset, ports: &PortMap) -> Self {
        Self {
            divider_free: 0,
            fp_divider_free: 0,
            mul_port: ports.mul,
            fp_data: (u64::from(preset.execute.fp), ports.fp0),
        }
    }
}
