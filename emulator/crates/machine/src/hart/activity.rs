//! What tells a machine that works from one that has stopped for good or only waits.

use devices::Bus;
use isa::{Op, Privilege};

use super::Hart;
use crate::csr::status;

impl Hart {
    /// Returns how often the hart entered user mode since it was made; `None` while it is in user mode. Between two equal
    /// numbers it has executed no instruction of a program.
    pub fn user_entries(&self) -> Option<u64> {
        (self.arch.privilege != Privilege::User).then_some(self.attachments.user_entries)
    }

    /// Returns true if the hart has stopped for good: it is in machine mode, takes no interrupt, and loops over a jump alone or
    /// over `wfi` and a jump. Firmware that cannot go on ends so (OpenSBI's `sbi_hart_hang`).
    pub fn is_halted(&self, bus: &mut Bus) -> bool {
        if self.arch.privilege != Privilege::Machine || self.arch.csrs.mstatus & status::MIE != 0 {
            return false;
        }
        let mut at = |pc| Some(isa::decode(self.instruction(bus, pc, Privilege::Machine)?));
        // Where a jump without a link leads.
        let target = |inst: isa::DecodedInst, pc: u64| {
            let jumps = inst.op == Op::Jal && inst.rd == 0;
            jumps.then(|| pc.wrapping_add_signed(inst.imm.into()))
        };
        let Some(first) = at(self.arch.pc) else {
            return false;
        };
        // The loop's beginning, and its jump: the hart is before the one or the other.
        let (begins, jump) = match first.op {
            Op::Wfi => (self.arch.pc, self.arch.pc.wrapping_add(u64::from(first.len))),
            _ => match target(first, self.arch.pc) {
                Some(target) => (target, self.arch.pc),
                None => return false,
            },
        };
        let closes = at(jump).and_then(|inst| target(inst, jump)) == Some(begins);
        let sleeps = |inst: isa::DecodedInst| inst.op == Op::Wfi;
        let whole =
            begins == jump || (begins.wrapping_add(4) == jump && at(begins).is_some_and(sleeps));
        closes && whole
    }
}
