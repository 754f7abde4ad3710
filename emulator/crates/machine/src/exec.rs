//! Execution: one method per row of the instruction table.
//!
//! Every method has the same shape, `fn(&mut self, &mut Env, DecodedInst, At) -> Next`, so that the
//! dispatch can be generated from the table and a missing one does not compile.

mod atomic;
mod control;
mod fp;
mod int;
mod memory;
mod muldiv;
mod system;

use isa::{DecodedInst, Exception, Op, TimingModel, Trap};

use crate::hart::{At, Env, Hart};

/// Address of the next instruction, or the exception that was raised.
pub(crate) type Next = Result<u64, Trap>;

/// The instruction after this one.
#[inline(always)]
fn following(inst: DecodedInst, at: At) -> Next {
    Ok(at.pc.wrapping_add(inst.len.into()))
}

/// Sign-extended immediate.
#[inline(always)]
fn imm(inst: DecodedInst) -> u64 {
    inst.imm as i64 as u64
}

/// The exception of an instruction that may not be executed.
fn illegal(inst: DecodedInst) -> Trap {
    Trap {
        cause: Exception::IllegalInst,
        tval: inst.raw.into(),
    }
}

macro_rules! dispatch {
    ($hart:ident, $env:ident, $inst:ident, $at:ident; $($variant:ident $method:ident,)*) => {
        match $inst.op {
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
        inst: DecodedInst,
        at: At,
    ) -> Next {
        let hart = self;
        isa::for_each_op!(dispatch, hart, env, inst, at)
    }

    /// A reserved encoding. Empty slots and region triggers come here, too: see `Hart::stumble`.
    fn illegal<T: TimingModel>(&mut self, _: &mut Env<'_, T>, inst: DecodedInst, _: At) -> Next {
        Err(illegal(inst))
    }
}

#[cfg(test)]
mod tests;
