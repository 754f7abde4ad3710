//! The micro BTB: fully associative, answers in F1 (`ifu/bpd/faubtb.scala`).

use std::collections::VecDeque;

use super::{BranchOutcome, COLUMNS, FetchSlot, Known, saturate};

const WAYS: usize = 16;
/// Signed bits of a target's distance (`BoomFAMicroBTBParams.offsetSz`).
const OFFSET_BITS: u32 = 13;
/// Entries of the index that finds a block's way without comparing all tags. Two blocks of the array that
/// share an index entry hide the older one: with 16 ways, rarely.
const INDEX: usize = 128;
/// Writes that can be waiting for their branch's commit: about as many as packets can be in flight.
const LATE: usize = 32;
/// Bound, in cycles, of how much later than a write the branch of another entry can commit. `Entry::trained` holds low halves of cycles, which come
/// round every 4 billion cycles: if the difference is larger, the entry is old.
const MAX_COMMIT_LAG: u32 = 1 << 24;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// The block's number plus one; 0: empty.
    tag: u32,
    target: u32,
    conditional: bool,
    counter: u8,
    /// The low half of the cycle in which the branch that was predicted last by this entry trains it.
    trained: u32,
}

snapshot::snapshot!(Entry { tag, target, conditional, counter, trained });

/// A write to come: the way was chosen when the branch was predicted, the entry is written when it commits.
#[derive(Clone, Copy, Default)]
struct Late {
    cycle: u64,
    at: FetchSlot,
    way: u8,
    /// The way holds the branch already.
    hit: bool,
    branch: BranchOutcome,
}

snapshot::snapshot!(Late { cycle, at, way, hit, branch });

/// One slot of one bank.
#[derive(Clone)]
struct Column {
    index: [u8; INDEX],
    ways: [Entry; WAYS],
}

snapshot::snapshot!(Column { index, ways });

/// The micro BTB, both banks.
pub(crate) struct MicroBtb {
    columns: Box<[Column; COLUMNS]>,
    /// Per bank all tags, folded to four bits by exclusive or.
    fold: [u8; 2],
    /// Number of ways less one.
    mask: u8,
    on: bool,
    late: VecDeque<Late>,
    /// Cycle of the first write of `late`; never, if there is none.
    next_late: u64,
}

snapshot::snapshot!(MicroBtb { columns, fold, late, next_late } keeps { mask, on });

impl MicroBtb {
    pub(crate) fn new(ways: u32) -> Self {
        let column = || Column { index: [0; INDEX], ways: [Entry::default(); WAYS] };
        Self {
            columns: Box::new(std::array::from_fn(|_| column())),
            fold: [0; 2],
            mask: (ways.clamp(1, WAYS as u32) - 1) as u8,
            on: ways != 0,
            late: VecDeque::with_capacity(LATE),
            next_late: u64::MAX,
        }
    }

    #[inline(always)]
    fn entry(&self, at: FetchSlot) -> (u8, &Entry) {
        let column = &self.columns[at.column()];
        let way = column.index[at.block() as usize % INDEX];
        (way, &column.ways[usize::from(way) % WAYS])
    }

    #[inline(always)]
    fn entry_mut(&mut self, at: FetchSlot, way: u8) -> &mut Entry {
        &mut self.columns[at.column()].ways[usize::from(way) % WAYS]
    }

    /// Returns what the micro BTB knows of a branch that is predicted in cycle `predicted`.
    #[inline(always)]
    pub(crate) fn predict(&mut self, at: FetchSlot, predicted: u64) -> Known {
        if self.next_late <= predicted {
            self.write_late(predicted);
        }
        self.find(at)
    }

    #[inline(always)]
    fn find(&self, at: FetchSlot) -> Known {
        let (way, entry) = self.entry(at);
        Known {
            hit: entry.tag == at.block().wrapping_add(1),
            conditional: entry.conditional,
            strong: entry.counter >= 2,
            target: entry.target,
            way,
        }
    }

    /// Trains an entry that says of the branch what is true, with its commit.
    #[inline(always)]
    pub(crate) fn confirm(&mut self, at: FetchSlot, found: Known, taken: bool, trained: u64) {
        let entry = self.entry_mut(at, found.way);
        entry.trained = trained as u32;
        entry.counter = saturate(entry.counter, taken);
    }

    /// Schedules the write of a branch of which the micro BTB knew nothing, or something wrong. A new branch goes to the way that holds other
    /// branches of its block and bank, or else to the way that a hash of all tags names.
    #[cold]
    #[inline(never)]
    pub(crate) fn write(
        &mut self,
        at: FetchSlot,
        found: Known,
        branch: &BranchOutcome,
        trained: u64,
    ) {
        if !self.on {
            return;
        }
        if self.late.len() == LATE {
            self.write_late(self.next_late);
        }
        let neighbours = at.bank_slots().map(|slot| self.find(slot));
        let shared = neighbours.filter(|known| known.hit).map(|known| known.way);
        let new = || (self.fold[at.bank()] ^ folded(at.block())) & self.mask;
        let way = match found.hit {
            true => found.way,
            false => shared.min().unwrap_or_else(new),
        };
        self.late.push_back(Late { cycle: trained, at, way, hit: found.hit, branch: *branch });
        self.next_late = self.next_late.min(trained);
    }

    /// Does the writes whose time has come.
    #[cold]
    #[inline(never)]
    fn write_late(&mut self, now: u64) {
        while let Some(&late) = self.late.front().filter(|late| late.cycle <= now) {
            self.write_now(&late);
            self.late.pop_front();
        }
        self.next_late = self.late.front().map_or(u64::MAX, |late| late.cycle);
    }

    fn write_now(&mut self, late: &Late) {
        let &Late { at, way, .. } = late;
        let (cycle, branch) = (late.cycle as u32, &late.branch);
        let column = &mut self.columns[at.column()];
        let entry = &mut column.ways[usize::from(way) % WAYS];
        let tag = at.block().wrapping_add(1);
        if late.hit {
            if entry.tag != tag {
                return;
            }
            entry.counter = saturate(entry.counter, branch.taken);
        } else {
            // A branch that was predicted by the entry in the way, and commits later, takes it back.
            let later = entry.trained.wrapping_sub(cycle);
            if entry.tag != tag && entry.tag != 0 && (1..MAX_COMMIT_LAG).contains(&later) {
                return;
            }
            self.fold[at.bank()] ^= folded(entry.tag.wrapping_sub(1)) ^ folded(at.block());
            entry.tag = tag;
            entry.counter = if branch.taken { 3 } else { 0 };
            column.index[at.block() as usize % INDEX] = way;
        }
        entry.trained = cycle;
        entry.conditional = branch.conditional;
        if branch.taken {
            // The low halves tell how far it is: no target is further than 2 GiB.
            let far = (branch.target.wrapping_sub(at.pc()) as i32) >> (OFFSET_BITS - 1);
            // A target out of reach is stored truncated: the entry predicts a wrong address.
            entry.target = if far == 0 || far == -1 { branch.target } else { u32::MAX };
        }
    }
}

/// Returns a block's number folded to four bits.
#[inline(always)]
fn folded(block: u32) -> u8 {
    let x = block ^ block >> 16;
    let x = x ^ x >> 8;
    ((x ^ x >> 4) & 15) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_learnt_in_whatever_cycle_a_core_begins() {
        let branch = BranchOutcome { conditional: false, taken: true, target: 0x1200 };
        let learn = |btb: &mut MicroBtb, pc: u64, cycle: u64| {
            let at = FetchSlot::new(pc);
            let found = btb.predict(at, cycle);
            btb.write(at, found, &branch, cycle + 20);
            btb.predict(at, cycle + 20).hit
        };
        // The low half of a cycle looks late from the second half of its round on.
        for start in [0, 3 << 30, (1 << 32) - 10_000, 5 << 30, 7 << 30] {
            let mut btb = MicroBtb::new(1);
            assert!(learn(&mut btb, 0x1000, start), "{start:#x}");
            // An entry that was not used for long gives way.
            assert!(learn(&mut btb, 0x1410, start + (3 << 30)), "{start:#x}");
            // A branch that commits before the one whose entry it would take leaves it there.
            let at = FetchSlot::new(0x1410);
            let found = btb.predict(at, start + (3 << 30) + 30);
            btb.confirm(at, found, true, start + (3 << 30) + 400);
            assert!(!learn(&mut btb, 0x1820, start + (3 << 30) + 100), "{start:#x}");
        }
    }
}
