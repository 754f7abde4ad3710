//! The store queue: when each of the last stores can be seen, forwarded from, and is gone.

use crate::path::{STORES, StoreMatch};

/// A store between issue and its write to the data cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Store {
    /// Cycle from which a search finds the store's address.
    pub address: u64,
    /// Cycle from which the store's data can be forwarded.
    pub data: u64,
    /// Cycle from which the store is gone, its data in the cache.
    pub gone: u64,
}

snapshot::snapshot!(Store { address, data, gone });

/// The last stores, in program order.
pub(super) struct Stores {
    stores: [Store; STORES],
    /// Number of the next store.
    next: usize,
    empty: u64,
}

snapshot::snapshot!(Stores { stores, next, empty });

impl Stores {
    pub(super) fn new() -> Self {
        Self { stores: [Store::default(); STORES], next: 0, empty: 0 }
    }

    /// Returns the store that a load found in program order, if it is still in the queue in cycle `at`.
    #[inline(always)]
    pub(super) fn find(&self, found: StoreMatch, at: u64) -> Option<Store> {
        if found.ago == 0 {
            return None;
        }
        let store = self.stores[self.next.wrapping_sub(found.ago.into()) % STORES];
        (store.gone > at).then_some(store)
    }

    /// Adds a store.
    #[inline(always)]
    pub(super) fn push(&mut self, store: Store) {
        self.stores[self.next % STORES] = store;
        self.next = self.next.wrapping_add(1);
        self.empty = self.empty.max(store.gone);
    }

    /// Returns the cycle from which the queue is empty.
    pub(super) fn empty(&self) -> u64 {
        self.empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_found_until_it_is_gone() {
        let mut stores = Stores::new();
        for n in [1, 2, 3] {
            stores.push(Store { address: 10 * n, data: 10 * n + 1, gone: 100 * n });
        }
        let found = |ago, at| {
            let found = StoreMatch { ago, covers: true };
            stores.find(found, at).map(|store| store.data)
        };
        assert_eq!([found(1, 50), found(3, 50)], [Some(31), Some(11)]);
        assert_eq!([found(3, 100), found(0, 50)], [None, None]);
        assert_eq!(stores.empty(), 300);
    }
}
