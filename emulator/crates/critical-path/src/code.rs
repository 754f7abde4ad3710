//! What is known of static instructions by their encoding.

use commit_trace::{InstId, StaticInfo};
use isa::InstClass;

/// A static instruction.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// Class of the instruction.
    pub class: InstClass,
    /// Registers that the instruction reads (0: none), in the encoding's order; 32 and up are FP.
    pub sources: [u8; 3],
    /// Register that the instruction writes, or 0.
    pub destination: u8,
}

/// A program's static instructions, by number.
#[derive(Debug)]
pub struct Code<'a> {
    static_info: &'a [StaticInfo],
    insts: Vec<Inst>,
}

impl<'a> Code<'a> {
    /// Decodes the static instructions.
    pub fn new(static_info: &'a [StaticInfo]) -> Self {
        Self { insts: static_info.iter().map(Inst::new).collect(), static_info }
    }

    /// Returns the decoded instruction with number `id`, if there is one.
    pub fn get(&self, id: InstId) -> Option<&Inst> {
        self.insts.get(id.0 as usize)
    }

    /// Returns the address and encoding of the instruction with number `id`, if there is one.
    pub fn info(&self, id: InstId) -> Option<&'a StaticInfo> {
        self.static_info.get(id.0 as usize)
    }
}

/// The issue queue and ports of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Loads and stores.
    Memory,
    /// Integer operations, branches and jumps.
    Integer,
    /// Floating point.
    Fp,
    /// None: the instruction serialises, and executes alone.
    None,
}

impl Inst {
    /// Decodes an instruction.
    pub fn new(info: &StaticInfo) -> Self {
        let register = |r: u8| if r < 64 { r } else { 0 };
        let inst = isa::decode(info.raw);
        Self {
            class: inst.class,
            sources: [inst.rs1, inst.rs2, inst.rs3].map(register),
            destination: register(inst.rd),
        }
    }

    /// Returns the queue in which the instruction waits until it issues.
    pub fn queue(&self) -> Queue {
        use InstClass as C;
        match self.class {
            C::Load | C::FpLoad | C::Store | C::FpStore => Queue::Memory,
            C::FpArith | C::FpToInt | C::FpDivSqrt => Queue::Fp,
            C::IntAlu | C::IntMul | C::IntDiv | C::Branch | C::Jal | C::Jalr | C::IntToFp => {
                Queue::Integer
            }
            _ => Queue::None,
        }
    }

    /// Returns whether the instruction loads from memory and does nothing else there.
    pub fn is_load(&self) -> bool {
        matches!(self.class, InstClass::Load | InstClass::FpLoad)
    }

    pub(crate) fn is_store(&self) -> bool {
        matches!(self.class, InstClass::Store | InstClass::FpStore)
    }

    pub(crate) fn divides(&self) -> bool {
        matches!(self.class, InstClass::IntDiv | InstClass::FpDivSqrt)
    }

    /// Returns whether the instruction is a call: a jump that writes a return address.
    pub(crate) fn calls(&self) -> bool {
        matches!(self.class, InstClass::Jal | InstClass::Jalr) && self.destination != 0
    }
}
