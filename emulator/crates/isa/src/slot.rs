//! Slots: the places of a page's decoded instructions.

use std::cell::Cell;

use crate::{DecodedInst, Op, Reg, StaticId, Step};

/// Slots of a page of 4 KiB: one per halfword.
pub const SLOTS: usize = 2048;

/// Destination of decoded instructions that write `x0`: a register after the 64 real ones, which nothing reads.
pub const NOWHERE: Reg = 64;

/// A place for one decoded instruction. Fields are read one by one as execution needs them, which is
/// faster than to copy the whole.
#[repr(transparent)]
pub struct Slot(Cell<DecodedInst>);

impl Slot {
    /// A slot that holds `inst`.
    pub fn new(inst: DecodedInst) -> Self {
        Self(Cell::new(inst))
    }

    /// A slot without an instruction: its [`len`](Self::len) is 0, which no instruction has, and its operation is
    /// [`Op::Illegal`], whose execution leads to the slow path.
    pub fn empty() -> Self {
        Self::new(DecodedInst { len: 0, ..crate::decode(0) })
    }

    /// Puts an instruction into the slot.
    pub fn set(&self, inst: DecodedInst) {
        self.0.set(inst);
    }

    /// Empties the slot.
    pub fn clear(&self) {
        self.0.set(Self::empty().get());
    }

    /// The whole instruction.
    #[inline(always)]
    pub fn get(&self) -> DecodedInst {
        self.0.get()
    }

    /// Returns the operation.
    #[inline(always)]
    pub fn op(&self) -> Op {
        self.0.get().op
    }

    /// The instruction as a step of a [run](crate::Run). `offset` is in bytes from the start of the page.
    #[inline(always)]
    pub fn step(&self, id: StaticId, offset: u16) -> Step {
        let inst = self.0.get();
        Step::new(id, offset, inst.class, inst.len)
    }

    /// Length of the encoding in bytes; 0 if the slot is empty.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.0.get().len.into()
    }

    /// True if the slot holds no instruction.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Destination register; [`NOWHERE`] for `x0`.
    #[inline(always)]
    pub fn rd(&self) -> Reg {
        self.0.get().rd
    }

    /// First source register.
    #[inline(always)]
    pub fn rs1(&self) -> Reg {
        self.0.get().rs1
    }

    /// Second source register.
    #[inline(always)]
    pub fn rs2(&self) -> Reg {
        self.0.get().rs2
    }

    /// Third source register.
    #[inline(always)]
    pub fn rs3(&self) -> Reg {
        self.0.get().rs3
    }

    /// Sign-extended immediate.
    #[inline(always)]
    pub fn imm(&self) -> u64 {
        self.0.get().imm as i64 as u64
    }

    /// Returns the encoding.
    #[inline(always)]
    pub fn raw(&self) -> u32 {
        self.0.get().raw
    }
}
