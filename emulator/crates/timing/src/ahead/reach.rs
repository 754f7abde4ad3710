//! How far the core can be, by how far it was some time ago.

/// Factor by which the core may take longer for an instruction than it did in the slowest window lately.
const TIMES: u64 = 2;
/// Cycles that the core may take in addition, for all instructions that it has.
const MORE: u64 = 1024;
/// Instructions of a window, whose cycles are counted together.
const WINDOW: u64 = 1024;
/// Windows after which a slow one is forgotten, about.
const FORGET: u64 = 16;
/// Fractional bits of cycles per instruction.
const FRACTION: u32 = 8;

/// What is known of how far the core has come. It is learned in order, and as much of it as a rule says: so it does not
/// depend on how quick threads are.
pub(super) struct Reach {
    /// Cycle that the core had come to after [`Self::instructions`].
    cycle: u64,
    /// Instructions that the core had done by [`Self::cycle`].
    instructions: u64,
    /// Cycle and instructions at the beginning of the window.
    window: (u64, u64),
    /// The most cycles per instruction of a window lately, with [`FRACTION`] fractional bits.
    rate: u64,
}

impl Reach {
    /// Returns what is known of a core that has come to `cycle`, and has done no instructions.
    pub fn new(cycle: u64) -> Self {
        Self { cycle, instructions: 0, window: (cycle, 0), rate: 4 << FRACTION }
    }

    /// Notes that the core had come to `cycle` after `instructions` instructions.
    pub fn learn(&mut self, cycle: u64, instructions: u64) {
        (self.cycle, self.instructions) = (cycle, instructions);
        let (began, before) = self.window;
        let passed = instructions - before;
        if passed >= WINDOW {
            let rate = (cycle.saturating_sub(began) << FRACTION) / passed;
            self.rate = rate.max(self.rate - self.rate / FORGET);
            self.window = (cycle, instructions);
        }
    }

    /// Notes that the core slept until `cycle`.
    pub fn sleep(&mut self, cycle: u64) {
        self.cycle = self.cycle.max(cycle);
        self.window = (self.cycle, self.instructions);
    }

    /// Returns a cycle that the core will hardly have passed after `instructions` instructions.
    #[inline(always)]
    pub fn after(&self, instructions: u64) -> u64 {
        let unknown = instructions - self.instructions;
        self.cycle + ((TIMES * self.rate * unknown) >> FRACTION) + MORE
    }
}
