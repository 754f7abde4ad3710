//! What raises no flag, whatever numbers the operands are: comparisons, signs, minimum and maximum, moves, and
//! conversions of 32-bit integers to doubles.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, Value, types};
use isa::Op;

use crate::discover::PlacedInst;
use crate::emitter::Emitter;
use crate::float::is_single;
use crate::frame::Frame;

/// True for the operations of this file.
pub(crate) fn is_exact(op: Op) -> bool {
    use Op::*;
    let compares = matches!(op, FeqD | FltD | FleD | FeqS | FltS | FleS);
    let selects = matches!(op, FminD | FmaxD | FminS | FmaxS);
    let signs = matches!(op, FsgnjD | FsgnjnD | FsgnjxD | FsgnjS | FsgnjnS | FsgnjxS);
    let moves = matches!(op, FmvXD | FmvDX | FmvXW | FmvWX | FclassD | FclassS);
    compares || selects || signs || moves || matches!(op, FcvtDW | FcvtDWu)
}

impl Emitter<'_> {
    pub(crate) fn exact(&mut self, placed: PlacedInst) {
        use Op::*;
        let inst = placed.inst;
        let converts = matches!(inst.op, FcvtDW | FcvtDWu);
        // A reserved rounding mode is illegal; one in `frm` may be.
        let odd = converts && inst.rounding_mode() > 4;
        if odd || matches!(inst.op, FclassD | FclassS) {
            return self.interpreted(placed);
        }
        self.guarded(placed, |e, cold| {
            e.require_fp(offset_of!(Frame, fp_dirty), cold);
            let a = e.get(inst.rs1);
            Some(match inst.op {
                FmvXD => e.bits(a),
                FmvDX => e.double(a),
                FmvXW => {
                    let bits = e.bits(a);
                    let word = e.b.ins().ireduce(types::I32, bits);
                    e.b.ins().sextend(types::I64, word)
                }
                FmvWX => {
                    let word = e.b.ins().ireduce(types::I32, a);
                    e.boxed(word)
                }
                FcvtDW | FcvtDWu => {
                    let wide = e.low_half(a, inst.op == FcvtDW);
                    e.b.ins().fcvt_from_sint(types::F64, wide)
                }
                _ => {
                    let operands = e.operands(placed, cold);
                    e.of_two(inst.op, operands, cold)
                }
            })
        });
    }

    /// The low half of an integer register, extended.
    pub(crate) fn low_half(&mut self, value: Value, signed: bool) -> Value {
        let word = self.b.ins().ireduce(types::I32, value);
        if signed {
            self.b.ins().sextend(types::I64, word)
        } else {
            self.b.ins().uextend(types::I64, word)
        }
    }

    /// Both operands in their format; goes to `cold` if a single is not boxed.
    fn operands(&mut self, placed: PlacedInst, cold: ir::Block) -> [Value; 2] {
        let inst = placed.inst;
        [inst.rs1, inst.rs2].map(|reg| {
            let value = self.get(reg);
            if is_single(&inst) { self.unboxed(value, cold) } else { value }
        })
    }

    /// The value for rd of an operation on two numbers; goes to `cold` where NaNs matter.
    fn of_two(&mut self, op: Op, [a, b]: [Value; 2], cold: ir::Block) -> Value {
        use Op::*;
        let compares = match op {
            FeqD | FeqS => Some(FloatCC::Equal),
            FltD | FltS => Some(FloatCC::LessThan),
            FleD | FleS => Some(FloatCC::LessThanOrEqual),
            _ => None,
        };
        let signs = matches!(op, FsgnjD | FsgnjnD | FsgnjxD | FsgnjS | FsgnjnS | FsgnjxS);
        if !signs {
            let ordered = self.b.ins().fcmp(FloatCC::Ordered, a, b);
            self.require(ordered, cold);
        }
        if let Some(condition) = compares {
            let holds = self.b.ins().fcmp(condition, a, b);
            return self.b.ins().uextend(types::I64, holds);
        }
        let single = self.b.func.dfg.value_type(a) == types::F32;
        let ty = if single { types::I32 } else { types::I64 };
        let [x, y] = [a, b].map(|value| self.b.ins().bitcast(ty, MemFlags::new(), value));
        let bits = if signs {
            let sign = match op {
                FsgnjD | FsgnjS => y,
                FsgnjnD | FsgnjnS => self.b.ins().bnot(y),
                _ => self.b.ins().bxor(x, y),
            };
            self.with_sign(x, sign, single)
        } else {
            // Equal operands are the same but for zeros: there -0 is smaller.
            let (first, zero) = if matches!(op, FminD | FminS) {
                (FloatCC::LessThan, self.b.ins().bor(x, y))
            } else {
                (FloatCC::GreaterThan, self.b.ins().band(x, y))
            };
            let is_first = self.b.ins().fcmp(first, a, b);
            let unequal = self.b.ins().select(is_first, x, y);
            let equal = self.b.ins().fcmp(FloatCC::Equal, a, b);
            self.b.ins().select(equal, zero, unequal)
        };
        if single { self.boxed(bits) } else { self.double(bits) }
    }

    /// `magnitude` with the sign of another value, both as bits.
    fn with_sign(&mut self, magnitude: Value, sign: Value, single: bool) -> Value {
        let (sign_bit, others) =
            if single { (1 << 31, i64::from(i32::MAX)) } else { (i64::MIN, i64::MAX) };
        let sign = self.b.ins().band_imm(sign, sign_bit);
        let magnitude = self.b.ins().band_imm(magnitude, others);
        self.b.ins().bor(sign, magnitude)
    }
}
