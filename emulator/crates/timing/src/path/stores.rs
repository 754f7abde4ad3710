//! Which store a load finds before it, in program order.

use isa::MemAccess;

/// Stores remembered; no queue is longer.
pub(crate) const STORES: usize = 64;
/// Lists of stores by the 8-byte word that they write.
const LISTS: usize = 256;

/// One store.
#[derive(Clone, Copy, Debug, Default)]
struct Store {
    word: u64,
    /// Bytes of the word that the store writes, a bit each.
    mask: u8,
    /// Number of the previous store of the same list.
    previous: u64,
}

snapshot::snapshot!(Store { word, mask, previous });

/// A store-to-load match: the youngest older store that writes bytes of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreMatch {
    /// How many stores ago: 1 for the last one. 0: there is none that a queue could still hold.
    pub ago: u8,
    /// The store writes every byte that the load reads.
    pub covers: bool,
}

/// The last stores, in program order, each in the list of its word.
pub(super) struct Stores {
    stores: [Store; STORES],
    lists: [u64; LISTS],
    /// Number of the next store; the first is [`STORES`], so that 0 is too old for every search.
    next: u64,
}

snapshot::snapshot!(Stores { stores, lists, next });

#[inline(always)]
fn list(word: u64) -> usize {
    (word ^ word >> 8) as usize % LISTS
}

/// Returns the bytes of its 8-byte word that are accessed. Not modelled: the part of a misaligned access that lies in
/// the next word.
#[inline(always)]
fn bytes(access: &MemAccess) -> u8 {
    let all = (1u32 << access.size().min(8)) - 1;
    (all << (access.pa() & 7)) as u8
}

impl Stores {
    pub(super) fn new() -> Self {
        Self { stores: [Store::default(); STORES], lists: [0; LISTS], next: STORES as u64 }
    }

    /// The youngest store to bytes of a load.
    #[inline(always)]
    pub(super) fn search(&self, load: &MemAccess) -> StoreMatch {
        let word = load.pa() >> 3;
        let mut number = self.lists[list(word)];
        while self.next - number < STORES as u64 {
            let store = &self.stores[number as usize % STORES];
            let mask = bytes(load);
            if store.word == word && store.mask & mask != 0 {
                return StoreMatch {
                    ago: (self.next - number) as u8,
                    covers: store.mask & mask == mask,
                };
            }
            number = store.previous;
        }
        StoreMatch::default()
    }

    /// Adds a store.
    #[inline(always)]
    pub(super) fn push(&mut self, store: &MemAccess) {
        let word = store.pa() >> 3;
        let head = &mut self.lists[list(word)];
        let number = self.next;
        self.stores[number as usize % STORES] = Store { word, mask: bytes(store), previous: *head };
        *head = number;
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use isa::MemKind;

    fn access(kind: MemKind, pa: u64, size: u8) -> MemAccess {
        MemAccess::new(kind, pa, pa, size, false)
    }

    fn search(stores: &Stores, pa: u64, size: u8) -> StoreMatch {
        stores.search(&access(MemKind::Load, pa, size))
    }

    fn push(stores: &mut Stores, pa: u64, size: u8) {
        stores.push(&access(MemKind::Store, pa, size));
    }

    #[test]
    fn the_youngest_overlapping_store_is_found() {
        let mut stores = Stores::new();
        let found = |ago, covers| StoreMatch { ago, covers };
        for (pa, size) in [(0x1000, 8), (0x1004, 4), (0x1000 + 8 * 256, 8)] {
            push(&mut stores, pa, size);
        }
        assert_eq!(search(&stores, 0x1004, 4), found(2, true));
        assert_eq!(search(&stores, 0x1000, 8), found(2, false));
        assert_eq!(search(&stores, 0x1000, 4), found(3, true));
        assert_eq!(search(&stores, 0x1008, 8), StoreMatch::default());
    }

    #[test]
    fn old_stores_are_forgotten() {
        let mut stores = Stores::new();
        push(&mut stores, 0x2000, 8);
        for i in 0..STORES as u64 {
            push(&mut stores, 0x8000 + i * 8, 8);
        }
        assert_eq!(search(&stores, 0x2000, 8), StoreMatch::default());
    }
}
