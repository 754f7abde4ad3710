//! M: multiplication and division.

use isa::{Operand, Slot, TimingModel};

use super::{Next, following};
use crate::hart::{Env, Hart, InstPosition};

/// `name(a, b) result`.
macro_rules! multiplications {
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

/// `name(a, b: type) result`: the operands as `type`, the result sign-extended from it.
macro_rules! divisions {
    ($($name:ident($a:ident, $b:ident: $type:ty, $signed:ty) $result:expr;)*) => {
        impl Hart {$(
            #[inline(always)]
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                _: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                let ($a, $b) = (self.get(inst.rs1()) as $type, self.get(inst.rs2()) as $type);
                if T::TIMED {
                    self.instruction.executed.operand = Operand {
                        dividend_bits: Significant::bits($a),
                        divisor_bits: Significant::bits($b),
                    };
                }
                self.put(inst.rd(), ($result) as $signed as u64);
                following(inst, at)
            }
        )*}
    };
}

/// Significant bits of a magnitude.
trait Significant {
    fn bits(self) -> u8;
}

macro_rules! significant {
    ($($type:ty, $value:ident => $magnitude:expr;)*) => {$(
        impl Significant for $type {
            fn bits(self) -> u8 {
                let $value = self;
                let magnitude = $magnitude;
                (<$type>::BITS - magnitude.leading_zeros()) as u8
            }
        }
    )*};
}
significant! {
    u32, value => value;
    u64, value => value;
    i32, value => value.unsigned_abs();
    i64, value => value.unsigned_abs();
}

multiplications! {
    mul(a, b) a.wrapping_mul(b);
    mulh(a, b) ((a as i64 as i128 * b as i64 as i128) >> 64) as u64;
    mulhsu(a, b) ((a as i64 as i128).wrapping_mul(b as i128) >> 64) as u64;
    mulhu(a, b) ((a as u128 * b as u128) >> 64) as u64;
    mulw(a, b) (a as i32).wrapping_mul(b as i32) as u64;
}

// Division by zero gives all ones, remainder by zero the dividend; the overflowing signed division
// gives the dividend and remainder 0.
divisions! {
    div(a, b: i64, i64) if b == 0 { -1 } else { a.wrapping_div(b) };
    divu(a, b: u64, i64) a.checked_div(b).unwrap_or(u64::MAX);
    rem(a, b: i64, i64) if b == 0 { a } else { a.wrapping_rem(b) };
    remu(a, b: u64, i64) a.checked_rem(b).unwrap_or(a);
    divw(a, b: i32, i32) if b == 0 { -1 } else { a.wrapping_div(b) };
    divuw(a, b: u32, i32) a.checked_div(b).unwrap_or(u32::MAX);
    remw(a, b: i32, i32) if b == 0 { a } else { a.wrapping_rem(b) };
    remuw(a, b: u32, i32) a.checked_rem(b).unwrap_or(a);
}
