//! Slots that were lost, by instruction and leaf.

use commit_trace::InstId;

use super::{SLOT_BITS, Slot};
use crate::dense::{DenseTally, Entry};

/// Slots per process, instruction and leaf of the top-down tree. The dense table has the slots of each leaf modulo 256:
/// nearly always a few are added, and the only branch is the one for an overflow, which is well predicted.
pub(super) type Lost = DenseTally<SLOT_BITS, [u8; Slot::COUNT]>;

impl Entry for [u8; Slot::COUNT] {
    fn sums(self) -> impl Iterator<Item = (u32, u64)> {
        // Most leaves have 0 slots: all but the last leaf are passed over by their bits.
        const LAST: usize = Slot::COUNT - 1;
        let mut first = [0; LAST];
        first.copy_from_slice(&self[..LAST]);
        let mut rest = u128::from_le_bytes(first);
        let last = (self[LAST] != 0).then_some((LAST as u32, u64::from(self[LAST])));
        let firsts = std::iter::from_fn(move || {
            let leaf = rest.trailing_zeros() / u8::BITS;
            let amount = first.get(leaf as usize)?;
            rest &= !(u128::from(u8::MAX) << (leaf * u8::BITS));
            Some((leaf, u64::from(*amount)))
        });
        firsts.chain(last)
    }
}

impl Lost {
    /// Adds fewer than 256 slots each, for the process that runs.
    #[inline(always)]
    pub(super) fn add_few(&mut self, lost: impl Iterator<Item = (InstId, (InstId, Slot, u8))>) {
        let (others, process) = (&mut self.others, self.owner);
        self.first.each(lost, |leaves, (inst, slot, slots)| {
            let (sum, runs_over) = leaves[slot as usize].overflowing_add(slots);
            leaves[slot as usize] = sum;
            if runs_over {
                others.add(process, inst, slot as u64, 1 << u8::BITS);
            }
        });
    }

    /// Adds any number of slots, for any process.
    pub(super) fn add_to(&mut self, process: usize, inst: InstId, slot: Slot, slots: u64) {
        match u8::try_from(slots) {
            Ok(few) if process == self.owner => {
                self.add_few([(inst, (inst, slot, few))].into_iter());
            }
            _ => self.others.add(process, inst, slot as u64, slots),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{OwnedTally, packed};

    #[test]
    fn sums_are_those_of_a_plain_tally() {
        let (mut plain, mut lost) = (OwnedTally::<SLOT_BITS>::default(), Lost::default());
        let mut state = 1u64;
        for n in 0..20_000usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (process, inst) = (n / 100 % 3, InstId((state >> 40) as u32 % 77));
            let slot = Slot::ALL[(state >> 59) as usize % Slot::COUNT];
            let slots = match n % 50 {
                0 => state >> 20,
                _ => state >> 56,
            };
            lost.select(process);
            let other = if n % 17 == 0 { 2 } else { process };
            plain.add(other, inst, slot as u64, slots);
            lost.add_to(other, inst, slot, slots);
            if n % 500 == 0 {
                lost.pack_cold([0, 2].into_iter(), |process| process != 1);
            }
        }
        let mut lost = lost.owners();
        let lost = packed(lost.count(), |_, sums| lost.next_into(sums));
        assert_eq!(plain.finish(), lost);
    }
}
