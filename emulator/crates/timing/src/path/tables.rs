//! Where the guest's page tables are: for each page, the entries that a walk for it reads.
//!
//! The hart tells when it walks them itself, which it does for the first access to a page after each change. So
//! what a walk reads need not be looked up in guest memory, where it may have changed meanwhile.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use isa::PageWalk;

/// The last walk for each page. Not part of the state between runs: the hart walks anew in each.
#[derive(Default)]
pub(super) struct Tables(HashMap<u64, PageWalk, BuildHasherDefault<PageHasher>>);

impl Tables {
    pub fn note(&mut self, va: u64, walk: &PageWalk) {
        self.0.insert(va >> 12, *walk);
    }

    /// The walk for `va`; one that reads nothing if the hart never made it.
    pub fn walk(&self, va: u64) -> PageWalk {
        self.0.get(&(va >> 12)).copied().unwrap_or(PageWalk {
            page_bits: 12,
            ..PageWalk::default()
        })
    }
}

/// Spreads page numbers; the guest gains nothing from collisions but time.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, page: u64) {
        let product = (self.0 ^ page).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The map takes the place from the low bits.
        self.0 = product ^ product >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_walk_counts() {
        let walk = |levels| PageWalk {
            levels,
            ..PageWalk::default()
        };
        let mut tables = Tables::default();
        assert_eq!(tables.walk(0x1000).levels, 0);
        tables.note(0x1008, &walk(2));
        tables.note(0x1ff8, &walk(3));
        assert_eq!(tables.walk(0x1000).levels, 3);
        assert_eq!(tables.walk(0x2000).levels, 0);
    }
}
