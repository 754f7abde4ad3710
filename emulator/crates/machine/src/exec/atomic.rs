//! A: atomics. One hart and a program-order model make `aq` and `rl` hold by themselves.

use isa::{Slot, TimingModel};

use super::{Next, following};
use crate::hart::{Env, Hart, InstPosition};

/// `name(memory, register: type, extension) new value`: rd gets what memory held.
macro_rules! atomics {
    ($($name:ident($memory:ident, $register:ident: $type:ty, $signed:ty) $new:expr;)*) => {
        impl Hart {$(
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let $register = self.get(inst.rs2()) as $type;
                let va = self.get(inst.rs1());
                let (rd, next) = (inst.rd(), following(inst, at));
                let old = self.modify(env, va, |$memory: $type| $new)?;
                self.put(rd, old as $signed as u64);
                next
            }
        )*}
    };
}

macro_rules! reservations {
    ($($load:ident $store:ident $type:ty, $signed:ty;)*) => {
        impl Hart {$(
            pub(crate) fn $load<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let value: $type = self.load_reserved(env, self.get(inst.rs1()))?;
                self.put(inst.rd(), value as $signed as u64);
                following(inst, at)
            }

            pub(crate) fn $store<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let value = self.get(inst.rs2()) as $type;
                let (rd, next) = (inst.rd(), following(inst, at));
                let stored = self.store_conditional(env, self.get(inst.rs1()), value)?;
                self.put(rd, (!stored).into());
                next
            }
        )*}
    };
}

/// `name: type`: rd gets what memory held; if that was what rd held, memory gets rs2 (Zacas).
macro_rules! compare_and_swap {
    ($($name:ident: $type:ty, $signed:ty;)*) => {
        impl Hart {$(
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let expected = self.get(inst.rd()) as $type;
                let new = self.get(inst.rs2()) as $type;
                let va = self.get(inst.rs1());
                let swap = |memory: $type| if memory == expected { new } else { memory };
                let (rd, next) = (inst.rd(), following(inst, at));
                let old = self.modify(env, va, swap)?;
                if rd != 0 {
                    self.put(rd, old as $signed as u64);
                }
                next
            }
        )*}
    };
}

compare_and_swap! {
    amocas_w: u32, i32;
    amocas_d: u64, i64;
}

impl Hart {
    /// On pairs of registers, of which the one with `x0` is zero.
    pub(crate) fn amocas_q<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        let pair = |reg: u8| match reg {
            0 => [0, 0],
            _ => [self.get(reg), self.get(reg + 1)],
        };
        let (rd, next) = (inst.rd(), following(inst, at));
        let (expected, new) = (pair(rd), pair(inst.rs2()));
        let old = self.modify_pair(env, self.get(inst.rs1()), expected, new)?;
        if rd != 0 {
            self.put(rd, old[0]);
            self.put(rd + 1, old[1]);
        }
        next
    }
}

reservations! {
    lr_w sc_w u32, i32;
    lr_d sc_d u64, i64;
}

atomics! {
    amoswap_w(_memory, register: u32, i32) register;
    amoadd_w(memory, register: u32, i32) memory.wrapping_add(register);
    amoxor_w(memory, register: u32, i32) memory ^ register;
    amoand_w(memory, register: u32, i32) memory & register;
    amoor_w(memory, register: u32, i32) memory | register;
    amomin_w(memory, register: u32, i32) (memory as i32).min(register as i32) as u32;
    amomax_w(memory, register: u32, i32) (memory as i32).max(register as i32) as u32;
    amominu_w(memory, register: u32, i32) memory.min(register);
    amomaxu_w(memory, register: u32, i32) memory.max(register);
    amoswap_d(_memory, register: u64, i64) register;
    amoadd_d(memory, register: u64, i64) memory.wrapping_add(register);
    amoxor_d(memory, register: u64, i64) memory ^ register;
    amoand_d(memory, register: u64, i64) memory & register;
    amoor_d(memory, register: u64, i64) memory | register;
    amomin_d(memory, register: u64, i64) (memory as i64).min(register as i64) as u64;
    amomax_d(memory, register: u64, i64) (memory as i64).max(register as i64) as u64;
    amominu_d(memory, register: u64, i64) memory.min(register);
    amomaxu_d(memory, register: u64, i64) memory.max(register);
}
