//! The store queue, as loads search it.

/// Stores remembered; no queue is longer.
const STORES: usize = 64;
/// Lists of stores by the 8-byte word that they write.
const LISTS: usize = 256;

/// A store between issue and its write to the data cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Store {
    word: u64,
    /// Bytes of the word.
    mask: u8,
    /// Cycle from which a search finds its address.
    pub address: u64,
    /// Cycle from which its data can be forwarded.
    pub data: u64,
    /// Cycle from which it is gone, its data in the cache.
    pub gone: u64,
    /// Number of the previous store of the same list.
    previous: u64,
}

snapshot::snapshot!(Store {
    word,
    mask,
    address,
    data,
    gone,
    previous
});

/// The last stores, in program order, each in the list of its word.
pub(super) struct Stores {
    stores: [Store; STORES],
    lists: [u64; LISTS],
    /// Number of the next store; the first is [`STORES`], so that 0 is too old for every search.
    next: u64,
    empty: u64,
}

/// What a load finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub store: Store,
    /// The store writes every byte that the load reads.
    pub covers: bool,
}

#[inline(always)]
fn list(word: u64) -> usize {
    (word ^ word >> 8) as usize % LISTS
}

/// The 8-byte word of an address, and the bytes of it that are accessed. Not modelled: the part of a misaligned
/// access that lies in the next word.
#[inline(always)]
fn bytes(pa: u64, size: u8) -> (u64, u8) {
    let all = (1u32 << size.min(8)) - 1;
    (pa >> 3, (all << (pa & 7)) as u8)
}

snapshot::snapshot!(Stores {
    stores,
    lists,
    next,
    empty
});

impl Stores {
    pub fn new() -> Self {
        Self {
            stores: [Store::default(); STORES],
            lists: [0; LISTS],
            next: STORES as u64,
            empty: 0,
        }
    }

    /// The youngest store to bytes of the load that is still in the queue in cycle `at`.
    #[inline(always)]
    pub fn search(&self, pa: u64, size: u8, at: u64) -> Option<Match> {
        let (word, mask) = bytes(pa, size);
        let mut number = self.lists[list(word)];
        while self.next - number < STORES as u64 {
            let store = &self.stores[number as usize % STORES];
            if store.word == word && store.mask & mask != 0 {
                let covers = store.mask & mask == mask;
                return (store.gone > at).then_some(Match {
                    store: *store,
                    covers,
                });
            }
            number = store.previous;
        }
        None
    }

    /// Adds a store.
    #[inline(always)]
    pub fn push(&mut self, pa: u64, size: u8, address: u64, data: u64, gone: u64) {
        let (word, mask) = bytes(pa, size);
        let head = &mut self.lists[list(word)];
        let number = self.next;
        self.stores[number as usize % STORES] = Store {
            word,
            mask,
            address,
            data,
            gone,
            previous: *head,
        };
        *head = number;
        self.next += 1;
        self.empty = self.empty.max(gone);
    }

    /// Cycle from which the queue is empty.
    pub fn empty(&self) -> u64 {
        self.empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_overlapping_store_is_found() {
        let mut stores = Stores::new();
        stores.push(0x1000, 8, 10, 11, 100);
        stores.push(0x1004, 4, 20, 21, 100);
        stores.push(0x1000 + 8 * 256, 8, 30, 31, 100);
        let found = stores.search(0x1004, 4, 50).unwrap();
        assert_eq!((found.store.data, found.covers), (21, true));
        let found = stores.search(0x1000, 8, 50).unwrap();
        assert_eq!((found.store.data, found.covers), (21, false));
        assert_eq!(stores.search(0x1000, 4, 50).unwrap().store.data, 11);
        assert!(stores.search(0x1008, 8, 50).is_none());
        assert!(
            stores.search(0x1000, 4, 100).is_none(),
            "it has been written"
        );
        assert_eq!(stores.empty(), 100);
    }

    #[test]
    fn old_stores_are_forgotten() {
        let mut stores = Stores::new();
        stores.push(0x2000, 8, 1, 1, u64::MAX);
        for i in 0..STORES as u64 {
            stores.push(0x8000 + i * 8, 8, 1, 1, u64::MAX);
        }
        assert!(stores.search(0x2000, 8, 0).is_none());
    }
}
