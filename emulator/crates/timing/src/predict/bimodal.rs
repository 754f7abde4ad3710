//! The bimodal table: the direction in F2 (`ifu/bpd/bim.scala`).

use super::{COLUMNS, FetchSlot, saturate};

/// The bimodal table, both banks.
pub(super) struct Bimodal {
    counters: Box<[u8]>,
}

snapshot::snapshot!(Bimodal { counters });

impl Bimodal {
    pub(super) fn new(sets: u32) -> Self {
        // All counters start weakly taken.
        let counters = vec![2; sets as usize * COLUMNS].into_boxed_slice();
        Self { counters }
    }

    #[inline(always)]
    pub(super) fn predict(&self, at: FetchSlot) -> bool {
        self.counters[at.index() & (self.counters.len() - 1)] >= 2
    }

    /// Returns the direction, then trains with the outcome.
    #[inline(always)]
    pub(super) fn branch(&mut self, at: FetchSlot, taken: bool) -> bool {
        let mask = self.counters.len() - 1;
        let counter = &mut self.counters[at.index() & mask];
        let strong = *counter >= 2;
        *counter = saturate(*counter, taken);
        strong
    }
}
