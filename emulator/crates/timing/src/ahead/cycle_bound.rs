//! A bound on the core's cycle, by how far the core was some time ago.

/// Factor by which the bound takes an instruction to be slower than in the slowest recent window.
const RATE_MARGIN: u64 = 2;
/// Cycles that the bound adds once, however many instructions the core has still to do.
const FIXED_MARGIN: u64 = 1024;
/// Instructions of a window, whose cycles are counted together.
const WINDOW: u64 = 1024;
/// Number of windows, about, in which the rate of a slow window decays.
const DECAY_WINDOWS: u64 = 16;
/// Fractional bits of cycles per instruction.
const FRACTION: u32 = 8;

/// A cycle that the core has very probably not passed, estimated from the finish cycles of earlier batches. The hart learns these in order, and a
/// rule says how many it learns: the bound therefore does not depend on how quick threads are.
pub(super) struct CycleBound {
    /// Cycle that the core had come to after [`Self::instructions`].
    cycle: u64,
    /// Instructions that the core had done by [`Self::cycle`].
    instructions: u64,
    /// Cycle and instructions at the beginning of the window.
    window: (u64, u64),
    /// Most cycles per instruction of a recent window, with [`FRACTION`] fractional bits.
    rate: u64,
}

impl CycleBound {
    /// Returns what is known of a core that has come to `cycle`, and has done no instructions.
    pub(super) fn new(cycle: u64) -> Self {
        Self { cycle, instructions: 0, window: (cycle, 0), rate: 4 << FRACTION }
    }

    /// Notes that the core had come to `cycle` after `instructions` instructions.
    pub(super) fn learn(&mut self, cycle: u64, instructions: u64) {
        (self.cycle, self.instructions) = (cycle, instructions);
        let (began, before) = self.window;
        let passed = instructions - before;
        if passed >= WINDOW {
            let rate = (cycle.saturating_sub(began) << FRACTION) / passed;
            self.rate = rate.max(self.rate - self.rate / DECAY_WINDOWS);
            self.window = (cycle, instructions);
        }
    }

    /// Notes that the core slept until `cycle`.
    pub(super) fn sleep(&mut self, cycle: u64) {
        self.cycle = self.cycle.max(cycle);
        self.window = (self.cycle, self.instructions);
    }

    /// Returns a cycle that the core has very probably not passed after `instructions` instructions.
    #[inline(always)]
    pub(super) fn after(&self, instructions: u64) -> u64 {
        let unknown = instructions - self.instructions;
        self.cycle + ((RATE_MARGIN * self.rate * unknown) >> FRACTION) + FIXED_MARGIN
    }
}
