//! The loop predictor (`ifu/bpd/loop.scala`): flips the prediction in the iteration in which a loop left
//! the last times.

use super::{COLUMNS, FetchSlot};

const SETS: usize = 16;
const TAG_MASK: u32 = 0x3ff;
const CONFIDENT: u8 = 7;
const COUNT_MASK: u16 = 0x3ff;

#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u16,
    confidence: u8,
    age: u8,
    /// Iterations of the loop when it was left last.
    past: u16,
    /// Iterations of the loop so far.
    so_far: u16,
}

/// The loop predictor, both banks.
pub(super) struct Loops {
    entries: Box<[Entry; SETS * COLUMNS]>,
}

snapshot::snapshot!(Loops { entries });

impl Loops {
    pub(super) fn new() -> Self {
        Self { entries: Box::new([Entry::default(); SETS * COLUMNS]) }
    }

    /// Returns the entry that a branch may have, and the branch's tag.
    #[inline(always)]
    fn entry(&mut self, at: FetchSlot) -> (&mut Entry, u16) {
        let tag = ((at.block() / SETS as u32) & TAG_MASK) as u16;
        (&mut self.entries[at.index() % (SETS * COLUMNS)], tag)
    }

    /// Returns the iterations that were counted in the entry that a branch may have.
    pub(super) fn iterations(&self, at: FetchSlot) -> u16 {
        self.entries[at.index() % (SETS * COLUMNS)].so_far
    }

    /// Trains with a branch that had so many iterations as it was predicted, and after which, in the same bank of its packet, another one was mispredicted: hardware
    /// trains all branches of the bank alike (`update_mispredict`).
    pub(super) fn missed_beside(&mut self, at: FetchSlot, iterations: u16) {
        let (entry, tag) = self.entry(at);
        entry.mispredicted(tag, iterations);
    }

    /// Returns the direction, given what TAGE says; then trains with the outcome. Iterations are counted of a branch
    /// that F2 knew (`f3_req_fire`).
    #[inline(always)]
    pub(super) fn branch(
        &mut self,
        at: FetchSlot,
        known: bool,
        predicted: bool,
        taken: bool,
    ) -> bool {
        let (entry, tag) = self.entry(at);
        let count = entry.so_far;
        let mut direction = predicted;
        if entry.tag == tag {
            let exits = count == entry.past && entry.confidence == CONFIDENT;
            direction ^= exits;
            if !known {
                // The iteration is not counted.
            } else if exits {
                entry.age = CONFIDENT;
                entry.so_far = 0;
            } else {
                entry.so_far = (count + 1) & COUNT_MASK;
                entry.age = (entry.age + 1).min(CONFIDENT);
            }
        }
        if direction != taken {
            entry.mispredicted(tag, count);
        }
        direction
    }
}

snapshot::snapshot!(Entry { tag, confidence, age, past, so_far });

impl Entry {
    /// Trains with a misprediction; `count` is how far the loop had come when it was predicted.
    #[cold]
    fn mispredicted(&mut self, tag: u16, count: u16) {
        let same = self.tag == tag;
        let (known, matches) = (self.confidence != 0, self.past == count);
        if self.confidence == CONFIDENT {
            if same {
                self.so_far = 0;
                self.confidence = 0;
            }
        } else if same {
            self.so_far = 0;
            if matches {
                self.confidence += 1;
            } else {
                self.confidence = 0;
                self.past = count;
            }
            if !known {
                self.age = CONFIDENT;
            }
        } else if known && self.age != 0 {
            self.age -= 1;
        } else {
            let age = if known { self.age } else { CONFIDENT };
            *self = Self { tag, confidence: 1, age, past: count, so_far: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_a_fixed_trip_count() {
        let mut loops = Loops::new();
        let at = FetchSlot::new(0x8000_1230);
        let mut wrong_late = 0;
        for round in 0..40 {
            for i in 0..25 {
                let taken = i != 24;
                if loops.branch(at, true, true, taken) != taken && round >= 20 {
                    wrong_late += 1;
                }
            }
        }
        assert_eq!(wrong_late, 0);
    }

    #[test]
    fn iterations_of_a_branch_that_f2_does_not_know_are_not_counted() {
        let at = FetchSlot::new(0x8000_1230);
        let past = |known| {
            let mut loops = Loops::new();
            for i in 0..26 {
                loops.branch(at, known || i == 0, true, i % 25 != 0);
            }
            loops.entries[at.index() % (SETS * COLUMNS)].past
        };
        assert_eq!((past(true), past(false)), (24, 0));
    }
}
