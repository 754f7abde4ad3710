//! Runs ([`isa::Run`]): what translated code writes down of what it executes.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use isa::{MemAccess, MemKind, StaticId, Step};

use crate::discover::Block;
use crate::emitter::{Emitter, Recording, hart_constant, hart_memory};
use crate::frame::{Frame, STAYS};

impl Emitter<'_> {
    /// Writes the steps of a block. Leaves the region before it if there is no room for them, or one has no number yet: the
    /// interpreter goes on.
    pub(crate) fn begin_recording(&mut self, block: &Block, left: Value) {
        let (early, room, on) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(early);
        let (ids, end) = (
            self.frame_constant(offset_of!(Frame, ids)),
            self.frame_constant(offset_of!(Frame, steps_end)),
        );
        let count = block.len() as i64;
        let is_short = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, left, count);
        self.b.ins().brif(is_short, early, &[], room, &[]);
        self.switch_to(room);
        let rest = self.b.ins().imul_imm(left, size_of::<Step>() as i64);
        let steps = self.b.ins().isub(end, rest);
        let mut all = None;
        for (n, placed) in block.instructions().enumerate() {
            let at = (size_of::<u32>() * placed.index) as i32;
            let id = self.b.ins().load(types::I32, hart_memory(), ids, at);
            let step = n * size_of::<Step>();
            let inst = &placed.inst;
            let written = Step::new(StaticId(0), 2 * placed.index as u16, inst.class, inst.len);
            let rest = self.b.ins().iconst(types::I32, i64::from(written.rest()));
            for (value, at) in [(id, offset_of!(Step, id)), (rest, Step::REST)] {
                self.b.ins().store(hart_memory(), value, steps, (step + at) as i32);
            }
            all = Some(match all {
                Some(all) => self.b.ins().bor(all, id),
                None => id,
            });
        }
        match all {
            // The only one with the highest bit is that of what has no number.
            Some(all) => {
                let is_unknown = self.b.ins().icmp_imm(IntCC::SignedLessThan, all, 0);
                self.b.ins().brif(is_unknown, early, &[], on, &[]);
            }
            None => _ = self.b.ins().jump(on, &[]),
        }
        self.switch_to(early);
        self.store_dirty();
        let pc = self.pc(block.start as isize);
        self.leave_as(STAYS, pc, left);
        self.switch_to(on);
        let accesses = block.instructions();
        let accesses = accesses.filter(|placed| placed.inst.class.accesses_memory());
        let first = (accesses.count() > 0).then(|| self.next_access());
        self.recording = Some(Recording { first, accesses: 0 });
    }

    /// Accesses so far, and where the next one is written.
    fn next_access(&mut self) -> (Value, Value) {
        let kept = self.layout.access_count;
        let kept = self.b.ins().load(types::I64, hart_memory(), self.hart, kept);
        let before = self.b.ins().imul_imm(kept, size_of::<MemAccess>() as i64);
        let place = self.b.ins().iadd(self.hart, before);
        (kept, place)
    }

    /// Writes an access to RAM.
    pub(crate) fn record_access(&mut self, va: Value, host: Value, kind: MemKind, ty: ir::Type) {
        let Some(Recording { first: Some((_, place)), accesses }) = self.recording else {
            return;
        };
        let to_pa = self.layout.host_to_pa;
        let to_pa = self.b.ins().load(types::I64, hart_constant(), self.hart, to_pa);
        let pa = self.b.ins().iadd(host, to_pa);
        let above = MemAccess::above(kind, ty.bytes() as u8, false);
        let packed = self.b.ins().bor_imm(pa, above as i64);
        let at = self.layout.accesses as usize + accesses as usize * size_of::<MemAccess>();
        for (value, offset) in [(va, offset_of!(MemAccess, va)), (packed, MemAccess::PACKED)] {
            self.b.ins().store(hart_memory(), value, place, (at + offset) as i32);
        }
    }

    /// The present instruction has accessed memory.
    pub(crate) fn count_access(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.accesses += 1;
        }
    }

    /// Says how many accesses there were so far.
    pub(crate) fn record_accesses(&mut self) {
        if let Some(Recording { first: Some((before, _)), accesses }) = self.recording {
            let kept = self.b.ins().iadd_imm(before, accesses);
            let at = self.layout.access_count;
            self.b.ins().store(hart_memory(), kept, self.hart, at);
        }
    }

    /// Leaves the region if `target` is in another page.
    pub(crate) fn stay_in_page(&mut self, target: Value, left: Value) {
        let distance = self.b.ins().bxor(target, self.vpage);
        let other = self.b.ins().ushr_imm(distance, 12);
        let (away, here) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(other, away, &[], here, &[]);
        self.switch_to(away);
        self.leave(target, left);
        self.switch_to(here);
    }
}
