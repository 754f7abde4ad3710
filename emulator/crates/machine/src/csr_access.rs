//! Reading and writing CSRs, with their side effects.

use isa::{Extension, Privilege, TimingModel};
use sampling_units::ctr::Register;

use crate::csr::{self, envcfg, number::*, status};
use crate::csr_indirect::Selected;
use crate::hart::{Env, Hart, after};
use crate::mmu::Satp;
use crate::sampling::PDIS_BIT;

/// Index of the counter with this CSR number: the low five bits.
const fn counter(number: u16) -> usize {
    (number & 31) as usize
}

/// Index of the counter that `mcyclecfg` or `minstretcfg` filters.
const fn fixed(number: u16) -> usize {
    (number - MCYCLECFG) as usize * 2
}

/// The register of the control transfer records with this CSR number.
const fn records_register(number: u16) -> Register {
    match number {
        MCTRCTL => Register::MachineControl,
        SCTRCTL => Register::SupervisorControl,
        SCTRSTATUS => Register::Status,
        _ => Register::Depth,
    }
}

impl Hart {
    /// The value of a CSR, or `None` if it does not exist or must not be accessed now.
    pub(crate) fn read_csr<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        number: u16,
        count: u64,
    ) -> Option<u64> {
        self.may_access(number)?;
        self.csr(env, number, count)
    }

    /// The value of a CSR, whoever asks.
    pub(crate) fn csr<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        number: u16,
        count: u64,
    ) -> Option<u64> {
        let csrs = &self.arch.csrs;
        Some(match number {
            FFLAGS => csrs.fflags.into(),
            FRM => csrs.frm.into(),
            FCSR => u64::from(csrs.frm) << 5 | u64::from(csrs.fflags),
            SSTATUS => csrs.mstatus() & status::SSTATUS,
            SIE => csrs.mie & csrs.mideleg,
            STVEC => csrs.stvec,
            SCOUNTEREN => csrs.scounteren,
            SENVCFG => csrs.senvcfg,
            SSCRATCH => csrs.sscratch,
            SEPC => csrs.sepc,
            SCAUSE => csrs.scause,
            STVAL => csrs.stval,
            SIP => self.mip(env, count) & self.arch.csrs.mideleg,
            STIMECMP => csrs.stimecmp,
            SCOUNTINHIBIT => {
                let delegated = self.delegated_counters()?;
                self.arch.counters.inhibit() & delegated | self.sampling_inhibited()
            }
            SISELECT => csrs.siselect,
            SIREG..=SIREG6 => match self.selected(number)? {
                Selected::Csr { number, shown } => self.csr(env, number, count)? & shown,
                Selected::Record(register) => self.with_transfer_records(env, |r| r.read(register)),
                Selected::Sample(sample) => self.read_sample(env, sample, count),
                Selected::Reload(index) => self.arch.counters.reload(index),
                Selected::Zero => 0,
            },
            SCTRCTL | SCTRSTATUS | SCTRDEPTH | MCTRCTL => {
                let register = records_register(number);
                self.with_transfer_records(env, |records| records.read(register))
            }
            MPDISCTL | SPDISCTL..=SHPMSAMBADDR => self.read_sampling(env, number, count),
            SATP => csrs.satp.0,
            MSTATUS => csrs.mstatus(),
            MISA => csr::misa(self.extensions),
            MEDELEG => csrs.medeleg,
            MIDELEG => csrs.mideleg,
            MIE => csrs.mie,
            MTVEC => csrs.mtvec,
            MCOUNTEREN => csrs.mcounteren,
            MENVCFG => csrs.menvcfg,
            MCOUNTINHIBIT => self.arch.counters.inhibit() | self.sampling_inhibited(),
            MCYCLECFG | MINSTRETCFG => self.arch.counters.filter(fixed(number)),
            MHPMEVENT3..=MHPMEVENT31 => {
                self.sync_counters(env, count);
                self.arch.counters.event(counter(number))
            }
            MSCRATCH => csrs.mscratch,
            MEPC => csrs.mepc,
            MCAUSE => csrs.mcause,
            MTVAL => csrs.mtval,
            MISELECT => csrs.miselect,
            MIP => self.mip(env, count),
            PMPCFG0 | PMPCFG2 => self.arch.pmp.config(usize::from(number - PMPCFG0) / 2),
            PMPADDR0..=PMPADDR15 => self.arch.pmp.address((number - PMPADDR0).into()),
            MCYCLE | MINSTRET | MHPMCOUNTER3..=MHPMCOUNTER31 => {
                self.read_counter(env, number, count)
            }
            // Another hart may be ahead, or behind: time never goes back.
            TIME => {
                env.bus.now = env.bus.now.max(self.now(env, count));
                env.bus.mtime(env.bus.now)
            }
            CYCLE..=HPMCOUNTER31 => self.read_counter(env, number, count),
            SCOUNTOVF => {
                self.sync_counters(env, count);
                let machine = self.arch.privilege == Privilege::Machine;
                let visible = if machine { u64::MAX } else { self.arch.csrs.mcounteren };
                self.arch.counters.overflows() & visible | self.sampling_overflowed(env, count)
            }
            // `tdata1` reads as type 0: there are no debug triggers.
            TSELECT..=TDATA3 | MVENDORID | MCONFIGPTR => 0,
            MARCHID => csr::MARCHID,
            MIMPID => csr::MIMPID,
            MHARTID => self.id() as u64,
            _ => return None,
        })
    }

    /// What a set or clear instruction modifies, given what it read: of SEIP, only the bit that
    /// software wrote (Privileged ISA 1.13, section 3.1.9).
    pub(crate) fn modified_csr(&self, number: u16, read: u64) -> u64 {
        match number {
            MIP => read & !csr::SEIP | self.arch.csrs.mip_soft & csr::SEIP,
            _ => read,
        }
    }

    /// Writes a CSR that [`Self::read_csr`] can read. `None` if it is read-only.
    pub(crate) fn write_csr<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        number: u16,
        value: u64,
        count: u64,
    ) -> Option<()> {
        if number >> 10 == 3 {
            return None;
        }
        let delegated = self.arch.csrs.mideleg;
        match number {
            FFLAGS | FRM | FCSR => self.write_fcsr(number, value),
            SSTATUS => self.write_mstatus(env, value, status::SSTATUS_WRITE, count),
            MSTATUS => self.write_mstatus(env, value, status::WRITE, count),
            SIE => self.write_mie(env, value, delegated, count),
            MIE => self.write_mie(env, value, self.interrupts(csr::ALL_INTERRUPTS), count),
            SIP => self.write_mip(
                env,
                value,
                delegated & (csr::SSIP | csr::LCOFIP | csr::LAMBIP),
                count,
            ),
            MIP => {
                let timer = if self.arch.csrs.stce() { csr::STIP } else { 0 };
                self.write_mip(env, value, self.interrupts(csr::DELEGABLE & !timer), count);
            }
            MIDELEG => {
                let fixed = self.arch.csrs.mideleg & csr::LAMBIP;
                self.arch.csrs.mideleg = value & csr::DELEGABLE & !csr::LAMBIP | fixed;
                self.interrupts_may_be_enabled(env, count);
            }
            STIMECMP | MENVCFG => {
                match number {
                    STIMECMP => self.arch.csrs.stimecmp = value,
                    _ => {
                        let was = self.arch.csrs.menvcfg;
                        self.arch.csrs.menvcfg = envcfg::legalize(value, self.extensions);
                        if (was ^ self.arch.csrs.menvcfg) & envcfg::PBMTE != 0 {
                            self.host.flush();
                        }
                    }
                }
                self.deadlines.stimer_at = self.stimer_cycle(env.bus);
                self.deadlines.afterwards(after::INTERRUPTS);
            }
            SATP => {
                if let Some(satp) = Satp::legalize(value, self.extensions) {
                    self.arch.csrs.satp = satp;
                    self.host.flush();
                    self.deadlines.afterwards(after::TRANSLATION);
                }
            }
            PMPCFG0 | PMPCFG2 | PMPADDR0..=PMPADDR15 => {
                match number {
                    PMPCFG0 | PMPCFG2 => {
                        self.arch.pmp.set_config(usize::from(number - PMPCFG0) / 2, value)
                    }
                    _ => self.arch.pmp.set_address((number - PMPADDR0).into(), value),
                }
                self.host.flush();
                self.deadlines.afterwards(after::TRANSLATION);
            }
            MCYCLE
            | MINSTRET
            | MHPMCOUNTER3..=MHPMCOUNTER31
            | MHPMEVENT3..=MHPMEVENT31
            | MCYCLECFG
            | MINSTRETCFG
            | MCOUNTINHIBIT => self.write_counter(env, number, value, count),
            SCOUNTINHIBIT => {
                let delegated = self.delegated_counters()?;
                self.inhibit_sampling(env, value, count);
                let own = delegated | PDIS_BIT;
                let value = self.arch.counters.inhibit() & !own | value & own;
                self.write_counter(env, MCOUNTINHIBIT, value, count);
            }
            SIREG..=SIREG6 => match self.selected(number)? {
                Selected::Csr { number, shown } => {
                    let kept = self.csr(env, number, count)? & !shown;
                    return self.write_csr(env, number, value & shown | kept, count);
                }
                Selected::Record(register) => {
                    self.with_transfer_records(env, |r| r.write(register, value))
                }
                Selected::Reload(index) => {
                    self.sync_counters(env, count);
                    self.arch.counters.set_reload(index, value);
                    self.watch_counters(env, count);
                }
                // Written by the unit alone.
                Selected::Sample(_) | Selected::Zero => {}
            },
            SCTRCTL | SCTRSTATUS | SCTRDEPTH | MCTRCTL => {
                let register = records_register(number);
                self.with_transfer_records(env, |records| records.write(register, value));
            }
            MPDISCTL | SPDISCTL..=SHPMSAMBADDR => self.write_sampling(env, number, value, count),
            SENVCFG => {
                let legal = envcfg::legalize(value, self.extensions);
                self.arch.csrs.senvcfg = legal & envcfg::SUPERVISOR;
            }
            MISA | TSELECT..=TDATA3 => {}
            _ => return self.arch.csrs.set_plain(number, value),
        }
        Some(())
    }

    /// Privilege, counter-enable and trap-virtualisation checks (`None`: illegal instruction).
    fn may_access(&self, number: u16) -> Option<()> {
        let needed = number >> 8 & 3;
        let privilege = self.arch.privilege;
        let machine = privilege == Privilege::Machine;
        let allowed = match number {
            FFLAGS | FRM | FCSR => self.arch.csrs.mstatus & status::FS != 0,
            SATP => machine || self.arch.csrs.mstatus & status::TVM == 0,
            // `mcounteren.TM` guards `stimecmp` as it guards `time`.
            STIMECMP if !self.extensions.has(Extension::Sstc) => false,
            STIMECMP => machine || self.arch.csrs.stce() && self.arch.csrs.mcounteren & 2 != 0,
            MCYCLECFG | MINSTRETCFG => self.extensions.has(Extension::Smcntrpmf),
            SCTRCTL | SCTRSTATUS | SCTRDEPTH | MCTRCTL => self.extensions.has(Extension::Smctr),
            MPDISCTL | SPDISCTL..=SPDISAMBADDR | SHPMSPC..=SHPMSAMBADDR => {
                self.may_access_sampling(number)
            }
            // Between them.
            0x5c7 => false,
            MISELECT | SISELECT..=SIREG6 => self.extensions.has(Extension::Smcsrind),
            CYCLE..=HPMCOUNTER31 => {
                let bit = 1 << counter(number);
                let by_machine = machine || self.arch.csrs.mcounteren & bit != 0;
                let by_supervisor =
                    privilege != Privilege::User || self.arch.csrs.scounteren & bit != 0;
                by_machine && by_supervisor
            }
            _ => true,
        };
        (privilege as u16 >= needed && allowed).then_some(())
    }

    fn read_counter<T: TimingModel>(&self, env: &Env<'_, T>, number: u16, count: u64) -> u64 {
        self.arch.counters.read(counter(number), &self.totals(env, count))
    }

    fn write_counter<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        number: u16,
        value: u64,
        count: u64,
    ) {
        self.sync_counters(env, count);
        if let MHPMEVENT3..=MHPMEVENT31 = number
            && let Some(selection) = self.arch.counters.set_event(counter(number), value)
        {
            env.timing.select(counter(number) - 3, selection);
        }
        // A written `minstret` does not count the instruction that wrote it.
        let count = if number == MINSTRET { count.wrapping_add(1) } else { count };
        let totals = self.totals(env, count);
        match number {
            MCOUNTINHIBIT => self.arch.counters.set_inhibit(value),
            MCYCLECFG | MINSTRETCFG => self.arch.counters.set_filter(fixed(number), value),
            MHPMEVENT3..=MHPMEVENT31 => {}
            _ => self.arch.counters.write(counter(number), value, &totals),
        }
        self.arch.counters.set_privilege(self.arch.privilege, &totals);
        drop(totals);
        if number == MCOUNTINHIBIT {
            self.inhibit_sampling(env, value, count);
        }
        self.watch_counters(env, count);
        // The deadline has to be worked out anew.
        self.deadlines.afterwards(after::INTERRUPTS);
    }

    fn write_fcsr(&mut self, number: u16, value: u64) {
        let csrs = &mut self.arch.csrs;
        csrs.mstatus |= status::FS;
        if number != FRM {
            csrs.fflags = value as u8 & 31;
        }
        match number {
            FRM => csrs.frm = value as u8 & 7,
            FCSR => csrs.frm = (value >> 5) as u8 & 7,
            _ => {}
        }
    }

    fn write_mstatus<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        value: u64,
        mask: u64,
        count: u64,
    ) {
        let old = self.arch.csrs.mstatus;
        self.arch.csrs.set_mstatus(value, mask);
        let changed = old ^ self.arch.csrs.mstatus;
        if changed & status::MXR != 0 {
            self.host.flush_loads();
        }
        self.update_rights();
        if changed & (status::SIE | status::MIE) != 0 {
            self.interrupts_may_be_enabled(env, count);
        }
    }

    /// Returns the interrupts of `mask` that the hart has: `LAMBIP` only with Smpdis.
    fn interrupts(&self, mask: u64) -> u64 {
        match self.extensions.has(Extension::Smpdis) {
            true => mask,
            false => mask & !csr::LAMBIP,
        }
    }

    fn write_mie<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        value: u64,
        mask: u64,
        count: u64,
    ) {
        self.arch.csrs.mie = self.arch.csrs.mie & !mask | value & mask;
        self.interrupts_may_be_enabled(env, count);
    }

    fn write_mip<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        value: u64,
        mask: u64,
        count: u64,
    ) {
        let was = self.arch.csrs.mip_soft;
        self.arch.csrs.mip_soft = was & !mask | value & mask;
        if was & !self.arch.csrs.mip_soft & csr::LCOFIP != 0 {
            self.overflow_cleared();
        }
        self.interrupts_may_be_enabled(env, count);
    }
}

impl csr::Csrs {
    /// Writes a register that is only storage. `None` if there is no such register.
    fn set_plain(&mut self, number: u16, value: u64) -> Option<()> {
        // Trap vectors: 4-byte aligned, mode direct or vectored.
        let vector = value & !2;
        let pc = value & !1;
        match number {
            STVEC => self.stvec = vector,
            MTVEC => self.mtvec = vector,
            SEPC => self.sepc = pc,
            MEPC => self.mepc = pc,
            SCOUNTEREN => self.scounteren = value & 0xffff_ffff,
            MCOUNTEREN => self.mcounteren = value & 0xffff_ffff,
            SSCRATCH => self.sscratch = value,
            MSCRATCH => self.mscratch = value,
            SCAUSE => self.scause = value,
            MCAUSE => self.mcause = value,
            STVAL => self.stval = value,
            MTVAL => self.mtval = value,
            MISELECT => self.miselect = value & csr::SELECT_WRITE,
            SISELECT => self.siselect = value & csr::SELECT_WRITE,
            MEDELEG => self.medeleg = value & csr::MEDELEG_WRITE,
            _ => return None,
        }
        Some(())
    }
}
