//! The BTB: two ways, answers in F2 (`ifu/bpd/btb.scala`).

use super::{COLUMNS, Known, Place, Taught};

const WAYS: usize = 2;
const CONDITIONAL: u32 = 1 << 31;

/// One branch: the block's tag with the kind on top (0: empty), and the target's low half. The distances that
/// an entry cannot hold live in one extended entry per set; not modelled is that two such branches of a set
/// share it.
#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u32,
    target: u32,
}

/// Both banks.
pub(super) struct Btb {
    sets: Box<[[[Entry; WAYS]; COLUMNS]]>,
    set_bits: u32,
    turn: u8,
}

impl Btb {
    pub fn new(sets: u32) -> Self {
        Self {
            sets: vec![[[Entry::default(); WAYS]; COLUMNS]; sets as usize].into(),
            set_bits: sets.trailing_zeros(),
            turn: 0,
        }
    }

    #[inline(always)]
    fn set(&self, at: Place) -> usize {
        at.block() as usize & (self.sets.len() - 1)
    }

    #[inline(always)]
    fn tag(&self, at: Place) -> u32 {
        ((at.block() >> self.set_bits) + 1) & !CONDITIONAL
    }

    #[inline(always)]
    pub fn find(&self, at: Place) -> Known {
        let ways = &self.sets[self.set(at)][at.column()];
        let tag = self.tag(at);
        let second = ways[1].tag & !CONDITIONAL == tag;
        let entry = ways[usize::from(second)];
        Known {
            hit: entry.tag & !CONDITIONAL == tag,
            conditional: entry.tag & CONDITIONAL != 0,
            strong: true,
            target: entry.target,
            way: u8::from(second),
        }
    }

    /// Writes a branch of which it knew nothing, or something else. A new branch gets a pseudo-random way and
    /// pushes one out, whose place this gives. Not modelled: that branches of one block share a way.
    pub fn write(&mut self, at: Place, found: Known, branch: &Taught) -> Option<Place> {
        self.turn = self.turn.wrapping_add(at.block() as u8 | 1);
        let way = if found.hit { found.way } else { self.turn >> 3 };
        let kind = if branch.conditional { CONDITIONAL } else { 0 };
        let tag = self.tag(at) | kind;
        let set = self.set(at);
        let entry = &mut self.sets[set][at.column()][usize::from(way) % WAYS];
        let old = std::mem::replace(&mut entry.tag, tag) & !CONDITIONAL;
        if branch.taken {
            entry.target = branch.target;
        }
        let block = old.wrapping_sub(1) << self.set_bits | set as u32;
        (old != 0 && !found.hit).then(|| at.in_block(block))
    }
}
