//! Indirect access to CSRs (Smcsrind/Sscsrind 1.0), and what is reached by it: the counters that machine mode delegates to the
//! supervisor (Smcdeleg/Ssccfg 1.0), and control transfer records (Smctr/Ssctr 1.0).
//!
//! `siselect` says what `sireg` to `sireg6` stand for. Nothing is behind `mireg`: no extension here selects by `miselect`.
//! Where the specifications leave open what an access to nothing does, it is illegal. There is neither Smstateen, whose
//! `mstateen0.CSRIND` would forbid it all, nor a hypervisor with windows of its own.

use isa::{Extension, TimingModel};
use sampling_units::ctr::{Register, TransferRecords};

use crate::counters::MINH;
use crate::csr::{envcfg, number::*};
use crate::hart::{Env, Hart};
use crate::sampling::Shown;

/// `siselect` of counter 0; each counter has one.
const FIRST_COUNTER: u64 = 0x40;
const LAST_COUNTER: u64 = 0x5f;
/// `siselect` of the sampled instruction's record, of what is left of it, and (ours) of the precise sample's.
const SAMPLE: u64 = 0x60;
const SAMPLE_REST: u64 = 0x61;
const PRECISE_SAMPLE: u64 = 0x62;
/// Ours, for custom use: `siselect` of what counter 0 goes on from after an overflow that is recorded in memory.
const FIRST_RELOAD: u64 = 1 << 63 | FIRST_COUNTER;
const LAST_RELOAD: u64 = 1 << 63 | LAST_COUNTER;
/// `siselect` of control transfer record 0, the youngest.
const FIRST_RECORD: u64 = 0x200;
const LAST_RECORD: u64 = 0x2ff;

/// What is behind a window (`sireg`, `sireg2`, …).
pub(crate) enum Selected {
    /// A CSR that also has a number of its own.
    Csr {
        number: u16,
        /// Bits that the window shows; the others read as zero there and keep their values.
        shown: u64,
    },
    /// A register of a control transfer record.
    Record(Register),
    /// A word of a sample record.
    Sample((Shown, usize)),
    /// What a counter goes on from.
    Reload(usize),
    /// Reads as zero.
    Zero,
}

/// The number of a window, from 0.
const fn word(window: u16) -> Option<usize> {
    match window {
        SIREG..=SIREG3 => Some((window - SIREG) as usize),
        // 0x154 is `siph`'s place in the AIA, and no window.
        0x155..=SIREG6 => Some((window - SIREG - 1) as usize),
        _ => None,
    }
}

impl Hart {
    /// The counters whose configuration the supervisor has, by bit; `None` as long as `menvcfg.CDE` is clear.
    pub(crate) fn delegated_counters(&self) -> Option<u64> {
        (self.arch.csrs.menvcfg & envcfg::CDE != 0).then_some(self.arch.csrs.mcounteren)
    }

    /// What `window` stands for now; `None` if an access is illegal, in machine mode as well.
    pub(crate) fn selected(&self, window: u16) -> Option<Selected> {
        match self.arch.csrs.siselect {
            select @ FIRST_COUNTER..=LAST_COUNTER => {
                self.delegated_counter(window, (select - FIRST_COUNTER) as u16)
            }
            SAMPLE if self.extensions.has(Extension::Smpdis) => {
                Some(Selected::Sample((Shown::Sampled, word(window)?)))
            }
            SAMPLE_REST if self.extensions.has(Extension::Smpdis) => {
                word(window).map(|_| Selected::Zero)
            }
            PRECISE_SAMPLE if self.may_access_sampling(SHPMSPC) => {
                Some(Selected::Sample((Shown::Precise, word(window)?)))
            }
            select @ FIRST_RELOAD..=LAST_RELOAD if self.may_access_sampling(SHPMSPC) => {
                let index = (select - FIRST_RELOAD) as usize;
                let delegated = self.delegated_counters().unwrap_or(u64::MAX) >> index & 1 != 0;
                (window == SIREG && index >= 3 && delegated).then_some(Selected::Reload(index))
            }
            select @ FIRST_RECORD..=LAST_RECORD if self.extensions.has(Extension::Smctr) => {
                let entry = (select - FIRST_RECORD) as u8;
                Some(match window {
                    SIREG => Selected::Record(Register::Source(entry)),
                    SIREG2 => Selected::Record(Register::Target(entry)),
                    SIREG3 => Selected::Record(Register::Data(entry)),
                    // 0x154 is `siph`'s place in the AIA, and no window.
                    0x154 => return None,
                    _ => Selected::Zero,
                })
            }
            _ => None,
        }
    }

    fn delegated_counter(&self, window: u16, index: u16) -> Option<Selected> {
        let delegated = self.delegated_counters()? >> index & 1 != 0;
        // 1 is the time, which is nobody's to write.
        if !delegated || index == 1 {
            return None;
        }
        let filters = self.extensions.has(Extension::Smcntrpmf);
        let (number, shown) = match (window, index) {
            (SIREG, _) => (MCYCLE + index, u64::MAX),
            (SIREG2, 0) if filters => (MCYCLECFG, !MINH),
            (SIREG2, 2) if filters => (MINSTRETCFG, !MINH),
            (SIREG2, 3..) => (MHPMEVENT3 + (index - 3), !MINH),
            // Nobody's, or the upper halves that a 32-bit hart needs.
            _ => return None,
        };
        Some(Selected::Csr { number, shown })
    }

    /// Reads or changes the control transfer records, when all that retired has passed them.
    pub(crate) fn with_transfer_records<T: TimingModel, R>(
        &mut self,
        env: &Env<'_, T>,
        act: impl FnOnce(&mut TransferRecords) -> R,
    ) -> R {
        // Also before they become active: what retired until then is not recorded.
        if T::TIMED {
            env.timing.now();
        }
        let (pc, privilege) = (self.instruction.executed.pc, self.arch.privilege as u8);
        self.sampling.units.transfer_records.with(|records| {
            records.set_privilege(privilege);
            records.reach(pc);
            act(records)
        })
    }
}
