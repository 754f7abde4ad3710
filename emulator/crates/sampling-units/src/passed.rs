//! What the commit stage tells of an instruction that left the ROB.

use commit_trace::{AccessKind, CommitRecord, Detail, Redirect, TeaEvents};
use isa::{DecodedInst, InstClass};

use crate::ctr::Kind;

/// How an instruction left the ROB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The instruction retired.
    #[default]
    Retired,
    /// The instruction retired, and had been mispredicted.
    Mispredicted,
    /// The instruction raised an exception.
    Exception,
    /// An interrupt was taken in place of the instruction.
    Interrupt,
    /// The instruction did not retire, and is fetched again (a load that had overtaken a store).
    Replayed,
}

impl Outcome {
    /// Returns the outcome of a record.
    pub fn of(record: &CommitRecord) -> Self {
        match record.redirect() {
            Redirect::None | Redirect::Flush => Self::Retired,
            Redirect::Mispredict => Self::Mispredicted,
            Redirect::Exception if record.tea().contains(TeaEvents::FL_MO) => Self::Replayed,
            Redirect::Exception => Self::Exception,
            Redirect::Interrupt => Self::Interrupt,
        }
    }

    /// Returns whether the instruction retired.
    pub fn retires(self) -> bool {
        matches!(self, Self::Retired | Self::Mispredicted)
    }
}

/// An instruction that left the ROB.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Virtual address of the instruction.
    pub pc: u64,
    /// Length of the instruction, what it accesses and how it transfers control.
    pub kind: StaticKind,
    /// How the instruction left the ROB.
    pub outcome: Outcome,
    /// Cycle in which the instruction left the ROB.
    pub cycle: u64,
    /// Cycles since the instruction before left the ROB.
    pub cycles: u64,
}

impl Passed {
    /// Returns an instruction of four bytes that does nothing, in the cycle of the one before.
    pub const fn at(pc: u64) -> Self {
        Self { pc, kind: StaticKind(0), outcome: Outcome::Retired, cycle: 0, cycles: 0 }
    }
}

/// An instruction that left the ROB, with all that the core knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What passed.
    pub passed: &'a Passed,
    /// Stages, data access and fetch packet of the instruction.
    pub detail: &'a Detail,
}

/// What the units have to know of a static instruction, in a byte: what it accesses, whether it is compressed, and its kind of
/// transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaticKind(u8);

/// Bit that is set for compressed instructions.
const COMPRESSED: u8 = 1 << 4;
/// Position of the [`AccessKind`].
const ACCESS_SHIFT: u32 = 5;

impl StaticKind {
    /// Returns the kind of the instruction with encoding `raw`.
    pub fn of(raw: u32) -> Self {
        let inst = isa::decode(raw);
        let compressed = if inst.len == 2 { COMPRESSED } else { 0 };
        let access = (access(&inst) as u8) << ACCESS_SHIFT;
        Self(access | compressed | Kind::of(&inst).map_or(0, |kind| kind as u8))
    }

    /// Returns the kind of an instruction of four bytes that transfers control as `kind` says.
    pub const fn transfer(kind: Kind) -> Self {
        Self(kind as u8)
    }

    /// Returns the kind of an instruction of four bytes that accesses memory as `access` says.
    pub const fn accessing(access: AccessKind) -> Self {
        Self((access as u8) << ACCESS_SHIFT)
    }

    /// Returns how the instruction transfers control, if it does.
    pub fn kind(self) -> Option<Kind> {
        Kind::of_number(self.0 & 15)
    }

    /// Returns what the instruction accesses.
    pub fn access(self) -> AccessKind {
        AccessKind::of_number(self.0 >> ACCESS_SHIFT).unwrap_or_default()
    }

    /// Returns the length of the instruction in bytes.
    pub fn bytes(self) -> u8 {
        if self.0 & COMPRESSED != 0 { 2 } else { 4 }
    }
}

fn access(inst: &DecodedInst) -> AccessKind {
    match inst.class {
        InstClass::Load | InstClass::FpLoad | InstClass::LoadReserved => AccessKind::Load,
        InstClass::Store | InstClass::FpStore | InstClass::StoreConditional => AccessKind::Store,
        InstClass::Amo => AccessKind::Atomic,
        _ => AccessKind::None,
    }
}
