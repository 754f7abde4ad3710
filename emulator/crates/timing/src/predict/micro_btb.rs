//! The micro BTB: fully associative, answers in F1 (`ifu/bpd/faubtb.scala`).

use super::{Known, Place, saturate};

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
}

/// One slot of one bank.
#[derive(Clone)]
struct Column {
    index: [u8; INDEX],
    ways: [Entry; WAYS],
}

/// Both banks.
pub(super) struct MicroBtb {
    columns: Box<[[Column; 4]; 2]>,
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
        let bank = || [column(), column(), column(), column()];
        Self {
            columns: Box::new([bank(), bank()]),
            fold: [0; 2],
            mask: (ways.clamp(1, WAYS as u32) - 1) as u8,
            on: ways != 0,
        }
    }

    #[inline(always)]
    pub fn find(&self, at: Place) -> Known {
        let column = &self.columns[at.bank & 1][at.slot & 3];
        let way = column.index[at.block as usize % INDEX];
        let entry = column.ways[usize::from(way) % WAYS];
        let hit = entry.tag == at.block.wrapping_add(1);
        Known {
            hit,
            conditional: entry.conditional,
            taken: hit & (!entry.conditional | (entry.counter >= 2)),
            target: entry.target,
            way,
        }
    }

    /// A new branch goes where a hash of all tags says. Not modelled: that branches of one block share
    /// a way.
    #[inline(always)]
    pub fn train(&mut self, at: Place, found: Known, conditional: bool, taken: bool, target: u64) {
        let column = &mut self.columns[at.bank & 1][at.slot & 3];
        let same = (found.conditional == conditional) & (!taken | (found.target == target as u32));
        if found.hit & same {
            let entry = &mut column.ways[usize::from(found.way) % WAYS];
            entry.counter = saturate(entry.counter, taken);
        } else if self.on {
            self.write(at, found, conditional, taken, target);
        }
    }

    #[inline(never)]
    fn write(&mut self, at: Place, found: Known, conditional: bool, taken: bool, target: u64) {
        let fold = &mut self.fold[at.bank & 1];
        let way = if found.hit {
            found.way
        } else {
            (*fold ^ folded(at.block)) & self.mask
        };
        let column = &mut self.columns[at.bank & 1][at.slot & 3];
        let entry = &mut column.ways[usize::from(way) % WAYS];
        if found.hit {
            entry.counter = saturate(entry.counter, taken);
        } else {
            *fold ^= folded(entry.tag.wrapping_sub(1)) ^ folded(at.block);
            entry.tag = at.block.wrapping_add(1);
            entry.counter = if taken { 3 } else { 0 };
            column.index[at.block as usize % INDEX] = way;
        }
        entry.conditional = conditional;
        if taken {
            let pc = u64::from(at.block) << 4 | (at.bank as u64) << 3 | (at.slot as u64) << 1;
            let far = (target.wrapping_sub(pc) as i64) << 28 >> (28 + OFFSET_BITS - 1);
            // A target out of reach is stored truncated: the entry predicts a wrong address.
            entry.target = if far == 0 || far == -1 {
                target as u32
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
