//! Loads and stores, integer and FP.

use isa::TimingModel;

use super::{Next, following};
use crate::code_cache::Slot;
use crate::fp::{half, nan_box};
use crate::hart::{At, Env, Hart};

/// `name: type as extension`: rd gets the value extended to 64 bits.
macro_rules! loads {
    ($($name:ident: $value:ident $type:ty => $extended:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: At,
            ) -> Next {
                let va = self.get(inst.rs1()).wrapping_add(inst.imm());
                let $value = self.load::<T, $type>(env, va, at.count)?;
                self.put(inst.rd(), $extended);
                following(inst, at)
            }
        )*}
    };
}

macro_rules! stores {
    ($($name:ident: $type:ty;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: At,
            ) -> Next {
                let va = self.get(inst.rs1()).wrapping_add(inst.imm());
                let value = self.get(inst.rs2()) as $type;
                self.store::<T, $type>(env, va, value, at.count)?;
                following(inst, at)
            }
        )*}
    };
}

loads! {
    lb: value u8 => value as i8 as u64;
    lh: value u16 => value as i16 as u64;
    lw: value u32 => value as i32 as u64;
    ld: value u64 => value;
    lbu: value u8 => value.into();
    lhu: value u16 => value.into();
    lwu: value u32 => value.into();
}

stores! {
    sb: u8;
    sh: u16;
    sw: u32;
    sd: u64;
}

impl Hart {
    #[inline(always)]
    pub(crate) fn flh<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: At,
    ) -> Next {
        self.fp_writes(inst)?;
        let va = self.get(inst.rs1()).wrapping_add(inst.imm());
        let value = self.load::<T, u16>(env, va, at.count)?;
        self.put(inst.rd(), half::nan_box(value));
        following(inst, at)
    }

    #[inline(always)]
    pub(crate) fn flw<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: At,
    ) -> Next {
        self.fp_writes(inst)?;
        let va = self.get(inst.rs1()).wrapping_add(inst.imm());
        let value = self.load::<T, u32>(env, va, at.count)?;
        self.put(inst.rd(), nan_box(value));
        following(inst, at)
    }

    #[inline(always)]
    pub(crate) fn fld<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: At,
    ) -> Next {
        self.fp_writes(inst)?;
        let va = self.get(inst.rs1()).wrapping_add(inst.imm());
        let value = self.load::<T, u64>(env, va, at.count)?;
        self.put(inst.rd(), value);
        following(inst, at)
    }

    #[inline(always)]
    pub(crate) fn fsh<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: At,
    ) -> Next {
        self.fp_reads(inst)?;
        self.sh(env, inst, at)
    }

    #[inline(always)]
    pub(crate) fn fsw<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: At,
    ) -> Next {
        self.fp_reads(inst)?;
        self.sw(env, inst, at)
    }

    #[inline(always)]
    pub(crate) fn fsd<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: At,
    ) -> Next {
        self.fp_reads(inst)?;
        self.sd(env, inst, at)
    }
}
