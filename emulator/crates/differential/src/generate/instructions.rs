//! Generates the instructions of a block.

use isa::{DecodedInst, Extension, Extensions, InstClass, Op, decode};

use super::Generator;
use super::link::Item;
use crate::layout::*;

/// CSRs that blocks may access: QEMU and tipsim keep the same bits of what is written to them.
const CSRS: [u32; 7] = [
    0x001, 0x002, 0x003, // fflags, frm, fcsr
    0x140, 0x142, 0x143, // sscratch, scause, stval (QEMU before 9.1 keeps bit 0 of sepc)
    0x5a8, // none
];
/// Encodings that are illegal everywhere.
const ILLEGAL: [u32; 3] = [0xffff_ffff, 0x0000_000b, 0x0000_0000];
const SIP: u32 = 0x144;
const MIP: u32 = 0x344;

/// Operations that may stand anywhere in a block, if both machines have these extensions.
pub(super) fn ops(extensions: Extensions) -> Vec<Op> {
    let all = Op::ALL.iter().copied();
    all.filter(|op| extensions.has_all(op.extensions()))
        .filter(|op| {
            use InstClass as C;
            let elsewhere = [
                C::Illegal,
                C::Xret,
                C::Wfi,
                C::Ecall,
                C::Csr,
                C::LoadReserved,
                C::StoreConditional,
            ];
            // QEMU before 8.0 lets user mode execute the first two (Svinval 1.0: illegal), and counts beyond
            // bit 31 in `ctzw`.
            let wrong = [Op::SfenceWInval, Op::SfenceInvalIr, Op::Ctzw];
            // QEMU up to 10.0 forgets the flags of these if nothing reads the result.
            let rounds = [
                Op::FroundS,
                Op::FroundD,
                Op::FroundH,
                Op::FroundnxS,
                Op::FroundnxD,
                Op::FroundnxH,
            ];
            let wrong = wrong.contains(op) || rounds.contains(op);
            let excluded = elsewhere.contains(&op.class()) || wrong;
            !op.class().is_control_flow() && !excluded
        })
        .collect()
}

impl Generator {
    pub(super) fn item(&mut self) -> Item {
        let ahead = self.random.usize(1..6);
        match self.random.u32(0..100) {
            0..55 => Item::Word(self.any_instruction()),
            55..70 => Item::Word(self.memory_access()),
            70..80 => Item::Word(self.compressed()),
            80..88 => Item::Branch(self.branch(), ahead),
            88..90 => Item::Jump(self.destination(), ahead),
            90..92 => Item::Indirect(self.free_register(), self.destination(), ahead),
            92..97 => Item::Word(self.csr()),
            97..99 => Item::Word(self.constant()),
            _ => Item::Word(match self.random.usize(0..5) {
                3 => 0x0000_0073,
                4 => 0x0010_0073,
                n => ILLEGAL[n],
            }),
        }
    }

    /// A load-reserved and its store-conditional at `sp`, for the start of a block, where `sp` is valid. (Elsewhere QEMU lets
    /// a store-conditional without reservation fail where it should trap.)
    pub(super) fn reservation(&mut self) -> Vec<Item> {
        let sp = 2 << 15;
        let (load, store) = match self.percent(50) {
            true => (Op::LrW, Op::ScW),
            false => (Op::LrD, Op::ScD),
        };
        let mut with = |op: Op, rs2: u8| {
            let rd = u32::from(self.free_register());
            Item::Word(op.encoding().0 | u32::from(rs2) << 20 | sp | rd << 7)
        };
        let (load, store) = (with(load, 0), with(store, 5));
        let mut items = vec![load];
        for _ in 0..self.random.usize(0..3) {
            items.push(Item::Word(self.constant()));
        }
        items.push(store);
        items
    }

    fn register(&mut self) -> u8 {
        self.random.u8(0..32)
    }

    /// A random register other than `x0` and the pointers.
    fn free_register(&mut self) -> u8 {
        loop {
            let register = self.random.u8(1..32);
            if !POINTERS.contains(&register) {
                return register;
            }
        }
    }

    /// A random destination register: seldom a pointer, since an overwritten pointer makes later accesses fault.
    fn destination(&mut self) -> u8 {
        if self.wild_pointers && self.percent(3) {
            self.register()
        } else if self.percent(3) {
            0
        } else {
            self.free_register()
        }
    }

    fn random_fields(&mut self, op: Op) -> u32 {
        let (value, mask) = op.encoding();
        let mut fields = self.random.u32(..);
        let inst = decode(fields & !mask | value);
        let integer = (1..32).contains(&inst.rd);
        if op.extensions().contains(&Extension::Zacas) {
            // An even register, not `x0`: QEMU 10.0 lets compare-and-swap change `x0`.
            let pairs = [4, 6, 12, 14, 16, 20, 22, 24, 26, 28, 30];
            let rd = pairs[self.random.usize(0..pairs.len())];
            fields = fields & !(31 << 7) | rd << 7;
        } else if integer {
            let rd = u32::from(self.destination());
            fields = fields & !(31 << 7) | rd << 7;
        }
        let accesses = inst.class.accesses_memory() || inst.class.serialises();
        if accesses && !(self.wild_pointers && self.percent(3)) {
            let pointer = POINTERS[self.random.usize(0..POINTERS.len())];
            fields = fields & !(31 << 15) | u32::from(pointer) << 15;
        }
        fields & !mask | value
    }

    fn any_instruction(&mut self) -> u32 {
        let op = self.ops[self.random.usize(0..self.ops.len())];
        self.random_fields(op)
    }

    fn memory_access(&mut self) -> u32 {
        loop {
            let op = self.ops[self.random.usize(0..self.ops.len())];
            if op.class().accesses_memory() {
                return self.random_fields(op);
            }
        }
    }

    fn compressed(&mut self) -> u32 {
        loop {
            let raw = u32::from(self.random.u16(..));
            if raw & 3 != 3 && self.is_allowed(&decode(raw)) {
                return raw;
            }
        }
    }

    fn is_allowed(&mut self, inst: &DecodedInst) -> bool {
        let control = inst.class.is_control_flow() || inst.class == InstClass::Ecall;
        let present = self.extensions.has_all(inst.extensions());
        let wild = inst.class.accesses_memory() && !POINTERS.contains(&inst.rs1);
        let legal = inst.op != Op::Illegal;
        legal
            && present
            && !control
            && !wild
            && (!POINTERS.contains(&inst.rd) || self.wild_pointers && self.percent(3))
    }

    fn branch(&mut self) -> u32 {
        let kinds = [0, 1, 4, 5, 6, 7];
        let funct3 = kinds[self.random.usize(0..6)];
        let [a, b] = [self.register(), self.register()].map(u32::from);
        b << 20 | a << 15 | funct3 << 12 | 0x63
    }

    /// A CSR instruction that sets or clears pending interrupts; illegal in lower privilege modes. It has no destination
    /// register, since on QEMU MTIP is pending and would be read.
    fn interrupt_csr(&mut self) -> u32 {
        let csr = if self.percent(50) { SIP } else { MIP };
        let funct3 = [1, 2, 3, 5, 6, 7][self.random.usize(0..6)];
        csr << 20 | u32::from(self.register()) << 15 | funct3 << 12 | 0x73
    }

    fn csr(&mut self) -> u32 {
        if self.percent(20) {
            return self.interrupt_csr();
        }
        let csr = CSRS[self.random.usize(0..CSRS.len())];
        let funct3 = [1, 2, 3, 5, 6, 7][self.random.usize(0..6)];
        let (rd, rs1) = (self.destination(), self.register());
        csr << 20 | u32::from(rs1) << 15 | funct3 << 12 | u32::from(rd) << 7 | 0x73
    }

    /// A `lui` with a value at the limits of 32-bit arithmetic.
    fn constant(&mut self) -> u32 {
        let values = [0x8000_0000, 0x7fff_f000, 0xffff_f000, 0x0000_1000];
        values[self.random.usize(0..4)] | u32::from(self.free_register()) << 7 | 0x37
    }
}
