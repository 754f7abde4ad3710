//! The period timer: counts core cycles in the enabled privilege modes, never while asleep.

use crate::control;
use crate::regs::HEURISTICS;

/// Cycle of a trigger that never comes.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Timer {
    period: u64,
    /// Cycles left, while the timer stands still.
    cycles_left: u64,
    /// Absolute cycle of the next trigger, while it runs; `NEVER` otherwise.
    next: u64,
    /// In RANDOM mode: cycles from the trigger to the end of its period.
    period_rest: u64,
    seed: u64,
    control: u64,
    privilege: u8,
    /// The unit's own interrupt is handled: nothing counts.
    frozen: bool,
    /// Cycles that would have counted but for `frozen`, up to `frozen_cycles_at`.
    frozen_cycles: u64,
    /// Cycle in which `frozen_cycles` was last brought up to date, and the trigger set.
    frozen_cycles_at: u64,
}

snapshot::snapshot!(Timer {
    period,
    cycles_left,
    next,
    period_rest,
    seed,
    control,
    privilege,
    frozen,
    frozen_cycles,
    frozen_cycles_at
});

impl Timer {
    pub(crate) fn new() -> Self {
        let seed = 0x9e37_79b9_7f4a_7c15;
        Self {
            period: 1,
            cycles_left: 1,
            next: NEVER,
            period_rest: 0,
            seed,
            control: 0,
            privilege: 3,
            frozen: false,
            frozen_cycles: 0,
            frozen_cycles_at: 0,
        }
    }

    /// Returns the absolute cycle of the next trigger; `u64::MAX` while the timer stands still.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn control(&self) -> u64 {
        self.control
    }

    pub(crate) fn period(&self) -> u64 {
        self.period
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn cycles_left(&self, now: u64) -> u64 {
        if self.next == NEVER { self.cycles_left } else { self.next.saturating_sub(now).max(1) }
    }

    /// Returns the cycles that would have counted, had the timer not been frozen.
    pub(crate) fn frozen_cycles(&self, now: u64) -> u64 {
        self.frozen_cycles
            + if self.counts_frozen() { now.saturating_sub(self.frozen_cycles_at) } else { 0 }
    }

    pub(crate) fn set_frozen(&mut self, frozen: bool, cycle: u64) {
        self.stop(cycle);
        self.frozen = frozen;
        self.start(cycle);
    }

    pub(crate) fn set_period(&mut self, cycles: u64) {
        self.period = cycles.clamp(1, 1 << 48);
    }

    pub(crate) fn set_left(&mut self, cycles: u64, now: u64) {
        self.cycles_left = cycles.clamp(1, 1 << 48);
        self.period_rest = 0;
        if self.next != NEVER {
            self.next = now + self.cycles_left;
            self.frozen_cycles_at = now;
        }
    }

    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.seed = if seed == 0 { Self::new().seed } else { seed };
    }

    pub(crate) fn set_control(&mut self, bits: u64, now: u64) {
        self.stop(now);
        self.frozen = false;
        self.control = bits & control::ALL;
        let heuristic = register_table::field(bits, control::HEURISTIC);
        if heuristic as usize >= HEURISTICS.len() {
            self.control &= !control::HEURISTIC;
        }
        self.start(now);
    }

    /// Notes that the privilege mode changed at `cycle`.
    pub(crate) fn set_privilege(&mut self, privilege: u8, cycle: u64) {
        self.stop(cycle);
        self.privilege = privilege;
        self.start(cycle);
    }

    /// Notes that the core slept for `cycles` cycles, up to `until`: the trigger moves with it. What executes in its
    /// place, untimed, may have set the trigger in the meantime.
    pub(crate) fn slept(&mut self, cycles: u64, until: u64) {
        let since_set = until.checked_sub(self.frozen_cycles_at);
        let moved = since_set.map_or(cycles, |since| since.min(cycles));
        self.frozen_cycles_at += moved;
        if self.next != NEVER {
            self.next += moved;
        }
    }

    /// Fires the trigger: loads the next one and returns the cycles from this one to it.
    pub(crate) fn reload(&mut self) -> u64 {
        let offset = if self.control & control::RANDOM != 0 {
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            1 + self.seed % self.period
        } else {
            self.period
        };
        let step = self.period_rest + offset;
        self.period_rest = self.period - offset;
        self.next = self.next.saturating_add(step);
        step
    }

    /// Returns true if cycles in the privilege mode count.
    fn counts(&self) -> bool {
        let bit = match self.privilege {
            0 => control::U,
            1 => control::S,
            _ => control::M,
        };
        self.control & control::ENABLE != 0 && self.control & bit != 0
    }

    fn counts_frozen(&self) -> bool {
        self.frozen && self.counts()
    }

    fn stop(&mut self, now: u64) {
        self.frozen_cycles = self.frozen_cycles(now);
        if self.next != NEVER {
            self.cycles_left = self.next.saturating_sub(now).max(1);
            self.next = NEVER;
        }
    }

    fn start(&mut self, now: u64) {
        self.frozen_cycles_at = now;
        if self.counts() && !self.frozen {
            self.next = now + self.cycles_left;
        }
    }
}
