//! How translated code lets the interpreter execute an instruction.
//!
//! Two ways lead there. What always goes there is called as the host's C code is. What goes there only when a fast
//! path does not hold is called by way of code that preserves every register ([`preserving_call`]): the fast path then need
//! not keep its values where such a call leaves them.

use std::mem::offset_of;

use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::Layout;
use crate::discover::{PlacedInst, writes};
use crate::emitter::{Emitter, hart_constant, hart_memory, register_type, signature};
use crate::frame::Frame;

/// Signature of [`Execute`](crate::Execute), or of the register-preserving way to it: hart, virtual page, instruction, instructions
/// that may be executed from the start of its block on. The latter cannot give a value, and leaves it in the frame.
pub(crate) fn call_signature(preserving: bool) -> ir::Signature {
    if preserving {
        let mut signature = signature(CallConv::PreserveAll, 4);
        signature.returns.clear();
        signature
    } else {
        signature(CallConv::SystemV, 4)
    }
}

/// The function that calls the function at offset `callee` of the frame, which is like [`Execute`](crate::Execute), and preserves all
/// registers.
pub(crate) fn preserving_call(
    layout: &Layout,
    callee: usize,
    function: &mut ir::Function,
    context: &mut FunctionBuilderContext,
) {
    function.signature = call_signature(true);
    let mut b = FunctionBuilder::new(function, context);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let params = b.block_params(block).to_vec();
    let plain = b.import_signature(call_signature(false));
    let callee = b.ins().load(types::I64, hart_constant(), params[0], layout.frame(callee));
    let call = b.ins().call_indirect(plain, callee, &params);
    let returned = b.inst_results(call)[0];
    let at = layout.frame(offset_of!(Frame, returned));
    b.ins().store(hart_memory(), returned, params[0], at);
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize();
}

impl Emitter<'_> {
    /// Lets the interpreter execute an instruction.
    pub(crate) fn interpreted(&mut self, placed: PlacedInst) {
        self.write_back();
        let is_cold = self.is_cold;
        let result = self.call_interpreter(placed, is_cold);
        if let Some(value) = result {
            self.define(placed.inst.rd, value);
        }
    }

    /// Emits `fast`, which gives the value for rd, and goes to the block that it gets instead where it does not
    /// hold, before anything was changed: there the interpreter executes the instruction.
    pub(crate) fn guarded(
        &mut self,
        placed: PlacedInst,
        fast: impl FnOnce(&mut Self, ir::Block) -> Option<Value>,
    ) {
        let (cold, done) = (self.new_block(), self.new_block());
        self.b.set_cold_block(cold);
        let rd = placed.inst.rd;
        let result = writes(rd).then(|| self.b.append_block_param(done, register_type(rd)));
        let value = fast(self, cold);
        let value = value.filter(|_| writes(rd));
        self.b.ins().jump(done, &value.map(Into::into).into_iter().collect::<Vec<_>>());
        self.switch_to(cold);
        self.store_dirty();
        let interpreted = self.call_interpreter(placed, true);
        self.b.ins().jump(done, &interpreted.map(Into::into).into_iter().collect::<Vec<_>>());
        self.switch_to(done);
        if let Some(value) = result {
            self.put(rd, value);
        }
    }

    /// Goes to `cold` unless `holds`.
    pub(crate) fn require(&mut self, holds: Value, cold: ir::Block) {
        let on = self.new_block();
        self.b.ins().brif(holds, on, &[], cold, &[]);
        self.switch_to(on);
    }

    /// Calls the interpreter for one instruction, aside from the fast path or on it, and gives the new value of rd.
    /// All registers are in their places.
    fn call_interpreter(&mut self, placed: PlacedInst, is_cold: bool) -> Option<Value> {
        self.record_accesses();
        let fallback = &raw const self.fallbacks[self.fallback_index] as i64;
        let fallback = self.b.ins().iconst(types::I64, fallback);
        let left = self.b.use_var(self.left);
        let arguments = [self.hart, self.vpage, fallback, left];
        let returned = if is_cold {
            let to = self.b.ins().iconst(types::I64, self.preserving_calls.execute as i64);
            self.b.ins().call_indirect(self.execute_preserving, to, &arguments);
            let at = self.layout.frame(offset_of!(Frame, returned));
            self.b.ins().load(types::I64, hart_memory(), self.hart, at)
        } else {
            let at = self.layout.frame(offset_of!(Frame, execute));
            let to = self.b.ins().load(types::I64, hart_constant(), self.hart, at);
            let call = self.b.ins().call_indirect(self.execute, to, &arguments);
            self.b.inst_results(call)[0]
        };
        let on = self.new_block();
        if is_cold {
            self.b.set_cold_block(on);
        }
        self.b.ins().brif(returned, self.return_block, &[returned.into()], on, &[]);
        self.switch_to(on);
        let rd = placed.inst.rd;
        writes(rd).then(|| self.load_register(rd))
    }
}
