//! The decoded form of an instruction.

use crate::{Extension, Op, compressed};

/// A register name in the unified numbering: 0 is `x0` and means "no register"
/// to the timing core, 1–31 are `x1`–`x31`, 32–63 are `f0`–`f31`.
pub type Reg = u8;

/// The classes that the timing core tells apart. The ISA table gives each
/// instruction one; queues, ports and latencies follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InstClass {
    /// Integer ALU operation, `lui`, `auipc`, shifts, compares.
    IntAlu,
    /// Integer multiplication.
    IntMul,
    /// Integer division and remainder.
    IntDiv,
    /// Conditional branch.
    Branch,
    /// Direct jump (`jal`).
    Jal,
    /// Indirect jump (`jalr`).
    Jalr,
    /// Integer load.
    Load,
    /// Integer store.
    Store,
    /// Floating-point load.
    FpLoad,
    /// Floating-point store.
    FpStore,
    /// Atomic read-modify-write.
    Amo,
    /// Load-reserved.
    LoadReserved,
    /// Store-conditional.
    StoreConditional,
    /// Pipelined FP arithmetic (add, mul, fused, sign injection, min/max, fp↔fp conversion).
    FpArith,
    /// FP division and square root.
    FpDivSqrt,
    /// FP register to integer register (`fmv.x`, `fcvt.l.d`, compares, `fclass`).
    FpToInt,
    /// Integer register to FP register.
    IntToFp,
    /// CSR access.
    Csr,
    /// Memory fence.
    Fence,
    /// Instruction-stream fence.
    FenceI,
    /// Address-translation fence.
    SfenceVma,
    /// Environment call or breakpoint.
    Ecall,
    /// `mret`, `sret`.
    Xret,
    /// Wait for interrupt.
    Wfi,
    /// Anything that always traps: an illegal encoding, or an instruction that could not be fetched.
    Illegal,
}

impl InstClass {
    /// Number of classes.
    pub const COUNT: usize = Self::Illegal as usize + 1;

    /// Returns true if an instruction of the class is a branch or jump.
    pub const fn transfers(self) -> bool {
        matches!(self, Self::Branch | Self::Jal | Self::Jalr)
    }

    /// Returns true if an instruction of the class reads or changes more than registers and memory, or must execute alone in the pipeline.
    pub const fn serialises(self) -> bool {
        matches!(
            self,
            Self::Amo
                | Self::LoadReserved
                | Self::StoreConditional
                | Self::Csr
                | Self::Fence
                | Self::FenceI
                | Self::SfenceVma
                | Self::Ecall
                | Self::Xret
                | Self::Wfi
                | Self::Illegal
        )
    }

    /// True for instructions of the A extension and those that extend it.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::Amo | Self::LoadReserved | Self::StoreConditional)
    }

    /// True for plain loads and stores, integer or FP.
    pub const fn accesses_memory(self) -> bool {
        matches!(self, Self::Load | Self::Store | Self::FpLoad | Self::FpStore)
    }
}

impl InstClass {
    /// All classes, in numeric order.
    pub const ALL: [InstClass; 25] = {
        use InstClass::*;
        [
            IntAlu,
            IntMul,
            IntDiv,
            Branch,
            Jal,
            Jalr,
            Load,
            Store,
            FpLoad,
            FpStore,
            Amo,
            LoadReserved,
            StoreConditional,
            FpArith,
            FpDivSqrt,
            FpToInt,
            IntToFp,
            Csr,
            Fence,
            FenceI,
            SfenceVma,
            Ecall,
            Xret,
            Wfi,
            Illegal,
        ]
    };

    /// True for instructions that dispatch only into an empty ROB (BOOM `is_unique`).
    pub const fn is_unique(self) -> bool {
        use InstClass::*;
        matches!(
            self,
            Amo | LoadReserved
                | StoreConditional
                | Csr
                | Fence
                | FenceI
                | SfenceVma
                | Ecall
                | Xret
                | Wfi
        )
    }

    /// True for everything that can change the program counter other than to the next instruction
    /// without trapping.
    pub const fn is_control_flow(self) -> bool {
        matches!(self, Self::Branch | Self::Jal | Self::Jalr | Self::Xret)
    }
}

/// One decoded instruction, 16 bytes. Compressed instructions are decoded to
/// the operation that they expand to, with `len` = 2 and the 16-bit encoding in `raw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DecodedInst {
    /// The operation, as a number of the instruction table.
    pub op: Op,
    /// The class, copied from the table.
    pub class: InstClass,
    /// Length in bytes: 2 or 4.
    pub len: u8,
    /// Destination; 0 if none.
    pub rd: Reg,
    /// First source; 0 if none (or `x0`).
    pub rs1: Reg,
    /// Second source; 0 if none.
    pub rs2: Reg,
    /// Third source (fused multiply-add); 0 if none.
    pub rs3: Reg,
    /// Immediate, sign-extended; shift amount; CSR number; the whole upper immediate (low 12 bits
    /// zero) of `lui` and `auipc`; 0 if none.
    pub imm: i32,
    /// The encoding as fetched, a 16-bit one zero-extended. No compressed instruction has a field
    /// that the accessors below read.
    pub raw: u32,
}

impl DecodedInst {
    /// The decoded form of a reserved encoding, or (`raw` = 0) of an instruction that could not be
    /// fetched.
    pub const fn illegal(raw: u32) -> Self {
        Self {
            op: Op::Illegal,
            class: InstClass::Illegal,
            len: if raw & 3 == 3 { 4 } else { 2 },
            rd: 0,
            rs1: 0,
            rs2: 0,
            rs3: 0,
            imm: 0,
            raw,
        }
    }

    /// The optional extensions that the instruction needs.
    pub fn extensions(&self) -> &'static [Extension] {
        if self.len == 2 && compressed::is_zcb(self.raw) {
            return &[Extension::Zcb];
        }
        self.op.extensions()
    }

    /// Returns true for the square roots of [`InstClass::FpDivSqrt`].
    pub const fn is_square_root(&self) -> bool {
        matches!(self.op, Op::FsqrtS | Op::FsqrtD | Op::FsqrtH)
    }

    /// CSR instructions: the CSR's number.
    pub const fn csr(&self) -> u16 {
        self.imm as u16
    }

    /// `csrrwi`, `csrrsi`, `csrrci`: the 5-bit immediate, which stands in the place of `rs1`.
    pub const fn csr_uimm(&self) -> u64 {
        (self.raw >> 15 & 31) as u64
    }

    /// FP instructions that round: the static rounding mode 0 to 4, or 7 for the one in `frm`.
    pub const fn rounding_mode(&self) -> u8 {
        (self.raw >> 12 & 7) as u8
    }

    /// Atomics: no later memory operation may be observed before this one.
    pub const fn aq(&self) -> bool {
        self.raw >> 26 & 1 != 0
    }

    /// Atomics: no earlier memory operation may be observed after this one.
    pub const fn rl(&self) -> bool {
        self.raw >> 25 & 1 != 0
    }
}
