//! What is known while a region is built, and the steps that all instructions share: registers, fields of the hart, blocks.

use std::collections::HashMap;

use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlags, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};
use isa::Reg;

use crate::Layout;
use crate::compiler::PreservingCalls;
use crate::discover::writes;
use crate::frame::Fallback;
use crate::loops::BlockInLoop;
use crate::warm::Segment;

/// What is known while a region is built.
pub(crate) struct Emitter<'a> {
    pub layout: Layout,
    pub b: FunctionBuilder<'a>,
    pub hart: Value,
    pub vpage: Value,
    /// Instructions that may be executed from the present block's start on.
    pub left: Variable,
    pub region: ir::SigRef,
    pub execute: ir::SigRef,
    pub execute_preserving: ir::SigRef,
    pub preserving_calls: PreservingCalls,
    /// Physical address of the page of code, if lines are to be kept warm.
    pub warm_page: Option<u64>,
    /// Line of code of the instruction that was emitted last, if it is in the present block.
    pub warm_line: Option<u64>,
    /// The path is to be logged.
    pub logs: bool,
    /// Instructions of the present block that are still to be logged.
    pub segment: Segment,
    /// Returns to the hart; its parameter is what [`Execute`](crate::Execute) returned.
    pub return_block: ir::Block,
    pub starts: HashMap<usize, (ir::Block, BlockInLoop)>,
    /// The loop of the present block.
    pub block_loop: BlockInLoop,
    /// Number of instructions of all blocks.
    pub length: usize,
    pub registers: [Option<Variable>; 64],
    /// Bit mask of registers whose value may not be stored in the hart yet.
    pub dirty: u64,
    /// What the interpreter may be called for: all instructions of the blocks, in their order.
    pub fallbacks: Box<[Fallback]>,
    /// Index in `fallbacks` of the instruction that is being emitted.
    pub fallback_index: usize,
    /// The code that is being emitted is rarely executed.
    pub is_cold: bool,
    /// The block has checked that the FP state allows the fast paths of its instructions.
    pub fp_known: bool,
    pub has_fma: bool,
    /// `Some` if the code records what it executes as a run.
    pub recording: Option<Recording>,
}

/// What of the present block is written down.
#[derive(Clone, Copy, Default)]
pub(crate) struct Recording {
    /// Accesses before the block, and where the next one was written then; if it accesses memory.
    pub first: Option<(Value, Value)>,
    /// Number of data accesses emitted in this block so far.
    pub accesses: i64,
}

impl Emitter<'_> {
    /// Virtual address of a slot, which may lie in another page.
    pub(crate) fn pc(&mut self, index: isize) -> Value {
        self.b.ins().iadd_imm(self.vpage, 2 * index as i64)
    }

    /// A block that is as rare as what is emitted now.
    pub(crate) fn new_block(&mut self) -> ir::Block {
        let block = self.b.create_block();
        if self.is_cold {
            self.b.set_cold_block(block);
        }
        block
    }

    /// Continues in a block all of whose predecessors are emitted.
    pub(crate) fn switch_to(&mut self, block: ir::Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    /// A register's value; an integer register as an `I64`, an FP register as an `F64`.
    pub(crate) fn get(&mut self, reg: Reg) -> Value {
        match self.registers[usize::from(reg)] {
            Some(variable) if reg != 0 => self.b.use_var(variable),
            _ => self.b.ins().iconst(types::I64, 0),
        }
    }

    /// Writes a register; [`isa::NOWHERE`] takes anything.
    pub(crate) fn put(&mut self, reg: Reg, value: Value) {
        if writes(reg) {
            self.define(reg, value);
            self.dirty |= 1 << reg;
        }
    }

    pub(crate) fn define(&mut self, reg: Reg, value: Value) {
        let variable = match self.registers[usize::from(reg)] {
            Some(variable) => variable,
            None => {
                let variable = self.b.declare_var(register_type(reg));
                *self.registers[usize::from(reg)].insert(variable)
            }
        };
        self.b.def_var(variable, value);
    }

    pub(crate) fn load_register(&mut self, reg: Reg) -> Value {
        self.b.ins().load(register_type(reg), hart_memory(), self.hart, self.layout.register(reg))
    }

    /// Stores every dirty register in the hart and marks it clean.
    pub(crate) fn write_back(&mut self) {
        self.store_dirty();
        self.dirty = 0;
    }

    pub(crate) fn store_dirty(&mut self) {
        let dirty = self.dirty;
        for reg in (1..64).filter(|reg| dirty >> reg & 1 != 0) {
            let value = self.get(reg);
            self.b.ins().store(hart_memory(), value, self.hart, self.layout.register(reg));
        }
    }

    /// A field of the frame that does not change while regions run.
    pub(crate) fn frame_constant(&mut self, offset: usize) -> Value {
        self.b.ins().load(types::I64, hart_constant(), self.hart, self.layout.frame(offset))
    }

    /// A flag of the frame.
    pub(crate) fn frame_flag(&mut self, offset: usize) -> Value {
        self.b.ins().load(types::I8, hart_memory(), self.hart, self.layout.frame(offset))
    }
}

pub(crate) fn signature(convention: CallConv, params: usize) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(types::I64); params];
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// Memory flags of accesses to fields of the hart, which no access of the guest can alias.
pub(crate) fn hart_memory() -> MemFlags {
    MemFlags::trusted().with_alias_region(Some(ir::AliasRegion::Vmctx))
}

/// Memory flags of loads from fields of the hart that do not change while a region executes.
pub(crate) fn hart_constant() -> MemFlags {
    MemFlags::trusted().with_readonly().with_can_move()
}

pub(crate) fn register_type(reg: Reg) -> ir::Type {
    if reg < 32 { types::I64 } else { types::F64 }
}
