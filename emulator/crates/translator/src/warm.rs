//! Functional warming: what translated code compares with the model's filters of lines.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use isa::{FILTER_LINE_BITS, FILTER_LINES, MemKind};

use crate::discover::PlacedInst;
use crate::emitter::{Emitter, hart_constant, hart_memory};
use crate::frame::Frame;

/// Log2 of the bytes of an entry of a filter.
const ENTRY_BITS: i64 = 2;

impl Emitter<'_> {
    /// Goes to `cold` unless another access of this kind to the line at a host address changes nothing in the model.
    pub fn require_warm(&mut self, host: Value, kind: MemKind, cold: ir::Block) {
        if self.warm_page.is_none() {
            return;
        }
        let filter = match kind {
            MemKind::Load => offset_of!(Frame, load_filter),
            _ => offset_of!(Frame, store_filter),
        };
        let filter = self.frame_constant(filter);
        let to_pa = self.layout.host_to_pa;
        let to_pa = self.b.ins().load(types::I64, hart_constant(), self.hart, to_pa);
        let b = &mut self.b;
        let pa = b.ins().iadd(host, to_pa);
        let line = b.ins().ushr_imm(pa, i64::from(FILTER_LINE_BITS));
        let scaled = b.ins().ishl_imm(line, ENTRY_BITS);
        let offset = b.ins().band_imm(scaled, ((FILTER_LINES - 1) << ENTRY_BITS) as i64);
        let entry = b.ins().iadd(filter, offset);
        let shown = b.ins().load(types::I32, hart_memory(), entry, 0);
        let line = b.ins().ireduce(types::I32, line);
        let is_shown = b.ins().icmp(IntCC::Equal, shown, line);
        self.require(is_shown, cold);
    }

    /// Tells the model of an instruction's line of code, if its filter does not show the line and the instruction before is in another one, as
    /// the interpreter does.
    pub fn warm_code(&mut self, placed: PlacedInst) {
        let Some(page) = self.warm_page else { return };
        let pa = page + 2 * placed.index as u64;
        let line = pa >> FILTER_LINE_BITS;
        if self.warm_line.replace(line) == Some(line) {
            return;
        }
        let filter = self.frame_constant(offset_of!(Frame, fetch_filter));
        let at = (line as usize % FILTER_LINES) << ENTRY_BITS;
        let shown = self.b.ins().load(types::I32, hart_memory(), filter, at as i32);
        let is_shown = self.b.ins().icmp_imm(IntCC::Equal, shown, i64::from(line as u32 as i32));
        let (absent, on) = (self.b.create_block(), self.new_block());
        self.b.set_cold_block(absent);
        self.b.ins().brif(is_shown, on, &[], absent, &[]);
        self.switch_to(absent);
        let pa = self.b.ins().iconst(types::I64, pa as i64);
        let to = self.b.ins().iconst(types::I64, self.preserving_calls.warm_fetch as i64);
        let arguments = [self.hart, self.vpage, pa, pa];
        self.b.ins().call_indirect(self.execute_preserving, to, &arguments);
        self.b.ins().jump(on, &[]);
        self.switch_to(on);
    }
}
