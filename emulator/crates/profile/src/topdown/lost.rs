//! Slots that were lost, by instruction and leaf.

use commit_trace::InstId;

use super::{SLOT_BITS, Slot};
use crate::ProcessId;
use crate::counts::OwnedTally;
use crate::packed::Packed;
use crate::tables::Tables;

/// Slots per process, instruction and leaf.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Of each instruction of the process that runs by leaf, modulo 256: nearly always a few are added, and nothing need be
    /// foreseen but that they do not run over.
    few: Tables<[u8; Slot::COUNT]>,
    /// All others.
    many: OwnedTally<SLOT_BITS>,
    process: usize,
}

impl Lost {
    /// A process runs from here on.
    pub(super) fn select(&mut self, process: usize) {
        self.process = process;
        self.few.select(process);
    }

    /// Adds a few each, of the process that runs.
    #[inline(always)]
    pub(super) fn add_each(&mut self, lost: impl Iterator<Item = (InstId, (InstId, Slot, u8))>) {
        let (many, process) = (&mut self.many, self.process);
        self.few.each(lost, |leaves, (inst, slot, slots)| {
            let (sum, runs_over) = leaves[slot as usize].overflowing_add(slots);
            leaves[slot as usize] = sum;
            if runs_over {
                many.add(process, inst, slot as u64, 1 << u8::BITS);
            }
        });
    }

    /// Adds any number, of any process.
    pub(super) fn add(&mut self, process: usize, inst: InstId, slot: Slot, slots: u64) {
        match u8::try_from(slots) {
            Ok(few) if process == self.process => {
                self.add_each([(inst, (inst, slot, few))].into_iter());
            }
            _ => self.many.add(process, inst, slot as u64, slots),
        }
    }

    /// Keeps what such processes have, which do not run, in few bytes.
    pub(super) fn cool(&mut self, processes: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        for process in processes {
            self.pack(process.0 as usize);
        }
        self.many.cool(|process| is_cold(ProcessId(process as u32)));
    }

    fn pack(&mut self, process: usize) {
        let few = self.few.take(process);
        let leaves = few.iter().flat_map(|(inst, leaves)| {
            let numbers = u64::from(inst) << SLOT_BITS..;
            numbers.zip(leaves.map(u64::from))
        });
        self.many.add_packed(process, leaves);
    }

    /// As [`OwnedTally::add_packed`].
    pub(super) fn add_packed(&mut self, process: usize, slots: impl Iterator<Item = (u64, u64)>) {
        self.many.add_packed(process, slots);
    }

    /// By process; numbers: the leaf in the low [`SLOT_BITS`], above it the instruction.
    pub(super) fn finish(mut self) -> Vec<Packed> {
        for process in 0..self.few.len() {
            self.pack(process);
        }
        self.many.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_a_plain_tally() {
        let (mut plain, mut lost) = (OwnedTally::<SLOT_BITS>::default(), Lost::default());
        let mut state = 1u64;
        for n in 0..20_000usize {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (process, inst) = (n / 100 % 3, InstId((state >> 40) as u32 % 77));
            let slot = Slot::ALL[(state >> 60) as usize];
            let slots = match n % 50 {
                0 => state >> 20,
                _ => state >> 56,
            };
            lost.select(process);
            let other = if n % 17 == 0 { 2 } else { process };
            plain.add(other, inst, slot as u64, slots);
            lost.add(other, inst, slot, slots);
            if n % 500 == 0 {
                lost.cool(&[ProcessId(0), ProcessId(2)], |process| process.0 != 1);
            }
        }
        assert_eq!(plain.finish(), lost.finish());
    }
}
