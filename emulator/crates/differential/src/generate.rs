//! Generates random programs; a program depends on its seed alone.

mod entry;
mod instructions;
mod link;
mod page_tables;
mod values;

use fastrand::Rng;
use isa::{Extensions, Op};

use crate::layout::*;
use instructions::ops;
use link::{length, link};

/// A program: the memory image that both machines load at [`TABLES`].
pub(crate) struct Program {
    /// Bytes of memory from [`TABLES`] on: page tables, data, parameters, blocks' entries and code.
    pub image: Vec<u8>,
    /// The blocks, which the harness runs one after the other.
    pub blocks: Vec<Block>,
}

/// A sequence of random instructions that the harness enters by `mret` and that ends with `ecall`.
pub(crate) struct Block {
    /// Physical address of the block's code.
    pub start: u64,
    /// Instructions of the block, the final `ecall` included.
    pub insts: Vec<u32>,
    /// State that the block is entered with.
    pub entry: Entry,
}

/// The architectural state that the harness sets before it enters a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Virtual address of the first instruction, in the block's privilege mode.
    pub pc: u64,
    /// `mstatus` before `mret`.
    pub mstatus: u64,
    /// `satp`: the translation mode and the root page table.
    pub satp: u64,
    /// `fcsr`: rounding mode and exception flags.
    pub fcsr: u64,
    /// Values of the registers [`POINTERS`].
    pub pointers: [u64; 6],
    /// `medeleg`: the exceptions that supervisor mode handles.
    pub medeleg: u64,
    /// `mideleg`, `mie` and `mip`.
    pub interrupts: [u64; 3],
}

impl Program {
    /// Returns the program of a seed, for machines that have these extensions. `clear_bits`: some page-table entries
    /// have a clear A or D bit.
    pub(crate) fn new(seed: u64, blocks: usize, extensions: Extensions, clear_bits: bool) -> Self {
        let mut generator = Generator {
            random: Rng::with_seed(seed),
            ops: ops(extensions),
            extensions,
            wild_pointers: true,
        };
        let mut at = CODE;
        let mut all = Vec::new();
        while all.len() < blocks && at + 2048 < CODE_END {
            let block = generator.block(at);
            at += block.insts.iter().map(|&raw| length(raw)).sum::<u64>();
            at = at.next_multiple_of(4) + 2 * generator.random.u64(0..2);
            all.push(block);
        }
        let mut program = Self { image: vec![0; (at + 64 - TABLES) as usize], blocks: all };
        program.tables(clear_bits);
        for word in 0..DATA_PAGES * 512 {
            let value = generator.value();
            program.poke(DATA + 8 * word, value);
        }
        program.write_blocks();
        program
    }

    /// Writes 8 bytes of memory at physical `address`.
    pub(crate) fn poke(&mut self, address: u64, value: u64) {
        let at = (address - TABLES) as usize;
        self.image[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn write_blocks(&mut self) {
        self.poke(PARAMETERS, self.blocks.len() as u64);
        let (ecall, sret) = (u64::from(Op::Ecall.encoding().0), u64::from(Op::Sret.encoding().0));
        self.poke(SUPERVISOR, ecall);
        self.poke(SUPERVISOR + 8, sret);
        let blocks = std::mem::take(&mut self.blocks);
        for (n, block) in blocks.iter().enumerate() {
            let Entry { pc, mstatus, satp, fcsr, pointers, medeleg, interrupts } = block.entry;
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

struct Generator {
    random: Rng,
    ops: Vec<Op>,
    extensions: Extensions,
    /// Instructions may overwrite pointer registers, or use others as addresses, so that accesses fault.
    wild_pointers: bool,
}

impl Generator {
    /// Returns true with a probability of `n` per cent.
    fn percent(&mut self, n: u32) -> bool {
        self.random.u32(0..100) < n
    }

    fn block(&mut self, start: u64) -> Block {
        let count = self.random.usize(20..300);
        let entry = self.entry(start);
        // QEMU before 8.1 lets data accesses under MPRV use what fetches brought into its TLB.
        self.wild_pointers = entry.mstatus >> 17 & 1 == 0;
        let mut items = Vec::new();
        if self.percent(20) {
            items.extend(self.reservation());
        }
        while items.len() < count {
            let item = self.item();
            items.push(item);
        }
        let insts = link(&items);
        Block { entry, start, insts }
    }
}
