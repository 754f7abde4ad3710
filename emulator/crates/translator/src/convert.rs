//! Conversions that may be inexact, with the inexact flag set already.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, Value, types};
use isa::{InstClass, Op};

use crate::discover::PlacedInst;
use crate::emitter::Emitter;
use crate::float::{ResultCondition, is_single};
use crate::frame::Frame;

/// Values of the field of rounding modes.
mod mode {
    pub(super) const NEAREST: u32 = 0;
    pub(super) const ZERO: u32 = 1;
    pub(super) const DOWN: u32 = 2;
    pub(super) const UP: u32 = 3;
    /// The mode of `frm`, which is to the nearest where fast paths are taken.
    pub(super) const DYNAMIC: u32 = 7;
}

impl Emitter<'_> {
    pub(crate) fn conversion(&mut self, placed: PlacedInst) {
        use Op::*;
        let inst = placed.inst;
        let rounding = u32::from(inst.rounding_mode());
        let nearest = matches!(rounding, mode::NEAREST | mode::DYNAMIC);
        let known = match inst.op {
            FcvtSD | FcvtDS | FcvtSW | FcvtSWu | FcvtSL | FcvtSLu | FcvtDL | FcvtDLu => nearest,
            FcvtWS | FcvtWuS | FcvtLS | FcvtLuS | FcvtWD | FcvtWuD | FcvtLD | FcvtLuD => {
                match rounding {
                    mode::ZERO => true,
                    // Hosts with this have an instruction that rounds, too.
                    mode::DOWN | mode::UP => self.has_fma,
                    _ => nearest && self.has_fma,
                }
            }
            // Halves, and what is moved from and to them.
            _ => false,
        };
        if !known {
            return self.interpreted(placed);
        }
        self.guarded(placed, |e, cold| {
            e.require_fp(offset_of!(Frame, fp_ready), cold);
            let a = e.get(inst.rs1);
            Some(match (inst.op, inst.class) {
                (Op::FcvtSD, _) => {
                    let narrow = e.b.ins().fdemote(types::F32, a);
                    let sure = e.is(ResultCondition::NotTiny, true, narrow);
                    e.require(sure, cold);
                    e.boxed_single(narrow)
                }
                (Op::FcvtDS, _) => {
                    let single = e.unboxed(a, cold);
                    let wide = e.b.ins().fpromote(types::F64, single);
                    let sure = e.is(ResultCondition::Finite, false, wide);
                    e.require(sure, cold);
                    wide
                }
                (op, InstClass::IntToFp) => e.integer_as_float(op, a, is_single(&inst)),
                (op, _) => {
                    let value = if is_single(&inst) {
                        let single = e.unboxed(a, cold);
                        e.b.ins().fpromote(types::F64, single)
                    } else {
                        a
                    };
                    let value = match rounding {
                        mode::ZERO => value,
                        mode::DOWN => e.b.ins().floor(value),
                        mode::UP => e.b.ins().ceil(value),
                        _ => e.b.ins().nearest(value),
                    };
                    e.truncated(op, value, cold)
                }
            })
        });
    }

    fn integer_as_float(&mut self, op: Op, a: Value, single: bool) -> Value {
        let a = match op {
            Op::FcvtSW => self.low_half(a, true),
            Op::FcvtSWu => self.low_half(a, false),
            _ => a,
        };
        let ty = if single { types::F32 } else { types::F64 };
        let value = if matches!(op, Op::FcvtSLu | Op::FcvtDLu) {
            self.b.ins().fcvt_from_uint(ty, a)
        } else {
            self.b.ins().fcvt_from_sint(ty, a)
        };
        if single { self.boxed_single(value) } else { value }
    }

    /// Truncates; goes to `cold` if the integer is out of range, or close to what 64 bits hold.
    fn truncated(&mut self, op: Op, value: Value, cold: ir::Block) -> Value {
        const FAR: i64 = 1 << 62;
        let number = self.b.ins().fcmp(FloatCC::Ordered, value, value);
        self.require(number, cold);
        let integer = self.b.ins().fcvt_to_sint_sat(types::I64, value);
        let (fits, result) = match op {
            Op::FcvtWD | Op::FcvtWS => {
                let word = self.low_half(integer, true);
                (self.b.ins().icmp(IntCC::Equal, word, integer), word)
            }
            Op::FcvtWuD | Op::FcvtWuS => {
                let word = self.low_half(integer, false);
                let fits = self.b.ins().icmp(IntCC::Equal, word, integer);
                // Registers hold unsigned words sign-extended, too.
                (fits, self.low_half(integer, true))
            }
            Op::FcvtLD | Op::FcvtLS => {
                let shifted = self.b.ins().iadd_imm(integer, FAR);
                let most = self.b.ins().iconst(types::I64, FAR.wrapping_mul(2));
                let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, shifted, most);
                (fits, integer)
            }
            _ => {
                let most = self.b.ins().iconst(types::I64, FAR);
                let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, integer, most);
                (fits, integer)
            }
        };
        self.require(fits, cold);
        result
    }

    /// A single as registers hold it.
    fn boxed_single(&mut self, value: Value) -> Value {
        let bits = self.b.ins().bitcast(types::I32, MemFlags::new(), value);
        self.boxed(bits)
    }
}
