//! Cache-block operations (Zicbom, Zicboz). No cache holds anything that memory does not: the management
//! instructions only check that they may be executed, and the address.

use isa::{Privilege, Slot, TimingModel, Trap};

use super::{Next, following, illegal};
use crate::csr::envcfg;
use crate::hart::{Env, Hart, InstPosition};
use crate::mmu::Access;

impl Hart {
    pub(crate) fn cbo_inval<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.manage(env, inst, at, envcfg::CBIE)
    }

    pub(crate) fn cbo_clean<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.manage(env, inst, at, envcfg::CBCFE)
    }

    pub(crate) fn cbo_zero<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.enabled(inst, envcfg::CBZE)?;
        let block = self.block(env, inst, Access::Store)?;
        let next = following(inst, at);
        for word in (0..envcfg::BLOCK).step_by(8) {
            self.store::<T, u64>(env, block + word, 0, at.count)?;
        }
        next
    }

    /// A block may be managed by whoever may read or write it; faults are those of a store (CMO
    /// specification, section 2.5.2).
    fn manage<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
        enable: u64,
    ) -> Next {
        self.enabled(inst, enable)?;
        if self.block(env, inst, Access::Load).is_err() {
            self.block(env, inst, Access::Store)?;
        }
        following(inst, at)
    }

    /// Virtual address of the block that rs1 points into, if all of it may be accessed; a fault tells the address
    /// as given.
    fn block<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        access: Access,
    ) -> Result<u64, Trap> {
        let va = self.get(inst.rs1());
        let block = va & !(envcfg::BLOCK - 1);
        match self.place(env, block, envcfg::BLOCK as u8, access) {
            Ok(_) => Ok(block),
            Err(trap) => Err(Trap { tval: va, ..trap }),
        }
    }

    /// Below M-mode, `menvcfg` must allow it, in U-mode `senvcfg` too.
    fn enabled(&self, inst: &Slot, enable: u64) -> Result<(), Trap> {
        let machine =
            self.arch.privilege == Privilege::Machine || self.arch.csrs.menvcfg & enable != 0;
        let supervisor =
            self.arch.privilege != Privilege::User || self.arch.csrs.senvcfg & enable != 0;
        if machine && supervisor { Ok(()) } else { Err(illegal(inst)) }
    }
}
