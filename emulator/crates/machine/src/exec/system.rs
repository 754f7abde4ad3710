//! CSR instructions, fences and the privileged instructions.

use isa::{Exception, Privilege, Slot, TimingModel, Trap};
use sampling_units::ctr::TransferRecords;

use super::{Next, following, illegal};
use crate::csr::status;
use crate::hart::{Env, Hart, InstPosition, after};

/// `name(old, operand) new value`, with the operand from rs1 or, for `imm`, from its field.
macro_rules! csr_instructions {
    ($($name:ident $source:ident($old:ident, $operand:ident) $new:expr;)*) => {
        impl Hart {$(
            #[cold]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let field = inst.raw() >> 15 & 31;
                let operand = csr_instructions!(@$source self, inst, field);
                let update = |$old: u64, $operand: u64| $new;
                // Setting or clearing nothing by name does not count as a write.
                let write = field != 0 || update(1, 0) == 0;
                self.csr_instruction(env, inst, at, write, |old| update(old, operand))
            }
        )*}
    };
    (@register $hart:ident, $inst:ident, $field:ident) => { $hart.get($inst.rs1()) };
    (@immediate $hart:ident, $inst:ident, $field:ident) => { u64::from($field) };
}

csr_instructions! {
    csrrw register(_old, operand) operand;
    csrrs register(old, operand) old | operand;
    csrrc register(old, operand) old & !operand;
    csrrwi immediate(_old, operand) operand;
    csrrsi immediate(old, operand) old | operand;
    csrrci immediate(old, operand) old & !operand;
}

impl Hart {
    fn csr_instruction<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
        write: bool,
        update: impl FnOnce(u64) -> u64,
    ) -> Next {
        let number = inst.imm() as u16 & 0xfff;
        let old = self.read_csr(env, number, at.count).ok_or(illegal(inst))?;
        if write {
            let new = update(self.modified_csr(number, old));
            self.write_csr(env, number, new, at.count).ok_or(illegal(inst))?;
        }
        self.put(inst.rd(), old);
        following(inst, at)
    }

    /// Everything happens in program order: nothing to do.
    #[inline(always)]
    pub(crate) fn fence<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        following(inst, at)
    }

    /// Stores drop the decoded instructions that they overwrite at once: nothing to do.
    pub(crate) fn fence_i<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        if T::PACED {
            env.timing.warm_fence_i();
        }
        following(inst, at)
    }

    pub(crate) fn ecall<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        _: &Slot,
        _: InstPosition,
    ) -> Next {
        let cause = match self.arch.privilege {
            Privilege::User => Exception::EcallU,
            Privilege::Supervisor => Exception::EcallS,
            Privilege::Machine => Exception::EcallM,
        };
        Err(Trap { cause, tval: 0 })
    }

    pub(crate) fn ebreak<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        if self.host_call(env, inst, at) {
            return following(inst, at);
        }
        Err(Trap { cause: Exception::Breakpoint, tval: at.pc })
    }

    #[cold]
    pub(crate) fn sret<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.supervisor_only(inst, status::TSR)?;
        let to = self.return_from_supervisor();
        self.returned(env, at);
        Ok(to)
    }

    #[cold]
    pub(crate) fn mret<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        if self.arch.privilege != Privilege::Machine {
            return Err(illegal(inst));
        }
        let to = self.return_from_machine();
        self.returned(env, at);
        Ok(to)
    }

    fn returned<T: TimingModel>(&mut self, env: &mut Env<'_, T>, at: InstPosition) {
        // Even without a timing model: the loop has to look the page up in the new privilege.
        self.deadlines.afterwards(after::PRIVILEGE);
        self.interrupts_may_be_enabled(env, at.count);
    }

    #[cold]
    pub(crate) fn wfi<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        // In user mode `wfi` is illegal whenever there is a supervisor mode.
        self.supervisor_only(inst, status::TW)?;
        self.deadlines.afterwards(after::WAIT);
        following(inst, at)
    }

    #[cold]
    pub(crate) fn sfence_vma<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.supervisor_only(inst, status::TVM)?;
        let va = self.get(inst.rs1());
        let reach = if inst.rs1() == 0 { None } else { self.host.superpages.reach(va) };
        match reach {
            None => self.host.flush(),
            Some(bits) => {
                self.host.flush_region(va, bits);
                self.host.fetch_tlb.flush_region(va, bits);
            }
        }
        self.deadlines.afterwards(after::TRANSLATION);
        following(inst, at)
    }

    pub(crate) fn sfence_w_inval<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.supervisor_only(inst, 0)?;
        following(inst, at)
    }

    #[cold]
    pub(crate) fn sctrclr<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.supervisor_only(inst, 0)?;
        self.with_transfer_records(env, TransferRecords::clear);
        following(inst, at)
    }

    /// Machine mode, or supervisor mode unless the `mstatus` bit `trapped` says otherwise.
    fn supervisor_only(&self, inst: &Slot, trapped: u64) -> Result<(), Trap> {
        match self.arch.privilege {
            Privilege::Machine => Ok(()),
            Privilege::Supervisor if self.arch.csrs.mstatus & trapped == 0 => Ok(()),
            _ => Err(illegal(inst)),
        }
    }
}
