//! Functional warming: what translated code compares with the model's filters of lines, and the log that it keeps of the path.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use isa::{FILTER_LINE_BITS, FILTER_LINES, MemKind, PathSegment, SegmentLengths, TransferKind};

use crate::discover::PlacedInst;
use crate::emitter::{Emitter, hart_constant, hart_memory};
use crate::frame::Frame;

/// Log2 of the bytes of an entry of a filter.
const ENTRY_BITS: i64 = 2;

impl Emitter<'_> {
    /// Goes to `cold` unless another access of this kind to the line at a host address changes nothing in the model.
    pub(crate) fn require_warm(&mut self, host: Value, kind: MemKind, cold: ir::Block) {
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
    pub(crate) fn warm_code(&mut self, placed: PlacedInst) {
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

    /// Adds an instruction of the present block to the segment that is to be logged.
    pub(crate) fn add_to_segment(&mut self, placed: PlacedInst) {
        if self.logs {
            self.segment.add(placed);
        }
    }

    /// Logs the segment if it ends with this instruction, which was executed, because it serialises or nothing more fits.
    pub(crate) fn log_full_segment(&mut self, placed: PlacedInst) {
        if !self.logs || !self.segment.ends_with(placed) {
            return;
        }
        let kind = TransferKind::of(&placed.inst);
        let next = self.pc(placed.following() as isize);
        self.log_segment(kind, None, next);
    }

    /// Logs what is left of a block's segment, at the block's end; with the jump there, if it is one; `taken`: the condition of a branch;
    /// `target`: as in [`PathSegment::one`].
    pub(crate) fn log_end(
        &mut self,
        jump: Option<PlacedInst>,
        taken: Option<Value>,
        target: Value,
    ) {
        if let Some(jump) = jump {
            self.add_to_segment(jump);
        }
        if self.segment.lengths.count() != 0 {
            self.log_segment(jump.and_then(|jump| TransferKind::of(&jump.inst)), taken, target);
        }
    }

    fn log_segment(&mut self, kind: Option<TransferKind>, taken: Option<Value>, target: Value) {
        let Segment { start, lengths } = std::mem::take(&mut self.segment);
        let mut start = self.pc(start as isize);
        if let Some(taken) = taken {
            let taken = self.b.ins().uextend(types::I64, taken);
            start = self.b.ins().bor(start, taken);
        }
        let target = self.b.ins().iadd_imm(target, PathSegment::tag(kind) as i64);
        let lengths = self.b.ins().iconst(types::I64, lengths.bits() as i64);
        let at = self.layout.frame(offset_of!(Frame, path_bytes));
        let bytes = self.b.ins().load(types::I64, hart_memory(), self.hart, at);
        let first = self.frame_constant(offset_of!(Frame, path));
        let entry = self.b.ins().iadd(first, bytes);
        for (value, offset) in [
            (start, offset_of!(PathSegment, start_and_taken)),
            (target, offset_of!(PathSegment, target_and_tag)),
            (lengths, offset_of!(PathSegment, lengths)),
        ] {
            self.b.ins().store(hart_memory(), value, entry, offset as i32);
        }
        let bytes = self.b.ins().iadd_imm(bytes, size_of::<PathSegment>() as i64);
        self.b.ins().store(hart_memory(), bytes, self.hart, at);
    }
}

/// Instructions of a block that are still to be logged.
#[derive(Clone, Copy, Default)]
pub(crate) struct Segment {
    /// Slot of the first.
    start: usize,
    pub lengths: SegmentLengths,
}

impl Segment {
    /// Adds the next instruction.
    pub(crate) fn add(&mut self, placed: PlacedInst) {
        if self.lengths.count() == 0 {
            self.start = placed.index;
        }
        self.lengths = self.lengths.with(placed.inst.len);
    }

    /// Returns true if the segment is logged after this instruction, the last in it, though the block goes on: fetch starts again there, or there is room
    /// for a jump alone.
    pub(crate) fn ends_with(&self, placed: PlacedInst) -> bool {
        placed.inst.class.serialises() || self.lengths.count() as usize == SegmentLengths::MOST - 1
    }
}
