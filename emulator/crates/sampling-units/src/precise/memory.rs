//! Samples of counters that go to memory, without an interrupt each (ours; Intel's PEBS is similar): which counters, with what,
//! where to.

use crate::pdis::{Buffer, RECORD_BYTES, Record};

/// Fields of `shpmsctl`.
pub mod sample_control {
    /// The counters whose overflows are recorded in memory, by bit.
    pub const COUNTERS: u64 = 0xffff_fff8;
    /// Samples have the general registers.
    pub const REGS: u64 = 1 << 32;
    /// Samples have the control transfer records.
    pub const TRANSFERS: u64 = 1 << 33;
}
use sample_control::{COUNTERS, REGS, TRANSFERS};

/// Fields of a sample's seventh word.
pub mod sample_info {
    /// Size of the sample, in units of 64 bytes, at bit 8. The counter's number is below.
    pub const UNITS_SHIFT: u32 = 8;
    /// The hart's privilege when the groups were recorded, at bit 16.
    pub const PRIVILEGE_SHIFT: u32 = 16;
    /// The general registers follow.
    pub const REGS: u64 = 1 << 18;
    /// The control transfer records follow.
    pub const TRANSFERS: u64 = 1 << 19;
    /// Both groups are as right after the instruction.
    pub const EXACT: u64 = 1 << 62;
}

/// Words of the general registers: the next instruction's address, `x1` to `x31`.
const REGS_WORDS: u64 = 32;
/// Words of a control transfer record: source, target, data.
const TRANSFER_WORDS: u64 = 3;

/// A counter that overflowed, and whose sample is to be recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Number of the counter, 3 to 31.
    pub counter: u8,
    /// Periods of the counter that are over.
    pub periods: u64,
}

snapshot::snapshot!(Awaited { counter, periods });

/// The instruction that a counter's overflow is due to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub counter: u8,
    pub record: Record,
    /// True if the instruction is known.
    pub precise: bool,
    /// Number of instructions that had left with this one.
    pub number: u64,
}

snapshot::snapshot!(Due { counter, record, precise, number });

/// A sample that is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct MemorySample {
    /// Record of the instruction.
    pub record: Record,
    /// Seventh word of the sample, without what the hart adds: its privilege, the groups and the size.
    pub info: u64,
    /// Periods that the sample stands for.
    pub periods: u64,
}

/// Registers and buffer of the samples in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    control: u64,
    /// `shpmsambcs` and `shpmsambaddr`. No record waits in this buffer.
    pub buffer: Buffer,
    pub(super) due: Vec<Due>,
    pub(super) awaited: Vec<Awaited>,
    /// Counters, by bit, whose next sample is not recorded: there was no room.
    pub(super) not_recorded: u32,
}

snapshot::snapshot!(Memory { control, buffer, due, awaited, not_recorded });

impl Memory {
    /// Returns `shpmsctl`.
    pub fn control(&self) -> u64 {
        self.control
    }

    /// Writes `shpmsctl`.
    pub fn set_control(&mut self, value: u64) {
        self.control = value & (COUNTERS | REGS | TRANSFERS);
    }

    /// Returns the counters whose samples go to memory, by bit.
    pub fn counters(&self) -> u32 {
        (self.control & COUNTERS) as u32
    }

    /// Returns whether the next sample of a counter is recorded.
    pub(super) fn records(&mut self, counter: u8) -> bool {
        let bit = 1 << counter;
        let not = self.not_recorded & bit != 0;
        self.not_recorded &= !bit;
        self.counters() & bit != 0 && !not
    }

    /// Returns whether samples have the general registers.
    pub fn has_regs(&self) -> bool {
        self.control & REGS != 0
    }

    /// Returns whether samples have the control transfer records.
    pub fn has_transfers(&self) -> bool {
        self.control & TRANSFERS != 0
    }

    /// Returns the size of a sample in units of [`RECORD_BYTES`], where there are `transfers` control transfer records.
    pub fn units(&self, transfers: u64) -> u64 {
        let regs = if self.has_regs() { REGS_WORDS } else { 0 };
        let transfers = match self.has_transfers() {
            true => transfers * TRANSFER_WORDS,
            false => 0,
        };
        1 + ((regs + transfers) * 8).div_ceil(RECORD_BYTES)
    }

    /// Returns whether samples are awaited.
    pub fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Returns the number of samples of `units` units for which there is room.
    pub fn room(&self, units: u64) -> u64 {
        let awaited = self.awaited.len() as u64;
        (self.buffer.room() / units.max(1)).saturating_sub(awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precise::PreciseSamples;
    use crate::precise::sample_data::EN;

    #[test]
    fn overflows_that_nothing_can_be_named_for_are_one_sample() {
        let mut samples = PreciseSamples::default();
        samples.set_data(EN);
        samples.memory.set_control(1 << 3);
        let once = [Awaited { counter: 3, periods: 1 }];
        // The hart sleeps: nothing leaves.
        for cycle in (100..1100).step_by(100) {
            samples.watch_cycles([(cycle, 3)].into_iter());
            samples.expect(&once);
            assert!(samples.take_sample(cycle).is_none());
        }
        assert_eq!(samples.memory.awaited.len(), 1);
        // The counter counts something else from here on.
        samples.cycles.clear();
        let sample = samples.take_sample(2000).unwrap();
        assert_eq!((sample.info, sample.periods), (3, 10));
        assert!(!samples.memory.awaits());
    }

    #[test]
    fn samples_are_as_long_as_what_they_hold() {
        let mut memory = Memory::default();
        assert_eq!(memory.units(16), 1);
        memory.set_control(REGS);
        assert_eq!(memory.units(16), 5);
        memory.set_control(REGS | TRANSFERS);
        assert_eq!((memory.units(16), memory.units(256)), (11, 101));
        // Nothing fits into a buffer that is off.
        assert_eq!(memory.room(11), 0);
    }
}
