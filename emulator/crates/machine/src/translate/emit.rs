//! From blocks of guest instructions to Cranelift's intermediate representation: entries and exits, registers,
//! and what an instruction does when its fast path does not hold.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlags, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use isa::{InstClass, Op, Reg};

use super::discover::{Block, End, Placed};
use super::runtime::{self, ENTRIES, Entry, Frame};
use crate::code_cache::Slot;
use crate::hart::{Hart, NOWHERE};

/// Signature of a region: hart, environment, pc, count. It gives how it came back.
fn region_signature() -> Signature {
    signature(CallConv::Tail, 4)
}

fn signature(convention: CallConv, params: usize) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(types::I64); params];
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// The function that the hart enters regions by, in the host's C convention: hart, environment, pc, count, code.
pub(super) fn trampoline(function: &mut ir::Function, context: &mut FunctionBuilderContext) {
    function.signature = signature(CallConv::SystemV, 5);
    let mut b = FunctionBuilder::new(function, context);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let params = b.block_params(block).to_vec();
    let region = b.import_signature(region_signature());
    let call = b.ins().call_indirect(region, params[4], &params[..4]);
    let result = b.inst_results(call)[0];
    b.ins().return_(&[result]);
    b.seal_all_blocks();
    b.finalize();
}

/// A field of the hart, at a byte offset.
pub(super) fn field(offset: usize) -> i32 {
    offset as i32
}

fn frame(offset: usize) -> i32 {
    field(offset_of!(Hart, frame) + offset)
}

/// Accesses to what the hart owns.
pub(super) fn own() -> MemFlags {
    MemFlags::trusted().with_alias_region(Some(ir::AliasRegion::Vmctx))
}

/// What the hart owns and a region does not change.
fn constant() -> MemFlags {
    MemFlags::trusted().with_readonly().with_can_move()
}

/// Builds the region of `blocks`, which is entered at the first. Gives the instructions that the code refers to.
pub(super) fn region(
    function: &mut ir::Function,
    context: &mut FunctionBuilderContext,
    blocks: &[Block],
    has_fma: bool,
) -> Box<[Slot]> {
    function.signature = region_signature();
    let mut b = FunctionBuilder::new(function, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let params = b.block_params(entry).to_vec();
    let [hart, env, pc, count] = params[..] else {
        unreachable!("the signature has four");
    };
    let count_variable = b.declare_var(types::I64);
    b.def_var(count_variable, count);
    let vpage = b.ins().iadd_imm(pc, -2 * blocks[0].start as i64);
    let region = b.import_signature(region_signature());
    let execute = b.import_signature(signature(CallConv::SystemV, 5));
    let back = b.create_block();
    b.append_block_param(back, types::I64);
    let starts = blocks.iter().map(|block| (block.start, b.create_block()));
    let starts: HashMap<usize, ir::Block> = starts.collect();
    let bodies = blocks.iter().flat_map(|block| &block.body);
    let mut emitter = Emitter {
        b,
        hart,
        env,
        vpage,
        count: count_variable,
        region,
        execute,
        back,
        starts,
        registers: [None; 64],
        dirty: 0,
        done: 0,
        slots: bodies.map(|placed| Slot::new(placed.inst)).collect(),
        present: 0,
        has_fma,
    };
    emitter.load_registers(blocks);
    let first = emitter.starts[&blocks[0].start];
    emitter.b.ins().jump(first, &[]);
    for block in blocks {
        emitter.block(block);
    }
    emitter.back();
    let Emitter { mut b, slots, .. } = emitter;
    b.seal_all_blocks();
    b.finalize();
    slots
}

/// What is known while a region is built.
pub(super) struct Emitter<'a> {
    pub b: FunctionBuilder<'a>,
    pub hart: Value,
    env: Value,
    vpage: Value,
    /// Instructions executed when the present block began.
    count: Variable,
    region: ir::SigRef,
    execute: ir::SigRef,
    /// Returns to the hart; its parameter is what [`runtime::execute`] said.
    back: ir::Block,
    starts: HashMap<usize, ir::Block>,
    registers: [Option<Variable>; 64],
    /// Registers that were written in this block and are not in their places yet.
    dirty: u64,
    /// Instructions of this block before the present one.
    done: usize,
    /// What the interpreter may be called for: all instructions of the blocks, in their order.
    slots: Box<[Slot]>,
    /// The place of the present one among them.
    present: usize,
    pub has_fma: bool,
}

impl Emitter<'_> {
    /// Gets every register that the region reads.
    fn load_registers(&mut self, blocks: &[Block]) {
        let mut read = 0u64;
        for block in blocks {
            let jump = match block.end {
                End::Branch(placed) | End::Jal(placed) | End::Jalr(placed) => Some(placed),
                End::Next(_) | End::Leave(_) => None,
            };
            for Placed { inst, .. } in block.body.iter().copied().chain(jump) {
                for reg in [inst.rs1, inst.rs2, inst.rs3] {
                    read |= 1 << reg;
                }
            }
        }
        for reg in (1..64).filter(|reg| read >> reg & 1 != 0) {
            let value = self.load_register(reg);
            self.define(reg, value);
        }
    }

    fn block(&mut self, block: &Block) {
        let start = self.starts[&block.start];
        self.b.switch_to_block(start);
        self.dirty = 0;
        self.done = 0;
        let count = self.b.use_var(self.count);
        let after = self.b.ins().iadd_imm(count, block.len() as i64);
        let check_at = offset_of!(Hart, check_at);
        let limit = self
            .b
            .ins()
            .load(types::I64, own(), self.hart, field(check_at));
        let due = self.b.ins().icmp(IntCC::UnsignedGreaterThan, after, limit);
        let (early, body) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(early);
        self.b.ins().brif(due, early, &[], body, &[]);
        self.switch_to(early);
        let pc = self.pc(block.start as isize);
        self.leave(pc, count);
        self.switch_to(body);
        for &placed in &block.body {
            self.instruction(placed);
            self.done += 1;
            self.present += 1;
        }
        match block.end {
            End::Branch(placed) => {
                let (a, b) = (self.get(placed.inst.rs1), self.get(placed.inst.rs2));
                let taken = self.b.ins().icmp(condition(placed.inst.op), a, b);
                self.write_back();
                self.b.def_var(self.count, after);
                let following = placed.following() as isize;
                let ways = [placed.target(), following].map(|index| (index, self.way(index)));
                let [(_, (yes, _)), (_, (no, _))] = ways;
                self.b.ins().brif(taken, yes, &[], no, &[]);
                for (index, (way, known)) in ways {
                    if !known {
                        self.switch_to(way);
                        let pc = self.pc(index);
                        self.go_to(pc, after);
                    }
                }
            }
            End::Jal(placed) => {
                self.link(placed);
                self.write_back();
                self.b.def_var(self.count, after);
                self.go_to_slot(placed.target(), after);
            }
            End::Jalr(placed) => {
                let base = self.get(placed.inst.rs1);
                let sum = self.b.ins().iadd_imm(base, i64::from(placed.inst.imm));
                let target = self.b.ins().band_imm(sum, !1);
                self.link(placed);
                self.write_back();
                self.go_to(target, after);
            }
            End::Next(index) => {
                self.write_back();
                self.b.def_var(self.count, after);
                self.go_to_slot(index as isize, after);
            }
            End::Leave(index) => {
                self.write_back();
                let pc = self.pc(index as isize);
                self.leave(pc, after);
            }
        }
    }

    /// The block at a slot, or a new one from which the region has to be left.
    fn way(&mut self, index: isize) -> (ir::Block, bool) {
        let known = usize::try_from(index)
            .ok()
            .and_then(|index| self.starts.get(&index));
        match known {
            Some(&block) => (block, true),
            None => (self.b.create_block(), false),
        }
    }

    fn go_to_slot(&mut self, index: isize, count: Value) {
        if let (block, true) = self.way(index) {
            self.b.ins().jump(block, &[]);
        } else {
            let pc = self.pc(index);
            self.go_to(pc, count);
        }
    }

    /// Puts the return address into a jump's destination.
    fn link(&mut self, placed: Placed) {
        let address = self.pc(placed.following() as isize);
        self.put(placed.inst.rd, address);
    }

    /// Virtual address of a slot, which may lie in another page.
    pub fn pc(&mut self, index: isize) -> Value {
        self.b.ins().iadd_imm(self.vpage, 2 * index as i64)
    }

    /// Goes on with the region at `pc`, if there is one.
    fn go_to(&mut self, pc: Value, count: Value) {
        let hart = self.hart;
        let at = frame(offset_of!(Frame, entries));
        let entries = self.b.ins().load(types::I64, constant(), hart, at);
        let shift = size_of::<Entry>().trailing_zeros() - 1;
        let scaled = self.b.ins().ishl_imm(pc, i64::from(shift));
        let offset = self
            .b
            .ins()
            .band_imm(scaled, ((ENTRIES - 1) * size_of::<Entry>()) as i64);
        let entry = self.b.ins().iadd(entries, offset);
        let entry_field =
            |e: &mut Self, offset: usize| e.b.ins().load(types::I64, own(), entry, offset as i32);
        let entry_pc = entry_field(self, offset_of!(Entry, pc));
        let entry_key = entry_field(self, offset_of!(Entry, key));
        let key = self
            .b
            .ins()
            .load(types::I64, constant(), hart, frame(offset_of!(Frame, key)));
        let other_pc = self.b.ins().bxor(entry_pc, pc);
        let other_key = self.b.ins().bxor(entry_key, key);
        let other = self.b.ins().bor(other_pc, other_key);
        let (known, unknown) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(unknown);
        self.b.ins().brif(other, unknown, &[], known, &[]);
        self.switch_to(known);
        let code = entry_field(self, offset_of!(Entry, code));
        let env = self.env;
        self.b
            .ins()
            .return_call_indirect(self.region, code, &[hart, env, pc, count]);
        self.switch_to(unknown);
        self.leave(pc, count);
    }

    /// Goes back to the hart, which goes on at `pc`.
    fn leave(&mut self, pc: Value, count: Value) {
        for (value, offset) in [(pc, offset_of!(Hart, pc)), (count, offset_of!(Hart, count))] {
            self.b.ins().store(own(), value, self.hart, field(offset));
        }
        let done = self.b.ins().iconst(types::I64, runtime::DONE as i64);
        self.b.ins().return_(&[done]);
    }

    /// The block by which a region is left in the middle of a block: pc and count are in their places.
    fn back(&mut self) {
        self.b.set_cold_block(self.back);
        self.b.switch_to_block(self.back);
        let said = self.b.block_params(self.back)[0];
        let result = self.b.ins().iadd_imm(said, -1);
        self.b.ins().return_(&[result]);
    }

    fn instruction(&mut self, placed: Placed) {
        let inst = &placed.inst;
        match inst.class {
            InstClass::Load | InstClass::FpLoad => self.load(placed),
            InstClass::Store | InstClass::FpStore => self.store(placed),
            InstClass::Fence => {}
            InstClass::IntAlu | InstClass::IntMul | InstClass::IntDiv => match self.integer(placed)
            {
                Some(value) => self.put(inst.rd, value),
                None => self.interpreted(placed),
            },
            InstClass::FpArith | InstClass::FpDivSqrt | InstClass::FpToInt | InstClass::IntToFp => {
                self.floating(placed);
            }
            _ => self.interpreted(placed),
        }
    }

    /// Lets the interpreter execute an instruction.
    pub fn interpreted(&mut self, placed: Placed) {
        self.write_back();
        let result = self.call_interpreter(placed);
        if let Some(value) = result {
            self.define(placed.inst.rd, value);
        }
    }

    /// Emits `fast`, which gives the value for rd, and goes to the block that it gets instead where it does not
    /// hold, before anything was changed: there the interpreter executes the instruction.
    pub fn guarded(
        &mut self,
        placed: Placed,
        fast: impl FnOnce(&mut Self, ir::Block) -> Option<Value>,
    ) {
        let (cold, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        let rd = placed.inst.rd;
        let result = writes(rd).then(|| self.b.append_block_param(done, register_type(rd)));
        let value = fast(self, cold);
        let value = value.filter(|_| writes(rd));
        self.b
            .ins()
            .jump(done, &value.map(Into::into).into_iter().collect::<Vec<_>>());
        self.switch_to(cold);
        self.store_dirty();
        let interpreted = self.call_interpreter(placed);
        self.b.ins().jump(
            done,
            &interpreted.map(Into::into).into_iter().collect::<Vec<_>>(),
        );
        self.switch_to(done);
        if let Some(value) = result {
            self.put(rd, value);
        }
    }

    /// Goes on in a block that everything which leads to it is known of.
    fn switch_to(&mut self, block: ir::Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    /// Goes to `cold` unless `holds`.
    pub fn require(&mut self, holds: Value, cold: ir::Block) {
        let on = self.b.create_block();
        self.b.ins().brif(holds, on, &[], cold, &[]);
        self.switch_to(on);
    }

    /// Calls the interpreter for one instruction and gives the new value of rd. All registers are in their places.
    fn call_interpreter(&mut self, placed: Placed) -> Option<Value> {
        let slot_address = &raw const self.slots[self.present] as i64;
        let slot = self.b.ins().iconst(types::I64, slot_address);
        let pc = self.pc(placed.index as isize);
        let count = self.b.use_var(self.count);
        let count = self.b.ins().iadd_imm(count, self.done as i64);
        let at = frame(offset_of!(Frame, execute));
        let execute = self.b.ins().load(types::I64, constant(), self.hart, at);
        let arguments = [self.hart, self.env, slot, pc, count];
        let call = self
            .b
            .ins()
            .call_indirect(self.execute, execute, &arguments);
        let said = self.b.inst_results(call)[0];
        let on = self.b.create_block();
        self.b.ins().brif(said, self.back, &[said.into()], on, &[]);
        self.switch_to(on);
        let rd = placed.inst.rd;
        writes(rd).then(|| self.load_register(rd))
    }

    /// A register's value; an integer register as an `I64`, an FP register as an `F64`.
    pub fn get(&mut self, reg: Reg) -> Value {
        match self.registers[usize::from(reg)] {
            Some(variable) if reg != 0 => self.b.use_var(variable),
            _ => self.b.ins().iconst(types::I64, 0),
        }
    }

    /// Writes a register; [`NOWHERE`] takes anything.
    pub fn put(&mut self, reg: Reg, value: Value) {
        if writes(reg) {
            self.define(reg, value);
            self.dirty |= 1 << reg;
        }
    }

    fn define(&mut self, reg: Reg, value: Value) {
        let variable = match self.registers[usize::from(reg)] {
            Some(variable) => variable,
            None => {
                let variable = self.b.declare_var(register_type(reg));
                *self.registers[usize::from(reg)].insert(variable)
            }
        };
        self.b.def_var(variable, value);
    }

    fn load_register(&mut self, reg: Reg) -> Value {
        self.b
            .ins()
            .load(register_type(reg), own(), self.hart, place(reg))
    }

    /// Stores what is not in its place, and forgets that it was not.
    fn write_back(&mut self) {
        self.store_dirty();
        self.dirty = 0;
    }

    fn store_dirty(&mut self) {
        let dirty = self.dirty;
        for reg in (1..64).filter(|reg| dirty >> reg & 1 != 0) {
            let value = self.get(reg);
            self.b.ins().store(own(), value, self.hart, place(reg));
        }
    }

    /// A field of the frame that does not change while regions run.
    pub fn frame_constant(&mut self, offset: usize) -> Value {
        self.b
            .ins()
            .load(types::I64, constant(), self.hart, frame(offset))
    }

    /// A flag of the frame.
    pub fn frame_flag(&mut self, offset: usize) -> Value {
        self.b
            .ins()
            .load(types::I8, own(), self.hart, frame(offset))
    }
}

/// True if an instruction writes the register.
fn writes(reg: Reg) -> bool {
    (1..NOWHERE).contains(&reg)
}

fn register_type(reg: Reg) -> ir::Type {
    if reg < 32 { types::I64 } else { types::F64 }
}

fn place(reg: Reg) -> i32 {
    field(offset_of!(Hart, regs) + 8 * usize::from(reg))
}

fn condition(op: Op) -> IntCC {
    match op {
        Op::Beq => IntCC::Equal,
        Op::Bne => IntCC::NotEqual,
        Op::Blt => IntCC::SignedLessThan,
        Op::Bge => IntCC::SignedGreaterThanOrEqual,
        Op::Bltu => IntCC::UnsignedLessThan,
        _ => IntCC::UnsignedGreaterThanOrEqual,
    }
}
