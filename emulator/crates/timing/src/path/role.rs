//! What the path wants to know of a static instruction.

use isa::{DecodedInst, InstClass};

use crate::micro_op::{self, Link};
use crate::without::{Cause, has};

/// What an instruction has to do with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing.
    None,
    /// Load.
    Load,
    /// Store.
    Store,
    /// Conditional branch.
    Branch,
    /// Direct jump.
    Direct,
    /// Direct jump that leaves a return address.
    DirectCall,
    /// Indirect jump.
    Indirect,
    /// Indirect jump that leaves a return address.
    IndirectCall,
    /// Return.
    Return,
    /// Serialising instruction, which flushes when it commits, or traps.
    Flush,
    /// Serialising instruction that does not flush ([`Cause::Flush`]).
    SerialWithoutFlush,
    /// Conditional branch that is not mispredicted ([`Cause::Mispredict`], [`Cause::Select`]).
    Foreseen,
}

impl Role {
    pub fn of(inst: &DecodedInst) -> Self {
        match (inst.class, micro_op::link(inst)) {
            (InstClass::Branch, _) => Self::Branch,
            (InstClass::Jal, Link::Call) => Self::DirectCall,
            (InstClass::Jal, _) => Self::Direct,
            (InstClass::Jalr, Link::Call) => Self::IndirectCall,
            (InstClass::Jalr, Link::Return) => Self::Return,
            (InstClass::Jalr, Link::None) => Self::Indirect,
            (InstClass::Load | InstClass::FpLoad, _) => Self::Load,
            (InstClass::Store | InstClass::FpStore, _) => Self::Store,
            (class, _) if class.serialises() => Self::Flush,
            _ => Self::None,
        }
    }

    /// Returns the role of the instruction without these causes.
    pub fn without(self, causes: u8) -> Self {
        match self {
            Self::Branch if has(causes, Cause::Mispredict) || has(causes, Cause::Select) => {
                Self::Foreseen
            }
            Self::Flush if has(causes, Cause::Flush) => Self::SerialWithoutFlush,
            role => role,
        }
    }
}
