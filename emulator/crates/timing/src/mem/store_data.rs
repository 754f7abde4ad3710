//! The data of stores that miss, which waits beside the miss registers until their lines are there (`sdq` in
//! `lsu/mshrs.scala:553`).
//!
//! The number of entries decides how many lines a stream of stores has in flight: two with stores of 8 bytes, one with
//! smaller ones.

use crate::ring::Ring;

/// Entries, for all lines together (`nSDQ` of Rocket's `DCacheParams`).
const ENTRIES: u32 = 17;
/// Cycles from the one in which a load of the line would be answered to the first store's replay: the line is committed
/// to the array in between.
pub(super) const REPLAY: u64 = 4;
/// A refused store is tried again every third cycle: in the one after its S2.
const RETRY: u64 = 3;

/// Number of cycles for which it is known whether a store is replayed: more than a line takes to arrive.
const SPAN: usize = 256;

/// Entries by the cycle from which they are free again.
pub(super) struct StoreData {
    entries: Ring,
    /// Cycle in which the last entry was taken.
    taken: u64,
    /// Cycle until which the last entry is taken, in which its store is replayed: replays go one a cycle.
    until: u64,
    /// Cycles with a replay, each at its place.
    replays: [u64; SPAN],
}

snapshot::snapshot!(StoreData { entries, taken, until, replays });

impl StoreData {
    pub(super) fn new() -> Self {
        Self { entries: Ring::new(ENTRIES), taken: 0, until: 0, replays: [0; SPAN] }
    }

    /// Returns true if a store is replayed in cycle `s2`: replays come first (`lsu/dcache.scala:499`).
    #[inline(always)]
    pub(super) fn is_replaying(&self, s2: u64) -> bool {
        s2 <= self.until && self.replays[s2 as usize % SPAN] == s2
    }

    /// Returns the first cycle from `s2` on in which no store is replayed.
    #[inline(always)]
    pub(super) fn after_replays(&self, s2: u64) -> u64 {
        let mut s2 = s2;
        while self.is_replaying(s2) {
            s2 += 1;
        }
        s2
    }

    /// Returns the cycle of a store's first successful try to enter, from `s2` on.
    pub(super) fn room(&self, s2: u64) -> u64 {
        let free = self.entries.available();
        let waits = self.after_replays(free.max(s2)) - s2;
        s2 + match free > s2 {
            true => waits.next_multiple_of(RETRY),
            false => waits,
        }
    }

    /// Adds the data of a store that enters in cycle `s2`, whose line a load would have in cycle `ready`.
    pub(super) fn take(&mut self, s2: u64, ready: u64) {
        self.until = (ready + REPLAY).max(s2 + 1).max(self.until + 1);
        self.replays[self.until as usize % SPAN] = self.until;
        self.taken = s2;
        self.entries.take(self.until);
    }

    /// Returns the first cycle from `s2` on in which the miss of anything but a store is accepted. No such miss is while all entries are taken.
    pub(super) fn accepts(&self, s2: u64) -> u64 {
        // A load may have missed before the last store did, which comes before it in program order.
        match s2 < self.taken {
            true => s2,
            false => self.after_replays(s2.max(self.entries.available())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_waits_until_those_of_a_line_are_replayed() {
        let mut data = StoreData::new();
        for s2 in 100..100 + u64::from(ENTRIES) {
            assert_eq!((data.room(s2), data.accepts(s2)), (s2, s2));
            data.take(s2, 200);
        }
        // A store is replayed in each cycle from 204 on, and nothing else goes meanwhile.
        let replayed = 204 + u64::from(ENTRIES);
        assert_eq!(data.room(117), 117 + 105, "in steps of three");
        assert_eq!((data.accepts(117), data.accepts(110)), (replayed, 110));
        assert_eq!((data.after_replays(203), data.after_replays(204)), (203, replayed));
        data.take(222, 300);
        assert_eq!(data.room(223), 223, "all others are gone");
    }
}
