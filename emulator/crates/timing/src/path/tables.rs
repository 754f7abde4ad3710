//! Where the guest's page tables are: for each page, the entries that a walk for it reads.
//!
//! The hart tells when it walks them itself, which it does for the first access to a page after each change. So
//! what a walk reads need not be looked up in guest memory, where it may have changed meanwhile.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use isa::PageWalk;

/// Log2 of the bytes that a table of the last level maps: its pages are 4 KiB, an entry of 8 bytes each (RISC-V
/// privileged architecture, 12.3 to 12.6).
const REGION_BITS: u32 = 21;
/// The bits of an entry's address that tell which of its table it is.
const INDEX: u64 = 0xff8;

/// The last walk in each 2 MiB region, which is what one table of the last level maps. Walks of all pages would not stay in the host's caches. Not
/// part of the state between runs: the hart walks anew in each.
#[derive(Clone, Default)]
pub(super) struct Tables(HashMap<u64, Region, BuildHasherDefault<RegionHasher>>);

#[derive(Clone, Copy)]
struct Region {
    walk: PageWalk,
    /// True if the walk ends in a table of the last level: the walk for another page of the region differs only in the place of the last entry in
    /// that table.
    by_page: bool,
}

/// Returns where in its table of the last level a page's entry is.
fn index(va: u64) -> u64 {
    (va >> 12) << 3 & INDEX
}

/// Returns which of a walk's entries is its last.
fn last(walk: &PageWalk) -> Option<usize> {
    usize::from(walk.levels).checked_sub(1)
}

impl Tables {
    pub(super) fn note(&mut self, va: u64, walk: &PageWalk) {
        let last = last(walk).and_then(|at| walk.pte.get(at));
        let last = last.filter(|_| walk.page_bits == 12);
        let region = Region {
            walk: *walk,
            // False for a walk that ends at an invalid entry of a higher level, unless that entry has by chance the page's place in its table.
            by_page: last.is_some_and(|last| last & INDEX == index(va)),
        };
        self.0.insert(va >> REGION_BITS, region);
    }

    /// Returns whether a walk is that for `va` already.
    pub(super) fn has(&self, va: u64, walk: &PageWalk) -> bool {
        let known = self.walk(va);
        let read = |walk: &PageWalk| (walk.levels, walk.page_bits);
        let count = usize::from(walk.levels).min(walk.pte.len());
        read(&known) == read(walk) && known.pte[..count] == walk.pte[..count]
    }

    /// Returns the walk for `va`; one that reads nothing if the hart never made it.
    pub(super) fn walk(&self, va: u64) -> PageWalk {
        let Some(region) = self.0.get(&(va >> REGION_BITS)) else {
            return PageWalk { page_bits: 12, ..PageWalk::default() };
        };
        let mut walk = region.walk;
        if region.by_page
            && let Some(last) = last(&walk).and_then(|at| walk.pte.get_mut(at))
        {
            *last = *last & !INDEX | index(va);
        }
        walk
    }
}

/// Spreads numbers of regions; the guest gains nothing from collisions but time.
#[derive(Clone, Default)]
struct RegionHasher(u64);

impl Hasher for RegionHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, region: u64) {
        let product = (self.0 ^ region).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The map takes the place from the low bits.
        self.0 = product ^ product >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn walk(pte: [u64; 5], levels: u8, page_bits: u8) -> PageWalk {
        PageWalk { pte, levels, page_bits }
    }

    #[test]
    fn pages_of_a_region_differ_in_their_own_entry() {
        let mut tables = Tables::default();
        assert_eq!(tables.walk(0x1000).levels, 0);
        tables.note(0x1008, &walk([0x9000, 0xa000, 0xb008, 0, 0], 3, 12));
        assert_eq!(tables.walk(0x1ff0).pte, [0x9000, 0xa000, 0xb008, 0, 0]);
        assert_eq!(tables.walk(0x1f_f000).pte, [0x9000, 0xa000, 0xbff8, 0, 0]);
        assert_eq!(tables.walk(0x20_0000).levels, 0);
    }

    #[test]
    fn superpages_and_missing_tables_have_one_walk() {
        let mut tables = Tables::default();
        for noted in
            [walk([0x9000, 0xa008, 0, 0, 0], 2, 21), walk([0x9000, 0xa010, 0, 0, 0], 2, 12)]
        {
            tables.note(0x20_1000, &noted);
            for va in [0x20_1000, 0x3f_f000] {
                let found = tables.walk(va);
                assert_eq!((found.pte, found.page_bits), (noted.pte, noted.page_bits));
            }
        }
    }
}
