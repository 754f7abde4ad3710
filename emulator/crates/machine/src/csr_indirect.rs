//! Indirect access to CSRs (Smcsrind/Sscsrind 1.0), and the counters that machine mode delegates to the supervisor by it
//! (Smcdeleg/Ssccfg 1.0).
//!
//! `siselect` says what `sireg` to `sireg6` stand for. Nothing is behind `mireg`: no extension here selects by `miselect`.
//! Where the specifications leave open what an access to nothing does, it is illegal. There is neither Smstateen, whose
//! `mstateen0.CSRIND` would forbid it all, nor a hypervisor with windows of its own.

use isa::Extension;

use crate::counters::MINH;
use crate::csr::{envcfg, number::*};
use crate::hart::Hart;

/// `siselect` of counter 0; each counter has one.
const FIRST_COUNTER: u64 = 0x40;
const LAST_COUNTER: u64 = 0x5f;

/// The CSR behind a window (`sireg`, `sireg2`, …).
pub(crate) struct SelectedCsr {
    /// Its own number.
    pub number: u16,
    /// Bits that the window shows; the others read as zero there and keep their values.
    pub shown: u64,
}

impl Hart {
    /// The counters whose configuration the supervisor has, by bit; `None` as long as `menvcfg.CDE` is clear.
    pub(crate) fn delegated_counters(&self) -> Option<u64> {
        (self.csrs.menvcfg & envcfg::CDE != 0).then_some(self.csrs.mcounteren)
    }

    /// What `window` stands for now; `None` if an access is illegal, in machine mode as well.
    pub(crate) fn selected_csr(&self, window: u16) -> Option<SelectedCsr> {
        match self.csrs.siselect {
            select @ FIRST_COUNTER..=LAST_COUNTER => {
                self.delegated_counter(window, (select - FIRST_COUNTER) as u16)
            }
            _ => None,
        }
    }

    fn delegated_counter(&self, window: u16, index: u16) -> Option<SelectedCsr> {
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
        Some(SelectedCsr { number, shown })
    }
}
