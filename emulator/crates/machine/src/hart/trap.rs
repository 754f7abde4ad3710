//! Traps and returns (Privileged ISA 1.13, sections 3.1.6 to 3.1.9 and 3.3.2).

use isa::{Exception, Interrupt, Privilege, Trap};
use sampling_units::ctr::control;

use super::{Hart, TakenException, after};
use crate::csr::{bit, status};

const INTERRUPT: u64 = 1 << 63;
/// Causes that may freeze the control transfer records.
const BREAKPOINT: u64 = Exception::Breakpoint as u64;
const COUNTER_OVERFLOW: u64 = INTERRUPT | Interrupt::CounterOverflow as u64;

/// Pending interrupts are taken in this order.
const PRIORITY: [Interrupt; 8] = [
    Interrupt::MachineExternal,
    Interrupt::MachineSoftware,
    Interrupt::MachineTimer,
    Interrupt::SupervisorExternal,
    Interrupt::SupervisorSoftware,
    Interrupt::SupervisorTimer,
    Interrupt::CounterOverflow,
    Interrupt::MemoryBuffer,
];

impl Hart {
    /// Takes an exception raised by the instruction at `pc`. Gives the handler's address.
    #[cold]
    #[inline(never)]
    pub(crate) fn trap(&mut self, trap: Trap, pc: u64) -> u64 {
        self.progress.not_retired = self.progress.not_retired.wrapping_add(1);
        let code = trap.cause as u64;
        let delegated = self.arch.csrs.medeleg >> code & 1 != 0;
        let privilege = self.arch.privilege;
        let own = match privilege {
            Privilege::Machine => Some(self.arch.csrs.mtvec & !3),
            Privilege::Supervisor => Some(self.arch.csrs.stvec & !3),
            Privilege::User => None,
        };
        let next = self.enter_handler(code, delegated, trap.tval, pc);
        let taken = TakenException { trap, pc, privilege };
        self.note_exception(taken, own, next);
        next
    }

    /// Takes an interrupt in place of the instruction at `pc`. Gives the handler's address.
    pub(super) fn interrupt(&mut self, interrupt: Interrupt, pc: u64) -> u64 {
        let delegated = self.arch.csrs.mideleg & bit(interrupt) != 0;
        self.enter_handler(INTERRUPT | interrupt as u64, delegated, 0, pc)
    }

    fn enter_handler(&mut self, cause: u64, delegated: bool, tval: u64, pc: u64) -> u64 {
        if let BREAKPOINT | COUNTER_OVERFLOW = cause {
            self.may_freeze(cause);
        }
        let csrs = &mut self.arch.csrs;
        let from = self.arch.privilege;
        let vector = if delegated && from != Privilege::Machine {
            csrs.sepc = pc;
            csrs.scause = cause;
            csrs.stval = tval;
            let mut mstatus = csrs.mstatus & !(status::SPIE | status::SPP | status::SIE);
            if csrs.mstatus & status::SIE != 0 {
                mstatus |= status::SPIE;
            }
            if from == Privilege::Supervisor {
                mstatus |= status::SPP;
            }
            csrs.mstatus = mstatus;
            self.set_privilege(Privilege::Supervisor);
            self.arch.csrs.stvec
        } else {
            csrs.mepc = pc;
            csrs.mcause = cause;
            csrs.mtval = tval;
            let mut mstatus = csrs.mstatus & !(status::MPIE | status::MPP | status::MIE);
            if csrs.mstatus & status::MIE != 0 {
                mstatus |= status::MPIE;
            }
            csrs.mstatus = mstatus | (from as u64) << status::MPP_SHIFT;
            self.set_privilege(Privilege::Machine);
            self.arch.csrs.mtvec
        };
        let vectored = vector & 1 != 0 && cause & INTERRUPT != 0;
        (vector & !3).wrapping_add(if vectored { 4 * (cause & !INTERRUPT) } else { 0 })
    }

    /// Freezes the control transfer records by a trap for which that is asked for (Smctr 1.0, "Freeze").
    #[cold]
    fn may_freeze(&mut self, cause: u64) {
        let by = match cause {
            BREAKPOINT => control::BPFRZ,
            _ => control::LCOFIFRZ,
        };
        if self.sampling.units.transfer_records.with(|records| records.control() & by != 0) {
            self.deadlines.afterwards(after::FREEZE);
        }
    }

    /// `mret`: gives the address to return to.
    pub(crate) fn return_from_machine(&mut self) -> u64 {
        let mstatus = self.arch.csrs.mstatus;
        let to = self.arch.csrs.mpp();
        let mut new = mstatus & !(status::MIE | status::MPP) | status::MPIE;
        if mstatus & status::MPIE != 0 {
            new |= status::MIE;
        }
        if to != Privilege::Machine {
            new &= !status::MPRV;
        }
        self.arch.csrs.mstatus = new;
        self.set_privilege(to);
        self.note_return(self.arch.csrs.mepc);
        self.arch.csrs.mepc
    }

    /// `sret`: gives the address to return to.
    pub(crate) fn return_from_supervisor(&mut self) -> u64 {
        let mstatus = self.arch.csrs.mstatus;
        let supervisor = mstatus & status::SPP != 0;
        let mut new = mstatus & !(status::SIE | status::SPP | status::MPRV) | status::SPIE;
        if mstatus & status::SPIE != 0 {
            new |= status::SIE;
        }
        self.arch.csrs.mstatus = new;
        self.set_privilege(if supervisor { Privilege::Supervisor } else { Privilege::User });
        self.note_return(self.arch.csrs.sepc);
        self.arch.csrs.sepc
    }

    fn set_privilege(&mut self, privilege: Privilege) {
        let changed = self.arch.privilege != privilege;
        self.arch.privilege = privilege;
        self.attachments.user_entries += u64::from(changed && privilege == Privilege::User);
        self.update_rights();
        if changed && (self.progress.timed || self.arch.counters.filtered()) {
            self.deadlines.afterwards(after::PRIVILEGE);
        }
    }

    /// The interrupt to take now, given `mip`.
    pub(super) fn choose(&self, mip: u64) -> Option<Interrupt> {
        let pending = mip & self.arch.csrs.mie;
        if pending == 0 {
            return None;
        }
        let mstatus = self.arch.csrs.mstatus;
        let machine = self.arch.privilege != Privilege::Machine || mstatus & status::MIE != 0;
        let supervisor = match self.arch.privilege {
            Privilege::User => true,
            Privilege::Supervisor => mstatus & status::SIE != 0,
            Privilege::Machine => false,
        };
        let to_machine = if machine { pending & !self.arch.csrs.mideleg } else { 0 };
        let to_supervisor = if supervisor { pending & self.arch.csrs.mideleg } else { 0 };
        // All interrupts to a more privileged mode come before those to a less privileged one.
        let taken = if to_machine != 0 { to_machine } else { to_supervisor };
        PRIORITY.into_iter().find(|&interrupt| taken & bit(interrupt) != 0)
    }
}
