//! Invariants of the instruction table.

use isa::{DecodedInst, InstClass, Op, decode, disasm};

#[test]
fn every_row_decodes_to_itself() {
    for &op in &Op::ALL[1..] {
        let (value, mask) = op.encoding();
        // Variable fields are all zeros, then all ones: rounding modes 0 and 7 are both legal. Register pairs must start
        // at an even register.
        let odd = if op == Op::AmocasQ { 1 << 7 | 1 << 20 } else { 0 };
        for raw in [value, value | !mask & !odd] {
            let inst = decode(raw);
            assert_eq!(inst.op, op, "{raw:#010x}");
            assert_eq!(inst.class, op.class());
            assert_eq!((inst.raw, inst.len), (raw, 4));
        }
    }
}

#[test]
fn no_encoding_belongs_to_two_rows() {
    for (at, a) in Op::ALL[1..].iter().enumerate() {
        for b in &Op::ALL[1..=at] {
            let ((value_a, mask_a), (value_b, mask_b)) = (a.encoding(), b.encoding());
            assert_ne!((value_a ^ value_b) & mask_a & mask_b, 0, "{a:?} and {b:?} overlap");
        }
    }
}

#[test]
fn numbers_follow_the_table() {
    for (number, op) in Op::ALL.iter().enumerate() {
        assert_eq!(*op as usize, number);
    }
}

/// A decoded instruction must stay small: the machine's code cache is full of them.
#[test]
fn a_decoded_instruction_is_16_bytes() {
    assert_eq!(size_of::<DecodedInst>(), 16);
}

#[test]
fn immediates_reach_their_limits() {
    let imm = |raw| decode(raw).imm;
    assert_eq!(imm(0x8000_0037), i32::MIN, "lui");
    assert_eq!(imm(0x8000_006f), -0x10_0000, "jal");
    assert_eq!(imm(0x7fff_f06f), 0xf_fffe, "jal");
    assert_eq!(imm(0x8000_0063), -0x1000, "beq");
    assert_eq!(imm(0x7e00_0fe3), 0xffe, "beq");
    assert_eq!(imm(0x8000_0013), -0x800, "addi");
    assert_eq!(imm(0x8000_0023), -0x800, "sb");
    assert_eq!(imm(0x7e00_0fa3), 0x7ff, "sb");
    assert_eq!(imm(0x03f0_1013), 63, "slli");
}

#[test]
fn fields_outside_the_decoded_form_have_accessors() {
    let csrrwi = decode(0x3002_d573);
    assert_eq!((csrrwi.csr(), csrrwi.csr_uimm(), csrrwi.rs1), (0x300, 5, 0));
    assert_eq!(disasm(&csrrwi, 0), "csrrwi a0,mstatus,5");
    let amo = decode(0x06b5_26af);
    assert_eq!((amo.op, amo.aq(), amo.rl()), (Op::AmoaddW, true, true));
    let fadd = decode(0x02b5_3553);
    assert_eq!((fadd.op, fadd.rounding_mode()), (Op::FaddD, 3));
    assert_eq!((fadd.rd, fadd.rs1, fadd.rs2), (42, 42, 43));
}

#[test]
fn reserved_encodings_are_illegal() {
    let reserved = [
        0x0000_0000, // the all-zero halfword
        0x0000_0004, // c.addi4spn with a zero immediate
        0x0000_2001, // c.addiw to x0
        0x0000_6101, // c.addi16sp with a zero immediate
        0x0000_6501, // c.lui with a zero immediate
        0x0000_9c79, // quadrant 1, funct6 39, the two free operations
        0x0000_9c7d,
        0x0000_4002, // c.lwsp to x0
        0x0000_6002, // c.ldsp to x0
        0x0000_8002, // c.jr to x0
        0x0000_8c40, // quadrant 0, funct3 4: neither a byte nor a halfword
        0x0000_9000,
        0x2801_40af, // amocas.q to x1
        0x02b5_5553, // fadd.d with rounding mode 5
        0x02b5_6553, // and 6
        0x0200_101b, // slliw by 32
        0xffff_ffff,
    ];
    for raw in reserved {
        let inst = decode(raw);
        assert_eq!((inst.op, inst.class), (Op::Illegal, InstClass::Illegal), "{raw:#x}");
        assert_eq!(inst.raw, raw);
        assert_eq!((inst.rd, inst.rs1, inst.rs2, inst.rs3, inst.imm), (0, 0, 0, 0, 0));
    }
}
