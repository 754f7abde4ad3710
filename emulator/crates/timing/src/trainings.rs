//! When the predictor is trained with a packet, for one that learns at commit.

use std::collections::VecDeque;

use crate::Preset;

/// Cycles from the commit of a packet's first instruction to the first fetch that knows what the packet before taught: the fetch target
/// queue goes on, its entry is read, passes the predictor's update stages, and is written (`ifu/fetch-target-queue.scala`, `ifu/bpd/*`).
const TRAINS: u64 = 4;

/// The trainings to come.
#[derive(Debug, Default)]
pub(crate) struct Trainings {
    /// By packet: the first cycle in which fetch knows of the packet before. Without those that are over.
    due: VecDeque<u64>,
    /// The instruction that is executed by itself starts a packet.
    pub starts: bool,
    are_asked: bool,
    /// First cycle in which fetch knows of a training after the last repair.
    free: u64,
    /// The branch or jump that was executed last is mispredicted: cycles of the fetch of its packet, and in which that is known.
    pub missed: Option<(u64, u64)>,
}

// Nothing is executed by itself between runs.
snapshot::snapshot!(Trainings { due, free } keeps { starts, are_asked, missed });

impl Trainings {
    pub(crate) fn new(preset: &Preset) -> Self {
        Self { are_asked: preset.predictor.at_commit, ..Self::default() }
    }

    /// Returns whether the path asks.
    #[inline(always)]
    pub(crate) fn are_asked(&self) -> bool {
        self.are_asked
    }

    /// Notes that the first instruction of a packet commits in `cycle`.
    pub(crate) fn committed(&mut self, cycle: u64) {
        if self.are_asked {
            // The tables are written for one packet a cycle.
            let next = self.due.back().map_or(0, |due| due + 1).max(self.free);
            self.due.push_back(next.max(cycle + TRAINS));
        }
    }

    /// Notes a misprediction that is known in `cycle`. Training waits until the predictors are repaired, packet by packet
    /// (`ifu/fetch-target-queue.scala:236`).
    pub(crate) fn mispredicted(&mut self, cycle: u64, packets: u64) {
        // Redirect, the cycle after, the update of the mispredicted packet; then a packet a cycle.
        let (from, mut next) = (cycle + TRAINS - 1, cycle + TRAINS - 1 + 3 + packets);
        self.free = next;
        for due in self.due.iter_mut().filter(|due| **due >= from) {
            *due = next.max(*due);
            next = *due + 1;
        }
    }

    /// Returns how many trainings with packets before the last one are to come when a packet is fetched in `cycle`.
    pub(crate) fn left(&mut self, cycle: u64) -> u64 {
        while self.due.front().is_some_and(|&due| due <= cycle) {
            self.due.pop_front();
        }
        self.due.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Trainings {
        Trainings { are_asked: true, ..Trainings::default() }
    }

    #[test]
    fn fetch_knows_of_a_packet_four_cycles_after_the_next_one_commits() {
        let mut trainings = asked();
        trainings.committed(100);
        trainings.committed(120);
        assert_eq!([103, 104, 123, 124].map(|cycle| trainings.left(cycle)), [2, 1, 1, 0]);
    }

    #[test]
    fn one_packet_is_trained_with_in_a_cycle() {
        let mut trainings = asked();
        (0..3).for_each(|_| trainings.committed(100));
        assert_eq!([104, 105, 106].map(|cycle| trainings.left(cycle)), [2, 1, 0]);
    }

    #[test]
    fn training_waits_for_the_repair_after_a_misprediction() {
        let mut trainings = asked();
        for cycle in [96, 100, 101] {
            trainings.committed(cycle);
        }
        // Known in cycle 100, with five packets of the wrong path: those that would be read from then on come after 3 cycles and 5 packets.
        trainings.mispredicted(100, 5);
        trainings.committed(102);
        let cycles = [100, 110, 111, 112, 113];
        assert_eq!(cycles.map(|cycle| trainings.left(cycle)), [3, 3, 2, 1, 0]);
    }
}
