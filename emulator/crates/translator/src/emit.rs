//! From blocks of guest instructions to Cranelift's intermediate representation: entries and exits, registers,
//! and what an instruction does when its fast path does not hold.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use isa::{InstClass, Op, SLOTS};

use crate::compiler::PreservingCalls;
use crate::discover::{Block, End, PlacedInst};
use crate::emitter::{Emitter, Recording, signature};
use crate::float;
use crate::frame::{Fallback, STAYS};
use crate::interpret::call_signature;
use crate::loops::{self, BlockInLoop};
use crate::warm::Segment;
use crate::{CodeKind, Layout};

/// Signature of a region: hart, pc, instructions that may be executed. It gives how it came back.
fn region_signature() -> Signature {
    signature(CallConv::Tail, 3)
}

/// Builds the function by which the hart enters a region (C convention): a region's parameters, then its code address.
pub(crate) fn trampoline(function: &mut ir::Function, context: &mut FunctionBuilderContext) {
    function.signature = signature(CallConv::SystemV, 4);
    let mut b = FunctionBuilder::new(function, context);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let params = b.block_params(block).to_vec();
    let region = b.import_signature(region_signature());
    let call = b.ins().call_indirect(region, params[3], &params[..3]);
    let result = b.inst_results(call)[0];
    b.ins().return_(&[result]);
    b.seal_all_blocks();
    b.finalize();
}

/// Builds the region of `blocks`, which are of the page at physical address `page`, and is entered at the first. Gives the instructions that the code refers to.
pub(crate) fn region(
    layout: &Layout,
    function: &mut ir::Function,
    context: &mut FunctionBuilderContext,
    blocks: &[Block],
    (kind, page): (CodeKind, u64),
    preserving_calls: PreservingCalls,
    has_fma: bool,
) -> Box<[Fallback]> {
    function.signature = region_signature();
    let mut b = FunctionBuilder::new(function, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let params = b.block_params(entry).to_vec();
    let [hart, pc, left] = params[..] else {
        unreachable!("the signature has three");
    };
    let left_variable = b.declare_var(types::I64);
    b.def_var(left_variable, left);
    let vpage = b.ins().iadd_imm(pc, -2 * blocks[0].start as i64);
    let region = b.import_signature(region_signature());
    let execute = b.import_signature(call_signature(false));
    let execute_preserving = b.import_signature(call_signature(true));
    let return_block = b.create_block();
    b.append_block_param(return_block, types::I64);
    let block_loops = loops::block_loops(blocks);
    let starts = blocks.iter().zip(block_loops);
    let starts = starts.map(|(block, block_loop)| (block.start, (b.create_block(), block_loop)));
    let starts: HashMap<usize, (ir::Block, BlockInLoop)> = starts.collect();
    let fallbacks = blocks.iter().flat_map(Fallback::of).collect();
    let mut emitter = Emitter {
        layout: *layout,
        b,
        hart,
        vpage,
        left: left_variable,
        region,
        execute,
        execute_preserving,
        preserving_calls,
        warm_page: (kind == CodeKind::Warming).then_some(page),
        warm_line: None,
        logs: kind.logs(),
        segment: Segment::default(),
        return_block,
        starts,
        block_loop: BlockInLoop::default(),
        length: blocks.iter().map(Block::len).sum(),
        registers: [None; 64],
        dirty: 0,
        fallbacks,
        fallback_index: 0,
        is_cold: false,
        fp_known: false,
        has_fma,
        recording: None,
    };
    if kind == CodeKind::Runs {
        emitter.recording = Some(Recording::default());
    }
    emitter.load_registers(blocks);
    let (first, _) = emitter.starts[&blocks[0].start];
    emitter.b.ins().jump(first, &[]);
    for block in blocks {
        emitter.block(block);
    }
    emitter.emit_return();
    let Emitter { mut b, fallbacks, .. } = emitter;
    b.seal_all_blocks();
    b.finalize();
    fallbacks
}

impl Emitter<'_> {
    /// Gets every register that the region reads, or may have to put into its place before it wrote it.
    fn load_registers(&mut self, blocks: &[Block]) {
        let mut needed = 0u64;
        for block in blocks {
            needed |= self.starts[&block.start].1.dirty;
            for PlacedInst { inst, .. } in block.instructions() {
                for reg in [inst.rs1, inst.rs2, inst.rs3] {
                    needed |= 1 << reg;
                }
            }
        }
        for reg in (1..64).filter(|reg| needed >> reg & 1 != 0) {
            let value = self.load_register(reg);
            self.define(reg, value);
        }
    }

    fn block(&mut self, block: &Block) {
        let (start, block_loop) = self.starts[&block.start];
        self.b.switch_to_block(start);
        self.block_loop = block_loop;
        self.dirty = block_loop.dirty;
        let left = self.b.use_var(self.left);
        if self.recording.is_some() {
            self.begin_recording(block, left);
        } else if block_loop.is_head {
            // To leave early is right: the interpreter goes on to where it is due. So this is for all blocks up to the
            // next check.
            let most = self.length as i64;
            let due = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, left, most);
            let (early, body) = (self.b.create_block(), self.b.create_block());
            self.b.set_cold_block(early);
            self.b.ins().brif(due, early, &[], body, &[]);
            self.switch_to(early);
            self.store_dirty();
            let pc = self.pc(block.start as isize);
            self.leave(pc, left);
            self.switch_to(body);
        }
        self.warm_line = None;
        self.segment = Segment::default();
        self.body(block);
        self.record_accesses();
        let after = self.b.ins().iadd_imm(left, -(block.len() as i64));
        if let End::Branch(placed) | End::Jal(placed) | End::Jalr(placed) = block.end {
            self.warm_code(placed);
        }
        match block.end {
            End::Branch(placed) => {
                let (a, b) = (self.get(placed.inst.rs1), self.get(placed.inst.rs2));
                let taken = self.b.ins().icmp(condition(placed.inst.op), a, b);
                if self.logs {
                    let target = self.pc(placed.target());
                    self.log_end(Some(placed), Some(taken), target);
                }
                let indices = [placed.target(), placed.following() as isize];
                if !indices.iter().any(|&index| self.in_same_loop(index)) {
                    self.write_back();
                }
                self.b.def_var(self.left, after);
                let targets = indices.map(|index| (index, self.target(index)));
                let [(_, (yes, _)), (_, (no, _))] = targets;
                self.b.ins().brif(taken, yes, &[], no, &[]);
                for (index, (target, direct)) in targets {
                    if !direct {
                        self.switch_to(target);
                        self.jump_to_slot(index, after);
                    }
                }
            }
            End::Jal(placed) => {
                self.link(placed);
                if self.logs {
                    let target = self.pc(placed.target());
                    self.log_end(Some(placed), None, target);
                }
                self.b.def_var(self.left, after);
                self.jump_to_slot(placed.target(), after);
            }
            End::Jalr(placed) => {
                let base = self.get(placed.inst.rs1);
                let sum = self.b.ins().iadd_imm(base, i64::from(placed.inst.imm));
                let target = self.b.ins().band_imm(sum, !1);
                self.link(placed);
                self.log_end(Some(placed), None, target);
                self.store_dirty();
                if self.recording.is_some() {
                    self.stay_in_page(target, after);
                }
                self.go_to(target, after);
            }
            End::Next(index) => {
                let next = self.pc(index as isize);
                self.log_end(None, None, next);
                self.b.def_var(self.left, after);
                self.jump_to_slot(index as isize, after);
            }
            End::Leave(index) => {
                self.store_dirty();
                let pc = self.pc(index as isize);
                self.log_end(None, None, pc);
                match self.recording {
                    Some(_) => self.leave_as(STAYS, pc, after),
                    None => self.leave(pc, after),
                }
            }
        }
    }

    /// Emits a block's body. A body with FP instructions is emitted twice, fast and slow; the FP state in
    /// [`Frame`](crate::Frame) selects a copy.
    fn body(&mut self, block: &Block) {
        let Some(state) = float::needs(block) else {
            return self.instructions(block);
        };
        let (fast, slow, end) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        let holds = self.frame_flag(state);
        self.b.ins().brif(holds, fast, &[], slow, &[]);
        let before =
            (self.fallback_index, self.dirty, self.recording, self.warm_line, self.segment);
        self.switch_to(fast);
        self.fp_known = true;
        self.instructions(block);
        self.fp_known = false;
        self.b.ins().jump(end, &[]);
        let dirty = self.dirty;
        (self.fallback_index, self.dirty, self.recording, self.warm_line, self.segment) = before;
        self.switch_to(slow);
        self.is_cold = true;
        self.instructions(block);
        self.is_cold = false;
        self.b.ins().jump(end, &[]);
        self.dirty |= dirty;
        self.switch_to(end);
    }

    fn instructions(&mut self, block: &Block) {
        for &placed in &block.body {
            self.warm_code(placed);
            self.add_to_segment(placed);
            self.instruction(placed);
            self.log_full_segment(placed);
            self.fallback_index += 1;
        }
    }

    /// The block of this region at a slot.
    fn known(&self, index: isize) -> Option<(ir::Block, BlockInLoop)> {
        let index = usize::try_from(index).ok()?;
        self.starts.get(&index).copied()
    }

    /// True if a block that follows this one at a slot is in the same loop.
    fn in_same_loop(&self, index: isize) -> bool {
        self.known(index).is_some_and(|(_, block_loop)| self.block_loop.keeps(block_loop))
    }

    /// The block at a slot, or else a new one from which [`Self::jump_to_slot`] has to go there.
    fn target(&mut self, index: isize) -> (ir::Block, bool) {
        let ready = self.dirty == 0 || self.in_same_loop(index);
        match self.known(index).filter(|_| ready) {
            Some((block, _)) => (block, true),
            None => (self.b.create_block(), false),
        }
    }

    fn jump_to_slot(&mut self, index: isize, left: Value) {
        if !self.in_same_loop(index) {
            self.store_dirty();
        }
        if let Some((block, _)) = self.known(index) {
            self.b.ins().jump(block, &[]);
        } else {
            let pc = self.pc(index);
            let is_here = (0..SLOTS as isize).contains(&index);
            match self.recording.is_some() && !is_here {
                true => self.leave(pc, left),
                false => self.go_to(pc, left),
            }
        }
    }

    /// Puts the return address into a jump's destination.
    fn link(&mut self, placed: PlacedInst) {
        let address = self.pc(placed.following() as isize);
        self.put(placed.inst.rd, address);
    }

    fn instruction(&mut self, placed: PlacedInst) {
        let inst = &placed.inst;
        match inst.class {
            InstClass::Load | InstClass::FpLoad => {
                self.load(placed);
                self.count_access();
            }
            InstClass::Store | InstClass::FpStore => {
                self.store(placed);
                self.count_access();
            }
            InstClass::Fence => {}
            // A run has its operands.
            InstClass::IntDiv if self.recording.is_some() => self.interpreted(placed),
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
