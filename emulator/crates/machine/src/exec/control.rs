//! Jumps and branches. Targets are even by construction, so that none is misaligned.

use isa::{Slot, TimingModel};

use super::{Next, following};
use crate::hart::{Env, Hart, InstPosition};

/// `name(a, b) condition`.
macro_rules! branches {
    ($($name:ident($a:ident, $b:ident) $condition:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                _: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let ($a, $b) = (self.get(inst.rs1()), self.get(inst.rs2()));
                if $condition { Ok(at.pc.wrapping_add(inst.imm())) } else { following(inst, at) }
            }
        )*}
    };
}

branches! {
    beq(a, b) a == b;
    bne(a, b) a != b;
    blt(a, b) (a as i64) < b as i64;
    bge(a, b) a as i64 >= b as i64;
    bltu(a, b) a < b;
    bgeu(a, b) a >= b;
}

impl Hart {
    #[inline(always)]
    pub(crate) fn jal<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        self.put(inst.rd(), at.pc.wrapping_add(inst.len()));
        Ok(at.pc.wrapping_add(inst.imm()))
    }

    #[inline(always)]
    pub(crate) fn jalr<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> Next {
        let target = self.get(inst.rs1()).wrapping_add(inst.imm()) & !1;
        self.put(inst.rd(), at.pc.wrapping_add(inst.len()));
        Ok(target)
    }
}
