//! The decoded form of an instruction.

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
    /// All classes, in numeric order.
    pub const ALL: [InstClass; 25] = {
        use InstClass::*;
        [
            IntAlu, IntMul, IntDiv, Branch, Jal, Jalr, Load, Store, FpLoad, FpStore, Amo,
            LoadReserved, StoreConditional, FpArith, FpDivSqrt, FpToInt, IntToFp, Csr, Fence,
            FenceI, SfenceVma, Ecall, Xret, Wfi, Illegal,
        ]
    };

    /// True for instructions that dispatch only into an empty ROB (BOOM `is_unique`).
    pub const fn is_unique(self) -> bool {
        use InstClass::*;
        matches!(
            self,
            Amo | LoadReserved | StoreConditional | Csr | Fence | FenceI | SfenceVma | Ecall | Xret
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
    pub op: crate::Op,
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
    /// Sign-extended immediate; the CSR number for CSR instructions (zero-extended immediates of
    /// `csrrwi` and the like are in `rs1` of `raw`).
    pub imm: i32,
    /// The encoding as fetched (16-bit encodings in the low half). For a compressed instruction
    /// that needs its rounding mode or `aq`/`rl` bits: none does.
    pub raw: u32,
}
