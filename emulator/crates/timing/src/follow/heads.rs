//! What the oldest instruction waited for, as far back as decode can ask.

use commit_trace::{CommitRecord, CycleClass};

/// Cycles in which nothing left the ROB: after cycle `before`, and before cycle `commit`, in which something did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall {
    pub before: u64,
    pub commit: u64,
    /// What the instruction that leaves in `commit` waited for: a [`CycleClass`].
    pub class: u8,
}

snapshot::snapshot!(Stall { before, commit, class });

/// The last stalls of the ROB's head.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The last stalls, each at its number modulo the length, which is a power of two.
    ring: Vec<Stall>,
    /// Number of the oldest stall that may still be asked for.
    first: usize,
    /// Number of the next stall.
    next: usize,
    /// Cycle in which the last instruction left, as far as is known.
    committed: u64,
    /// How many records of the batch are known.
    known: usize,
}

snapshot::snapshot!(Heads { ring, first, next, committed, known });

impl Heads {
    /// Returns an empty list with room for the stalls of a ROB of `entries` entries and a decode stage of `width`. Who
    /// asks for the cycles since the last group was decoded asks for stalls of instructions that were in the ROB or in
    /// decode then.
    pub(super) fn new(entries: u32, width: u32, committed: u64) -> Self {
        let stalls = (entries + 2 * width).next_power_of_two();
        Self {
            ring: vec![Stall::default(); stalls as usize],
            first: 0,
            next: 0,
            committed,
            known: 0,
        }
    }

    /// Notes the stalls in `records`, the records of the batch so far.
    #[inline]
    pub(super) fn learn(&mut self, records: &[CommitRecord]) {
        for record in records.get(self.known..).unwrap_or(&[]) {
            let before = self.committed;
            self.committed += u64::from(record.commit_delta);
            if record.commit_delta > 1 {
                self.push(before, record.class());
            }
        }
        self.known = records.len();
    }

    /// Notes the stalls in `records`, which are all records of the batch.
    pub(super) fn sent(&mut self, records: &[CommitRecord]) {
        self.learn(records);
        self.known = 0;
    }

    /// Notes that nothing leaves up to cycle `to`: the core sleeps.
    pub(super) fn sleep(&mut self, to: u64) {
        self.committed = to;
    }

    /// Returns the cycle in which the last instruction left.
    pub(super) fn committed(&self) -> u64 {
        self.committed
    }

    /// Adds the stall from after cycle `before` to the last commit, which had to wait for `class`.
    #[inline]
    fn push(&mut self, before: u64, class: CycleClass) {
        let mask = self.ring.len().wrapping_sub(1);
        if let Some(place) = self.ring.get_mut(self.next & mask) {
            *place = Stall { before, commit: self.committed, class: class as u8 };
            self.next += 1;
        }
    }

    /// Returns the first stall that ends after cycle `cycle`. Cycles are asked for in order.
    #[inline(always)]
    pub(super) fn after(&mut self, cycle: u64) -> Option<Stall> {
        let size = self.ring.len();
        self.first = self.first.max(self.next.saturating_sub(size));
        while self.first != self.next {
            let stall = *self.ring.get(self.first & size.wrapping_sub(1))?;
            if stall.commit > cycle {
                return Some(stall);
            }
            self.first += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use commit_trace::InstId;

    use super::*;

    #[test]
    fn the_last_ones_are_known() {
        let mut heads = Heads::new(2, 1, 5);
        assert_eq!(heads.after(0).map(|stall| stall.commit), None);
        let record = |delta| CommitRecord::from_packed(InstId(0), delta, 0, 0);
        let records = [5, 1, 9, 0, 10, 10, 10].map(record);
        heads.learn(&records[..2]);
        heads.sent(&records);
        let after = |cycle| heads.after(cycle).map(|stall| stall.commit);
        let found = [0, 20, 29, 30, 40, 49, 50].map(after);
        let expected = [20, 30, 30, 40, 50, 50].map(Some);
        assert_eq!((&found[..6], found[6]), (&expected[..], None));
    }
}
