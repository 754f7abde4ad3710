//! The BTB: two ways, answers in F2 (`ifu/bpd/btb.scala`).

use super::{Found, Known, Place};

const WAYS: usize = 2;
const MISS: u8 = 0x80;
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
    sets: Box<[[[[Entry; 4]; WAYS]; 2]]>,
    set_bits: u32,
    turn: u8,
}

impl Btb {
    pub fn new(sets: u32) -> Self {
        Self {
            sets: vec![[[[Entry::default(); 4]; WAYS]; 2]; sets as usize].into(),
            set_bits: sets.trailing_zeros(),
            turn: 0,
        }
    }

    #[inline(always)]
    fn set(&self, at: Place) -> usize {
        at.block as usize & (self.sets.len() - 1)
    }

    #[inline(always)]
    fn tag(&self, at: Place) -> u32 {
        ((at.block >> self.set_bits) + 1) & !CONDITIONAL
    }

    #[inline(always)]
    pub fn find(&self, at: Place) -> Found {
        let ways = &self.sets[self.set(at)][at.bank];
        let tag = self.tag(at);
        for (way, slots) in ways.iter().enumerate() {
            let entry = slots[at.slot];
            if entry.tag & !CONDITIONAL == tag {
                let conditional = entry.tag & CONDITIONAL != 0;
                let known = Known { conditional, target: entry.target };
                return Found { known: Some(known), taken: !conditional, way: way as u8 };
            }
        }
        Found { known: None, taken: false, way: MISS }
    }

    #[inline(always)]
    pub fn train(&mut self, at: Place, way: u8, conditional: bool, taken: bool, target: u64) {
        let way = if way & MISS == 0 { way } else { self.allocate(at) };
        let tag = self.tag(at) | if conditional { CONDITIONAL } else { 0 };
        let set = self.set(at);
        let entry = &mut self.sets[set][at.bank][usize::from(way) % WAYS][at.slot];
        entry.tag = tag;
        if taken {
            entry.target = target as u32;
        }
    }

    #[cold]
    fn allocate(&mut self, at: Place) -> u8 {
        let tag = self.tag(at);
        let ways = &self.sets[self.set(at)][at.bank];
        let shares = |slots: &[Entry; 4]| slots.iter().any(|e| e.tag & !CONDITIONAL == tag);
        if let Some(way) = ways.iter().position(shares) {
            return way as u8;
        }
        self.turn = self.turn.wrapping_add(1 + (at.block as u8 & 2));
        self.turn % WAYS as u8
    }
}
