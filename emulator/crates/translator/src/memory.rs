//! Loads and stores: the first level of the TLB, inlined.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, Value, types};
use isa::{InstClass, MemKind, Op};

use crate::discover::PlacedInst;
use crate::emitter::{Emitter, hart_memory};
use crate::frame::Frame;

const PAGE_BITS: u32 = 12;

/// Guest memory: any alignment, and faults have been excluded.
fn guest() -> MemFlags {
    MemFlags::new().with_notrap().with_alias_region(Some(ir::AliasRegion::Heap))
}

impl Emitter<'_> {
    pub(crate) fn load(&mut self, placed: PlacedInst) {
        let op = placed.inst.op;
        self.guarded(placed, |e, cold| {
            if placed.inst.class == InstClass::FpLoad {
                e.require_fp(offset_of!(Frame, fp_dirty), cold);
            }
            let ty = access_type(op);
            let base = offset_of!(Frame, load_base);
            let host = e.host_address(placed, ty, base, MemKind::Load, cold);
            let value = e.b.ins().load(ty, guest(), host, 0);
            Some(match op {
                Op::Lb | Op::Lh | Op::Lw => e.b.ins().sextend(types::I64, value),
                Op::Lbu | Op::Lhu | Op::Lwu => e.b.ins().uextend(types::I64, value),
                Op::Flw => e.boxed(value),
                Op::Flh => e.boxed_half(value),
                _ => value,
            })
        });
    }

    pub(crate) fn store(&mut self, placed: PlacedInst) {
        self.guarded(placed, |e, cold| {
            if placed.inst.class == InstClass::FpStore {
                // Off is one of the reasons why it need not be dirty.
                e.require_fp(offset_of!(Frame, fp_dirty), cold);
            }
            let ty = access_type(placed.inst.op);
            let base = offset_of!(Frame, store_base);
            let host = e.host_address(placed, ty, base, MemKind::Store, cold);
            let value = e.get(placed.inst.rs2);
            let value = match ty {
                types::I64 | types::F64 => value,
                _ if placed.inst.class == InstClass::FpStore => {
                    let bits = e.bits(value);
                    e.b.ins().ireduce(ty, bits)
                }
                _ => e.b.ins().ireduce(ty, value),
            };
            e.b.ins().store(guest(), value, host, 0);
            None
        });
    }

    /// Host address of an access; goes to `cold` if the first level of the TLB does not know it. As
    /// the hart's own lookup.
    fn host_address(
        &mut self,
        placed: PlacedInst,
        ty: ir::Type,
        base: usize,
        kind: MemKind,
        cold: ir::Block,
    ) -> Value {
        let base = self.frame_constant(base);
        let rs1 = self.get(placed.inst.rs1);
        let tlb = self.layout.tlb;
        let b = &mut self.b;
        let va = b.ins().iadd_imm(rs1, i64::from(placed.inst.imm));
        let shift = PAGE_BITS - tlb.entry_size.trailing_zeros();
        let scaled = b.ins().ushr_imm(va, i64::from(shift));
        let offset = b.ins().band_imm(scaled, ((tlb.entries - 1) * tlb.entry_size) as i64);
        let entry = b.ins().iadd(base, offset);
        let tag = b.ins().load(types::I64, hart_memory(), entry, tlb.tag);
        let last = b.ins().iadd_imm(va, i64::from(ty.bytes()) - 1);
        let page = b.ins().band_imm(last, -1 << PAGE_BITS);
        let hit = b.ins().icmp(IntCC::Equal, page, tag);
        self.require(hit, cold);
        let b = &mut self.b;
        let host = b.ins().load(types::I64, hart_memory(), entry, tlb.host);
        let host = b.ins().iadd(host, va);
        self.require_warm(host, kind, cold);
        self.record_access(va, host, kind, ty);
        host
    }
}

fn access_type(op: Op) -> ir::Type {
    match op {
        Op::Lb | Op::Lbu | Op::Sb => types::I8,
        Op::Lh | Op::Lhu | Op::Sh | Op::Flh | Op::Fsh => types::I16,
        Op::Lw | Op::Lwu | Op::Sw | Op::Flw | Op::Fsw => types::I32,
        Op::Fld | Op::Fsd => types::F64,
        _ => types::I64,
    }
}
