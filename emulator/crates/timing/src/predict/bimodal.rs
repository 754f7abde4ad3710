//! Two-bit counters by address (`ifu/bpd/bim.scala`): F2's direction, and TAGE's base.

use super::{Place, saturate};

/// Four counters to a byte: the slots of one bank of a block.
pub(super) struct Bimodal {
    rows: [Box<[u8]>; 2],
}

impl Bimodal {
    pub fn new(sets: u32) -> Self {
        // All counters start weakly taken.
        let bank = || vec![0b10_10_10_10; sets as usize].into_boxed_slice();
        Self {
            rows: [bank(), bank()],
        }
    }

    #[inline(always)]
    pub fn predict(&self, at: Place) -> bool {
        let rows = &self.rows[at.bank & 1];
        rows[at.block as usize & (rows.len() - 1)] >> (2 * at.slot + 1) & 1 != 0
    }

    /// The direction; then trains with the outcome.
    #[inline(always)]
    pub fn branch(&mut self, at: Place, taken: bool) -> bool {
        let rows = &mut self.rows[at.bank & 1];
        let mask = rows.len() - 1;
        let row = &mut rows[at.block as usize & mask];
        let shift = 2 * at.slot;
        let counter = *row >> shift & 3;
        *row = *row & !(3 << shift) | saturate(counter, taken) << shift;
        counter >= 2
    }
}
