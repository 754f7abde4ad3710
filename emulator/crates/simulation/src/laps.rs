//! What a run took, apart for what ran under the timing core and what ran functionally.

use std::time::{Duration, Instant};

use crate::system::System;

/// Simulated and host time of some part of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lap {
    /// Cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Cycles that an earlier run simulated, a part of `cycles`.
    pub restored_cycles: u64,
    /// Instructions that an earlier run simulated, a part of `instructions`.
    pub restored_instructions: u64,
    /// Host time.
    pub host: Duration,
}

impl Lap {
    /// Returns million instructions per second of host time.
    pub fn mips(&self) -> f64 {
        (self.instructions - self.restored_instructions) as f64
            / self.host.as_secs_f64().max(1e-9)
            / 1e6
    }

    /// Returns million simulated cycles per second of host time.
    pub fn mcycles_per_second(&self) -> f64 {
        (self.cycles - self.restored_cycles) as f64 / self.host.as_secs_f64().max(1e-9) / 1e6
    }
}

/// Time of the two parts of a run: under the timing core, and functionally.
#[derive(Clone, Copy, Debug)]
pub struct Laps {
    /// The part under the timing core.
    pub timing: Lap,
    /// The functional part.
    pub functional: Lap,
    /// Time, cycle and instructions at the last look.
    last_reading: (Instant, u64, u64),
}

impl Laps {
    /// Returns the laps of a run that starts now, maybe where an earlier one had come to.
    pub fn new(system: &System) -> Self {
        let last_reading = reading(system);
        let (_, cycles, instructions) = last_reading;
        Self {
            timing: Lap::default(),
            functional: Lap {
                cycles,
                instructions,
                restored_cycles: cycles,
                restored_instructions: instructions,
                host: Duration::ZERO,
            },
            last_reading,
        }
    }

    /// Adds what passed since the last look.
    pub fn lap(&mut self, system: &System, timing: bool) {
        let lap = if timing { &mut self.timing } else { &mut self.functional };
        let (then, cycle, instructions) =
            std::mem::replace(&mut self.last_reading, reading(system));
        lap.host += self.last_reading.0 - then;
        lap.cycles += self.last_reading.1 - cycle;
        lap.instructions += self.last_reading.2 - instructions;
    }

    /// Returns the part that matters: the one under the timing core, if anything ran there.
    pub fn main(&self) -> &Lap {
        if self.timing.instructions == 0 { &self.functional } else { &self.timing }
    }
}

fn reading(system: &System) -> (Instant, u64, u64) {
    (Instant::now(), system.harts.first().cycle(), system.harts.instructions())
}
