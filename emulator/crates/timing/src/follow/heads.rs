//! What the oldest instruction waited for, as far back as decode can ask.

use commit_trace::{CommitRecord, CycleClass};

/// Cycles in which nothing left the ROB: after cycle `before`, and before cycle `commit`, in which something did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall {
    pub before: u64,
    pub commit: u64,
    /// What leaves in `commit` waited for that: a [`CycleClass`].
    pub class: u8,
}

snapshot::snapshot!(Stall {
    before,
    commit,
    class
});

/// The last stalls of the ROB's head.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// As many as there is room for: a power of two.
    ring: Vec<Stall>,
    /// Numbers of the oldest that may still be asked for, and of the next.
    first: usize,
    next: usize,
    /// Cycle in which the last instruction left that it knows of; how many of the batch it knows.
    committed: u64,
    known: usize,
}

snapshot::snapshot!(Heads {
    ring,
    first,
    next,
    committed,
    known
});

impl Heads {
    /// Those of a ROB of so many entries, and a decode stage of that width. Who asks for the cycles since the last group
    /// was decoded asks for stalls of instructions that were in the ROB or in decode then.
    pub fn new(entries: u32, width: u32, committed: u64) -> Self {
        let stalls = (entries + 2 * width).next_power_of_two();
        Self {
            ring: vec![Stall::default(); stalls as usize],
            first: 0,
            next: 0,
            committed,
            known: 0,
        }
    }

    /// These are the records of the batch so far.
    #[inline]
    pub fn learn(&mut self, records: &[CommitRecord]) {
        for record in records.get(self.known..).unwrap_or(&[]) {
            let before = self.committed;
            self.committed += u64::from(record.commit_delta);
            if record.commit_delta > 1 {
                self.push(before, record.class());
            }
        }
        self.known = records.len();
    }

    /// These are all the records of the batch.
    pub fn sent(&mut self, records: &[CommitRecord]) {
        self.learn(records);
        self.known = 0;
    }

    /// Nothing leaves up to cycle `to`: the core sleeps.
    pub fn sleep(&mut self, to: u64) {
        self.committed = to;
    }

    /// Cycle in which the last instruction left.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Nothing left after cycle `before`, as what left in the last cycle had to wait for `class`.
    #[inline]
    fn push(&mut self, before: u64, class: CycleClass) {
        let mask = self.ring.len().wrapping_sub(1);
        if let Some(place) = self.ring.get_mut(self.next & mask) {
            *place = Stall {
                before,
                commit: self.committed,
                class: class as u8,
            };
            self.next += 1;
        }
    }

    /// The first stall that is not over before cycle `cycle` is. Cycles are asked for in order.
    #[inline(always)]
    pub fn after(&mut self, cycle: u64) -> Option<Stall> {
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
