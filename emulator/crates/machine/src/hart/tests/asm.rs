//! An assembler of a dozen instructions.

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn s_type(funct3: u32, rs2: u32, rs1: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    (imm >> 5) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 31) << 7 | 0x23
}

pub(super) fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(0x13, 0, rd, rs1, imm)
}

pub(super) fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | rd << 7 | 0x33
}

pub(super) fn sltu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x33
}

pub(super) fn divu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    1 << 25 | rs2 << 20 | rs1 << 15 | 5 << 12 | rd << 7 | 0x33
}

/// `lui` such that `addi` of the value's low 12 bits completes it.
pub(super) fn lui(rd: u32, value: u32) -> u32 {
    (value.wrapping_add(0x800) & 0xffff_f000) | rd << 7 | 0x37
}

pub(super) fn auipc(rd: u32, imm: u32) -> u32 {
    imm & 0xffff_f000 | rd << 7 | 0x17
}

pub(super) fn jal(rd: u32, offset: i32) -> u32 {
    let o = offset as u32;
    let imm = (o >> 20 & 1) << 19 | (o >> 1 & 0x3ff) << 9 | (o >> 11 & 1) << 8 | (o >> 12 & 0xff);
    imm << 12 | rd << 7 | 0x6f
}

pub(super) fn bne(rs1: u32, rs2: u32, offset: i32) -> u32 {
    let o = offset as u32;
    let high = (o >> 12 & 1) << 6 | (o >> 5 & 0x3f);
    let low = (o >> 1 & 0xf) << 1 | (o >> 11 & 1);
    high << 25 | rs2 << 20 | rs1 << 15 | 1 << 12 | low << 7 | 0x63
}

pub(super) fn jalr(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(0x67, 0, rd, rs1, imm)
}

pub(super) fn ld(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(0x03, 3, rd, rs1, imm)
}

pub(super) fn sd(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s_type(3, rs2, rs1, imm)
}

pub(super) fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s_type(2, rs2, rs1, imm)
}

pub(super) fn lr_d(rd: u32, rs1: u32) -> u32 {
    0x02 << 27 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

pub(super) fn sc_d(rd: u32, rs2: u32, rs1: u32) -> u32 {
    0x03 << 27 | rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

pub(super) fn amoadd_d(rd: u32, rs2: u32, rs1: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

pub(super) fn csrrw(rd: u32, csr: u16, rs1: u32) -> u32 {
    i_type(0x73, 1, rd, rs1, csr.into())
}

pub(super) fn csrrs(rd: u32, csr: u16, rs1: u32) -> u32 {
    i_type(0x73, 2, rd, rs1, csr.into())
}

pub(super) fn csrr(rd: u32, csr: u16) -> u32 {
    csrrs(rd, csr, 0)
}

pub(super) const ECALL: u32 = 0x0000_0073;
pub(super) const MRET: u32 = 0x3020_0073;
pub(super) const SRET: u32 = 0x1020_0073;
pub(super) const WFI: u32 = 0x1050_0073;
pub(super) const SFENCE_VMA: u32 = 0x1200_0073;
/// `addi x0, x1, 0`, `addi x0, x2, 0`: a program's region of interest.
pub(super) const REGION_START: u32 = 0x0000_8013;
pub(super) const REGION_STOP: u32 = 0x0001_0013;
/// `addi x0, x3, 0`, `addi x0, x4, 0`: the run's command.
pub(super) const COMMAND_START: u32 = 0x0001_8013;
pub(super) const COMMAND_STOP: u32 = 0x0002_0013;

/// An FP operation on registers of 7 and 8 into those of 5; `funct7` has the format, `funct3` the rounding mode.
pub(super) fn fp(funct7: u32, rs2: u32, funct3: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | 7 << 15 | funct3 << 12 | 5 << 7 | 0x53
}

pub(super) fn fld(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(0x07, 3, rd, rs1, imm)
}

pub(super) fn fsd(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s_type(3, rs2, rs1, imm) | 0x04
}
