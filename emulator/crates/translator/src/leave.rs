//! Ways out of a region: to another one, or back to the hart.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::emitter::{Emitter, hart_constant, hart_memory};
use crate::frame::{self, ENTRIES, Entry, Frame};

impl Emitter<'_> {
    /// Goes on with the region at `pc`, if there is one.
    pub(crate) fn go_to(&mut self, pc: Value, left: Value) {
        let hart = self.hart;
        let at = self.layout.frame(offset_of!(Frame, entries));
        let entries = self.b.ins().load(types::I64, hart_constant(), hart, at);
        let shift = size_of::<Entry>().trailing_zeros() - 1;
        let scaled = self.b.ins().ishl_imm(pc, i64::from(shift));
        let offset = self.b.ins().band_imm(scaled, ((ENTRIES - 1) * size_of::<Entry>()) as i64);
        let entry = self.b.ins().iadd(entries, offset);
        let entry_field = |e: &mut Self, offset: usize| {
            e.b.ins().load(types::I64, hart_memory(), entry, offset as i32)
        };
        let entry_pc = entry_field(self, offset_of!(Entry, pc));
        let entry_key = entry_field(self, offset_of!(Entry, key));
        let key = self.frame_constant(offset_of!(Frame, key));
        let other_pc = self.b.ins().bxor(entry_pc, pc);
        let other_key = self.b.ins().bxor(entry_key, key);
        let other = self.b.ins().bor(other_pc, other_key);
        let (known, unknown) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(unknown);
        self.b.ins().brif(other, unknown, &[], known, &[]);
        self.switch_to(known);
        let code = entry_field(self, offset_of!(Entry, code));
        self.b.ins().return_call_indirect(self.region, code, &[hart, pc, left]);
        self.switch_to(unknown);
        self.leave(pc, left);
    }

    /// Emits a normal return to the hart, which continues at `pc`; `left` is the rest of the instruction budget.
    pub(crate) fn leave(&mut self, pc: Value, left: Value) {
        self.leave_as(frame::DONE, pc, left);
    }

    /// Emits a return to the hart with `result`, such as [`frame::DONE`]; stores `pc` and the instruction count.
    pub(crate) fn leave_as(&mut self, result: u64, pc: Value, left: Value) {
        let limit = self.frame_constant(offset_of!(Frame, limit));
        let count = self.b.ins().isub(limit, left);
        for (value, offset) in [(pc, self.layout.pc), (count, self.layout.count)] {
            self.b.ins().store(hart_memory(), value, self.hart, offset);
        }
        let result = self.b.ins().iconst(types::I64, result as i64);
        self.b.ins().return_(&[result]);
    }

    /// Emits the exit taken when [`Execute`](crate::Execute) stops inside a block; pc and count are already stored.
    pub(crate) fn emit_return(&mut self) {
        self.b.set_cold_block(self.return_block);
        self.b.switch_to_block(self.return_block);
        let returned = self.b.block_params(self.return_block)[0];
        let result = self.b.ins().iadd_imm(returned, -1);
        self.b.ins().return_(&[result]);
    }
}
