//! A first-level TLB: fully associative, superpages, not-recently-used replacement (Rocket's is
//! pseudo-LRU, close to it).

use crate::mem::bits;

/// Limit of entries: one bit each in a word.
const MAX: usize = 64;
const FILTER: usize = 128;

/// A TLB.
pub(super) struct Tlb {
    count: usize,
    /// Address bits above the page offset, plus one; 0: invalid.
    page: [u64; MAX],
    bits: [u8; MAX],
    used: u64,
    hand: u32,
    /// Filter in front of the search, by the low bits of a 4 KiB page number: the number, plus one, of a page that the TLB holds (0: none), and the
    /// bit in `used` of its entry.
    filter: [(u64, u64); FILTER],
    /// Entries that the filter may not show: those of superpages, and those whose place in the filter went to another.
    hidden: u64,
}

snapshot::snapshot!(Tlb { page, bits, used, hand, filter, hidden } keeps { count });

impl Tlb {
    pub(super) fn new(entries: u32) -> Self {
        Self {
            count: (entries as usize).clamp(1, MAX),
            page: [0; MAX],
            bits: [12; MAX],
            used: 0,
            hand: 0,
            filter: [(0, 0); FILTER],
            hidden: 0,
        }
    }

    #[inline(always)]
    fn holds(&self, entry: usize, va: u64) -> bool {
        (va >> self.bits[entry]) + 1 == self.page[entry]
    }

    /// Returns true if the translation of `va` is there.
    #[inline(always)]
    pub(super) fn hit(&mut self, va: u64) -> bool {
        let page = va >> 12;
        let (held, entry) = self.filter[page as usize % FILTER];
        if held == page + 1 {
            self.used |= entry;
            return true;
        }
        self.search(va)
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, va: u64) -> bool {
        let found = bits(self.hidden).find(|&i| self.holds(i % MAX, va));
        if let Some(entry) = found {
            let bit = 1 << entry;
            self.used |= bit;
            if self.bits[entry % MAX] == 12 {
                self.hidden &= !bit;
            }
            self.note(va, bit);
        }
        found.is_some()
    }

    /// Shows an entry, given by its bit in `used`, in the place of `va`'s page in the filter.
    fn note(&mut self, va: u64, entry: u64) {
        let page = va >> 12;
        let (held, hidden) =
            std::mem::replace(&mut self.filter[page as usize % FILTER], (page + 1, entry));
        if held != 0 {
            self.hidden |= hidden;
        }
    }

    /// Drops an entry's pages from the filter; `gone` is its bit in `used`.
    fn forget(&mut self, entry: usize, gone: u64) {
        let drop = |(held, of): &mut (u64, u64)| {
            if *of == gone {
                *held = 0;
            }
        };
        match self.bits[entry] {
            // A 4 KiB page has one place in the filter.
            12 => drop(&mut self.filter[self.page[entry].wrapping_sub(1) as usize % FILTER]),
            _ => self.filter.iter_mut().for_each(drop),
        }
    }

    /// Adds a translation of a page of 2^`bits` bytes.
    pub(super) fn fill(&mut self, va: u64, bits: u8) {
        let all = u64::MAX >> (64 - self.count);
        if self.used & all == all {
            self.used = 0;
        }
        // The first entry at or after the hand that was not used since the bits were last cleared.
        let free = !self.used & all;
        let after = free & (u64::MAX << self.hand);
        let entry = if after != 0 { after } else { free }.trailing_zeros();
        let gone = 1 << entry;
        self.forget(entry as usize, gone);
        self.hand = (entry + 1) % self.count as u32;
        self.used |= gone;
        let bits = bits.clamp(12, 63);
        self.page[entry as usize] = (va >> bits) + 1;
        self.bits[entry as usize] = bits;
        self.hidden = self.hidden & !gone | if bits == 12 { 0 } else { gone };
        self.note(va, gone);
    }

    /// Returns which entries were used since the bits were last cleared, a bit each.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the entry that holds the translation of `va`, which hit or was filled last.
    pub(super) fn entry(&self, va: u64) -> usize {
        self.filter[(va >> 12) as usize % FILTER].1.trailing_zeros() as usize
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.page = [0; MAX];
        self.filter = [(0, 0); FILTER];
        self.hidden = 0;
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_as_many_pages_as_entries() {
        let mut tlb = Tlb::new(4);
        for page in 0..4u64 {
            assert!(!tlb.hit(page << 12));
            tlb.fill(page << 12, 12);
        }
        assert!((0..4u64).all(|page| tlb.hit(page << 12 | 0xabc)));
        tlb.fill(9 << 12, 12);
        assert_eq!((0..4u64).filter(|page| tlb.hit(page << 12)).count(), 3);
        tlb.clear();
        assert!(!tlb.hit(9 << 12));
    }

    #[test]
    fn the_filter_hides_nothing() {
        let mut tlb = Tlb::new(8);
        let mut state = 7u64;
        let mut hits = 0;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few places in the filter, so that pages displace each other; two superpages.
            let number = state >> 33;
            let va = (number % 3 + FILTER as u64 * (number / 3 % 6)) << 12 | (number & 32) << 25;
            let there = (0..8).any(|entry| tlb.holds(entry, va));
            assert_eq!(tlb.hit(va), there, "{va:#x}");
            hits += u32::from(there);
            if !there {
                tlb.fill(va, if va >> 30 != 0 { 21 } else { 12 });
            }
        }
        assert!((2_000..18_000).contains(&hits), "{hits}");
    }

    #[test]
    fn a_superpage_covers_its_pages() {
        let mut tlb = Tlb::new(2);
        tlb.fill(0x8020_0000, 21);
        assert!(tlb.hit(0x803f_ffff));
        assert!(!tlb.hit(0x8040_0000));
        tlb.fill(0x1000, 12);
        tlb.fill(0x2000, 12);
        assert!(!tlb.hit(0x803f_ffff), "its place was taken");
    }
}
