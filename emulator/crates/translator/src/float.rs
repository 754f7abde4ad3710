//! Floating point on the host's FPU, where its result is the right one and no flag is to be raised that is not set:
//! then the interpreter does the same (`fp::host` says why that is right). Everything else is the interpreter's. Here
//! is arithmetic; [`crate::exact`] and [`crate::convert`] have the rest.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, Value, types};
use isa::{DecodedInst, InstClass, Op};

use crate::discover::{Block, PlacedInst};
use crate::emitter::Emitter;
use crate::exact::is_exact;
use crate::frame::Frame;

/// Condition on a result of the host's FPU under which the guest's exception flags need no further check.
#[derive(Clone, Copy)]
pub(crate) enum ResultCondition {
    /// Neither infinite nor NaN.
    Finite,
    /// Not tiny, either.
    NotTiny,
}

impl Emitter<'_> {
    pub(crate) fn floating(&mut self, placed: PlacedInst) {
        let inst = placed.inst;
        match inst.op {
            Op::FaddD | Op::FsubD | Op::FaddS | Op::FsubS => {
                self.arithmetic(placed, ResultCondition::Finite)
            }
            Op::FmulD | Op::FdivD | Op::FsqrtD | Op::FmulS | Op::FdivS | Op::FsqrtS => {
                self.arithmetic(placed, ResultCondition::NotTiny);
            }
            Op::FmaddD | Op::FmsubD | Op::FnmsubD | Op::FnmaddD if self.has_fma => {
                self.arithmetic(placed, ResultCondition::NotTiny);
            }
            Op::FmaddS | Op::FmsubS | Op::FnmsubS | Op::FnmaddS if self.has_fma => {
                self.arithmetic(placed, ResultCondition::NotTiny);
            }
            _ if is_exact(inst.op) => self.exact(placed),
            _ => self.conversion(placed),
        }
    }

    /// Rounded to nearest, with the inexact flag set already.
    fn arithmetic(&mut self, placed: PlacedInst, needs: ResultCondition) {
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
                    if single { e.unboxed(value, cold) } else { value }
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

    /// Returns whether a value is finite or comfortable, as `is_finite` and `is_comfortable` of `fp::host` say, from the 32
    /// bits that have the exponent.
    pub(crate) fn is(&mut self, needs: ResultCondition, single: bool, value: Value) -> Value {
        let (top, fraction_bits) = if single { (0xff, 23) } else { (0x7ff, 20) };
        let bits = if single {
            self.b.ins().bitcast(types::I32, MemFlags::new(), value)
        } else {
            let bits = self.bits(value);
            let upper = self.b.ins().ushr_imm(bits, 32);
            self.b.ins().ireduce(types::I32, upper)
        };
        let lowest = match needs {
            ResultCondition::Finite => 0,
            ResultCondition::NotTiny => 2,
        };
        let magnitude = self.b.ins().ishl_imm(bits, 1);
        let above = self.b.ins().iadd_imm(magnitude, -(lowest << (fraction_bits + 1)));
        let limit = (top - lowest) << (fraction_bits + 1);
        let limit = self.b.ins().iconst(types::I32, limit);
        self.b.ins().icmp(IntCC::UnsignedLessThan, above, limit)
    }

    /// Goes to `cold` unless a flag of the frame is set, or known to be.
    pub(crate) fn require_fp(&mut self, state: usize, cold: ir::Block) {
        if !self.fp_known {
            let holds = self.frame_flag(state);
            self.require(holds, cold);
        }
    }

    pub(crate) fn bits(&mut self, value: Value) -> Value {
        self.b.ins().bitcast(types::I64, MemFlags::new(), value)
    }

    pub(crate) fn double(&mut self, bits: Value) -> Value {
        self.b.ins().bitcast(types::F64, MemFlags::new(), bits)
    }

    /// Returns a single as registers hold it, from its 32 bits: the upper half is all ones.
    pub(crate) fn boxed(&mut self, bits: Value) -> Value {
        let wide = self.b.ins().uextend(types::I64, bits);
        let boxed = self.b.ins().bor_imm(wide, !0xffff_ffff);
        self.double(boxed)
    }

    /// Returns a half as registers hold it, from its 16 bits: the upper 48 bits are all ones.
    pub(crate) fn boxed_half(&mut self, bits: Value) -> Value {
        let wide = self.b.ins().uextend(types::I64, bits);
        let boxed = self.b.ins().bor_imm(wide, !0xffff);
        self.double(boxed)
    }

    /// Returns the single that a register holds; goes to `cold` if it holds something else.
    pub(crate) fn unboxed(&mut self, value: Value, cold: ir::Block) -> Value {
        let bits = self.bits(value);
        let upper = self.b.ins().sshr_imm(bits, 32);
        let boxed = self.b.ins().icmp_imm(IntCC::Equal, upper, -1);
        self.require(boxed, cold);
        let low = self.b.ins().ireduce(types::I32, bits);
        self.b.ins().bitcast(types::F32, MemFlags::new(), low)
    }
}

/// The flag of the frame that the FP instructions of a block need for their fast paths; `None` if it has none.
pub(crate) fn needs(block: &Block) -> Option<usize> {
    let needs = |placed: &PlacedInst| match placed.inst.class {
        InstClass::FpLoad | InstClass::FpStore => Some(offset_of!(Frame, fp_dirty)),
        InstClass::FpArith | InstClass::FpDivSqrt | InstClass::FpToInt | InstClass::IntToFp => {
            Some(if is_exact(placed.inst.op) {
                offset_of!(Frame, fp_dirty)
            } else {
                offset_of!(Frame, fp_ready)
            })
        }
        _ => None,
    };
    // Ready is dirty, too.
    const { assert!(offset_of!(Frame, fp_ready) > offset_of!(Frame, fp_dirty)) };
    block.body.iter().filter_map(needs).max()
}

/// The format field of an FP operation.
pub(crate) fn is_single(inst: &DecodedInst) -> bool {
    inst.raw >> 25 & 3 == 0
}
