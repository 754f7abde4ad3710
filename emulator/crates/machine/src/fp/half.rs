//! Half precision (Zfh), which hosts do not compute in: everything in integers. (Single precision on the host
//! would do for the basic operations, but not for fused ones, and gives no flags.)

use std::cmp::Ordering;

use super::{Flags, Format, Rounding, soft};

/// A half-precision number, by its encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F16(u16);

impl Format for F16 {
    type Bits = u16;

    const PRECISION: u32 = 11;
    const MAX_EXPONENT: u32 = 31;
    const SIGN: u16 = 0x8000;
    const CANONICAL_NAN: u16 = 0x7e00;

    fn encode(bits: u64) -> u16 {
        bits as u16
    }
    fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
    fn to_bits(self) -> u16 {
        self.0
    }
    fn exponent(self) -> u32 {
        u32::from(self.0 >> 10) & Self::MAX_EXPONENT
    }
    fn significand(self) -> u64 {
        let fraction = u64::from(self.0 & 0x3ff);
        if self.exponent() == 0 { fraction } else { fraction | 0x400 }
    }
    fn quiet_bit(self) -> bool {
        self.0 & 0x200 != 0
    }
    fn smaller(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    fn widen(self) -> f64 {
        f64::from_bits(soft::reformat::<Self, f64>(self.0, Rounding::NearestEven).0)
    }
}

impl PartialEq for F16 {
    fn eq(&self, other: &Self) -> bool {
        self.widen() == other.widen()
    }
}

impl PartialOrd for F16 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.widen().partial_cmp(&other.widen())
    }
}

/// `a + b`.
pub(crate) fn add(a: u16, b: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::add::<F16>(a, b, rounding)
}

/// `a - b`.
pub(crate) fn sub(a: u16, b: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::sub::<F16>(a, b, rounding)
}

/// `a * b`.
pub(crate) fn mul(a: u16, b: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::mul::<F16>(a, b, rounding)
}

/// `a / b`.
pub(crate) fn div(a: u16, b: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::div::<F16>(a, b, rounding)
}

/// The square root of `a`.
pub(crate) fn sqrt(a: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::sqrt::<F16>(a, rounding)
}

/// `a * b + c`, rounded once.
pub(crate) fn fmadd(a: u16, b: u16, c: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::fma::<F16>(a, b, c, rounding)
}

/// `a * b - c`, rounded once.
pub(crate) fn fmsub(a: u16, b: u16, c: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::fma::<F16>(a, b, c ^ F16::SIGN, rounding)
}

/// `-(a * b) + c`, rounded once.
pub(crate) fn fnmsub(a: u16, b: u16, c: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::fma::<F16>(a ^ F16::SIGN, b, c, rounding)
}

/// `-(a * b) - c`, rounded once.
pub(crate) fn fnmadd(a: u16, b: u16, c: u16, rounding: Rounding, _: Flags) -> (u16, Flags) {
    soft::fma::<F16>(a ^ F16::SIGN, b, c ^ F16::SIGN, rounding)
}

/// `fcvt.h.l`: from a signed 64-bit integer; unlike in the larger formats it may overflow.
pub(crate) fn from_l(value: u64, rounding: Rounding) -> (u16, Flags) {
    soft::from_i64::<F16>(value as i64, rounding)
}

/// `fcvt.h.lu`: from an unsigned 64-bit integer.
pub(crate) fn from_lu(value: u64, rounding: Rounding) -> (u16, Flags) {
    soft::from_u64::<F16>(value, rounding)
}

/// `fcvt.h.w`: from the signed 32-bit integer in the low half.
pub(crate) fn from_w(value: u64, rounding: Rounding) -> (u16, Flags) {
    from_l(value as i32 as u64, rounding)
}

/// `fcvt.h.wu`: from the unsigned 32-bit integer in the low half.
pub(crate) fn from_wu(value: u64, rounding: Rounding) -> (u16, Flags) {
    from_lu(value as u32 as u64, rounding)
}

/// A half as it stands in a 64-bit register.
pub(crate) const fn nan_box(bits: u16) -> u64 {
    0xffff_ffff_ffff_0000 | bits as u64
}

/// The half in a 64-bit register: the canonical NaN if it is not boxed.
pub(crate) const fn unbox(register: u64) -> u16 {
    if register >> 16 == 0xffff_ffff_ffff { register as u16 } else { F16::CANONICAL_NAN }
}
