//! Loads and stores, integer and FP.

use isa::{Slot, TimingModel};

use super::{Next, following};
use crate::fp::{half, nan_box};
use crate::hart::{Env, Hart, InstPosition};

/// `name(check): type as extension`: rd gets the value extended to 64 bits. `check` says whether FP registers are on.
macro_rules! loads {
    ($($name:ident$(($check:ident))?: $value:ident $type:ty => $extended:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                $(self.$check(inst)?;)?
                let va = self.get(inst.rs1()).wrapping_add(inst.imm());
                let $value = self.load::<T, $type>(env, va, at.count)?;
                self.put(inst.rd(), $extended);
                following(inst, at)
            }
        )*}
    };
}

/// `name(check): type`: stores the low bits of rs2, an integer or FP register: both kinds are numbered together. `check` as for
/// loads.
macro_rules! stores {
    ($($name:ident$(($check:ident))?: $type:ty;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                env: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                $(self.$check(inst)?;)?
                let va = self.get(inst.rs1()).wrapping_add(inst.imm());
                let value = self.get(inst.rs2()) as $type;
                let next = following(inst, at);
                self.store::<T, $type>(env, va, value, at.count)?;
                next
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
    flh(fp_writes): value u16 => half::nan_box(value);
    flw(fp_writes): value u32 => nan_box(value);
    fld(fp_writes): value u64 => value;
}

stores! {
    sb: u8;
    sh: u16;
    sw: u32;
    sd: u64;
    fsh(fp_reads): u16;
    fsw(fp_reads): u32;
    fsd(fp_reads): u64;
}
