//! The BTB: two ways, answers in F2 (`ifu/bpd/btb.scala`).

use std::collections::VecDeque;

use super::{BranchOutcome, COLUMNS, FetchSlot, Known};

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

snapshot::snapshot!(Entry { tag, target });

/// A branch of which the BTB knew nothing, or something else, when the branch was predicted.
#[derive(Clone, Copy, Default)]
struct Late {
    due: u64,
    at: FetchSlot,
    branch: BranchOutcome,
}

snapshot::snapshot!(Late { due, at, branch });

/// The BTB, both banks.
pub(super) struct Btb {
    sets: Box<[[[Entry; WAYS]; COLUMNS]]>,
    set_bits: u32,
    late: VecDeque<Late>,
    /// When the first branch of `late` is due; never, if there is none.
    next: u64,
}

snapshot::snapshot!(Btb { sets, late, next } keeps { set_bits });

impl Btb {
    pub(super) fn new(sets: u32) -> Self {
        Self {
            sets: vec![[[Entry::default(); WAYS]; COLUMNS]; sets as usize].into(),
            set_bits: sets.trailing_zeros(),
            late: VecDeque::new(),
            next: u64::MAX,
        }
    }

    #[inline(always)]
    fn set(&self, at: FetchSlot) -> usize {
        at.block() as usize & (self.sets.len() - 1)
    }

    #[inline(always)]
    fn tag(&self, at: FetchSlot) -> u32 {
        ((at.block() >> self.set_bits) + 1) & !CONDITIONAL
    }

    #[inline(always)]
    pub(super) fn find(&self, at: FetchSlot) -> Known {
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

    /// Has a branch of which the BTB knew nothing, or something else, written when it is `due`.
    #[cold]
    #[inline(never)]
    pub(super) fn write(&mut self, due: u64, at: FetchSlot, branch: &BranchOutcome) {
        let branch = *branch;
        self.late.push_back(Late { due, at, branch });
        self.next = self.next.min(due);
    }

    /// Writes the branches that are due.
    #[inline(always)]
    pub(super) fn train(&mut self, now: u64) {
        if self.next <= now {
            self.write_due(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn write_due(&mut self, now: u64) {
        while let Some(&Late { at, branch, .. }) = self.late.front().filter(|late| late.due <= now)
        {
            let found = self.find(at);
            if !found.same(&branch) {
                self.write_now(at, found, &branch);
            }
            self.late.pop_front();
        }
        self.next = self.late.front().map_or(u64::MAX, |late| late.due);
    }

    /// Writes a branch. A new branch goes to the way that holds other branches of its block and bank, or else to the way that the parity of all tags
    /// of the set names.
    fn write_now(&mut self, at: FetchSlot, found: Known, branch: &BranchOutcome) {
        let way = if found.hit { found.way } else { self.way_for(at) };
        let kind = if branch.conditional { CONDITIONAL } else { 0 };
        let tag = self.tag(at) | kind;
        let set = self.set(at);
        let entry = &mut self.sets[set][at.column()][usize::from(way) % WAYS];
        entry.tag = tag;
        if branch.taken {
            entry.target = branch.target;
        }
    }

    fn way_for(&self, at: FetchSlot) -> u8 {
        let (set, tag) = (self.set(at), self.tag(at));
        let mut parity = tag.wrapping_sub(1);
        let mut shared = None;
        for slot in at.bank_slots() {
            for (way, entry) in self.sets[set][slot.column()].iter().enumerate().rev() {
                let other = entry.tag & !CONDITIONAL;
                parity ^= other.saturating_sub(1);
                if other == tag {
                    shared = Some(shared.map_or(way as u8, |s: u8| s.min(way as u8)));
                }
            }
        }
        shared.unwrap_or(parity.count_ones() as u8 & 1)
    }
}
