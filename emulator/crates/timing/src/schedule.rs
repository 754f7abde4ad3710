//! What happens in which of the next cycles: issue ports are taken, issue-queue slots and branch tags given
//! back.
//!
//! Instructions book their ports in program order; each gets the first free cycle in which it is ready. The oldest ready instruction therefore issues
//! first, as in BOOM's collapsing queues. If several ports are free, the lowest is taken. Slots and tags are given back in whatever order
//! instructions issue or branches resolve. Occupancies are four 8-bit lanes of one word, so that an instruction costs one addition and one
//! test, whatever it needs.

/// Number of cycles that are known ahead. Bookings further ahead do not see each other, and releases further ahead come too early, at the end of the
/// span. Only instructions that wait longer than this for one operand are concerned, and the ROB is full by then.
const SPAN: u64 = 1024;
/// Cycles after which releases are looked up at the latest.
const LATEST: u64 = 64;
/// Cycles that are looked up one by one; more are looked up at once.
const NEAR: u64 = 16;

/// Lanes of the occupancy word, lowest first: the place of each in what is counted by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Memory issue queue.
    Mem,
    /// Integer issue queue.
    Int,
    /// Floating-point issue queue.
    Fp,
    /// Branch tags: each branch in flight holds one.
    Tag,
}

impl Lane {
    /// Returns one entry of the lane in the occupancy word.
    const fn entry(self) -> u32 {
        1 << (8 * self as u32)
    }
}

/// Entries of the occupancy word's lanes, and bits of full lanes.
pub(crate) mod lane {
    use super::Lane;

    /// Memory issue queue.
    pub(crate) const MEM: u32 = Lane::Mem.entry();
    /// Integer issue queue.
    pub(crate) const INT: u32 = Lane::Int.entry();
    /// Floating-point issue queue.
    pub(crate) const FP: u32 = Lane::Fp.entry();
    /// Branch tags.
    pub(crate) const TAG: u32 = Lane::Tag.entry();
    /// Number of lanes.
    pub(crate) const COUNT: usize = 4;
    /// Number of lanes of issue queues, which come first.
    pub(crate) const QUEUES: usize = 3;

    /// A slot in a group, as [`super::Schedule::full`] counts it: tags are counted exactly, not per slot.
    pub(crate) const EACH_SLOT: u32 = MEM | INT | FP;

    /// Full bits that stop any instruction: BOOM's dispatcher wants room in every issue
    /// queue, whichever one the instruction goes to (`BasicDispatcher`, `exu/dispatch.scala:48`).
    pub(crate) const STOPS_ANY: u64 = 0x0080_8080;
    /// Full bits that stop a branch.
    pub(crate) const STOPS_BRANCH: u64 = 0x8080_8080;
    /// Bit that stops what has to look at its register file before it is dispatched.
    pub(crate) const ALWAYS: u64 = 1 << 32;
}

/// Ports by cycle, and occupancies.
pub(crate) struct Schedule {
    /// Cycle up to which freed queue slots are accounted for; never later than the next dispatch.
    now: u64,
    /// The first cycle that is not known ahead.
    horizon: u64,
    /// By lane: entries taken, plus 128 − capacity. Lanes of issue queues have one less, since [`Self::full`] adds the number of a slot plus one. A
    /// lane has no room for the slot if the sum sets its top bit.
    occupied: u64,
    /// By cycle: the ports taken in it (low half), and the lanes free after it (high half).
    cycles: [u64; SPAN as usize],
}

snapshot::snapshot!(Schedule { now, horizon, occupied, cycles });

impl Schedule {
    /// Returns a schedule whose lanes have the capacities given (at most 127 each): MEM, INT, FP, TAG.
    pub(crate) fn new(capacities: [u32; 4]) -> Self {
        let bias = capacities.iter().rev().fold(0, |word, &c| word << 8 | (128 - c));
        let bias = bias - lane::EACH_SLOT;
        Self {
            now: 0,
            horizon: SPAN,
            occupied: lane::ALWAYS + u64::from(bias),
            cycles: [0; SPAN as usize],
        }
    }

    #[inline(always)]
    fn at(&mut self, cycle: u64) -> &mut u64 {
        &mut self.cycles[(cycle % SPAN) as usize]
    }

    /// Books one of the `allowed` ports in the first cycle ≥ `ready` in which one is free, and gives the lanes back
    /// after it; returns the cycle and the port's bit. `ready` must lie after the last dispatch.
    #[inline(always)]
    pub(crate) fn book(&mut self, ready: u64, allowed: u32, lanes: u32) -> (u64, u32) {
        let mut cycle = ready;
        while cycle < self.horizon {
            let entry = self.at(cycle);
            let free = allowed & !(*entry as u32);
            if free != 0 {
                let port = free & free.wrapping_neg();
                *entry += u64::from(lanes) << 32 | u64::from(port);
                return (cycle, port);
            }
            cycle += 1;
        }
        self.book_far(cycle, allowed, lanes)
    }

    #[cold]
    #[inline(never)]
    fn book_far(&mut self, cycle: u64, allowed: u32, lanes: u32) -> (u64, u32) {
        self.release(cycle + 1, lanes);
        (cycle, allowed & allowed.wrapping_neg())
    }

    /// Takes `ports` in `cycle`, whether they are free or not; returns true if one was not.
    #[inline(always)]
    pub(crate) fn mark(&mut self, cycle: u64, ports: u32) -> bool {
        if cycle >= self.horizon {
            return false;
        }
        let entry = self.at(cycle);
        let taken = *entry & u64::from(ports) != 0;
        *entry |= u64::from(ports);
        taken
    }

    /// Returns true if an instruction finds no room, as far as releases were looked up; `after_slot` is its slot in its
    /// group plus one, times [`lane::EACH_SLOT`]. BOOM offers slot n only if more than n entries are free, whatever the
    /// older slots need.
    #[inline(always)]
    pub(crate) fn full(&self, after_slot: u32, stops: u64) -> bool {
        (self.occupied + u64::from(after_slot)) & stops != 0
    }

    /// Returns the first cycle ≥ `cycle` in which an instruction finds room. Each cycle before is added to the wait of
    /// the first lane that is full in it.
    pub(crate) fn room(
        &mut self,
        cycle: u64,
        after_slot: u32,
        stops: u64,
        waits: &mut [u64; lane::COUNT],
    ) -> u64 {
        self.advance(cycle);
        let stops = stops & !lane::ALWAYS;
        loop {
            let full = (self.occupied + u64::from(after_slot)) & stops;
            if full == 0 {
                break;
            }
            waits[full.trailing_zeros() as usize / 8 % lane::COUNT] += 1;
            self.step();
        }
        self.horizon = self.now + SPAN;
        self.now
    }

    /// Takes entries.
    #[inline(always)]
    pub(crate) fn take(&mut self, lanes: u32) {
        self.occupied += u64::from(lanes);
    }

    /// Gives entries back from `cycle` on, which must lie after the last dispatch.
    #[inline(always)]
    pub(crate) fn release(&mut self, cycle: u64, lanes: u32) {
        let cycle = (cycle - 1).min(self.horizon - 1);
        *self.at(cycle) += u64::from(lanes) << 32;
    }

    /// Passes to a cycle in which instructions are dispatched, not before the last such cycle. Releases are looked up
    /// only when a lane seems full, many cycles at once, but not so late that the end of the span comes near.
    #[inline(always)]
    pub(crate) fn pass(&mut self, cycle: u64) {
        if cycle - self.now > LATEST {
            self.advance(cycle);
        }
    }

    /// Looks up releases to `cycle`.
    #[inline]
    fn advance(&mut self, cycle: u64) {
        if cycle <= self.now + NEAR {
            while self.now < cycle {
                self.step();
            }
            self.horizon = self.now + SPAN;
        } else {
            self.sweep(cycle);
        }
    }

    /// Looks up the releases of one more cycle.
    #[inline(always)]
    fn step(&mut self) {
        let now = self.now;
        self.occupied -= std::mem::take(self.at(now)) >> 32;
        self.now += 1;
    }

    /// Looks up releases to a cycle that is far ahead.
    #[inline(never)]
    fn sweep(&mut self, cycle: u64) {
        let count = cycle.saturating_sub(self.now).min(SPAN) as usize;
        let first = (self.now % SPAN) as usize;
        let (start, end) = self.cycles.split_at_mut(first);
        let here = count.min(end.len());
        for gone in [&mut end[..here], &mut start[..count - here]] {
            let released: u64 = gone.iter().map(|entry| entry >> 32).sum();
            // Nothing was booked in most cycles of a long stall: they need no sweep.
            if released != 0 || gone.iter().any(|&entry| entry != 0) {
                gone.fill(0);
            }
            self.occupied -= released;
        }
        self.now = self.now.max(cycle);
        self.horizon = self.now + SPAN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(schedule: &mut Schedule, cycle: u64, after_slot: u32, stops: u64) -> u64 {
        schedule.room(cycle, after_slot, stops, &mut [0; lane::COUNT])
    }

    #[test]
    fn a_wait_is_that_of_the_first_lane_that_is_full() {
        let mut schedule = Schedule::new([1, 1, 1, 1]);
        for (lane, cycle) in [(lane::MEM, 20), (lane::INT, 50), (lane::FP, 10)] {
            schedule.take(lane);
            schedule.release(cycle, lane);
        }
        let mut waits = [0; lane::COUNT];
        let cycle = schedule.room(5, lane::EACH_SLOT, lane::STOPS_ANY, &mut waits);
        assert_eq!((cycle, waits), (50, [15, 30, 0, 0]));
    }

    #[test]
    fn lowest_free_port_then_next_cycle() {
        let mut schedule = Schedule::new([4; 4]);
        assert_eq!(schedule.book(7, 0b11, 0), (7, 0b01));
        assert_eq!(schedule.book(7, 0b11, 0), (7, 0b10));
        assert_eq!(schedule.book(7, 0b11, 0), (8, 0b01));
        assert_eq!(schedule.book(7, 0b100, 0), (7, 0b100));
    }

    #[test]
    fn a_younger_instruction_fills_an_earlier_hole() {
        let mut schedule = Schedule::new([4; 4]);
        assert_eq!(schedule.book(100, 1, 0), (100, 1));
        assert_eq!(schedule.book(90, 1, 0), (90, 1));
    }

    #[test]
    fn old_bookings_are_forgotten() {
        let mut schedule = Schedule::new([4; 4]);
        assert_eq!(schedule.book(5, 1, 0), (5, 1));
        schedule.pass(5 + SPAN);
        assert_eq!(schedule.book(5 + SPAN, 1, 0), (5 + SPAN, 1));
    }

    #[test]
    fn waits_for_the_first_release() {
        let mut schedule = Schedule::new([2, 4, 2, 1]);
        assert_eq!(room(&mut schedule, 5, lane::EACH_SLOT, lane::STOPS_ANY), 5);
        schedule.take(lane::MEM);
        schedule.release(50, lane::MEM);
        assert_eq!(room(&mut schedule, 5, lane::EACH_SLOT, lane::STOPS_ANY), 5);
        schedule.take(lane::MEM);
        assert_eq!(schedule.book(19, 1, lane::MEM), (19, 1));
        assert_eq!(
            room(&mut schedule, 6, lane::EACH_SLOT, lane::STOPS_ANY),
            20,
            "even for an instruction of another queue"
        );
    }

    #[test]
    fn later_slots_need_more_room() {
        let mut schedule = Schedule::new([4; 4]);
        schedule.take(lane::INT);
        schedule.release(9, lane::INT);
        assert_eq!(room(&mut schedule, 1, 3 * lane::EACH_SLOT, lane::STOPS_ANY), 1);
        assert_eq!(room(&mut schedule, 1, 4 * lane::EACH_SLOT, lane::STOPS_ANY), 9);
    }

    #[test]
    fn far_releases_come_at_the_end_of_the_span() {
        let mut schedule = Schedule::new([1, 4, 4, 4]);
        schedule.take(lane::MEM);
        assert_eq!(schedule.book(1 << 40, 0b110, lane::MEM), (1 << 40, 0b010));
        assert_eq!(room(&mut schedule, 0, lane::EACH_SLOT, lane::STOPS_ANY), SPAN);
        let later = room(&mut schedule, 1 << 50, lane::EACH_SLOT, lane::STOPS_ANY);
        assert_eq!(later, 1 << 50, "a long jump is one step");
    }

    #[test]
    fn tags_stop_only_branches() {
        let mut schedule = Schedule::new([4, 4, 4, 1]);
        schedule.take(lane::TAG);
        schedule.release(30, lane::TAG);
        assert_eq!(room(&mut schedule, 2, lane::EACH_SLOT, lane::STOPS_ANY), 2);
        let mut waits = [0; lane::COUNT];
        let cycle = schedule.room(2, 4 * lane::EACH_SLOT, lane::STOPS_BRANCH, &mut waits);
        assert_eq!((cycle, waits), (30, [0, 0, 0, 28]));
    }
}
