//! The micro BTB: fully associative, answers in F1 (`ifu/bpd/faubtb.scala`).

use super::{Found, Known, Place, saturate};

const WAYS: usize = 16;
/// Signed bits of a target's distance (`BoomFAMicroBTBParams.offsetSz`).
const OFFSET_BITS: u32 = 13;
/// Marks a way that is to be allocated.
const MISS: u8 = 0x80;

#[derive(Clone, Copy, Default)]
struct Entry {
    target: u32,
    conditional: bool,
    counter: u8,
}

struct Bank {
    /// By slot and way: the block's index plus one, 0 if empty.
    tags: [[u32; WAYS]; 4],
    entries: [[Entry; WAYS]; 4],
    /// All tags, folded to four bits by exclusive or.
    fold: u8,
}

/// Both banks.
pub(super) struct MicroBtb {
    banks: Box<[Bank; 2]>,
    ways: u8,
}

impl MicroBtb {
    pub fn new(ways: u32) -> Self {
        let bank =
            || Bank { tags: [[0; WAYS]; 4], entries: [[Entry::default(); WAYS]; 4], fold: 0 };
        Self { banks: Box::new([bank(), bank()]), ways: ways.min(WAYS as u32) as u8 }
    }

    #[inline(always)]
    pub fn find(&self, at: Place) -> Found {
        let bank = &self.banks[at.bank];
        let tags = &bank.tags[at.slot];
        let tag = at.block.wrapping_add(1);
        let mut hits = 0u32;
        for (way, &t) in tags.iter().enumerate() {
            hits |= u32::from(t == tag) << way;
        }
        if hits == 0 {
            return Found { known: None, taken: false, way: MISS };
        }
        let way = hits.trailing_zeros() as u8;
        let entry = bank.entries[at.slot][usize::from(way) % WAYS];
        Found {
            known: Some(Known { conditional: entry.conditional, target: entry.target }),
            taken: !entry.conditional || entry.counter >= 2,
            way,
        }
    }

    #[inline(always)]
    pub fn train(&mut self, at: Place, way: u8, conditional: bool, taken: bool, target: u64) {
        if self.ways == 0 {
            return;
        }
        let hit = way & MISS == 0;
        let way = if hit { way } else { self.allocate(at) };
        let bank = &mut self.banks[at.bank];
        let way = usize::from(way) % WAYS;
        if !hit {
            let old = std::mem::replace(&mut bank.tags[at.slot][way], at.block.wrapping_add(1));
            bank.fold ^= fold(old.wrapping_sub(1)) ^ fold(at.block);
        }
        let entry = &mut bank.entries[at.slot][way];
        entry.conditional = conditional;
        entry.counter = match (hit, taken) {
            (true, _) => saturate(entry.counter, taken),
            (false, true) => 3,
            (false, false) => 0,
        };
        if taken {
            let pc = u64::from(at.block) << 4 | (at.bank as u64) << 3 | (at.slot as u64) << 1;
            let far = (target.wrapping_sub(pc) as i64) << 28 >> 28 >> (OFFSET_BITS - 1);
            // A target out of reach is stored truncated: the entry predicts a wrong address.
            entry.target = if far == 0 || far == -1 { target as u32 } else { u32::MAX };
        }
    }

    /// The way in which the block has another slot's branch, else a hash of all tags.
    #[cold]
    fn allocate(&mut self, at: Place) -> u8 {
        let bank = &mut self.banks[at.bank];
        let tag = at.block.wrapping_add(1);
        for tags in &bank.tags {
            if let Some(way) = tags.iter().position(|&t| t == tag) {
                return way as u8;
            }
        }
        (bank.fold ^ fold(at.block)) % self.ways
    }
}

/// A block's number folded to four bits.
fn fold(block: u32) -> u8 {
    let x = block ^ block >> 16;
    let x = x ^ x >> 8;
    ((x ^ x >> 4) & 15) as u8
}
