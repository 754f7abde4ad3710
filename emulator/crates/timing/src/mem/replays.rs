//! Stores that wait in a miss register for their line (the replay queue, `lsu/mshrs.scala`), with several harts.
//!
//! With one hart, what all lines' stores have together is counted instead ([`super::store_data`]). A line
//! that travels between harts makes stores wait again and again, and then it is this queue's size that decides how much
//! of it is hidden.

/// Stores that one line's queue holds (`nRPQ` of Rocket's `DCacheParams`; all lines together have 17, `nSDQ`).
const QUEUE: u32 = 16;
/// Lines remembered: at least as many as there are miss registers.
const LINES: usize = 16;

#[derive(Clone, Copy, Default)]
struct Replay {
    line: u64,
    /// Cycle in which the line arrives.
    until: u64,
    stores: u32,
}

snapshot::snapshot!(Replay { line, until, stores });

/// Replay queues of the L1D miss registers, one entry per missing line.
#[derive(Default)]
pub(crate) struct Replays([Replay; LINES]);

snapshot::snapshot!(Replays(0));

impl Replays {
    /// Adds a store that misses: it and others wait until cycle `until`.
    pub(super) fn start(&mut self, line: u64, until: u64) {
        self.0[line as usize % LINES] = Replay { line, until, stores: 1 };
    }

    /// Returns the cycle in which a store joins those that wait for its line in cycle `cycle`, or writes if they are
    /// too many; `None`: none waits.
    pub(super) fn join(&mut self, line: u64, cycle: u64) -> Option<u64> {
        let replay = &mut self.0[line as usize % LINES];
        if replay.line != line || replay.until <= cycle {
            return None;
        }
        if replay.stores == QUEUE {
            return Some(replay.until);
        }
        replay.stores += 1;
        Some(cycle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_holds_stores_back() {
        let mut replays = Replays::default();
        assert_eq!(replays.join(5, 10), None);
        replays.start(5, 100);
        for cycle in 11..26 {
            assert_eq!(replays.join(5, cycle), Some(cycle));
        }
        assert_eq!(replays.join(5, 26), Some(100));
        assert_eq!(replays.join(5, 100), None);
        assert_eq!(replays.join(6, 26), None);
    }
}
