//! Random programs that trap, sleep, and are interrupted.

use devices::{Bus, CLINT_BASE, RAM_BASE};
use machine::Hart;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    fn register(&mut self) -> u32 {
        5 + self.below(10)
    }
}

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    (imm & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn r_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32, funct7: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn store(rs2: u32, rs1: u32, imm: u32) -> u32 {
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | 3 << 12 | (imm & 31) << 7 | 0x23
}

fn branch(funct3: u32, rs1: u32, rs2: u32, offset: u32) -> u32 {
    let bits = (offset >> 12 & 1) << 31 | (offset >> 5 & 63) << 25 | (offset >> 1 & 15) << 8;
    bits | (offset >> 11 & 1) << 7 | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63
}

const MTVEC: u32 = 0x305;
const MIE: u32 = 0x304;
const MSTATUS: u32 = 0x300;
const MEPC: u32 = 0x341;
const CYCLE: u32 = 0xc00;
const MRET: u32 = 0x3020_0073;
const WFI: u32 = 0x1050_0073;
const ECALL: u32 = 0x73;

const TEXT: u64 = RAM_BASE + 0x1000;
const HANDLER: u64 = RAM_BASE + 0x800;
/// Registers with addresses: data, the timer, its compare register; and its period.
const DATA: u32 = 20;
const TIME: u32 = 21;
const COMPARE: u32 = 22;
const PERIOD: u32 = 23;

/// An endless loop of a few pages, interrupted by the timer every now and then.
pub(crate) fn program(seed: u64, bus: &mut Bus, hart: &mut Hart) {
    let mut random = Random(seed);
    let csrrw = |csr, rs1| i_type(0x73, 1, 0, rs1, csr);
    let ld = |rd, rs1, imm| i_type(3, 3, rd, rs1, imm);
    // The handler, of exceptions too, which go on behind their instruction: sets the timer, counts in x28.
    let handler = [
        i_type(0x73, 2, 30, 0, 0x342),
        branch(4, 30, 0, 16),
        i_type(0x73, 2, 30, 0, MEPC),
        i_type(0x13, 0, 30, 30, 4),
        csrrw(MEPC, 30),
        ld(29, TIME, 0),
        r_type(0x33, 0, 29, 29, PERIOD, 0),
        store(29, COMPARE, 0),
        i_type(0x13, 0, 28, 28, 1),
        MRET,
    ];
    let mut text = vec![
        csrrw(MTVEC, 5),
        csrrw(MIE, 6),
        ld(29, TIME, 0),
        r_type(0x33, 0, 29, 29, PERIOD, 0),
        store(29, COMPARE, 0),
        i_type(0x73, 6, 0, 8, MSTATUS),
    ];
    let length = 40 + random.below(2000);
    while text.len() < length as usize {
        let [a, b, d] = [(); 3].map(|()| random.register());
        let offset = random.below(128) * 8;
        let inst = match random.below(100) {
            0..40 => r_type(0x33, random.below(8), d, a, b, 0),
            40..44 => r_type(0x33, 4 + random.below(4), d, a, b, 1),
            44..60 => ld(d, DATA, offset),
            60..72 => store(a, DATA, offset),
            // Anywhere in the data: the address from a register.
            72..76 => {
                text.push(i_type(0x13, 5, 24, a, 44));
                text.push(i_type(0x13, 1, 24, 24, 3));
                text.push(r_type(0x33, 0, 24, 24, DATA, 0));
                ld(d, 24, 0)
            }
            76..90 => branch(random.below(2), a, b, 8 + 4 * random.below(8)),
            90..94 => i_type(0x73, 2, d, 0, CYCLE),
            94..96 => r_type(0x2f, 3, d, DATA, b, 0),
            96 => 0x0ff0_000f,
            97 => WFI,
            98 => ECALL,
            _ => ld(d, TIME, 0),
        };
        text.push(inst);
    }
    // Branches reach no further.
    text.extend([0x13; 16]);
    let back = (text.len() as u32 - 6) * 4;
    let jump = back.wrapping_neg();
    let bits = (jump >> 20 & 1) << 31 | (jump >> 1 & 0x3ff) << 21 | (jump >> 11 & 1) << 20;
    text.push(bits | jump & 0xf_f000 | 0x6f);
    for (base, code) in [(HANDLER, &handler[..]), (TEXT, &text)] {
        for (n, &inst) in code.iter().enumerate() {
            bus.ram.store(base + 4 * n as u64, 4, inst.into()).unwrap();
        }
    }
    hart.set_pc(TEXT);
    let period = 4 << random.below(12);
    let values = [
        (5, HANDLER),
        (6, 0x80),
        (DATA, RAM_BASE + (1 << 20)),
        (TIME, CLINT_BASE + 0xbff8),
        (COMPARE, CLINT_BASE + 0x4000),
        (PERIOD, period),
    ];
    for (register, value) in values {
        hart.set_reg(register as u8, value);
    }
}
