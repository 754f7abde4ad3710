//! What the stream says once about each static instruction.

use serde::{Deserialize, Serialize};

use crate::InstId;

/// Coarse class of a static instruction, enough for cycle stacks and basic blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Class {
    /// Integer and everything not named below.
    Int = 0,
    /// Loads.
    Load = 1,
    /// Stores.
    Store = 2,
    /// Floating point.
    Fp = 3,
    /// Conditional branch.
    Branch = 4,
    /// Direct jump or call.
    Jump = 5,
    /// Indirect jump, call or return.
    IndirectJump = 6,
    /// Atomics.
    Atomic = 7,
    /// CSR, fence, `ecall`, `xret`, `wfi`: serialising.
    System = 8,
}

impl Class {
    /// All classes, in numeric order.
    pub const ALL: [Self; 9] = [
        Self::Int,
        Self::Load,
        Self::Store,
        Self::Fp,
        Self::Branch,
        Self::Jump,
        Self::IndirectJump,
        Self::Atomic,
        Self::System,
    ];
}

/// The static info of an instruction, sent once before its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticInfo {
    /// The instruction's number; instructions are defined in the order 0, 1, 2, …
    pub id: InstId,
    /// Address space: 0 bare, 1 global (kernel), 2 and up user address spaces. User address spaces that begin at the same
    /// instruction, as those of one program, may share a number.
    pub space: u32,
    /// Virtual PC.
    pub pc: u64,
    /// Encoding (16-bit encodings in the low half).
    pub raw: u32,
    /// Length in bytes: 2 or 4.
    pub len: u8,
    /// Privilege (architectural encoding: 0 U, 1 S, 3 M).
    pub privilege: u8,
    /// Coarse class.
    pub class: Class,
    /// Target of a direct branch or jump.
    pub target: Option<u64>,
}
