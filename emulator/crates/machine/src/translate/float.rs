//! Floating point on the host's FPU, where its result is the right one and no flag is to be raised that is not set:
//! then the interpreter does the same (`fp::host` says why that is right). Everything else is the interpreter's.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, Value, types};
use isa::{DecodedInst, InstClass, Op};

use super::discover::{Block, Placed};
use super::emit::Emitter;
use super::runtime::Frame;

/// What a result has to be for the flags to be known.
#[derive(Clone, Copy)]
enum Needs {
    /// Neither infinite nor NaN.
    Finite,
    /// Not tiny, either.
    Comfortable,
}

impl Emitter<'_> {
    pub(super) fn floating(&mut self, placed: Placed) {
        let inst = placed.inst;
        match inst.op {
            Op::FaddD | Op::FsubD | Op::FaddS | Op::FsubS => self.arithmetic(placed, Needs::Finite),
            Op::FmulD | Op::FdivD | Op::FsqrtD | Op::FmulS | Op::FdivS | Op::FsqrtS => {
                self.arithmetic(placed, Needs::Comfortable);
            }
            Op::FmaddD | Op::FmsubD | Op::FnmsubD | Op::FnmaddD if self.has_fma => {
                self.arithmetic(placed, Needs::Comfortable);
            }
            Op::FmaddS | Op::FmsubS | Op::FnmsubS | Op::FnmaddS if self.has_fma => {
                self.arithmetic(placed, Needs::Comfortable);
            }
            Op::FeqD | Op::FltD | Op::FleD => self.comparison(placed),
            Op::FsgnjD | Op::FsgnjnD | Op::FsgnjxD | Op::FmvXD | Op::FmvDX | Op::FcvtDW => {
                self.exact(placed);
            }
            _ => self.interpreted(placed),
        }
    }

    /// Rounded to nearest, with the inexact flag set already.
    fn arithmetic(&mut self, placed: Placed, needs: Needs) {
        let inst = placed.inst;
        if !matches!(inst.rounding_mode(), 0 | 7) {
            return self.interpreted(placed);
        }
        let single = is_single(&inst);
        self.guarded(placed, |e, cold| {
            e.require_fp(offset_of!(Frame, fp_ready), cold);
            let [a, b, c] = [inst.rs1, inst.rs2, inst.rs3].map(|reg| {
                (reg != 0).then(|| {
                    let value = e.get(reg);
                    if single {
                        e.unboxed(value, cold)
                    } else {
                        value
                    }
                })
            });
            let result = e.compute(inst.op, a, b, c);
            let sure = e.is(needs, single, result);
            e.require(sure, cold);
            Some(if single {
                let bits = e.b.ins().bitcast(types::I32, MemFlags::new(), result);
                e.boxed(bits)
            } else {
                result
            })
        });
    }

    fn compute(&mut self, op: Op, a: Option<Value>, b: Option<Value>, c: Option<Value>) -> Value {
        let zero = a.unwrap_or_else(|| unreachable!("every operation has rs1"));
        let (a, b, c) = (zero, b.unwrap_or(zero), c.unwrap_or(zero));
        let f = &mut self.b;
        match op {
            Op::FaddD | Op::FaddS => f.ins().fadd(a, b),
            Op::FsubD | Op::FsubS => f.ins().fsub(a, b),
            Op::FmulD | Op::FmulS => f.ins().fmul(a, b),
            Op::FdivD | Op::FdivS => f.ins().fdiv(a, b),
            Op::FsqrtD | Op::FsqrtS => f.ins().sqrt(a),
            // RISC-V ISA, F extension: the product's sign and the addend's.
            Op::FmaddD | Op::FmaddS => f.ins().fma(a, b, c),
            Op::FmsubD | Op::FmsubS => {
                let c = f.ins().fneg(c);
                f.ins().fma(a, b, c)
            }
            Op::FnmsubD | Op::FnmsubS => {
                let a = f.ins().fneg(a);
                f.ins().fma(a, b, c)
            }
            _ => {
                let (a, c) = (f.ins().fneg(a), f.ins().fneg(c));
                f.ins().fma(a, b, c)
            }
        }
    }

    /// As `is_finite` and `is_comfortable` of `fp::host`.
    fn is(&mut self, needs: Needs, single: bool, value: Value) -> Value {
        let (ty, fraction_bits, top) = if single {
            (types::I32, 23, 0xff)
        } else {
            (types::I64, 52, 0x7ff)
        };
        let bits = self.b.ins().bitcast(ty, MemFlags::new(), value);
        let magnitude = self.b.ins().ishl_imm(bits, 1);
        let lowest = match needs {
            Needs::Finite => 0,
            Needs::Comfortable => 2,
        };
        let exponent = self.b.ins().ushr_imm(magnitude, fraction_bits + 1);
        let above = self.b.ins().iadd_imm(exponent, -lowest);
        self.b
            .ins()
            .icmp_imm(IntCC::UnsignedLessThan, above, top - lowest)
    }

    /// Comparisons of numbers; NaNs may be signaling.
    fn comparison(&mut self, placed: Placed) {
        let inst = placed.inst;
        self.guarded(placed, |e, cold| {
            e.require_fp(offset_of!(Frame, fp_dirty), cold);
            let (a, b) = (e.get(inst.rs1), e.get(inst.rs2));
            let ordered = e.b.ins().fcmp(FloatCC::Ordered, a, b);
            e.require(ordered, cold);
            let condition = match inst.op {
                Op::FeqD => FloatCC::Equal,
                Op::FltD => FloatCC::LessThan,
                _ => FloatCC::LessThanOrEqual,
            };
            let holds = e.b.ins().fcmp(condition, a, b);
            Some(e.b.ins().uextend(types::I64, holds))
        });
    }

    /// What raises no flag, whatever the operands.
    fn exact(&mut self, placed: Placed) {
        let inst = placed.inst;
        // A reserved rounding mode is illegal; one in `frm` may be.
        if inst.op == Op::FcvtDW && inst.rounding_mode() > 4 {
            return self.interpreted(placed);
        }
        self.guarded(placed, |e, cold| {
            e.require_fp(offset_of!(Frame, fp_dirty), cold);
            let a = e.get(inst.rs1);
            Some(match inst.op {
                Op::FmvXD => e.bits(a),
                Op::FmvDX => e.double(a),
                Op::FcvtDW => {
                    let word = e.b.ins().ireduce(types::I32, a);
                    e.b.ins().fcvt_from_sint(types::F64, word)
                }
                _ => {
                    let b = e.get(inst.rs2);
                    let (a, b) = (e.bits(a), e.bits(b));
                    let sign = match inst.op {
                        Op::FsgnjD => b,
                        Op::FsgnjnD => e.b.ins().bnot(b),
                        _ => e.b.ins().bxor(a, b),
                    };
                    let sign = e.b.ins().band_imm(sign, i64::MIN);
                    let magnitude = e.b.ins().band_imm(a, i64::MAX);
                    let joined = e.b.ins().bor(sign, magnitude);
                    e.double(joined)
                }
            })
        });
    }

    /// Goes to `cold` unless a flag of the frame is set, or known to be.
    pub(super) fn require_fp(&mut self, state: usize, cold: ir::Block) {
        if !self.fp_known {
            let holds = self.frame_flag(state);
            self.require(holds, cold);
        }
    }

    pub(super) fn bits(&mut self, value: Value) -> Value {
        self.b.ins().bitcast(types::I64, MemFlags::new(), value)
    }

    fn double(&mut self, bits: Value) -> Value {
        self.b.ins().bitcast(types::F64, MemFlags::new(), bits)
    }

    /// A single as registers hold it, from its 32 bits: the upper half is all ones.
    pub(super) fn boxed(&mut self, bits: Value) -> Value {
        let wide = self.b.ins().uextend(types::I64, bits);
        let boxed = self.b.ins().bor_imm(wide, !0xffff_ffff);
        self.double(boxed)
    }

    /// The single that a register holds; goes to `cold` if it holds something else.
    fn unboxed(&mut self, value: Value, cold: ir::Block) -> Value {
        let bits = self.bits(value);
        let upper = self.b.ins().sshr_imm(bits, 32);
        let boxed = self.b.ins().icmp_imm(IntCC::Equal, upper, -1);
        self.require(boxed, cold);
        let low = self.b.ins().ireduce(types::I32, bits);
        self.b.ins().bitcast(types::F32, MemFlags::new(), low)
    }
}

/// The flag of the frame that the FP instructions of a block need for their fast paths; `None` if it has none.
pub(super) fn needs(block: &Block) -> Option<usize> {
    let classes = || block.body.iter().map(|placed| placed.inst.class);
    let computes = |class| {
        matches!(
            class,
            InstClass::FpArith | InstClass::FpDivSqrt | InstClass::FpToInt | InstClass::IntToFp
        )
    };
    if classes().any(computes) {
        Some(offset_of!(Frame, fp_ready))
    } else {
        let moves = |class| matches!(class, InstClass::FpLoad | InstClass::FpStore);
        classes().any(moves).then_some(offset_of!(Frame, fp_dirty))
    }
}

/// The format field of an FP operation.
fn is_single(inst: &DecodedInst) -> bool {
    inst.raw >> 25 & 3 == 0
}
