//! A: atomics. One hart and a program-order model make `aq` and `rl` hold by themselves.

use isa::TimingModel;

use super::{Next, following};
use crate::code_cache::Slot;
use crate::hart::{At, Env, Hart};

/// `name(memory, register: type, extension) new value`: rd gets what memory held.
macro_rules! atomics {
    ($($name:ident($memory:ident, $register:ident: $type:ty, $signed:ty) $new:expr;)*) => {
        impl Hart {$(
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: At,
            ) -> Next {
                let $register = self.get(inst.rs2()) as $type;
                let va = self.get(inst.rs1());
                let old = self.modify(env, va, |$memory: $type| $new)?;
                self.put(inst.rd(), old as $signed as u64);
                following(inst, at)
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
                at: At,
            ) -> Next {
                let value: $type = self.load_reserved(env, self.get(inst.rs1()))?;
                self.put(inst.rd(), value as $signed as u64);
                following(inst, at)
            }

            pub(crate) fn $store<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: At,
            ) -> Next {
                let value = self.get(inst.rs2()) as $type;
                let stored = self.store_conditional(env, self.get(inst.rs1()), value)?;
                self.put(inst.rd(), (!stored).into());
                following(inst, at)
            }
        )*}
    };
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
