//! Resources that are freed out of order, in whatever order instructions issue or resolve: slots of
//! the three issue queues, and branch tags.
//!
//! Occupancies are four 8-bit lanes of one word, so that one instruction costs one addition and one
//! test whatever it needs.

/// How far ahead a release can be scheduled, cycles. A later one is brought forward to this: only
/// instructions that wait longer than this for one operand are concerned, and the ROB has filled by then.
const HORIZON: u64 = 1024;

/// One entry of the lane named.
pub(crate) mod lane {
    /// Memory issue queue.
    pub const MEM: u32 = 1;
    /// Integer issue queue.
    pub const INT: u32 = 1 << 8;
    /// Floating-point issue queue.
    pub const FP: u32 = 1 << 16;
    /// Branch tags.
    pub const TAG: u32 = 1 << 24;

    /// Full bits that stop any instruction: BOOM's dispatcher wants room in every issue queue,
    /// whichever one the instruction goes to (`BasicDispatcher`, `exu/dispatch.scala:48`).
    pub const STOPS_ANY: u32 = 0x0080_8080;
    /// Full bits that stop a branch.
    pub const STOPS_BRANCH: u32 = 0x8080_8080;
}

/// Occupancies now, and what will be released when.
pub(crate) struct Wheel {
    now: u64,
    occupied: u32,
    /// Per lane 128 − capacity, less what slots are counted too far: occupied + bias + slots sets a lane's
    /// top bit when it is full.
    bias: u32,
    released: [u32; HORIZON as usize],
}

impl Wheel {
    /// Lanes with the capacities given (at most 127 each): MEM, INT, FP, TAG.
    pub fn new(capacities: [u32; 4]) -> Self {
        let bias = capacities
            .iter()
            .rev()
            .fold(0, |word, &c| word << 8 | (128 - c));
        let bias = bias - (lane::MEM | lane::INT | lane::FP);
        Self {
            now: 0,
            occupied: 0,
            bias,
            released: [0; HORIZON as usize],
        }
    }

    /// True if an instruction whose slot in its group is `after_slot` − 1 finds no room in the cycle last
    /// advanced to. BOOM offers slot n only if more than n entries are free, whatever the older slots need.
    #[inline(always)]
    pub fn full(&self, after_slot: u32, stops: u32) -> bool {
        // Tags are counted exactly, not per slot: lane 3 gets no slot number.
        let slots = after_slot * (lane::MEM | lane::INT | lane::FP);
        (self.occupied + self.bias + slots) & stops != 0
    }

    /// First cycle ≥ `cycle` in which it finds room.
    pub fn room(&mut self, cycle: u64, after_slot: u32, stops: u32) -> u64 {
        let mut cycle = cycle;
        self.advance(cycle);
        while self.full(after_slot, stops) {
            cycle += 1;
            self.advance(cycle);
        }
        cycle
    }

    /// Takes entries.
    #[inline(always)]
    pub fn take(&mut self, lanes: u32) {
        self.occupied += lanes;
    }

    /// Gives entries back from `cycle` on, which must lie after the cycle last asked for.
    #[inline(always)]
    pub fn release(&mut self, cycle: u64, lanes: u32) {
        let cycle = cycle.min(self.now + HORIZON - 1);
        self.released[(cycle % HORIZON) as usize] += lanes;
    }

    /// Releases what is due up to cycle `to`. Cycles must not decrease from call to call.
    #[inline(always)]
    pub fn advance(&mut self, to: u64) {
        while self.now < to {
            if self.occupied == 0 {
                self.now = to;
                return;
            }
            self.now += 1;
            let slot = &mut self.released[(self.now % HORIZON) as usize];
            self.occupied -= *slot;
            *slot = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_the_first_release() {
        let mut wheel = Wheel::new([2, 4, 2, 1]);
        assert_eq!(wheel.room(5, 1, lane::STOPS_ANY), 5);
        wheel.take(lane::MEM);
        wheel.release(50, lane::MEM);
        assert_eq!(wheel.room(5, 1, lane::STOPS_ANY), 5);
        wheel.take(lane::MEM);
        wheel.release(20, lane::MEM);
        assert_eq!(
            wheel.room(6, 1, lane::STOPS_ANY),
            20,
            "even for an instruction of another queue"
        );
    }

    #[test]
    fn later_slots_need_more_room() {
        let mut wheel = Wheel::new([4, 4, 4, 4]);
        wheel.take(lane::INT);
        wheel.release(9, lane::INT);
        assert_eq!(wheel.room(1, 3, lane::STOPS_ANY), 1);
        assert_eq!(wheel.room(1, 4, lane::STOPS_ANY), 9);
    }

    #[test]
    fn far_releases_come_at_the_horizon() {
        let mut wheel = Wheel::new([1, 4, 4, 4]);
        wheel.take(lane::MEM);
        wheel.release(1 << 40, lane::MEM);
        assert_eq!(wheel.room(0, 1, lane::STOPS_ANY), HORIZON - 1);
        assert_eq!(
            wheel.room(1 << 50, 1, lane::STOPS_ANY),
            1 << 50,
            "a long jump is one step"
        );
    }

    #[test]
    fn tags_stop_only_branches() {
        let mut wheel = Wheel::new([4, 4, 4, 1]);
        wheel.take(lane::TAG);
        wheel.release(30, lane::TAG);
        assert_eq!(wheel.room(2, 1, lane::STOPS_ANY), 2);
        assert_eq!(wheel.room(2, 4, lane::STOPS_BRANCH), 30);
    }
}
