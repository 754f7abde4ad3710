//! A small assembler and interpreter for tests: enough of RV64 to feed a core with the instruction
//! streams of microkernels, without the machine.
#![allow(dead_code, reason = "the example uses a part")]

mod exec;
mod parse;

use std::collections::HashMap;

use commit_trace::{Commit, CommitSink};
use isa::TimingModel as _;
use isa::{DecodedInst, InstClass, Op, PageWalk, Privilege, StaticId, StaticInst};
use timing::Core;

/// Address of the first instruction.
pub(crate) const TEXT: u64 = 0x8000_0000;
/// Where `ecall` goes, if the program has this label.
pub(crate) const HANDLER: &str = "trap_entry";

/// All that committed.
#[derive(Default)]
pub(crate) struct Commits(pub Vec<Commit>);

impl CommitSink for Commits {
    fn commit(&mut self, commit: &Commit) {
        self.0.push(*commit);
    }
}

/// What an instruction does; registers are in the unified numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    AddI,
    Add,
    Sub,
    Sll,
    Srl,
    Xor,
    And,
    Lui,
    Mul,
    Div,
    Load,
    Store,
    Branch { if_zero: bool },
    Jump,
    JumpReg,
    Fp,
    FpFromInt,
    IntFromFp,
    FpDiv,
    FpSqrt,
    FpLoad,
    FpStore,
    Csr(&'static str),
    Fence,
    FenceI,
    Amo,
    Ecall,
    Mret,
}

/// One assembled instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    pub pc: u64,
    pub action: Action,
    pub decoded: DecodedInst,
    /// Target of a direct branch or jump.
    pub target: u64,
}

/// An assembled program.
#[derive(Debug)]
pub(crate) struct Program {
    pub insts: Vec<Inst>,
    pub labels: HashMap<String, u64>,
    by_pc: HashMap<u64, usize>,
}

/// A program's architectural state.
pub(crate) struct State {
    pub x: [u64; 32],
    pub pc: u64,
    /// Addresses are translated, each to itself, by 4 KiB pages.
    pub translated: bool,
    memory: HashMap<u64, u64>,
    epc: u64,
}

/// The walk for an address in Sv39 page tables that map every address to itself.
fn walk(va: u64) -> PageWalk {
    const TABLES: u64 = 0x40_0000_0000;
    let entry = |level: u64, bits: u64| TABLES + (level << 32) + (va >> bits) * 8;
    PageWalk { pte: [entry(2, 30), entry(1, 21), entry(0, 12), 0, 0], levels: 3, page_bits: 12 }
}

impl Program {
    /// Assembles.
    pub(crate) fn new(source: &str) -> Self {
        let (insts, labels) = parse::assemble(source);
        let by_pc = insts.iter().enumerate().map(|(i, inst)| (inst.pc, i)).collect();
        Self { insts, labels, by_pc }
    }

    /// Announces all instructions.
    pub(crate) fn define<S: CommitSink>(&self, core: &mut Core<S>) {
        for (i, inst) in self.insts.iter().enumerate() {
            core.define(&StaticInst {
                id: StaticId(i as u32),
                space: 0,
                pc: inst.pc,
                inst: inst.decoded,
                privilege: Privilege::Machine,
            });
        }
    }

    /// Index of the instruction at `pc`.
    pub(crate) fn at(&self, pc: u64) -> Option<usize> {
        self.by_pc.get(&pc).copied()
    }

    /// Runs from `state.pc` until an instruction outside the program would run.
    pub(crate) fn run<S: CommitSink>(&self, core: &mut Core<S>, state: &mut State) {
        for _ in 0..100_000_000u64 {
            let Some(index) = self.at(state.pc) else {
                return;
            };
            self.step(core, state, index);
        }
        panic!("the program does not end");
    }
}

impl State {
    /// Registers zero.
    pub(crate) fn new() -> Self {
        Self { x: [0; 32], pc: TEXT, translated: false, memory: HashMap::new(), epc: 0 }
    }

    /// Writes a word.
    pub(crate) fn poke(&mut self, address: u64, value: u64) {
        self.memory.insert(address >> 3, value);
    }

    fn peek(&self, address: u64) -> u64 {
        self.memory.get(&(address >> 3)).copied().unwrap_or(0)
    }
}

fn decoded(class: InstClass, rd: u8, sources: [u8; 3], raw: u32) -> DecodedInst {
    let [rs1, rs2, rs3] = sources;
    DecodedInst { op: Op::Illegal, class, len: 4, rd, rs1, rs2, rs3, imm: 0, raw }
}
