//! How far the core can be, by how far it was some time ago.

/// The core may take so many times as long for an instruction as it took for one of those before,
const TIMES: u64 = 2;
/// and so many cycles more for all that it has.
const MORE: u64 = 1024;
/// Instructions of which the cycles are counted together.
const WINDOW: u64 = 1024;
/// A slow window is forgotten in about so many others.
const FORGET: u64 = 16;
/// Fractional bits of cycles per instruction.
const FRACTION: u32 = 8;

/// What is known of the core. It is learned in order, and as much of it as a rule says: so what this says does
/// not depend on how quick threads are.
pub(super) struct Reach {
    /// The core was here after so many instructions.
    cycle: u64,
    instructions: u64,
    /// Where the window began.
    window: (u64, u64),
    /// The most cycles per instruction of a window lately.
    rate: u64,
}

impl Reach {
    /// Of a core that has come to `cycle`.
    pub fn new(cycle: u64) -> Self {
        Self {
            cycle,
            instructions: 0,
            window: (cycle, 0),
            rate: 4 << FRACTION,
        }
    }

    /// The core had come to `cycle` after so many instructions.
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

    /// The core slept until `cycle`.
    pub fn sleep(&mut self, cycle: u64) {
        self.cycle = self.cycle.max(cycle);
        self.window = (self.cycle, self.instructions);
    }

    /// A cycle that it will hardly have passed after so many instructions.
    #[inline(always)]
    pub fn after(&self, instructions: u64) -> u64 {
        let unknown = instructions - self.instructions;
        self.cycle + ((TIMES * self.rate * unknown) >> FRACTION) + MORE
    }
}
