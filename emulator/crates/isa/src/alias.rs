//! Assembly aliases: the shorter forms that disassemblers prefer.

use crate::DecodedInst;
use crate::Op::*;
use crate::operand::Operand::{self, *};

/// The alias of an instruction, if it has one: mnemonic and operands.
pub(crate) fn alias(inst: &DecodedInst) -> Option<(&'static str, &'static [Operand])> {
    let DecodedInst { rd, rs1, rs2, imm, .. } = *inst;
    Some(match inst.op {
        Addi if rd == 0 && rs1 == 0 && imm == 0 => ("nop", &[]),
        Addi if rs1 == 0 => ("li", &[Rd, ImmI]),
        Addi if imm == 0 => ("mv", &[Rd, Rs1]),
        // Only the compressed `mv` is an `add`.
        Add if inst.len == 2 && rs1 == 0 => ("mv", &[Rd, Rs2]),
        AddUw if rs2 == 0 => ("zext.w", &[Rd, Rs1]),
        Addiw if imm == 0 => ("sext.w", &[Rd, Rs1]),
        Andi if imm == 255 => ("zext.b", &[Rd, Rs1]),
        Xori if imm == -1 => ("not", &[Rd, Rs1]),
        Sub if rs1 == 0 => ("neg", &[Rd, Rs2]),
        Subw if rs1 == 0 => ("negw", &[Rd, Rs2]),
        Sltiu if imm == 1 => ("seqz", &[Rd, Rs1]),
        Sltu if rs1 == 0 => ("snez", &[Rd, Rs2]),
        Slt if rs2 == 0 => ("sltz", &[Rd, Rs1]),
        Slt if rs1 == 0 => ("sgtz", &[Rd, Rs2]),

        Beq if rs2 == 0 => ("beqz", &[Rs1, Branch]),
        Bne if rs2 == 0 => ("bnez", &[Rs1, Branch]),
        Bge if rs1 == 0 => ("blez", &[Rs2, Branch]),
        Bge if rs2 == 0 => ("bgez", &[Rs1, Branch]),
        Blt if rs2 == 0 => ("bltz", &[Rs1, Branch]),
        Blt if rs1 == 0 => ("bgtz", &[Rs2, Branch]),
        Jal if rd == 0 => ("j", &[Jump]),
        Jal if rd == 1 => ("jal", &[Jump]),
        Jalr if rd == 0 && rs1 == 1 && imm == 0 => ("ret", &[]),
        Jalr if rd == 0 && imm == 0 => ("jr", &[Rs1]),
        Jalr if rd == 0 => ("jr", &[AddrI]),
        Jalr if rd == 1 && imm == 0 => ("jalr", &[Rs1]),
        Jalr if rd == 1 => ("jalr", &[AddrI]),
        Jalr if imm == 0 => ("jalr", &[Rd, Rs1]),

        Csrrs | Csrrw | Csrrc | Csrrsi | Csrrwi | Csrrci => return csr_alias(inst),
        FsgnjS if rs1 == rs2 => ("fmv.s", &[Frd, Frs1]),
        FsgnjnS if rs1 == rs2 => ("fneg.s", &[Frd, Frs1]),
        FsgnjxS if rs1 == rs2 => ("fabs.s", &[Frd, Frs1]),
        FsgnjD if rs1 == rs2 => ("fmv.d", &[Frd, Frs1]),
        FsgnjnD if rs1 == rs2 => ("fneg.d", &[Frd, Frs1]),
        FsgnjxD if rs1 == rs2 => ("fabs.d", &[Frd, Frs1]),

        FsgnjH if rs1 == rs2 => ("fmv.h", &[Frd, Frs1]),
        FsgnjnH if rs1 == rs2 => ("fneg.h", &[Frd, Frs1]),
        FsgnjxH if rs1 == rs2 => ("fabs.h", &[Frd, Frs1]),

        Fence => match inst.raw >> 20 {
            0x0ff => ("fence", &[]),
            0x010 if rd == 0 && rs1 == 0 => ("pause", &[]),
            0x833 => ("fence.tso", &[]),
            _ => return None,
        },
        SfenceVma if rs1 == 0 && rs2 == 0 => ("sfence.vma", &[]),
        SfenceVma if rs2 == 0 => ("sfence.vma", &[Rs1]),
        _ => return None,
    })
}

fn csr_alias(inst: &DecodedInst) -> Option<(&'static str, &'static [Operand])> {
    const FFLAGS: u16 = 0x001;
    const FRM: u16 = 0x002;
    const FCSR: u16 = 0x003;
    const CYCLE: u16 = 0xc00;
    const TIME: u16 = 0xc01;
    const INSTRET: u16 = 0xc02;

    let no_rd = inst.rd == 0;
    Some(match (inst.op, inst.csr()) {
        (Csrrw, CYCLE) if no_rd && inst.rs1 == 0 => ("unimp", &[]),

        (Csrrs, FFLAGS) if inst.rs1 == 0 => ("frflags", &[Rd]),
        (Csrrs, FRM) if inst.rs1 == 0 => ("frrm", &[Rd]),
        (Csrrs, FCSR) if inst.rs1 == 0 => ("frcsr", &[Rd]),
        (Csrrs, CYCLE) if inst.rs1 == 0 => ("rdcycle", &[Rd]),
        (Csrrs, TIME) if inst.rs1 == 0 => ("rdtime", &[Rd]),
        (Csrrs, INSTRET) if inst.rs1 == 0 => ("rdinstret", &[Rd]),

        (Csrrw, FFLAGS) if no_rd => ("fsflags", &[Rs1]),
        (Csrrw, FFLAGS) => ("fsflags", &[Rd, Rs1]),
        (Csrrw, FRM) if no_rd => ("fsrm", &[Rs1]),
        (Csrrw, FRM) => ("fsrm", &[Rd, Rs1]),
        (Csrrw, FCSR) if no_rd => ("fscsr", &[Rs1]),
        (Csrrw, FCSR) => ("fscsr", &[Rd, Rs1]),
        (Csrrwi, FFLAGS) if no_rd => ("fsflagsi", &[Uimm]),
        (Csrrwi, FFLAGS) => ("fsflagsi", &[Rd, Uimm]),
        (Csrrwi, FRM) if no_rd => ("fsrmi", &[Uimm]),
        (Csrrwi, FRM) => ("fsrmi", &[Rd, Uimm]),

        (Csrrs, _) if inst.rs1 == 0 => ("csrr", &[Rd, Csr]),
        (Csrrw, _) if no_rd => ("csrw", &[Csr, Rs1]),
        (Csrrs, _) if no_rd => ("csrs", &[Csr, Rs1]),
        (Csrrc, _) if no_rd => ("csrc", &[Csr, Rs1]),
        (Csrrwi, _) if no_rd => ("csrwi", &[Csr, Uimm]),
        (Csrrsi, _) if no_rd => ("csrsi", &[Csr, Uimm]),
        (Csrrci, _) if no_rd => ("csrci", &[Csr, Uimm]),
        _ => return None,
    })
}
