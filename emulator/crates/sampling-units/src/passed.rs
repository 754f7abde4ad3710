//! What the commit stage tells of an instruction.

use commit_trace::{AccessKind, CommitRecord, Detail, Redirect, TeaEvents};
use isa::{DecodedInst, InstClass};

use crate::ctr::Kind;

/// How an instruction left the ROB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It retired.
    #[default]
    Retired,
    /// It retired, and had been mispredicted.
    Mispredicted,
    /// It raised an exception.
    Exception,
    /// An interrupt was taken in its place.
    Interrupt,
    /// It did not retire, and is fetched again (a load that had overtaken a store).
    Replayed,
}

impl Outcome {
    /// That of a record.
    pub fn of(record: &CommitRecord) -> Self {
        match record.redirect() {
            Redirect::None | Redirect::Flush => Self::Retired,
            Redirect::Mispredict => Self::Mispredicted,
            Redirect::Exception if record.tea().contains(TeaEvents::FL_MO) => Self::Replayed,
            Redirect::Exception => Self::Exception,
            Redirect::Interrupt => Self::Interrupt,
        }
    }

    /// It retired.
    pub fn retires(self) -> bool {
        matches!(self, Self::Retired | Self::Mispredicted)
    }
}

/// An instruction that left the ROB.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Its virtual address.
    pub pc: u64,
    /// Its length, what it accesses and how it transfers control.
    pub kind: StaticKind,
    /// How it left.
    pub outcome: Outcome,
    /// Cycle in which it left.
    pub cycle: u64,
    /// Cycles since the one before did.
    pub cycles: u64,
}

impl Passed {
    /// An instruction of four bytes that does nothing, in the cycle of the one before.
    pub const fn at(pc: u64) -> Self {
        Self {
            pc,
            kind: StaticKind(0),
            outcome: Outcome::Retired,
            cycle: 0,
            cycles: 0,
        }
    }
}

/// The same with all that the core knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What passed.
    pub passed: &'a Passed,
    /// Its stages, its access, its packet.
    pub detail: &'a Detail,
}

/// What the units have to know of an instruction that never changes, in a byte: what it accesses, whether it is compressed, its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaticKind(u8);

/// The instruction is compressed.
const COMPRESSED: u8 = 1 << 4;
/// [`AccessKind`].
const ACCESS_SHIFT: u32 = 5;

impl StaticKind {
    /// Of an encoding.
    pub fn of(raw: u32) -> Self {
        let inst = isa::decode(raw);
        let compressed = if inst.len == 2 { COMPRESSED } else { 0 };
        let access = (access(&inst) as u8) << ACCESS_SHIFT;
        Self(access | compressed | Kind::of(&inst).map_or(0, |kind| kind as u8))
    }

    /// One of four bytes that transfers control so.
    pub const fn transfer(kind: Kind) -> Self {
        Self(kind as u8)
    }

    /// One of four bytes that accesses memory so.
    pub const fn accessing(access: AccessKind) -> Self {
        Self((access as u8) << ACCESS_SHIFT)
    }

    /// How it transfers control, if it does.
    pub fn kind(self) -> Option<Kind> {
        Kind::of_number(self.0 & 15)
    }

    /// What it accesses.
    pub fn access(self) -> AccessKind {
        AccessKind::of_number(self.0 >> ACCESS_SHIFT).unwrap_or_default()
    }

    /// Its length in bytes.
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
