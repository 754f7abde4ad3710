//! A resource that is freed in the order in which it was taken: registers and queue entries.

/// Capacity limit of a [`Ring`].
pub(crate) const MAX: usize = 256;

/// A ring of entries, each with the cycle from which it is free again. The entry taken longest ago is always the next
/// one to be taken.
#[derive(Clone)]
pub(crate) struct Ring {
    free_from: [u64; MAX],
    next: u32,
    capacity: u32,
}

snapshot::snapshot!(Ring { free_from, next } keeps { capacity });

impl Ring {
    /// Returns a ring of `capacity` (1 to [`MAX`]) entries, all free.
    pub(crate) fn new(capacity: u32) -> Self {
        assert!((1..=MAX as u32).contains(&capacity), "ring capacity {capacity}");
        Self { free_from: [0; MAX], next: 0, capacity }
    }

    /// Returns the first cycle in which the next entry can be taken.
    #[inline(always)]
    pub(crate) fn available(&self) -> u64 {
        self.free_from[self.next as usize % MAX]
    }

    /// Takes the next entry until `free_from`.
    #[inline(always)]
    pub(crate) fn take(&mut self, free_from: u64) {
        self.free_from[self.next as usize % MAX] = free_from;
        let next = self.next + 1;
        self.next = if next == self.capacity { 0 } else { next };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_taken_longest_ago_is_next() {
        let mut ring = Ring::new(3);
        for cycle in [10, 20, 30] {
            assert_eq!(ring.available(), 0);
            ring.take(cycle);
        }
        assert_eq!(ring.available(), 10);
        ring.take(40);
        assert_eq!(ring.available(), 20);
    }
}
