//! Samples of counters that the hart records in memory, with its registers: `shpmsctl`, and what belongs to it. Ours; see
//! [`sampling_units::precise`].

use isa::{Privilege, TimingModel};
use sampling_units::ctr::Register;
use sampling_units::pdis::RECORD_BYTES;
use sampling_units::precise::{Awaited, MemorySample, sample_info};

use crate::csr::LAMBIP;
use crate::hart::{Env, Hart, after};

/// Number of control transfer records for `sctrdepth` 0.
const LEAST_DEPTH: u64 = 16;

impl Hart {
    /// Returns the number of samples that there is room for.
    pub(crate) fn room_for_samples(&self) -> u64 {
        let transfers = self.transfers();
        self.sampling.units.samplers.with(|units| {
            let memory = &units.precise.memory;
            memory.room(memory.units(transfers))
        })
    }

    /// Returns the number of control transfer records.
    fn transfers(&self) -> u64 {
        let records = &self.sampling.units.transfer_records;
        LEAST_DEPTH << records.with(|records| records.read(Register::Depth))
    }

    /// Notes counters that overflowed and whose samples are to be recorded before the next instruction.
    #[cold]
    pub(crate) fn expect_samples(&mut self, overflowed: &[Awaited]) {
        self.sampling.units.samplers.with(|units| units.precise.expect(overflowed));
        self.sampling.awaits_samples = true;
        self.deadlines.afterwards(after::INTERRUPTS);
    }

    /// Records the samples that are complete, before the instruction at `pc`, and watches for the next overflows.
    #[cold]
    pub(crate) fn record_samples<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        pc: u64,
        count: u64,
    ) {
        let now = self.now(env, count);
        while let Some(sample) =
            self.sampling.units.samplers.with(|units| units.precise.take_sample(now))
        {
            self.record_sample(env, sample, pc);
        }
        let (awaits, interrupt) = self.sampling.units.samplers.with(|units| {
            let memory = &mut units.precise.memory;
            (memory.awaits(), memory.buffer.take_interrupt())
        });
        self.sampling.awaits_samples = awaits;
        if awaits {
            // Cycles are attributed when the instruction on which they were spent has left the ROB.
            self.sampling.due = 0;
        }
        if interrupt {
            self.arch.csrs.mip_soft |= LAMBIP;
        }
        self.watch_counters(env, count);
    }

    /// Records a sample, with groups as they are here and now.
    fn record_sample<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        sample: MemorySample,
        pc: u64,
    ) {
        let mut words = self.words(env, &sample.record).to_vec();
        let (regs, transfers) = self.sampling.units.samplers.with(|units| {
            let memory = &units.precise.memory;
            (memory.has_regs(), memory.has_transfers())
        });
        // The firmware's registers and transfers are not shown.
        let shown = self.arch.privilege != Privilege::Machine;
        let (regs, transfers) = (regs && shown, transfers && shown);
        words[6] = sample.info | (self.arch.privilege as u64) << sample_info::PRIVILEGE_SHIFT;
        words[7] = sample.periods;
        if regs {
            words[6] |= sample_info::REGS;
            words.push(pc);
            words.extend_from_slice(&self.arch.registers.integer()[1..]);
        }
        if transfers {
            words[6] |= sample_info::TRANSFERS;
            let depth = self.transfers();
            let privilege = self.arch.privilege as u8;
            self.sampling.units.transfer_records.with(|records| {
                records.set_privilege(privilege);
                records.reach(pc);
                for entry in (0..depth).map(|entry| entry as u8) {
                    let registers = [Register::Source, Register::Target, Register::Data];
                    words.extend(registers.map(|register| records.read(register(entry))));
                }
            });
        }
        words[6] |= (words.len() as u64 * 8).div_ceil(RECORD_BYTES) << sample_info::UNITS_SHIFT;
        for unit in words.chunks(RECORD_BYTES as usize / 8) {
            let mut padded = [0; 8];
            padded[..unit.len()].copy_from_slice(unit);
            let place = |hart: &Self| {
                let samplers = &hart.sampling.units.samplers;
                samplers.with(|units| units.precise.memory.buffer.place())
            };
            if let Some(address) = place(self)
                && self.write_words(env, address, padded).is_none()
            {
                self.sampling
                    .units
                    .samplers
                    .with(|units| units.precise.memory.buffer.fault(address));
            }
        }
    }
}
