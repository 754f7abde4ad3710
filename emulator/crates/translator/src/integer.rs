//! Integer computation. What is not here, the interpreter does.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use isa::Op;

use crate::discover::PlacedInst;
use crate::emitter::Emitter;

impl Emitter<'_> {
    /// The value for rd, or `None` if it is left to the interpreter.
    pub(crate) fn integer(&mut self, placed: PlacedInst) -> Option<Value> {
        let inst = placed.inst;
        let imm = i64::from(inst.imm);
        match inst.op {
            Op::Lui => return Some(self.b.ins().iconst(types::I64, imm)),
            Op::Auipc => {
                let pc = self.pc(placed.index as isize);
                return Some(self.b.ins().iadd_imm(pc, imm));
            }
            _ => {}
        }
        let a = self.get(inst.rs1);
        if let Some(value) = self.immediate(inst.op, a, imm) {
            return Some(value);
        }
        let b = self.get(inst.rs2);
        self.registers(inst.op, a, b)
    }

    fn immediate(&mut self, op: Op, a: Value, imm: i64) -> Option<Value> {
        Some(match op {
            Op::Addi => self.b.ins().iadd_imm(a, imm),
            Op::Slti => self.compare_imm(IntCC::SignedLessThan, a, imm),
            Op::Sltiu => self.compare_imm(IntCC::UnsignedLessThan, a, imm),
            Op::Xori => self.b.ins().bxor_imm(a, imm),
            Op::Ori => self.b.ins().bor_imm(a, imm),
            Op::Andi => self.b.ins().band_imm(a, imm),
            Op::Slli => self.b.ins().ishl_imm(a, imm),
            Op::Srli => self.b.ins().ushr_imm(a, imm),
            Op::Srai => self.b.ins().sshr_imm(a, imm),
            Op::Rori => self.b.ins().rotr_imm(a, imm),
            Op::Addiw => self.word(a, |b, a| b.ins().iadd_imm(a, imm)),
            Op::Slliw => self.word(a, |b, a| b.ins().ishl_imm(a, imm)),
            Op::Srliw => self.word(a, |b, a| b.ins().ushr_imm(a, imm)),
            Op::Sraiw => self.word(a, |b, a| b.ins().sshr_imm(a, imm)),
            Op::SlliUw => {
                let low = self.low(a);
                self.b.ins().ishl_imm(low, imm)
            }
            Op::Bexti => {
                let shifted = self.b.ins().ushr_imm(a, imm);
                self.b.ins().band_imm(shifted, 1)
            }
            Op::Bclri => self.b.ins().band_imm(a, !(1 << imm)),
            Op::Binvi => self.b.ins().bxor_imm(a, 1 << imm),
            Op::Bseti => self.b.ins().bor_imm(a, 1 << imm),
            _ => return None,
        })
    }

    fn registers(&mut self, op: Op, a: Value, b: Value) -> Option<Value> {
        Some(match op {
            Op::Add => self.b.ins().iadd(a, b),
            Op::Sub => self.b.ins().isub(a, b),
            Op::Sll => self.b.ins().ishl(a, b),
            Op::Slt => self.compare(IntCC::SignedLessThan, a, b),
            Op::Sltu => self.compare(IntCC::UnsignedLessThan, a, b),
            Op::Xor => self.b.ins().bxor(a, b),
            Op::Srl => self.b.ins().ushr(a, b),
            Op::Sra => self.b.ins().sshr(a, b),
            Op::Or => self.b.ins().bor(a, b),
            Op::And => self.b.ins().band(a, b),
            Op::Addw => self.words(a, b, |f, a, b| f.ins().iadd(a, b)),
            Op::Subw => self.words(a, b, |f, a, b| f.ins().isub(a, b)),
            Op::Sllw => self.words(a, b, |f, a, b| f.ins().ishl(a, b)),
            Op::Srlw => self.words(a, b, |f, a, b| f.ins().ushr(a, b)),
            Op::Sraw => self.words(a, b, |f, a, b| f.ins().sshr(a, b)),
            Op::Mul => self.b.ins().imul(a, b),
            Op::Mulw => self.words(a, b, |f, a, b| f.ins().imul(a, b)),
            Op::Mulh => self.b.ins().smulhi(a, b),
            Op::Mulhu => self.b.ins().umulhi(a, b),
            Op::Mulhsu => {
                // Multiplying as if `a` was unsigned adds 2^64 b to the product if `a` is negative.
                let high = self.b.ins().umulhi(a, b);
                let sign = self.b.ins().sshr_imm(a, 63);
                let excess = self.b.ins().band(sign, b);
                self.b.ins().isub(high, excess)
            }
            Op::Div | Op::Rem => self.signed_division(op == Op::Rem, a, b),
            Op::Divu | Op::Remu => self.unsigned_division(op == Op::Remu, a, b),
            Op::Divw | Op::Remw => {
                let (a, b) = (self.narrow(a), self.narrow(b));
                let value = self.signed_division(op == Op::Remw, a, b);
                self.b.ins().sextend(types::I64, value)
            }
            Op::Divuw | Op::Remuw => {
                let (a, b) = (self.narrow(a), self.narrow(b));
                let value = self.unsigned_division(op == Op::Remuw, a, b);
                self.b.ins().sextend(types::I64, value)
            }
            Op::AddUw => {
                let low = self.low(a);
                self.b.ins().iadd(low, b)
            }
            Op::Sh1add => self.shifted_sum(a, 1, b),
            Op::Sh2add => self.shifted_sum(a, 2, b),
            Op::Sh3add => self.shifted_sum(a, 3, b),
            Op::Sh1addUw | Op::Sh2addUw | Op::Sh3addUw => {
                let low = self.low(a);
                let bits = 1 + i64::from(op != Op::Sh1addUw) + i64::from(op == Op::Sh3addUw);
                self.shifted_sum(low, bits, b)
            }
            Op::Andn => self.b.ins().band_not(a, b),
            Op::Orn => self.b.ins().bor_not(a, b),
            Op::Xnor => self.b.ins().bxor_not(a, b),
            Op::Clz => self.b.ins().clz(a),
            Op::Ctz => self.b.ins().ctz(a),
            Op::Cpop => self.b.ins().popcnt(a),
            Op::Max => self.b.ins().smax(a, b),
            Op::Maxu => self.b.ins().umax(a, b),
            Op::Min => self.b.ins().smin(a, b),
            Op::Minu => self.b.ins().umin(a, b),
            Op::SextB => {
                let byte = self.b.ins().ireduce(types::I8, a);
                self.b.ins().sextend(types::I64, byte)
            }
            Op::SextH => {
                let half = self.b.ins().ireduce(types::I16, a);
                self.b.ins().sextend(types::I64, half)
            }
            Op::ZextH => self.b.ins().band_imm(a, 0xffff),
            Op::Rol => self.b.ins().rotl(a, b),
            Op::Ror => self.b.ins().rotr(a, b),
            Op::Rev8 => self.b.ins().bswap(a),
            Op::Bext => {
                let shifted = self.b.ins().ushr(a, b);
                self.b.ins().band_imm(shifted, 1)
            }
            Op::Bclr | Op::Binv | Op::Bset => {
                let one = self.b.ins().iconst(types::I64, 1);
                let bit = self.b.ins().ishl(one, b);
                match op {
                    Op::Bclr => self.b.ins().band_not(a, bit),
                    Op::Binv => self.b.ins().bxor(a, bit),
                    _ => self.b.ins().bor(a, bit),
                }
            }
            Op::CzeroEqz | Op::CzeroNez => {
                let zero = self.b.ins().iconst(types::I64, 0);
                let (yes, no) = if op == Op::CzeroEqz { (a, zero) } else { (zero, a) };
                self.b.ins().select(b, yes, no)
            }
            _ => return None,
        })
    }

    fn compare(&mut self, condition: IntCC, a: Value, b: Value) -> Value {
        let holds = self.b.ins().icmp(condition, a, b);
        self.b.ins().uextend(types::I64, holds)
    }

    fn compare_imm(&mut self, condition: IntCC, a: Value, imm: i64) -> Value {
        let holds = self.b.ins().icmp_imm(condition, a, imm);
        self.b.ins().uextend(types::I64, holds)
    }

    /// The low 32 bits, zero-extended.
    fn low(&mut self, a: Value) -> Value {
        let low = self.narrow(a);
        self.b.ins().uextend(types::I64, low)
    }

    fn narrow(&mut self, a: Value) -> Value {
        self.b.ins().ireduce(types::I32, a)
    }

    /// A 32-bit operation. Cranelift takes shift amounts modulo the width, as RISC-V does.
    fn word(
        &mut self,
        a: Value,
        op: impl FnOnce(&mut cranelift_frontend::FunctionBuilder<'_>, Value) -> Value,
    ) -> Value {
        let a = self.narrow(a);
        let value = op(&mut self.b, a);
        self.b.ins().sextend(types::I64, value)
    }

    fn words(
        &mut self,
        a: Value,
        b: Value,
        op: impl FnOnce(&mut cranelift_frontend::FunctionBuilder<'_>, Value, Value) -> Value,
    ) -> Value {
        let b = self.narrow(b);
        self.word(a, |f, a| op(f, a, b))
    }

    fn shifted_sum(&mut self, a: Value, bits: i64, b: Value) -> Value {
        let shifted = self.b.ins().ishl_imm(a, bits);
        self.b.ins().iadd(shifted, b)
    }

    /// Division by zero gives all ones, and the dividend as remainder; overflow wraps (RISC-V ISA, M extension).
    fn signed_division(&mut self, remainder: bool, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        let zero = self.b.ins().icmp_imm(IntCC::Equal, b, 0);
        let minus_one = self.b.ins().icmp_imm(IntCC::Equal, b, -1);
        let special = self.b.ins().bor(zero, minus_one);
        let one = self.b.ins().iconst(ty, 1);
        let divisor = self.b.ins().select(special, one, b);
        let nothing = self.b.ins().iconst(ty, 0);
        let (plain, by_minus_one, by_zero) = if remainder {
            (self.b.ins().srem(a, divisor), nothing, a)
        } else {
            let negated = self.b.ins().ineg(a);
            let ones = self.b.ins().iconst(ty, mask(ty));
            (self.b.ins().sdiv(a, divisor), negated, ones)
        };
        let value = self.b.ins().select(minus_one, by_minus_one, plain);
        self.b.ins().select(zero, by_zero, value)
    }

    fn unsigned_division(&mut self, remainder: bool, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        let zero = self.b.ins().icmp_imm(IntCC::Equal, b, 0);
        let one = self.b.ins().iconst(ty, 1);
        let divisor = self.b.ins().select(zero, one, b);
        let (plain, by_zero) = if remainder {
            (self.b.ins().urem(a, divisor), a)
        } else {
            let ones = self.b.ins().iconst(ty, mask(ty));
            (self.b.ins().udiv(a, divisor), ones)
        };
        self.b.ins().select(zero, by_zero, plain)
    }

    fn type_of(&self, value: Value) -> ir::Type {
        self.b.func.dfg.value_type(value)
    }
}

/// The bits of a constant that a type has.
fn mask(ty: ir::Type) -> i64 {
    if ty == types::I32 { 0xffff_ffff } else { -1 }
}
