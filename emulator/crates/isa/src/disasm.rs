//! Disassembly in the manner of GNU objdump.

use crate::name::{csr_name, register_name as name};
use crate::operand::Operand;
use crate::{DecodedInst, FliConstant, Op, alias};

/// Writes an instruction as assembly: mnemonic, one space, operands separated by commas; the usual
/// aliases (`li`, `mv`, `ret`, `beqz`, `csrr`, …); targets of branches and jumps as absolute
/// addresses, given that the instruction stands at `pc`.
///
/// ```
/// let inst = isa::decode(0xfe059ee3);
/// assert_eq!(isa::disasm(&inst, 0x80000010), "bnez a1,0x8000000c");
/// ```
pub fn disasm(inst: &DecodedInst, pc: u64) -> String {
    if let Some((mnemonic, operands)) = alias::alias(inst) {
        return format_inst(mnemonic, operands, inst, pc);
    }
    match inst.op {
        Op::Illegal if inst.raw == 0 => "unimp".into(),
        Op::Illegal if inst.len == 2 => format!(".2byte {:#x}", inst.raw),
        Op::Illegal => format!(".4byte {:#x}", inst.raw),
        _ => format_inst(inst.op.mnemonic(), inst.op.row().operands, inst, pc),
    }
}

fn format_inst(mnemonic: &str, operands: &[Operand], inst: &DecodedInst, pc: u64) -> String {
    let mut text = mnemonic.to_owned();
    if inst.op.row().operands.contains(&Operand::Addr) {
        text.push_str(match (inst.aq(), inst.rl()) {
            (false, false) => "",
            (true, false) => ".aq",
            (false, true) => ".rl",
            (true, true) => ".aqrl",
        });
    }
    let mut separator = ' ';
    for operand in operands {
        let operand = format_operand(*operand, inst, pc);
        if !operand.is_empty() {
            text.push(separator);
            text.push_str(&operand);
            separator = ',';
        }
    }
    text
}

/// An operand as assembly writes it; empty if it is left out.
fn format_operand(operand: Operand, inst: &DecodedInst, pc: u64) -> String {
    match operand {
        Operand::Rd | Operand::RdPair | Operand::Frd => name(inst.rd).into(),
        Operand::Rs1 | Operand::Frs1 => name(inst.rs1).into(),
        Operand::Rs2 | Operand::Rs2Pair | Operand::Frs2 => name(inst.rs2).into(),
        Operand::Frs3 => name(inst.rs3).into(),
        Operand::ImmI => inst.imm.to_string(),
        Operand::ImmU => format!("{:#x}", inst.imm as u32 >> 12),
        Operand::Shamt => format!("{:#x}", inst.imm),
        Operand::Branch | Operand::Jump => {
            format!("{:#x}", pc.wrapping_add_signed(inst.imm.into()))
        }
        Operand::AddrI | Operand::AddrS => format!("{}({})", inst.imm, name(inst.rs1)),
        Operand::Addr | Operand::Block => format!("({})", name(inst.rs1)),
        Operand::Csr => csr_name(inst.csr()).unwrap_or_else(|| format!("{:#x}", inst.csr())),
        Operand::Uimm => inst.csr_uimm().to_string(),
        Operand::Constant => constant(inst.imm),
        Operand::Rm => rounding_mode(inst).into(),
        Operand::FenceSets => {
            format!("{},{}", fence_set(inst.raw >> 24), fence_set(inst.raw >> 20))
        }
    }
}

/// A constant of `fli` as C's `%a` writes it; `min`, `inf` and `nan` by name, since their value depends on the format.
pub(crate) fn constant(number: i32) -> String {
    let value = match FliConstant::numbered(number as u8) {
        FliConstant::Value(value) => value,
        FliConstant::MinPositive => return "min".into(),
        FliConstant::Infinity => return "inf".into(),
        FliConstant::Nan => return "nan".into(),
    };
    let bits = value.to_bits();
    let sign = if value < 0.0 { "-" } else { "" };
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    // Fractions of these constants have at most 3 bits, so that one hexadecimal digit suffices.
    match bits >> 48 & 15 {
        0 => format!("{sign}0x1p{exponent:+}"),
        digit => format!("{sign}0x1.{digit:x}p{exponent:+}"),
    }
}

/// Name of the rounding mode; empty if it is dynamic, or the assembler's default (rne) in a conversion that never rounds.
fn rounding_mode(inst: &DecodedInst) -> &'static str {
    match inst.rounding_mode() {
        0 if is_exact(inst.op) => "",
        0 => "rne",
        1 => "rtz",
        2 => "rdn",
        3 => "rup",
        4 => "rmm",
        _ => "",
    }
}

/// True for conversions that never round.
pub(crate) fn is_exact(op: Op) -> bool {
    matches!(op, Op::FcvtDW | Op::FcvtDWu | Op::FcvtDS | Op::FcvtSH | Op::FcvtDH)
}

fn fence_set(bits: u32) -> String {
    let set: String = "iorw"
        .chars()
        .enumerate()
        .filter(|(at, _)| bits >> (3 - at) & 1 != 0)
        .map(|(_, c)| c)
        .collect();
    if set.is_empty() { "unknown".into() } else { set }
}
