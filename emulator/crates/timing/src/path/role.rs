//! What the path wants to know of a static instruction.

use isa::{DecodedInst, InstClass, TransferKind};

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
    pub(super) fn of(inst: &DecodedInst) -> Self {
        match (inst.class, TransferKind::of(inst)) {
            (_, Some(kind)) => kind.into(),
            (InstClass::Load | InstClass::FpLoad, _) => Self::Load,
            (InstClass::Store | InstClass::FpStore, _) => Self::Store,
            _ => Self::None,
        }
    }

    /// Returns what the instruction does to the path.
    pub(super) fn transfer(self) -> Option<TransferKind> {
        match self {
            Self::None | Self::Load | Self::Store => None,
            Self::Branch | Self::Foreseen => Some(TransferKind::Branch),
            Self::Direct => Some(TransferKind::Direct),
            Self::DirectCall => Some(TransferKind::DirectCall),
            Self::Indirect => Some(TransferKind::Indirect),
            Self::IndirectCall => Some(TransferKind::IndirectCall),
            Self::Return => Some(TransferKind::Return),
            Self::Flush | Self::SerialWithoutFlush => Some(TransferKind::Flush),
        }
    }

    /// Returns the role of the instruction without these causes.
    pub(super) fn without(self, causes: u8) -> Self {
        match self {
            Self::Branch if has(causes, Cause::Mispredict) || has(causes, Cause::Select) => {
                Self::Foreseen
            }
            Self::Flush if has(causes, Cause::Flush) => Self::SerialWithoutFlush,
            role => role,
        }
    }
}

impl From<TransferKind> for Role {
    #[inline]
    fn from(kind: TransferKind) -> Self {
        match kind {
            TransferKind::Branch => Self::Branch,
            TransferKind::Direct => Self::Direct,
            TransferKind::DirectCall => Self::DirectCall,
            TransferKind::Indirect => Self::Indirect,
            TransferKind::IndirectCall => Self::IndirectCall,
            TransferKind::Return => Self::Return,
            TransferKind::Flush => Self::Flush,
        }
    }
}
