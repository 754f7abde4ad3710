//! When the loops have to leave their fast paths, and what they have to do then.

/// Bits of [`Deadlines::after`]: what is left to do once the instruction has retired.
pub(crate) mod after {
    /// The privilege changed.
    pub const PRIVILEGE: u16 = 1;
    /// Translations changed.
    pub const TRANSLATION: u16 = 2;
    /// `wfi` was executed.
    pub const WAIT: u16 = 4;
    /// An interrupt may have become pending or enabled.
    pub const INTERRUPTS: u16 = 8;
    /// A device register was accessed, or a watched page written.
    pub const DEVICE: u16 = 16;
    /// A region trigger was executed, and the run shall end there.
    pub const REGION: u16 = 32;
    /// The run ends for the debugger.
    pub const DEBUG: u16 = 64;
    /// Exceptions repeat themselves without end, and the run ends for that.
    pub const STUCK: u16 = 128;
    /// A trap was taken that freezes the control transfer records.
    pub const FREEZE: u16 = 256;
}

/// What a hart's loops compare with their count and cycle, and what the last instruction left to do.
pub(crate) struct Deadlines {
    /// Cycle in which the loop leaves its fast path; 0 as long as something of [`Self::after`] is to be done.
    pub check_at: u64,
    /// Cycle of the next thing that is known to happen; [`Self::check_at`] may be earlier.
    pub due: u64,
    /// Value of [`Progress::count`](super::arch::Progress::count) at which the run ends.
    pub stop_count: u64,
    /// Cycle at which the run ends.
    pub stop_cycle: u64,
    /// Effects that are left to do before the next instruction, as bits of [`after`].
    pub after: u16,
    /// Number of the last [`Mark`](super::Mark) at which a run had to end.
    pub last_mark: u8,
    /// Cycle before which no counter overflows.
    pub counters_due: u64,
    /// Cycle at which `time` reaches `stimecmp`.
    pub stimer_at: u64,
}

// The others are worked out when a run begins.
snapshot::snapshot!(Deadlines { due, after, last_mark, counters_due, stimer_at } keeps {
    check_at,
    stop_count,
    stop_cycle
});

impl Deadlines {
    /// Returns the deadlines after reset: nothing is scheduled.
    pub fn new() -> Self {
        Self {
            check_at: 0,
            due: 0,
            stop_count: 0,
            stop_cycle: 0,
            after: 0,
            last_mark: 0,
            counters_due: u64::MAX,
            stimer_at: u64::MAX,
        }
    }

    /// Asks for effects, bits of [`after`], to be carried out before the next instruction.
    pub fn afterwards(&mut self, what: u16) {
        self.after |= what;
        self.check_at = 0;
    }

    /// Sets when the loop has to leave its fast path next.
    pub fn arm(&mut self, timed: bool) {
        self.check_at = match (self.after, timed) {
            (0, true) => self.due,
            (0, false) => self.due.min(self.stop_count).min(self.stop_cycle),
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
