//! Comparisons, minimum and maximum, classification, sign injection.

use super::{Flags, Format, NV};

#[inline]
fn is_nan<F: Format>(value: F) -> bool {
    value.partial_cmp(&value).is_none()
}

#[inline]
pub(super) fn is_signaling<F: Format>(value: F) -> bool {
    is_nan(value) && !value.quiet_bit()
}

#[inline]
fn invalid_if(invalid: bool) -> Flags {
    if invalid { NV } else { 0 }
}

/// `a = b`; invalid only for signaling NaNs.
#[inline]
pub(crate) fn eq<F: Format>(a: F::Bits, b: F::Bits) -> (bool, Flags) {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    (a == b, invalid_if(is_signaling(a) || is_signaling(b)))
}

/// `a < b`; invalid for any NaN.
#[inline]
pub(crate) fn lt<F: Format>(a: F::Bits, b: F::Bits) -> (bool, Flags) {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    (a < b, invalid_if(a.partial_cmp(&b).is_none()))
}

/// `a ≤ b`; invalid for any NaN.
#[inline]
pub(crate) fn le<F: Format>(a: F::Bits, b: F::Bits) -> (bool, Flags) {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    (a <= b, invalid_if(a.partial_cmp(&b).is_none()))
}

/// `a < b`; invalid only for signaling NaNs (`fltq`).
#[inline]
pub(crate) fn ltq<F: Format>(a: F::Bits, b: F::Bits) -> (bool, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    (x < y, eq::<F>(a, b).1)
}

/// `a ≤ b`; invalid only for signaling NaNs (`fleq`).
#[inline]
pub(crate) fn leq<F: Format>(a: F::Bits, b: F::Bits) -> (bool, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    (x <= y, eq::<F>(a, b).1)
}

/// Returns the smaller operand as [`min`] does, but the canonical NaN if an operand is a NaN (`minimum` of IEEE 754-2019).
#[inline]
pub(crate) fn minm<F: Format>(a: F::Bits, b: F::Bits) -> (F::Bits, Flags) {
    nan_or::<F>(a, b, min::<F>(a, b))
}

/// Returns the larger operand as [`max`] does, but the canonical NaN if an operand is a NaN (`maximum`).
#[inline]
pub(crate) fn maxm<F: Format>(a: F::Bits, b: F::Bits) -> (F::Bits, Flags) {
    nan_or::<F>(a, b, max::<F>(a, b))
}

fn nan_or<F: Format>(a: F::Bits, b: F::Bits, number: (F::Bits, Flags)) -> (F::Bits, Flags) {
    if is_nan(F::from_bits(a)) || is_nan(F::from_bits(b)) {
        (F::CANONICAL_NAN, number.1)
    } else {
        number
    }
}

/// The smaller operand; -0 is smaller than +0; a number rather than a NaN (`minimumNumber` of
/// IEEE 754-2019).
#[inline]
pub(crate) fn min<F: Format>(a: F::Bits, b: F::Bits) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    if (x < y) | (x > y) {
        return (x.smaller(y).to_bits(), 0);
    }
    // Equal operands are the same but for zeros: either sign.
    special_extremum::<F>(a, b, a | b)
}

/// The larger operand; +0 is larger than -0; a number rather than a NaN (`maximumNumber`).
#[inline]
pub(crate) fn max<F: Format>(a: F::Bits, b: F::Bits) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    if (x < y) | (x > y) {
        return (x.larger(y).to_bits(), 0);
    }
    special_extremum::<F>(a, b, a & b)
}

fn special_extremum<F: Format>(a: F::Bits, b: F::Bits, equal: F::Bits) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    let result = match (is_nan(x), is_nan(y)) {
        (false, false) => equal,
        (false, true) => a,
        (true, false) => b,
        (true, true) => F::CANONICAL_NAN,
    };
    (result, invalid_if(is_signaling(x) || is_signaling(y)))
}

/// The mask of `fclass`: one of its ten bits.
#[inline]
pub(crate) fn classify<F: Format>(a: F::Bits) -> u64 {
    let value = F::from_bits(a);
    if is_nan(value) {
        return 1 << if value.quiet_bit() { 9 } else { 8 };
    }
    // Distance from zero: zero, subnormal, normal, infinite.
    let magnitude = match (value.exponent(), value.significand()) {
        (0, 0) => 0,
        (0, _) => 1,
        (exponent, _) if exponent < F::MAX_EXPONENT => 2,
        _ => 3,
    };
    let negative = a & F::SIGN == F::SIGN;
    1 << if negative { 3 - magnitude } else { 4 + magnitude }
}

/// `a` with the sign of `b`.
#[inline]
pub(crate) fn sgnj<F: Format>(a: F::Bits, b: F::Bits) -> F::Bits {
    a & !F::SIGN | b & F::SIGN
}

/// `a` with the opposite of the sign of `b`.
#[inline]
pub(crate) fn sgnjn<F: Format>(a: F::Bits, b: F::Bits) -> F::Bits {
    a & !F::SIGN | !b & F::SIGN
}

/// `a` with its sign multiplied by that of `b`.
#[inline]
pub(crate) fn sgnjx<F: Format>(a: F::Bits, b: F::Bits) -> F::Bits {
    a ^ b & F::SIGN
}
