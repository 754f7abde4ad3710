//! Training that waits. Hardware trains with a packet when the first instruction of the next one has committed
//! (`ifu/fetch-target-queue.scala:274`), which is some packets later on.
//!
//! The path knows no cycles: its clock is packets. The RTL trains a median of 17 to 20 cycles after a packet was
//! fetched (`tokens`, `dijkstra`), at the earliest 11 from the next one's fetch to its first commit and 3 to the
//! tables. Between branches a packet takes about two cycles; a mispredicted branch holds fetch back for 11 more. Not
//! modelled: an instruction that waits holds training back further.

/// Packets from the one after a branch to the first that knows of the branch's outcome.
const TRAINS: u64 = 7;
/// Packets that could have been fetched while a mispredicted branch was not known to be one.
const REFILL: u64 = 6;

/// Where the path is, in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    packets: u64,
    /// Last packet that is trained with, if the pipeline tells; if not, it is estimated.
    told: Option<u64>,
}

snapshot::snapshot!(Clock { packets, told });

impl Clock {
    /// Passes on by so many packets, which start.
    #[inline(always)]
    pub(super) fn packets(&mut self, count: u64) {
        self.packets += count;
    }

    /// Notes that the pipeline trains with all packets so far but the last one, and `untrained` before that; `None`: it does not tell any more.
    pub(super) fn told(&mut self, untrained: Option<u64>) {
        self.told = untrained.map(|untrained| self.packets.saturating_sub(1 + untrained));
    }

    /// Notes that the packet ended in a misprediction.
    #[inline(always)]
    pub(super) fn missed(&mut self) {
        if self.told.is_none() {
            self.packets += REFILL;
        }
    }

    /// Returns the packet at which the branch that was predicted last is trained with.
    pub(super) fn trains(self) -> u64 {
        match self.told {
            Some(_) => self.packets,
            None => self.packets + 1 + TRAINS,
        }
    }

    /// Returns the number up to which what waits for [`Self::trains`] is learnt.
    #[inline(always)]
    pub(super) fn learns(self) -> u64 {
        self.told.unwrap_or(self.packets)
    }

    /// Returns the last packet that is trained with by now.
    pub(super) fn trained(self) -> Option<u64> {
        self.told.or_else(|| self.packets.checked_sub(1 + TRAINS))
    }

    /// Returns the packets so far.
    #[inline(always)]
    pub(super) fn now(self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_fetched_counts() {
        let mut clock = Clock::default();
        let first = clock.trains();
        clock.missed();
        let second = clock.trains();
        let mut waits = |due| {
            let mut packets = 0;
            while clock.now() < due {
                clock.packets(1);
                packets += 1;
            }
            packets
        };
        // The refill is over for the branch before the mispredicted one, too.
        assert_eq!((waits(first), waits(second)), (2, 6));
    }
}
