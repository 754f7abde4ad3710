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
    /// Host time.
    pub host: Duration,
}

impl Lap {
    /// Million instructions per second of host time.
    pub fn mips(&self) -> f64 {
        self.instructions as f64 / self.host.as_secs_f64().max(1e-9) / 1e6
    }

    /// Million simulated cycles per second of host time.
    pub fn mcycles_per_second(&self) -> f64 {
        self.cycles as f64 / self.host.as_secs_f64().max(1e-9) / 1e6
    }
}

/// Both parts of a run.
#[derive(Clone, Copy, Debug)]
pub struct Laps {
    /// Under the timing core.
    pub timing: Lap,
    /// Functionally.
    pub functional: Lap,
    /// The last look: when, and what the hart had done.
    looked: (Instant, u64, u64),
}

impl Laps {
    /// A run that starts now.
    pub fn new(system: &System) -> Self {
        Self {
            timing: Lap::default(),
            functional: Lap::default(),
            looked: look(system),
        }
    }

    /// Adds what passed since the last look.
    pub fn lap(&mut self, system: &System, timing: bool) {
        let lap = if timing {
            &mut self.timing
        } else {
            &mut self.functional
        };
        let (then, cycle, instructions) = std::mem::replace(&mut self.looked, look(system));
        lap.host += self.looked.0 - then;
        lap.cycles += self.looked.1 - cycle;
        lap.instructions += self.looked.2 - instructions;
    }

    /// The part that matters: under the timing core, if anything ran there.
    pub fn main(&self) -> &Lap {
        if self.timing.instructions == 0 {
            &self.functional
        } else {
            &self.timing
        }
    }
}

fn look(system: &System) -> (Instant, u64, u64) {
    (Instant::now(), system.hart.cycle(), system.instructions())
}
