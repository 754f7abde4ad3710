//! Integer computation.

use isa::{Slot, TimingModel};

use super::{Next, following};
use crate::hart::{Env, Hart, InstPosition};

/// Result of a 32-bit operation.
#[inline(always)]
pub(super) fn word(value: u32) -> u64 {
    value as i32 as u64
}

/// `name(a, b) result`: rd gets a function of rs1 and rs2 (0 if there is none).
macro_rules! registers {
    ($($name:ident($a:ident, $b:ident) $result:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                _: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let ($a, $b) = (self.get(inst.rs1()), self.get(inst.rs2()));
                self.put(inst.rd(), $result);
                following(inst, at)
            }
        )*}
    };
}

/// `name(a, b) result`: rd gets a function of rs1 and the immediate.
macro_rules! immediates {
    ($($name:ident($a:ident, $b:ident) $result:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                _: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let ($a, $b) = (self.get(inst.rs1()), inst.imm());
                self.put(inst.rd(), $result);
                following(inst, at)
            }
        )*}
    };
}

pub(super) use {immediates, registers};

registers! {
    add(a, b) a.wrapping_add(b);
    sub(a, b) a.wrapping_sub(b);
    sll(a, b) a << (b & 63);
    slt(a, b) ((a as i64) < b as i64).into();
    sltu(a, b) (a < b).into();
    xor(a, b) a ^ b;
    srl(a, b) a >> (b & 63);
    sra(a, b) (a as i64 >> (b & 63)) as u64;
    or(a, b) a | b;
    and(a, b) a & b;
    addw(a, b) word(a.wrapping_add(b) as u32);
    subw(a, b) word(a.wrapping_sub(b) as u32);
    sllw(a, b) word((a as u32) << (b & 31));
    srlw(a, b) word(a as u32 >> (b & 31));
    sraw(a, b) (a as i32 >> (b & 31)) as u64;
}

immediates! {
    addi(a, b) a.wrapping_add(b);
    slti(a, b) ((a as i64) < b as i64).into();
    sltiu(a, b) (a < b).into();
    xori(a, b) a ^ b;
    ori(a, b) a | b;
    andi(a, b) a & b;
    slli(a, b) a << (b & 63);
    srli(a, b) a >> (b & 63);
    srai(a, b) (a as i64 >> (b & 63)) as u64;
    addiw(a, b) word(a.wrapping_add(b) as u32);
    slliw(a, b) word((a as u32) << (b & 31));
    srliw(a, b) word(a as u32 >> (b & 31));
    sraiw(a, b) (a as i32 >> (b & 31)) as u64;
    lui(_a, b) b;
}

impl Hart {
    #[inline(always)]
    pub(crate) fn auipc<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.put(inst.rd(), at.pc.wrapping_add(inst.imm()));
        following(inst, at)
    }
}
