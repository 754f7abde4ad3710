//! When the loops have to leave their fast paths, and what they have to do then.

/// Bits of [`Deadlines::after`]: what is left to do once the instruction has retired.
pub(crate) mod after {
    /// The privilege changed.
    pub(crate) const PRIVILEGE: u16 = 1;
    /// Translations changed.
    pub(crate) const TRANSLATION: u16 = 2;
    /// `wfi` was executed.
    pub(crate) const WAIT: u16 = 4;
    /// An interrupt may have become pending or enabled.
    pub(crate) const INTERRUPTS: u16 = 8;
    /// A device register was accessed, or a watched page written.
    pub(crate) const DEVICE: u16 = 16;
    /// A region trigger was executed, and the run shall end there.
    pub(crate) const REGION: u16 = 32;
    /// The run ends for the debugger.
    pub(crate) const DEBUG: u16 = 64;
    /// Exceptions repeat themselves without end, and the run ends for that.
    pub(crate) const STUCK: u16 = 128;
    /// A trap was taken that freezes the control transfer records.
    pub(crate) const FREEZE: u16 = 256;
}

/// How cycles follow from the count of an untimed run, [`Progress::count`](super::arch::Progress::count): one for each by default, or as
/// many as a model that keeps caches warm takes the instructions to need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// A count, and the cycle at it in units of 2^-16.
    at: (u64, u128),
    /// Cycles for each count, in units of 2^-16.
    rate: u64,
}

impl Pace {
    /// One cycle for each count.
    pub(crate) const PLAIN: Self = Self { at: (0, 0), rate: CYCLE };

    /// Returns a pace of `rate` cycles for each count, in units of 2^-16, from `count` in `cycle` on.
    pub(crate) fn new(count: u64, cycle: u64, rate: u64) -> Self {
        Self { at: (count, u128::from(cycle) << CYCLE_BITS), rate: rate.max(1) }
    }

    /// Returns the pace that goes on from `count` in `cycle`.
    pub(crate) fn from(self, count: u64, cycle: u64) -> Self {
        Self::new(count, cycle, self.rate)
    }

    /// Returns the pace that goes on when the count changes from `count` to `renamed`, in the same exact fraction of a cycle.
    pub(crate) fn renamed(self, count: u64, renamed: u64) -> Self {
        Self { at: (renamed, self.exactly_at(count)), rate: self.rate }
    }

    /// Returns the pace that goes on so many cycles later.
    pub(crate) fn later(self, cycles: u64) -> Self {
        let (count, cycle) = self.at;
        Self { at: (count, cycle + (u128::from(cycles) << CYCLE_BITS)), ..self }
    }

    /// Returns whether the pace is of so many cycles for each count, in units of 2^-16.
    pub(crate) fn has_rate(self, rate: u64) -> bool {
        self.rate == rate.max(1)
    }

    /// Returns the cycle at a count from that of the start on, in units of 2^-16.
    fn exactly_at(&self, count: u64) -> u128 {
        let (from, cycle) = self.at;
        cycle + u128::from(count.wrapping_sub(from)) * u128::from(self.rate)
    }

    /// Returns the cycle at a count from that of the start on.
    pub(crate) fn cycle_at(&self, count: u64) -> u64 {
        (self.exactly_at(count) >> CYCLE_BITS) as u64
    }

    /// Returns the first count at which a cycle has come.
    pub(crate) fn count_at(&self, cycle: u64) -> u64 {
        let (count, from) = self.at;
        let rest = (u128::from(cycle) << CYCLE_BITS).saturating_sub(from);
        let counts = rest.div_ceil(u128::from(self.rate));
        count.saturating_add(u64::try_from(counts).unwrap_or(u64::MAX))
    }
}

/// Log2 of [`CYCLE`].
const CYCLE_BITS: u32 = 16;
/// One cycle, in units of [`Pace`]'s rate.
const CYCLE: u64 = 1 << CYCLE_BITS;

/// What a hart's loops compare with their count and cycle, and what the last instruction left to do.
pub(crate) struct Deadlines {
    /// Cycle in which a timed loop leaves its fast path, or count at which an untimed loop does; 0 as long as effects in [`Self::after`] are left to
    /// do.
    pub check_at: u64,
    /// Cycle of the next event that is known in advance; [`Self::check_at`] may come earlier.
    pub due: u64,
    /// Value of [`Progress::count`](super::arch::Progress::count) at which the run ends.
    pub stop_count: u64,
    /// Cycle at which the run ends.
    pub stop_cycle: u64,
    /// How cycles follow from counts in an untimed run.
    pub pace: Pace,
    /// Effects that are left to do before the next instruction, as bits of [`after`].
    pub after: u16,
    /// Number of the last [`Mark`](super::Mark) at which a run had to end.
    pub last_mark: u8,
    /// Cycle before which no counter overflows.
    pub counters_due: u64,
    /// Cycle at which `time` reaches `stimecmp`.
    pub stimer_at: u64,
}

// What is not saved is worked out when a run begins.
snapshot::snapshot!(Deadlines { due, after, last_mark, counters_due, stimer_at } keeps {
    check_at,
    stop_count,
    stop_cycle,
    pace
});

impl Deadlines {
    /// Returns the deadlines after reset: nothing is scheduled.
    pub(crate) fn new() -> Self {
        Self {
            check_at: 0,
            due: 0,
            stop_count: 0,
            stop_cycle: 0,
            pace: Pace::PLAIN,
            after: 0,
            last_mark: 0,
            counters_due: u64::MAX,
            stimer_at: u64::MAX,
        }
    }

    /// Asks for effects, bits of [`after`], to be carried out before the next instruction.
    pub(crate) fn afterwards(&mut self, what: u16) {
        self.after |= what;
        self.check_at = 0;
    }

    /// Sets when the loop has to leave its fast path next.
    pub(crate) fn arm(&mut self, timed: bool) {
        self.check_at = match (self.after, timed) {
            (0, true) => self.due,
            (0, false) => self.pace.count_at(self.due.min(self.stop_cycle)).min(self.stop_count),
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_comes_with_the_first_count_that_reaches_it() {
        for rate in [CYCLE / 3, CYCLE - 1, CYCLE, CYCLE + 1, 40 * CYCLE / 7] {
            let pace = Pace::new(1000, 50, rate);
            for cycle in 50..300 {
                let count = pace.count_at(cycle);
                assert!(pace.cycle_at(count) >= cycle, "{rate} {cycle}");
                assert!(count == 1000 || pace.cycle_at(count - 1) < cycle, "{rate} {cycle}");
            }
        }
        assert_eq!((Pace::PLAIN.count_at(u64::MAX), Pace::PLAIN.cycle_at(7)), (u64::MAX, 7));
        assert_eq!(Pace::new(1000, 50, 1).count_at(u64::MAX), u64::MAX);
        assert_eq!(Pace::new(1000, 50, CYCLE).count_at(10), 1000, "it is past");
    }

    #[test]
    fn what_is_left_to_do_comes_before_what_is_due() {
        let mut deadlines = Deadlines::new();
        (deadlines.due, deadlines.stop_count, deadlines.stop_cycle) = (30, 20, 40);
        deadlines.arm(false);
        assert_eq!(deadlines.check_at, 20, "an untimed run ends by the loop's check");
        deadlines.arm(true);
        assert_eq!(deadlines.check_at, 30, "a timed one looks at its end by itself");
        deadlines.afterwards(after::DEVICE);
        assert_eq!(deadlines.check_at, 0);
        deadlines.arm(true);
        assert_eq!(deadlines.check_at, 0, "until nothing is left to do");
    }
}
