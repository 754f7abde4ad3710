//! Page-table walks: second-level TLB, page-table-entry cache, and reads through the L1 data cache
//! (Rocket's PTW).

use super::{L1d, LINE_BITS, Lower, Origin};
use crate::Preset;
use crate::path::WalkReads;

/// Entries of the cache of non-leaf page-table entries.
const PTE_ENTRIES: usize = 8;
/// A walker's cached entry is found in the cycle of the lookup.
const PTE_HIT: u64 = 1;

/// Who wants a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlbSide {
    Data,
    Code,
}

/// Counts of the translations for one [`TlbSide`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCounts {
    /// Misses of the first level that the second answered.
    pub l2_hits: u64,
    pub walks: u64,
    /// Cycles from the miss to the translation.
    pub cycles: u64,
}

snapshot::snapshot!(WalkCounts { l2_hits, walks, cycles });

/// The page-table walker, which does one walk at a time.
pub(crate) struct Walk {
    l2: Box<[u64]>,
    /// Pieces of the second-level TLB, a bit each, in which something may be.
    used: u64,
    latency: u64,
    step: u64,
    pte: [u64; PTE_ENTRIES],
    next: usize,
    free: u64,
    /// Counts by [`TlbSide`].
    pub counts: [WalkCounts; 2],
    /// Page-table entries read through the L1 data cache.
    pub reads: u64,
    /// Page-table entries that the walker's cache had.
    pub pte_hits: u64,
}

snapshot::snapshot!(Walk {
    l2, used, pte, next, free, counts, reads, pte_hits
} keeps { latency, step });

impl Walk {
    pub(crate) fn new(preset: &Preset) -> Self {
        let p = &preset.l2tlb;
        Self {
            l2: vec![0; p.entries as usize].into(),
            used: 0,
            latency: u64::from(p.latency),
            step: u64::from(p.step),
            pte: [u64::MAX; PTE_ENTRIES],
            next: 0,
            free: 0,
            counts: Default::default(),
            reads: 0,
            pte_hits: 0,
        }
    }

    /// Translates an address after a first-level miss in `cycle`; returns when the translation is there. If the second
    /// level misses too, `reads` says what is read.
    #[cold]
    #[inline(never)]
    pub(crate) fn translate(
        &mut self,
        side: TlbSide,
        cycle: u64,
        reads: &WalkReads,
        l1d: &mut L1d,
        lower: &mut Lower,
    ) -> u64 {
        let at = self.walk(side, cycle, reads, l1d, lower);
        self.counts[side as usize].cycles += at - cycle;
        at
    }

    fn walk(
        &mut self,
        side: TlbSide,
        cycle: u64,
        reads: &WalkReads,
        l1d: &mut L1d,
        lower: &mut Lower,
    ) -> u64 {
        let WalkReads { va, walk } = reads;
        let page = va >> 12;
        let mut at = cycle.max(self.free) + self.latency;
        let index = if self.l2.is_empty() { 0 } else { page as usize & (self.l2.len() - 1) };
        if self.l2.get(index) == Some(&(page + 1)) {
            self.counts[side as usize].l2_hits += 1;
            self.free = at;
            return at;
        }
        self.counts[side as usize].walks += 1;
        let levels = usize::from(walk.levels).min(walk.pte.len());
        for (level, &pte) in walk.pte[..levels].iter().enumerate() {
            let leaf = level + 1 == levels;
            if !leaf && self.pte.contains(&pte) {
                at += PTE_HIT;
                self.pte_hits += 1;
                continue;
            }
            self.reads += 1;
            at = match l1d.access(pte >> LINE_BITS, at, Origin::Walk, lower) {
                None => at + self.step,
                Some((ready, _)) => ready,
            };
            if !leaf {
                self.pte[self.next] = pte;
                self.next = (self.next + 1) % PTE_ENTRIES;
            }
        }
        self.free = at;
        // Rocket's second-level TLB keeps 4 KiB pages only.
        if walk.page_bits == 12
            && let Some(entry) = self.l2.get_mut(index)
        {
            *entry = page + 1;
            self.used |= 1 << (index / self.piece());
        }
        at
    }

    /// Lets the walker be free.
    pub(crate) fn settle(&mut self) {
        self.free = 0;
    }

    /// Returns the entries of a piece of the second level, of which there are at most 64.
    fn piece(&self) -> usize {
        self.l2.len().div_ceil(64).max(1)
    }

    /// Drops every cached translation and entry.
    pub(crate) fn clear(&mut self) {
        let piece = self.piece();
        for (number, entries) in self.l2.chunks_mut(piece).enumerate() {
            if self.used >> number & 1 != 0 {
                entries.fill(0);
            }
        }
        self.used = 0;
        self.pte = [u64::MAX; PTE_ENTRIES];
    }
}
