//! Jumps and branches. Targets are even by construction, so that none is misaligned.

use isa::{DecodedInst, TimingModel};

use super::{Next, following, imm};
use crate::hart::{At, Env, Hart};

/// `name(a, b) condition`.
macro_rules! branches {
    ($($name:ident($a:ident, $b:ident) $condition:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(super) fn $name<T: TimingModel>(
                &mut self,
                _: &mut Env<'_, T>,
                inst: DecodedInst,
                at: At,
            ) -> Next {
                let ($a, $b) = (self.get(inst.rs1), self.get(inst.rs2));
                if $condition { Ok(at.pc.wrapping_add(imm(inst))) } else { following(inst, at) }
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
    pub(super) fn jal<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: DecodedInst,
        at: At,
    ) -> Next {
        self.put(inst.rd, at.pc.wrapping_add(inst.len.into()));
        Ok(at.pc.wrapping_add(imm(inst)))
    }

    #[inline(always)]
    pub(super) fn jalr<T: TimingModel>(
        &mut self,
        _: &mut Env<'_, T>,
        inst: DecodedInst,
        at: At,
    ) -> Next {
        let target = self.get(inst.rs1).wrapping_add(imm(inst)) & !1;
        self.put(inst.rd, at.pc.wrapping_add(inst.len.into()));
        Ok(target)
    }
}
