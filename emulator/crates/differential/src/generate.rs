//! Random programs: a function of the seed.

use fastrand::Rng;
use isa::{DecodedInst, Extension, Extensions, InstClass, Op, decode};

use crate::layout::*;

/// CSRs that blocks may access: what is written to them is what both machines keep.
const CSRS: [u32; 7] = [
    0x001, 0x002, 0x003, // fflags, frm, fcsr
    0x140, 0x142, 0x143, // sscratch, scause, stval (QEMU before 9.1 keeps bit 0 of sepc)
    0x5a8, // none
];
/// Encodings that are illegal everywhere.
const ILLEGAL: [u32; 3] = [0xffff_ffff, 0x0000_000b, 0x0000_0000];

/// Sv39 and Sv48 in `satp`, with the tables' roots.
const SV39: u64 = 8 << 60 | TABLES >> 12;
const SV48: u64 = 9 << 60 | SV48_ROOT >> 12;
/// Its first entry is Sv39's root.
const SV48_ROOT: u64 = TABLES + 0x5000;
/// Exceptions that supervisor mode may be given: all but calls, which end blocks.
const DELEGABLE: u64 = 0xb0ff;
/// Interrupts that software raises: SSIP and STIP. (QEMU without AIA takes the lowest number first: SEIP last instead of
/// first.)
const RAISED: u64 = 0x22;
const SIP: u32 = 0x144;
const MIP: u32 = 0x344;

/// A program: what lies in memory from [`TABLES`] on.
pub struct Program {
    /// The memory.
    pub image: Vec<u8>,
    /// Blocks.
    pub blocks: Vec<Block>,
}

/// A block.
pub struct Block {
    /// Physical address of its code.
    pub start: u64,
    /// Its instructions, the final `ecall` included.
    pub insts: Vec<u32>,
    /// How it is entered.
    pub entry: Entry,
}

/// How a block is entered.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// First address, as its privilege sees it.
    pub pc: u64,
    /// `mstatus` before `mret`.
    pub mstatus: u64,
    /// Address translation.
    pub satp: u64,
    /// Rounding mode and flags.
    pub fcsr: u64,
    /// Values of [`POINTERS`].
    pub pointers: [u64; 6],
    /// Exceptions that supervisor mode handles.
    pub medeleg: u64,
    /// Interrupts that it handles, those that are enabled, and those that are pending.
    pub interrupts: [u64; 3],
}

/// An instruction whose target is a number of instructions ahead, or one that needs none.
enum Item {
    Word(u32),
    Branch(u32, usize),
    Jump(u8, usize),
    /// `auipc` and `jalr` through a register.
    Indirect(u8, u8, usize),
}

impl Program {
    /// The program of a seed, for machines that have these extensions. `clear_bits`: some entries have a clear A or D bit.
    pub fn new(seed: u64, blocks: usize, extensions: Extensions, clear_bits: bool) -> Self {
        let mut generator = Generator {
            random: Rng::with_seed(seed),
            ops: ops(extensions),
            extensions,
            wild: true,
        };
        let mut at = CODE;
        let mut all = Vec::new();
        while all.len() < blocks && at + 2048 < CODE_END {
            let block = generator.block(at);
            at += block.insts.iter().map(|&raw| length(raw)).sum::<u64>();
            at = at.next_multiple_of(4) + 2 * generator.random.u64(0..2);
            all.push(block);
        }
        let mut program = Self {
            image: vec![0; (at + 64 - TABLES) as usize],
            blocks: all,
        };
        program.tables(clear_bits);
        for word in 0..DATA_PAGES * 512 {
            let value = generator.value();
            program.poke(DATA + 8 * word, value);
        }
        program.write_blocks();
        program
    }

    /// Writes a word of memory.
    pub fn poke(&mut self, address: u64, value: u64) {
        let at = (address - TABLES) as usize;
        self.image[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Two copies of memory: the supervisor's where it is, the user's with [`USER`] set. Code and tables in
    /// pages of 2 MiB, data in pages with all kinds of entries.
    fn tables(&mut self, clear_bits: bool) {
        let page = |address: u64| address >> 12 << 10;
        let [root, tables] = [TABLES, TABLES + 0x1000];
        self.poke(SV48_ROOT, page(root) | 1);
        for (copy, user) in [(0, 0), (1, 1 << 4)] {
            let middle = tables + copy * 0x2000;
            let last = middle + 0x1000;
            self.poke(root + (2 + copy) * 8, page(middle) | 1);
            self.poke(middle + 8, page(last) | 1);
            let code = CODE & !0x1f_ffff;
            // Valid, readable, writable, executable, accessed, dirty.
            let entry = page(code) | 0xcf | user;
            self.poke(middle + ((code >> 21) & 511) * 8, entry);
            for n in 0..DATA_PAGES {
                let here = page(DATA + (n << 12));
                let plain = here | 0xc7 | user;
                // (QEMU before 8.0 takes entries with reserved bits or memory types.)
                let entry = match n {
                    32 => here | 0xc3 | user,
                    33 => here | 0xcb | user,
                    34 => here | 0xc9 | user,
                    35 => here | 0xc5 | user,
                    36 => here | 0xc6 | user,
                    37 => plain ^ 1 << 4,
                    39 => plain | 1 << 5,
                    40 => plain | 1 << 61,
                    41 if clear_bits => plain & !(1 << 6),
                    42 if clear_bits => plain & !(1 << 7),
                    43 if clear_bits => plain & !(3 << 6),
                    48.. => page(DATA + (56 << 12)) | 0xc7 | user | 1 << 63,
                    _ => plain,
                };
                self.poke(last + n * 8, entry);
            }
        }
    }

    fn write_blocks(&mut self) {
        self.poke(PARAMETERS, self.blocks.len() as u64);
        let (ecall, sret) = (
            u64::from(Op::Ecall.encoding().0),
            u64::from(Op::Sret.encoding().0),
        );
        self.poke(SUPERVISOR, ecall);
        self.poke(SUPERVISOR + 8, sret);
        let blocks = std::mem::take(&mut self.blocks);
        for (n, block) in blocks.iter().enumerate() {
            let Entry {
                pc,
                mstatus,
                satp,
                fcsr,
                pointers,
                medeleg,
                interrupts,
            } = block.entry;
            let words = { [pc, mstatus, satp, fcsr].into_iter() }
                .chain(pointers)
                .chain([medeleg])
                .chain(interrupts);
            for (i, word) in words.enumerate() {
                self.poke(ENTRIES + n as u64 * ENTRY + 8 * i as u64, word);
            }
            let mut at = (block.start - TABLES) as usize;
            for &raw in &block.insts {
                let length = length(raw) as usize;
                self.image[at..at + length].copy_from_slice(&raw.to_le_bytes()[..length]);
                at += length;
            }
        }
        self.blocks = blocks;
    }
}

fn length(raw: u32) -> u64 {
    if raw & 3 == 3 { 4 } else { 2 }
}

/// Operations that may stand anywhere.
fn ops(extensions: Extensions) -> Vec<Op> {
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

struct Generator {
    random: Rng,
    ops: Vec<Op>,
    extensions: Extensions,
    /// Pointers may go wild.
    wild: bool,
}

impl Generator {
    /// True in so many of 100 cases.
    fn percent(&mut self, n: u32) -> bool {
        self.random.u32(0..100) < n
    }

    /// A value with which things go wrong.
    fn value(&mut self) -> u64 {
        let random = self.random.u64(..);
        let doubles = [
            0,
            1 << 63,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            1,
            0x000f_ffff_ffff_ffff,
            0x7fef_ffff_ffff_ffff,
            0x43e0_0000_0000_0000,
            0x41df_ffff_ffc0_0000,
        ];
        let singles = [
            0,
            0x8000_0000,
            0x3f80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            1,
            0x007f_ffff,
            0x7f7f_ffff,
            0x5f00_0000,
            0x4f00_0000,
        ];
        let pick = self.random.usize(0..doubles.len());
        // The same in half precision.
        let halves = [
            0, 0x8000, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 1, 0x03ff, 0x7bff, 0x7800, 0x6400,
        ];
        match self.random.u32(0..12) {
            0 | 1 => random,
            2 => u64::from(random as u8),
            3 => !u64::from(random as u8),
            4 => 1 << (random & 63),
            5 => doubles[pick],
            // Near a special value, or an ordinary number.
            6 => doubles[pick].wrapping_add(random & 3).wrapping_sub(1),
            7 => random & 0x800f_ffff_ffff_ffff | (1023 - 8 + (random >> 53 & 15)) << 52,
            8 => 0xffff_ffff_0000_0000 | singles[pick],
            9 => !0xffff | halves[pick],
            10 => !0xffff | random & 0x83ff | (15 - 8 + (random >> 40 & 15)) << 10,
            _ => {
                let number = random & 0x807f_ffff | (127 - 8 + (random >> 40 & 15)) << 23;
                0xffff_ffff_0000_0000 | number
            }
        }
    }

    /// A place in the data for a pointer register.
    fn pointer(&mut self) -> u64 {
        let plain = self.percent(70);
        let page = if plain {
            self.random.u64(0..32)
        } else {
            self.random.u64(0..DATA_PAGES)
        };
        let offset = match self.random.u32(0..20) {
            0..15 => self.random.u64(0..256) * 16,
            15..18 => 4096 - self.random.u64(1..16),
            _ => self.random.u64(0..4096),
        };
        DATA + (page << 12) + offset
    }

    fn entry(&mut self, start: u64) -> Entry {
        let satp = match self.random.u32(0..10) {
            0..5 => SV39,
            5..7 => SV48,
            _ => 0,
        };
        let (user, supervisor) = (0, 1);
        let mpp = [user, supervisor, 3][self.random.usize(0..3)];
        // Machine mode may access data as user mode does.
        let mprv = mpp == 3 && self.percent(50);
        let mut mstatus = 0xa_0000_0000 | mpp << 11 | u64::from(mprv) << 17;
        if !self.percent(10) {
            mstatus |= 3 << 13;
        }
        for bit in [18, 19, 20] {
            mstatus |= self.random.u64(0..2) << bit;
        }
        // Half of the blocks have interrupts; MPIE becomes MIE as they are entered.
        let mut interrupts = [0; 3];
        if self.percent(50) {
            interrupts = interrupts.map(|_| self.random.u64(..) & RAISED);
            for bit in [1, 7] {
                mstatus |= self.random.u64(0..2) << bit;
            }
        }
        let shift = |on: bool| if on && satp != 0 { USER } else { 0 };
        let data = shift(mpp == user || mprv);
        let mut pointers = std::array::from_fn(|_| self.pointer() | data);
        // `sp` can always be accessed, and is aligned.
        pointers[0] = (DATA + self.random.u64(0..32 * 256) * 16) | data;
        Entry {
            pc: start | shift(mpp == user),
            mstatus,
            satp,
            fcsr: self.random.u64(0..5) << 5 | self.random.u64(0..32),
            pointers,
            medeleg: self.medeleg(),
            interrupts,
        }
    }

    /// Half of the blocks have supervisor mode handle some exceptions.
    fn medeleg(&mut self) -> u64 {
        if self.percent(50) {
            return 0;
        }
        let some = self.random.u64(..) & DELEGABLE;
        // QEMU before 9.0 takes faults of atomics, 6, 7 and 15, for a load's: 4, 5 and 13.
        let loads = 1 << 4 | 1 << 5 | 1 << 13;
        some & !(loads << 2) | (some & loads) << 2
    }

    fn block(&mut self, start: u64) -> Block {
        let count = self.random.usize(20..300);
        let entry = self.entry(start);
        // QEMU before 8.1 lets data accesses under MPRV use what fetches brought into its TLB.
        self.wild = entry.mstatus >> 17 & 1 == 0;
        let mut items = Vec::new();
        if self.percent(20) {
            items.extend(self.reservation());
        }
        while items.len() < count {
            let item = self.item();
            items.push(item);
        }
        let insts = link(&items);
        Block {
            entry,
            start,
            insts,
        }
    }

    fn item(&mut self) -> Item {
        let ahead = self.random.usize(1..6);
        match self.random.u32(0..100) {
            0..55 => Item::Word(self.any()),
            55..70 => Item::Word(self.memory()),
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

    /// Load-reserved and store-conditional, while `sp` is what the block was entered with. (QEMU lets a
    /// store-conditional without reservation fail where it should trap.)
    fn reservation(&mut self) -> Vec<Item> {
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

    /// A register other than `x0` that is no pointer.
    fn free_register(&mut self) -> u8 {
        loop {
            let register = self.random.u8(1..32);
            if !POINTERS.contains(&register) {
                return register;
            }
        }
    }

    /// Seldom a pointer: a wild one only faults.
    fn destination(&mut self) -> u8 {
        if self.wild && self.percent(3) {
            self.register()
        } else if self.percent(3) {
            0
        } else {
            self.free_register()
        }
    }

    fn with(&mut self, op: Op) -> u32 {
        let (value, mask) = op.encoding();
        let mut fields = self.random.u32(..);
        let inst = decode(fields & !mask | value);
        let integer = (1..32).contains(&inst.rd);
        if op.extensions().contains(&Extension::Zacas) {
            // Not `x0`, which QEMU 10.0 lets compare-and-swap change.
            let pairs = [4, 6, 12, 14, 16, 20, 22, 24, 26, 28, 30];
            let rd = pairs[self.random.usize(0..pairs.len())];
            fields = fields & !(31 << 7) | rd << 7;
        } else if integer {
            let rd = u32::from(self.destination());
            fields = fields & !(31 << 7) | rd << 7;
        }
        let accesses = inst.class.accesses_memory() || inst.class.serialises();
        if accesses && !(self.wild && self.percent(3)) {
            let pointer = POINTERS[self.random.usize(0..POINTERS.len())];
            fields = fields & !(31 << 15) | u32::from(pointer) << 15;
        }
        fields & !mask | value
    }

    fn any(&mut self) -> u32 {
        let op = self.ops[self.random.usize(0..self.ops.len())];
        self.with(op)
    }

    fn memory(&mut self) -> u32 {
        loop {
            let op = self.ops[self.random.usize(0..self.ops.len())];
            if op.class().accesses_memory() {
                return self.with(op);
            }
        }
    }

    fn compressed(&mut self) -> u32 {
        loop {
            let raw = u32::from(self.random.u16(..));
            if raw & 3 != 3 && self.fits(&decode(raw)) {
                return raw;
            }
        }
    }

    fn fits(&mut self, inst: &DecodedInst) -> bool {
        let control = inst.class.is_control_flow() || inst.class == InstClass::Ecall;
        let present = self.extensions.has_all(inst.extensions());
        let wild = inst.class.accesses_memory() && !POINTERS.contains(&inst.rs1);
        let legal = inst.op != Op::Illegal;
        legal
            && present
            && !control
            && !wild
            && (!POINTERS.contains(&inst.rd) || self.wild && self.percent(3))
    }

    fn branch(&mut self) -> u32 {
        let kinds = [0, 1, 4, 5, 6, 7];
        let funct3 = kinds[self.random.usize(0..6)];
        let [a, b] = [self.register(), self.register()].map(u32::from);
        b << 20 | a << 15 | funct3 << 12 | 0x63
    }

    /// Raises or clears interrupts, or is illegal. Without destination: QEMU's timer has MTIP pending.
    fn raise(&mut self) -> u32 {
        let csr = if self.percent(50) { SIP } else { MIP };
        let funct3 = [1, 2, 3, 5, 6, 7][self.random.usize(0..6)];
        csr << 20 | u32::from(self.register()) << 15 | funct3 << 12 | 0x73
    }

    fn csr(&mut self) -> u32 {
        if self.percent(20) {
            return self.raise();
        }
        let csr = CSRS[self.random.usize(0..CSRS.len())];
        let funct3 = [1, 2, 3, 5, 6, 7][self.random.usize(0..6)];
        let (rd, rs1) = (self.destination(), self.register());
        csr << 20 | u32::from(rs1) << 15 | funct3 << 12 | u32::from(rd) << 7 | 0x73
    }

    /// `lui` with a value that matters at the limits of 32 bits.
    fn constant(&mut self) -> u32 {
        let values = [0x8000_0000, 0x7fff_f000, 0xffff_f000, 0x0000_1000];
        values[self.random.usize(0..4)] | u32::from(self.free_register()) << 7 | 0x37
    }
}

/// Fills in the targets of jumps, and ends the block.
fn link(items: &[Item]) -> Vec<u32> {
    let length_of = |item: &Item| match *item {
        Item::Word(raw) => length(raw),
        Item::Indirect(..) => 8,
        _ => 4,
    };
    // Where each item starts, and where the end does.
    let mut starts = vec![0];
    for item in items {
        starts.push(starts[starts.len() - 1] + length_of(item));
    }
    let distance = |n: usize, ahead: usize| {
        let to = (n + 1 + ahead).min(items.len());
        (starts[to] - starts[n]) as u32
    };
    let mut insts = Vec::new();
    for (n, item) in items.iter().enumerate() {
        match *item {
            Item::Word(raw) => insts.push(raw),
            Item::Branch(raw, ahead) => {
                let d = distance(n, ahead);
                let imm = (d >> 12 & 1) << 31 | (d >> 5 & 63) << 25 | (d >> 1 & 15) << 8;
                insts.push(raw | imm | (d >> 11 & 1) << 7);
            }
            Item::Jump(rd, ahead) => {
                let d = distance(n, ahead);
                let imm = (d >> 1 & 0x3ff) << 21 | (d >> 11 & 1) << 20 | (d >> 12 & 0xff) << 12;
                insts.push(imm | u32::from(rd) << 7 | 0x6f);
            }
            Item::Indirect(via, rd, ahead) => {
                let via = u32::from(via);
                insts.push(via << 7 | 0x17);
                insts.push(distance(n, ahead) << 20 | via << 15 | u32::from(rd) << 7 | 0x67);
            }
        }
    }
    insts.extend([0x0000_0073, MAGIC]);
    insts
}
