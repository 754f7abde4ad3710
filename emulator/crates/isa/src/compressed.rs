//! Compressed instructions (C for RV64 with D, and Zcb), decoded to the operations that they expand to.
//! Hints expand like their neighbours, to instructions that write `x0` or change nothing.

use crate::{DecodedInst, Op, Reg};

const ZERO: Reg = 0;
const RA: Reg = 1;
const SP: Reg = 2;
/// Number of `f0` in the unified numbering of [`Reg`]: `FP + n` is `fn`.
const FP: Reg = 32;

/// Decodes a 16-bit encoding.
pub(crate) fn decode(raw: u16) -> DecodedInst {
    let illegal = DecodedInst::illegal(raw.into());
    match expand(Fields(raw.into())) {
        Some((op, rd, rs1, rs2, imm)) => {
            DecodedInst { op, class: op.class(), rd, rs1, rs2, imm, ..illegal }
        }
        None => illegal,
    }
}

/// Operation, rd, rs1, rs2, immediate.
type Expansion = (Op, Reg, Reg, Reg, i32);

/// `None` if the encoding is reserved.
fn expand(c: Fields) -> Option<Expansion> {
    let rd = c.rd();
    let (rs1_short, rs2_short) = (c.short(7), c.short(2));
    let expansion = match (c.0 & 3, c.0 >> 13) {
        // Quadrant 0: addi4spn, and loads and stores with short registers.
        (0, 0) => {
            let imm = c.at(11, 2, 4) | c.at(7, 4, 6) | c.at(6, 1, 2) | c.at(5, 1, 3);
            (Op::Addi, rs2_short, SP, 0, nonzero(imm)?)
        }
        (0, 1) => (Op::Fld, FP + rs2_short, rs1_short, 0, c.offset_double()),
        (0, 2) => (Op::Lw, rs2_short, rs1_short, 0, c.offset_word()),
        (0, 3) => (Op::Ld, rs2_short, rs1_short, 0, c.offset_double()),
        (0, 4) => return zcb_load_or_store(c),
        (0, 5) => (Op::Fsd, 0, rs1_short, FP + rs2_short, c.offset_double()),
        (0, 6) => (Op::Sw, 0, rs1_short, rs2_short, c.offset_word()),
        (0, 7) => (Op::Sd, 0, rs1_short, rs2_short, c.offset_double()),

        // Quadrant 1: immediates, arithmetic on short registers, branches.
        (1, 0) => (Op::Addi, rd, rd, 0, c.imm6()),
        (1, 1) if rd != 0 => (Op::Addiw, rd, rd, 0, c.imm6()),
        (1, 2) => (Op::Addi, rd, ZERO, 0, c.imm6()),
        (1, 3) if rd == SP => {
            let imm =
                c.at(12, 1, 9) | c.at(6, 1, 4) | c.at(5, 1, 6) | c.at(3, 2, 7) | c.at(2, 1, 5);
            (Op::Addi, SP, SP, 0, sign_extend(nonzero(imm)?, 10))
        }
        (1, 3) => (Op::Lui, rd, 0, 0, nonzero(c.imm6())? << 12),
        (1, 4) => return arithmetic(c),
        (1, 5) => {
            let low = c.at(11, 1, 4) | c.at(9, 2, 8) | c.at(8, 1, 10) | c.at(7, 1, 6);
            let imm = c.at(12, 1, 11) | low | c.at(6, 1, 7) | c.at(3, 3, 1) | c.at(2, 1, 5);
            (Op::Jal, ZERO, 0, 0, sign_extend(imm, 12))
        }
        (1, 6) => (Op::Beq, 0, rs1_short, ZERO, c.branch_offset()),
        (1, 7) => (Op::Bne, 0, rs1_short, ZERO, c.branch_offset()),

        // Quadrant 2: slli, stack-pointer loads and stores, jumps and moves.
        (2, 0) => (Op::Slli, rd, rd, 0, c.shamt()),
        (2, 1) => (Op::Fld, FP + rd, SP, 0, c.stack_offset_double()),
        (2, 2) if rd != 0 => (Op::Lw, rd, SP, 0, c.at(12, 1, 5) | c.at(4, 3, 2) | c.at(2, 2, 6)),
        (2, 3) if rd != 0 => (Op::Ld, rd, SP, 0, c.stack_offset_double()),
        (2, 4) => return jump_or_move(c),
        (2, 5) => (Op::Fsd, 0, SP, FP + c.rs2(), c.at(10, 3, 3) | c.at(7, 3, 6)),
        (2, 6) => (Op::Sw, 0, SP, c.rs2(), c.at(9, 4, 2) | c.at(7, 2, 6)),
        (2, 7) => (Op::Sd, 0, SP, c.rs2(), c.at(10, 3, 3) | c.at(7, 3, 6)),
        _ => return None,
    };
    Some(expansion)
}

/// Quadrant 1, funct3 4: shifts, `andi` and the register-register operations.
fn arithmetic(c: Fields) -> Option<Expansion> {
    let (rd, rs2) = (c.short(7), c.short(2));
    let register_op = |op| Some((op, rd, rd, rs2, 0));
    match (c.at(10, 2, 0), c.at(12, 1, 2) | c.at(5, 2, 0)) {
        (0, _) => Some((Op::Srli, rd, rd, 0, c.shamt())),
        (1, _) => Some((Op::Srai, rd, rd, 0, c.shamt())),
        (2, _) => Some((Op::Andi, rd, rd, 0, c.imm6())),
        (_, 0) => register_op(Op::Sub),
        (_, 1) => register_op(Op::Xor),
        (_, 2) => register_op(Op::Or),
        (_, 3) => register_op(Op::And),
        (_, 4) => register_op(Op::Subw),
        (_, 5) => register_op(Op::Addw),
        (_, 6) => register_op(Op::Mul),
        (_, _) => Some(match c.at(2, 3, 0) {
            0 => (Op::Andi, rd, rd, 0, 0xff),
            1 => (Op::SextB, rd, rd, 0, 0),
            2 => (Op::ZextH, rd, rd, 0, 0),
            3 => (Op::SextH, rd, rd, 0, 0),
            4 => (Op::AddUw, rd, rd, ZERO, 0),
            5 => (Op::Xori, rd, rd, 0, -1),
            _ => return None,
        }),
    }
}

/// Quadrant 0, funct3 4: the byte and halfword accesses of Zcb.
fn zcb_load_or_store(c: Fields) -> Option<Expansion> {
    let (rs1, reg) = (c.short(7), c.short(2));
    let (byte, half) = (c.at(6, 1, 0) | c.at(5, 1, 1), c.at(5, 1, 1));
    match (c.at(10, 3, 0), c.at(6, 1, 0)) {
        (0, _) => Some((Op::Lbu, reg, rs1, 0, byte)),
        (1, 0) => Some((Op::Lhu, reg, rs1, 0, half)),
        (1, _) => Some((Op::Lh, reg, rs1, 0, half)),
        (2, _) => Some((Op::Sb, 0, rs1, reg, byte)),
        (3, 0) => Some((Op::Sh, 0, rs1, reg, half)),
        _ => None,
    }
}

/// True for the encodings of Zcb.
pub(crate) fn is_zcb(raw: u32) -> bool {
    let c = Fields(raw);
    match (raw & 3, raw >> 13) {
        (0, 4) => true,
        (1, 4) => c.at(10, 3, 0) == 7 && c.at(6, 1, 0) == 1,
        _ => false,
    }
}

/// Quadrant 2, funct3 4: `jr`, `mv`, `ebreak`, `jalr`, `add`.
fn jump_or_move(c: Fields) -> Option<Expansion> {
    match (c.at(12, 1, 0), c.rd(), c.rs2()) {
        (0, 0, 0) => None,
        (0, rs1, 0) => Some((Op::Jalr, ZERO, rs1, 0, 0)),
        (0, rd, rs2) => Some((Op::Add, rd, ZERO, rs2, 0)),
        (_, 0, 0) => Some((Op::Ebreak, 0, 0, 0, 0)),
        (_, rs1, 0) => Some((Op::Jalr, RA, rs1, 0, 0)),
        (_, rd, rs2) => Some((Op::Add, rd, rd, rs2, 0)),
    }
}

/// A 16-bit encoding, for access to its fields.
#[derive(Clone, Copy)]
struct Fields(u32);

impl Fields {
    /// The `width` bits from bit `low`, moved to bit `to`.
    fn at(self, low: u32, width: u32, to: u32) -> i32 {
        ((self.0 >> low & ((1 << width) - 1)) << to) as i32
    }

    fn rd(self) -> Reg {
        self.at(7, 5, 0) as Reg
    }

    fn rs2(self) -> Reg {
        self.at(2, 5, 0) as Reg
    }

    /// A three-bit register field at bit `low`: `x8`–`x15`.
    fn short(self, low: u32) -> Reg {
        8 + self.at(low, 3, 0) as Reg
    }

    fn shamt(self) -> i32 {
        self.at(12, 1, 5) | self.at(2, 5, 0)
    }

    fn imm6(self) -> i32 {
        sign_extend(self.shamt(), 6)
    }

    fn offset_word(self) -> i32 {
        self.at(10, 3, 3) | self.at(6, 1, 2) | self.at(5, 1, 6)
    }

    fn offset_double(self) -> i32 {
        self.at(10, 3, 3) | self.at(5, 2, 6)
    }

    fn stack_offset_double(self) -> i32 {
        self.at(12, 1, 5) | self.at(5, 2, 3) | self.at(2, 3, 6)
    }

    fn branch_offset(self) -> i32 {
        let low = self.at(10, 2, 3) | self.at(3, 2, 1) | self.at(2, 1, 5);
        sign_extend(self.at(12, 1, 8) | self.at(5, 2, 6) | low, 9)
    }
}

/// The low `width` bits as a signed number.
fn sign_extend(value: i32, width: u32) -> i32 {
    value << (32 - width) >> (32 - width)
}

fn nonzero(value: i32) -> Option<i32> {
    (value != 0).then_some(value)
}
