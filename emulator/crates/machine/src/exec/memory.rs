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

/// The same for an FP register, which must be on.
macro_rules! fp_loads {
    ($($name:ident: $value:ident $type:ty => $boxed:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: At,
            ) -> Next {
                self.fp_writes(inst)?;
                let va = self.get(inst.rs1()).wrapping_add(inst.imm());
                let $value = self.load::<T, $type>(env, va, at.count)?;
                self.put(inst.rd(), $boxed);
                following(inst, at)
            }
        )*}
    };
}

/// `name: integer store`: registers of both kinds are numbered together.
macro_rules! fp_stores {
    ($($name:ident: $store:ident;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: At,
            ) -> Next {
                self.fp_reads(inst)?;
                self.$store(env, inst, at)
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

fp_loads! {
    flh: value u16 => half::nan_box(value);
    flw: value u32 => nan_box(value);
    fld: value u64 => value;
}

fp_stores! {
    fsh: sh;
    fsw: sw;
    fsd: sd;
}
