//! Exceptions that lead nowhere: a handler that cannot be executed raises the next exception, and so for ever.

use devices::Bus;
use isa::{Exception, Privilege, Trap};

use super::{Hart, after};
use crate::mmu::{self, Access, EffectivePrivilege, pte};

/// An exception as a hart took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenException {
    /// Cause and value.
    pub trap: Trap,
    /// Address of the instruction that raised it.
    pub pc: u64,
    /// Privilege that it was executed in.
    pub privilege: Privilege,
}

/// A hart that gets no further: its exceptions repeat themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Number of the hart.
    pub hart: usize,
    /// The last exception that was raised elsewhere than in the handler, or the first there.
    pub first: TakenException,
    /// The one that repeats.
    pub repeated: TakenException,
    /// Where its handler is.
    pub handler: u64,
}

/// Times that the first instruction of a handler has to raise the same exception. Nothing is executed in between: the second time only the previous
/// privilege can have changed, which matters under `mstatus.MPRV`; the third time nothing has.
const NOTHING_EXECUTED: u32 = 3;
/// Times that an instruction of a handler has to raise the same exception, although a higher privilege handled it and returned. The higher privilege
/// may have mended the cause once, but not so many times.
const RETURNED_TO: u32 = 100;
/// Times that the same exception has to be raised, with the same values in all registers, although something is executed in between. The number is
/// high because the handler might wait for memory to change.
const SAME_REGISTERS: u32 = 100_000;

/// What a hart remembers of its exceptions.
pub(crate) struct Exceptions {
    /// Somebody wants to know.
    watched: bool,
    first: Option<TakenException>,
    last: Option<TakenException>,
    registers: Box<[u64; 32]>,
    times: u32,
    found: Option<Stuck>,
}

impl Default for Exceptions {
    fn default() -> Self {
        Self {
            watched: false,
            first: None,
            last: None,
            registers: Box::new([0; 32]),
            times: 0,
            found: None,
        }
    }
}

impl Hart {
    /// Lets a run end with [`crate::RunExit::Stuck`] when exceptions repeat themselves without end: once for each such
    /// loop, and the next run goes on in it. Off at reset.
    pub fn stop_when_stuck(&mut self, stop: bool) {
        self.attachments.exceptions = Exceptions { watched: stop, ..Exceptions::default() };
    }

    /// Notes that an exception was taken, and that execution goes on at `next`. `own`: address of the handler for the privilege in which the
    /// exception was raised.
    pub(super) fn note_exception(&mut self, taken: TakenException, own: Option<u64>, next: u64) {
        if !self.attachments.exceptions.watched {
            return;
        }
        let same_privilege = self.arch.privilege == taken.privilege;
        let in_handler = own == Some(taken.pc);
        let registers = self.arch.registers.integer();
        let exceptions = &mut self.attachments.exceptions;
        let again = exceptions.last == Some(taken);
        if !(in_handler || same_privilege) {
            (exceptions.first, exceptions.last) = (Some(taken), None);
            exceptions.times = 0;
            return;
        }
        let registers_same = *exceptions.registers == *registers;
        if again && (in_handler || registers_same) {
            exceptions.times += 1;
        } else {
            // An exception in the handler itself is a consequence of the exception elsewhere that came before.
            if !in_handler || exceptions.first.is_none() {
                exceptions.first = Some(taken);
            }
            exceptions.times = 1;
            exceptions.last = Some(taken);
        }
        *exceptions.registers = *registers;
        let most = match (in_handler, same_privilege) {
            (true, true) if next == taken.pc => NOTHING_EXECUTED,
            (true, false) => RETURNED_TO,
            _ => SAME_REGISTERS,
        };
        if exceptions.times == most {
            exceptions.found = Some(Stuck {
                hart: self.id,
                first: exceptions.first.unwrap_or(taken),
                repeated: taken,
                handler: next,
            });
            self.deadlines.afterwards(after::STUCK);
        }
    }

    /// Notes that a trap's handler returns to `pc`. If the last exception was raised at another address, the hart makes progress.
    pub(super) fn note_return(&mut self, pc: u64) {
        if self.attachments.exceptions.last.is_some_and(|last| last.pc != pc) {
            self.attachments.exceptions.last = None;
        }
    }

    /// Why the run ends, once.
    pub(super) fn take_stuck(&mut self) -> Option<Stuck> {
        self.attachments.exceptions.found.take()
    }

    /// Returns the names of the clear bits (A, D) of a page-table entry, if nothing else raised the page fault. Hardware that sets these bits (Svadu)
    /// would have gone on.
    pub fn clear_page_bits(&self, bus: &Bus, taken: &TakenException) -> Option<&'static str> {
        let access = match taken.trap.cause {
            Exception::InstPageFault => Access::Fetch,
            Exception::LoadPageFault => Access::Load,
            Exception::StorePageFault => Access::Store,
            _ => return None,
        };
        if self.arch.csrs.satp.levels() == 0 {
            return None;
        }
        let (va, read) = (taken.trap.tval, |pa| bus.ram.load(pa, 8));
        let leaf = mmu::walk(self.arch.csrs.satp, self.page_features(), va, read).ok()?;
        let by =
            EffectivePrivilege { user: taken.privilege == Privilege::User, sum: true, mxr: true };
        let (before, after) = (leaf.pte, mmu::accessed(leaf.pte, access));
        let permitted = |entry| mmu::permits(entry, access, by);
        if permitted(before) || !permitted(after) {
            return None;
        }
        Some(match after & !before {
            pte::A => "A",
            pte::D => "D",
            _ => "A and D",
        })
    }

    /// The next instruction is a jump to itself: nothing but an interrupt leads away from it.
    pub fn jumps_to_itself(&self, bus: &mut Bus) -> bool {
        // `j .`, compressed and not.
        matches!(self.instruction(bus, self.pc(), self.arch.privilege), Some(0xa001 | 0x6f))
    }

    /// The instruction that raised an exception; `None` if it could not be fetched, or is no longer where it was.
    pub fn raised_by(&self, bus: &mut Bus, taken: &TakenException) -> Option<u32> {
        match taken.trap.cause {
            Exception::InstMisaligned | Exception::InstAccessFault | Exception::InstPageFault => {
                return None;
            }
            Exception::IllegalInst if taken.trap.tval != 0 => return Some(taken.trap.tval as u32),
            _ => {}
        }
        self.instruction(bus, taken.pc, taken.privilege)
    }

    /// The instruction at a virtual address of a privilege; `None` if there is none in memory.
    pub(super) fn instruction(&self, bus: &mut Bus, pc: u64, privilege: Privilege) -> Option<u32> {
        let mut raw = 0;
        for half in 0..2 {
            let pa = self.physical(bus, pc.wrapping_add(2 * half), privilege)?;
            raw |= (bus.ram.load(pa, 2)? as u32) << (16 * half);
            if raw & 3 != 3 {
                break;
            }
        }
        Some(raw)
    }
}
