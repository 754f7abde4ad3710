//! The micro BTB: fully associative, answers in F1 (`ifu/bpd/faubtb.scala`).

use super::{COLUMNS, Known, Place, Taught, saturate};

const WAYS: usize = 16;
/// Signed bits of a target's distance (`BoomFAMicroBTBParams.offsetSz`).
const OFFSET_BITS: u32 = 13;
/// Entries of the index that finds a block's way without comparing all tags. Two blocks of the array that
/// share an index entry hide the older one: with 16 ways, rarely.
const INDEX: usize = 128;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// The block's number plus one; 0: empty.
    tag: u32,
    target: u32,
    conditional: bool,
    counter: u8,
    /// The BTB has the branch too, and knows the same of it.
    settled: bool,
}

/// One slot of one bank.
#[derive(Clone)]
struct Column {
    index: [u8; INDEX],
    ways: [Entry; WAYS],
}

/// Both banks.
pub(super) struct MicroBtb {
    columns: Box<[Column; COLUMNS]>,
    /// Per bank all tags, folded to four bits by exclusive or.
    fold: [u8; 2],
    /// Ways less one.
    mask: u8,
    on: bool,
}

impl MicroBtb {
    pub fn new(ways: u32) -> Self {
        let column = || Column {
            index: [0; INDEX],
            ways: [Entry::default(); WAYS],
        };
        Self {
            columns: Box::new(std::array::from_fn(|_| column())),
            fold: [0; 2],
            mask: (ways.clamp(1, WAYS as u32) - 1) as u8,
            on: ways != 0,
        }
    }

    #[inline(always)]
    fn entry(&self, at: Place) -> (u8, &Entry) {
        let column = &self.columns[at.column()];
        let way = column.index[at.block() as usize % INDEX];
        (way, &column.ways[usize::from(way) % WAYS])
    }

    #[inline(always)]
    fn entry_mut(&mut self, at: Place, way: u8) -> &mut Entry {
        &mut self.columns[at.column()].ways[usize::from(way) % WAYS]
    }

    /// The entry's counter, if it and the BTB's say of the branch what is true.
    #[inline(always)]
    pub fn settled(&mut self, at: Place, branch: &Taught) -> Option<&mut u8> {
        let (way, entry) = self.entry(at);
        let known = (entry.tag == at.block().wrapping_add(1))
            & (entry.conditional == branch.conditional)
            & (!branch.taken | (entry.target == branch.target))
            & entry.settled;
        known.then(|| &mut self.entry_mut(at, way).counter)
    }

    pub fn find(&self, at: Place) -> Known {
        let (way, entry) = self.entry(at);
        Known {
            hit: entry.tag == at.block().wrapping_add(1),
            conditional: entry.conditional,
            strong: entry.counter >= 2,
            target: entry.target,
            way,
        }
    }

    /// Trains an entry that says of the branch what is true.
    pub fn confirm(&mut self, at: Place, found: Known, taken: bool) {
        let entry = self.entry_mut(at, found.way);
        entry.counter = saturate(entry.counter, taken);
    }

    /// Notes that the BTB's entry says the same as this one, or no longer.
    pub fn settle(&mut self, at: Place, settled: bool) {
        let (way, entry) = self.entry(at);
        if entry.tag == at.block().wrapping_add(1) {
            self.entry_mut(at, way).settled = settled;
        }
    }

    /// Writes a branch of which it knew nothing, or something else. A new one goes where a hash of all tags
    /// says. Not modelled: that branches of one block share a way.
    pub fn write(&mut self, at: Place, found: Known, branch: &Taught) {
        if !self.on {
            return;
        }
        let fold = &mut self.fold[at.bank()];
        let way = if found.hit {
            found.way
        } else {
            (*fold ^ folded(at.block())) & self.mask
        };
        let column = &mut self.columns[at.column()];
        let entry = &mut column.ways[usize::from(way) % WAYS];
        if found.hit {
            entry.counter = saturate(entry.counter, branch.taken);
        } else {
            *fold ^= folded(entry.tag.wrapping_sub(1)) ^ folded(at.block());
            entry.tag = at.block().wrapping_add(1);
            entry.counter = if branch.taken { 3 } else { 0 };
            column.index[at.block() as usize % INDEX] = way;
        }
        entry.settled = false;
        entry.conditional = branch.conditional;
        if branch.taken {
            // The low halves tell how far it is: no target is further than 2 GiB.
            let far = (branch.target.wrapping_sub(at.pc()) as i32) >> (OFFSET_BITS - 1);
            // A target out of reach is stored truncated: the entry predicts a wrong address.
            entry.target = if far == 0 || far == -1 {
                branch.target
            } else {
                u32::MAX
            };
        }
    }
}

/// A block's number folded to four bits.
#[inline(always)]
fn folded(block: u32) -> u8 {
    let x = block ^ block >> 16;
    let x = x ^ x >> 8;
    ((x ^ x >> 4) & 15) as u8
}
