//! Execution: one method per row of the instruction table.
//!
//! Every method has the same shape, `fn(&mut self, &mut Env, &Slot, InstPosition) -> Next`, so that the
//! dispatch can be generated from the table and a missing one does not compile.

mod atomic;
mod bits;
mod block;
mod control;
mod fp;
mod int;
mod memory;
mod muldiv;
mod system;

use isa::{Exception, Op, Slot, TimingModel, Trap};

use crate::hart::{Env, Hart, InstPosition};

/// Address of the next instruction, or the exception that was raised. What stores takes it, and all else that it needs, from its slot
/// before it does: its own page may be emptied.
pub(crate) type Next = Result<u64, Trap>;

/// The instruction after this one.
#[inline(always)]
fn following(inst: &Slot, at: InstPosition) -> Next {
    Ok(at.pc.wrapping_add(inst.len()))
}

/// The exception of an instruction that may not be executed.
fn illegal(inst: &Slot) -> Trap {
    Trap { cause: Exception::IllegalInst, tval: inst.raw().into() }
}

macro_rules! dispatch {
    ($hart:ident, $env:ident, $inst:ident, $at:ident; $($variant:ident $method:ident,)*) => {
        match $inst.op() {
            $(Op::$variant => $hart.$method($env, $inst, $at),)*
        }
    };
}

impl Hart {
    /// Executes one instruction.
    #[inline(always)]
    pub(crate) fn execute<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        let hart = self;
        isa::for_each_op!(dispatch, hart, env, inst, at)
    }

    /// A reserved encoding. Empty slots and region triggers come here, too: see `Hart::execute_slowly`.
    pub(crate) fn illegal<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        _: InstPosition,
    ) -> Next {
        Err(illegal(inst))
    }
}
