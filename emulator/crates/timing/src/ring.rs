//! A resource that is freed in the order in which it was taken: registers, queue entries, ROB rows.

/// Capacity limit of a [`Ring`].
pub(crate) const MAX: usize = 256;

/// For each of `capacity` entries the cycle from which it is free again. The entry taken longest ago
/// is always the next one to be taken.
#[derive(Clone)]
pub(crate) struct Ring {
    free_from: [u64; MAX],
    next: u32,
    capacity: u32,
    /// All ones, or zero for a ring that never fills: its entries are always free.
    limited: u64,
}

impl Ring {
    /// A ring of `capacity` (1 to [`MAX`]) entries, all free.
    pub fn new(capacity: u32) -> Self {
        assert!((1..=MAX as u32).contains(&capacity), "ring capacity {capacity}");
        Self { free_from: [0; MAX], next: 0, capacity, limited: u64::MAX }
    }

    /// A ring that never stalls anybody, so that instructions that need no entry can go the same way.
    pub fn unlimited() -> Self {
        Self { limited: 0, ..Self::new(1) }
    }

    /// First cycle in which the next entry can be taken.
    #[inline(always)]
    pub fn available(&self) -> u64 {
        self.free_from[self.next as usize & (MAX - 1)]
    }

    /// Takes the next entry until `free_from`.
    #[inline(always)]
    pub fn take(&mut self, free_from: u64) {
        self.free_from[self.next as usize & (MAX - 1)] = free_from & self.limited;
        self.next += 1;
        if self.next >= self.capacity {
            self.next = 0;
        }
    }

    /// Rewrites the entry taken last.
    #[inline(always)]
    pub fn extend(&mut self, free_from: u64) {
        let last = if self.next == 0 { self.capacity - 1 } else { self.next - 1 };
        self.free_from[last as usize & (MAX - 1)] = free_from & self.limited;
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
        ring.extend(50);
        ring.take(60);
        ring.take(70);
        assert_eq!(ring.available(), 50);
    }

    #[test]
    fn unlimited_never_stalls() {
        let mut ring = Ring::unlimited();
        ring.take(1000);
        assert_eq!(ring.available(), 0);
    }
}
