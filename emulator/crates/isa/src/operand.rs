//! Operands: where the encoding keeps them.

use crate::DecodedInst;

/// One operand of the assembly syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Integer destination, bits 11–7.
    Rd,
    /// Integer source, bits 19–15.
    Rs1,
    /// Integer source, bits 24–20.
    Rs2,
    /// FP destination, bits 11–7.
    Frd,
    /// FP source, bits 19–15.
    Frs1,
    /// FP source, bits 24–20.
    Frs2,
    /// FP source, bits 31–27.
    Frs3,
    /// I-type immediate.
    ImmI,
    /// U-type immediate: the value with its low 12 bits zero.
    ImmU,
    /// Shift amount, bits 25–20 (bit 25 is fixed in the 32-bit shifts).
    Shamt,
    /// B-type offset from the program counter.
    Branch,
    /// J-type offset from the program counter.
    Jump,
    /// `imm(rs1)` with an I-type offset.
    AddrI,
    /// `imm(rs1)` with an S-type offset.
    AddrS,
    /// `(rs1)`.
    Addr,
    /// Integer destination, bits 11–7: the first of a pair, so even.
    RdPair,
    /// Integer source, bits 24–20: the first of a pair, so even.
    Rs2Pair,
    /// `(rs1)` of a cache block.
    Block,
    /// CSR number, bits 31–20.
    Csr,
    /// Zero-extended 5-bit immediate in the place of rs1.
    Uimm,
    /// Number of a constant of `fli` in the place of rs1.
    Constant,
    /// Rounding mode, bits 14–12. Modes 5 and 6 are reserved.
    Rm,
    /// Predecessor and successor sets of `fence`, bits 27–20.
    FenceSets,
}

/// Operand lists, by the names that the table's rows use.
pub(crate) mod format {
    use super::Operand::{self, *};

    pub(crate) const NONE: &[Operand] = &[];
    pub(crate) const R: &[Operand] = &[Rd, Rs1, Rs2];
    pub(crate) const I: &[Operand] = &[Rd, Rs1, ImmI];
    pub(crate) const SHIFT: &[Operand] = &[Rd, Rs1, Shamt];
    pub(crate) const U: &[Operand] = &[Rd, ImmU];
    pub(crate) const J: &[Operand] = &[Rd, Jump];
    pub(crate) const JALR: &[Operand] = &[Rd, AddrI];
    pub(crate) const B: &[Operand] = &[Rs1, Rs2, Branch];
    pub(crate) const LOAD: &[Operand] = &[Rd, AddrI];
    pub(crate) const STORE: &[Operand] = &[Rs2, AddrS];
    pub(crate) const FENCE: &[Operand] = &[FenceSets];
    pub(crate) const CSR: &[Operand] = &[Rd, Csr, Rs1];
    pub(crate) const CSRI: &[Operand] = &[Rd, Csr, Uimm];
    pub(crate) const SFENCE: &[Operand] = &[Rs1, Rs2];
    pub(crate) const LR: &[Operand] = &[Rd, Addr];
    pub(crate) const AMO: &[Operand] = &[Rd, Rs2, Addr];
    pub(crate) const PAIR: &[Operand] = &[RdPair, Rs2Pair, Addr];
    pub(crate) const R1: &[Operand] = &[Rd, Rs1];
    pub(crate) const BLOCK: &[Operand] = &[Block];
    pub(crate) const FLOAD: &[Operand] = &[Frd, AddrI];
    pub(crate) const FSTORE: &[Operand] = &[Frs2, AddrS];
    pub(crate) const FLI: &[Operand] = &[Frd, Constant];
    pub(crate) const FR: &[Operand] = &[Frd, Frs1, Frs2];
    pub(crate) const FRM: &[Operand] = &[Frd, Frs1, Frs2, Rm];
    pub(crate) const FR4: &[Operand] = &[Frd, Frs1, Frs2, Frs3, Rm];
    pub(crate) const F1RM: &[Operand] = &[Frd, Frs1, Rm];
    pub(crate) const FCMP: &[Operand] = &[Rd, Frs1, Frs2];
    pub(crate) const FTOX: &[Operand] = &[Rd, Frs1];
    pub(crate) const FTOXRM: &[Operand] = &[Rd, Frs1, Rm];
    pub(crate) const XTOF: &[Operand] = &[Frd, Rs1];
    pub(crate) const XTOFRM: &[Operand] = &[Frd, Rs1, Rm];
}

/// Bits `low + width - 1` to `low` of `raw`.
const fn bits(raw: u32, low: u32, width: u32) -> u32 {
    (raw >> low) & ((1 << width) - 1)
}

const fn reg(raw: u32, low: u32) -> u8 {
    bits(raw, low, 5) as u8
}

const fn freg(raw: u32, low: u32) -> u8 {
    32 + reg(raw, low)
}

impl Operand {
    /// Stores the operand's field of `inst.raw` in `inst`; false if its value is reserved.
    pub(crate) fn extract(self, inst: &mut DecodedInst) -> bool {
        let raw = inst.raw;
        // The sign bit is always bit 31, so an arithmetic shift of the whole word extends it.
        let signed = raw as i32;
        match self {
            Self::Rd => inst.rd = reg(raw, 7),
            Self::RdPair => {
                inst.rd = reg(raw, 7);
                return inst.rd & 1 == 0;
            }
            Self::Rs2Pair => {
                inst.rs2 = reg(raw, 20);
                return inst.rs2 & 1 == 0;
            }
            Self::Rs1 | Self::Addr | Self::Block => inst.rs1 = reg(raw, 15),
            Self::Rs2 => inst.rs2 = reg(raw, 20),
            Self::Frd => inst.rd = freg(raw, 7),
            Self::Frs1 => inst.rs1 = freg(raw, 15),
            Self::Frs2 => inst.rs2 = freg(raw, 20),
            Self::Frs3 => inst.rs3 = freg(raw, 27),
            Self::ImmI => inst.imm = signed >> 20,
            Self::ImmU => inst.imm = signed & !0xfff,
            Self::Shamt => inst.imm = bits(raw, 20, 6) as i32,
            Self::Branch => {
                inst.imm = (signed >> 31) << 12
                    | (bits(raw, 7, 1) << 11 | bits(raw, 25, 6) << 5 | bits(raw, 8, 4) << 1) as i32;
            }
            Self::Jump => {
                inst.imm = (signed >> 31) << 20
                    | (bits(raw, 12, 8) << 12 | bits(raw, 20, 1) << 11 | bits(raw, 21, 10) << 1)
                        as i32;
            }
            Self::AddrI => {
                inst.rs1 = reg(raw, 15);
                inst.imm = signed >> 20;
            }
            Self::AddrS => {
                inst.rs1 = reg(raw, 15);
                inst.imm = (signed >> 25) << 5 | bits(raw, 7, 5) as i32;
            }
            Self::Csr => inst.imm = bits(raw, 20, 12) as i32,
            Self::Constant => inst.imm = bits(raw, 15, 5) as i32,
            Self::Uimm | Self::FenceSets => {}
            Self::Rm => return !matches!(bits(raw, 12, 3), 5 | 6),
        }
        true
    }
}
