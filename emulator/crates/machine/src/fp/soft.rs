//! The path for everything that the host's FPU is not asked: all operations, in all rounding
//! modes, in integers.

use super::round::{Exact, sum};
use super::{DZ, Flags, Format, NV, Rounding};

/// An operand taken apart.
#[derive(Clone, Copy)]
struct Operand {
    kind: Kind,
    negative: bool,
    /// The value if it is finite.
    exact: Exact,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Zero,
    Finite,
    Infinite,
    QuietNan,
    SignalingNan,
}

use Kind::{Finite, Infinite, QuietNan, SignalingNan, Zero};

fn unpack<F: Format>(bits: F::Bits) -> Operand {
    let value = F::from_bits(bits);
    let negative = bits & F::SIGN == F::SIGN;
    let (field, significand) = (value.exponent(), value.significand());
    let kind = if field == F::MAX_EXPONENT {
        match (significand << (65 - F::PRECISION), value.quiet_bit()) {
            (0, _) => Infinite,
            (_, true) => QuietNan,
            (_, false) => SignalingNan,
        }
    } else if significand == 0 {
        Zero
    } else {
        Finite
    };
    let unit = field.max(1) as i32 - (F::MAX_EXPONENT / 2 + F::PRECISION - 1) as i32;
    let exact = Exact { negative, exponent: unit, significand: significand.into(), sticky: false };
    Operand { kind, negative, exact }
}

/// The canonical NaN if an operand is a NaN.
fn nan<F: Format>(operands: &[Operand]) -> Option<(F::Bits, Flags)> {
    if operands.iter().any(|x| x.kind == SignalingNan) {
        Some((F::CANONICAL_NAN, NV))
    } else if operands.iter().any(|x| x.kind == QuietNan) {
        Some((F::CANONICAL_NAN, 0))
    } else {
        None
    }
}

fn invalid<F: Format>() -> (F::Bits, Flags) {
    (F::CANONICAL_NAN, NV)
}

fn signed<F: Format>(negative: bool, magnitude: u64) -> F::Bits {
    let bits = F::encode(magnitude);
    if negative { bits | F::SIGN } else { bits }
}

fn infinity<F: Format>(negative: bool) -> F::Bits {
    signed::<F>(negative, u64::from(F::MAX_EXPONENT) << (F::PRECISION - 1))
}

#[cold]
#[inline(never)]
pub(super) fn add<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding) -> (F::Bits, Flags) {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    if let Some(nan) = nan::<F>(&[x, y]) {
        return nan;
    }
    match (x.kind, y.kind) {
        (Infinite, Infinite) if x.negative != y.negative => invalid::<F>(),
        (Infinite, _) => (a, 0),
        (_, Infinite) => (b, 0),
        _ => sum(x.exact, y.exact, rounding).pack::<F>(rounding),
    }
}

#[cold]
#[inline(never)]
pub(super) fn sub<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding) -> (F::Bits, Flags) {
    add::<F>(a, b ^ F::SIGN, rounding)
}

/// The exact product of two finite numbers.
fn product(x: Operand, y: Operand) -> Exact {
    Exact {
        negative: x.negative != y.negative,
        exponent: x.exact.exponent + y.exact.exponent,
        significand: x.exact.significand * y.exact.significand,
        sticky: false,
    }
}

#[cold]
#[inline(never)]
pub(super) fn mul<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding) -> (F::Bits, Flags) {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    if let Some(nan) = nan::<F>(&[x, y]) {
        return nan;
    }
    match (x.kind, y.kind) {
        (Infinite, Zero) | (Zero, Infinite) => invalid::<F>(),
        (Infinite, _) | (_, Infinite) => (infinity::<F>(x.negative != y.negative), 0),
        _ => product(x, y).pack::<F>(rounding),
    }
}

#[cold]
#[inline(never)]
pub(super) fn fma<F: Format>(
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    rounding: Rounding,
) -> (F::Bits, Flags) {
    let (x, y, z) = (unpack::<F>(a), unpack::<F>(b), unpack::<F>(c));
    // Infinity times zero is invalid even if a quiet NaN is added.
    if let (Infinite, Zero) | (Zero, Infinite) = (x.kind, y.kind) {
        return invalid::<F>();
    }
    if let Some(nan) = nan::<F>(&[x, y, z]) {
        return nan;
    }
    let negative = x.negative != y.negative;
    match (x.kind == Infinite || y.kind == Infinite, z.kind == Infinite) {
        (true, true) if negative != z.negative => invalid::<F>(),
        (true, _) => (infinity::<F>(negative), 0),
        (_, true) => (c, 0),
        _ => sum(product(x, y), z.exact, rounding).pack::<F>(rounding),
    }
}

/// The significand with its most significant bit at bit 63, and the exponent that goes with it.
fn normalized(x: Exact) -> (u128, i32) {
    let shift = x.significand.leading_zeros() - 64;
    (x.significand << shift, x.exponent - shift as i32)
}

#[cold]
#[inline(never)]
pub(super) fn div<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding) -> (F::Bits, Flags) {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    if let Some(nan) = nan::<F>(&[x, y]) {
        return nan;
    }
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (Infinite, Infinite) | (Zero, Zero) => return invalid::<F>(),
        (Infinite, _) => return (infinity::<F>(negative), 0),
        (_, Zero) => return (infinity::<F>(negative), DZ),
        (Zero, _) | (_, Infinite) => return (signed::<F>(negative, 0), 0),
        _ => {}
    }
    let ((dividend, x_exponent), (divisor, y_exponent)) =
        (normalized(x.exact), normalized(y.exact));
    // 63 or 64 bits of quotient.
    let dividend = dividend << 63;
    let exact = Exact {
        negative,
        exponent: x_exponent - 63 - y_exponent,
        significand: dividend / divisor,
        sticky: dividend % divisor != 0,
    };
    exact.pack::<F>(rounding)
}

#[cold]
#[inline(never)]
pub(super) fn sqrt<F: Format>(a: F::Bits, rounding: Rounding) -> (F::Bits, Flags) {
    let x = unpack::<F>(a);
    if let Some(nan) = nan::<F>(&[x]) {
        return nan;
    }
    match (x.kind, x.negative) {
        (Zero, _) => return (a, 0),
        (_, true) => return invalid::<F>(),
        (Infinite, _) => return (a, 0),
        _ => {}
    }
    let (significand, exponent) = normalized(x.exact);
    // 126 or 127 bits under the root, and an even exponent.
    let shift = 62 + (exponent & 1);
    let radicand = significand << shift;
    let root = radicand.isqrt();
    let exact = Exact {
        negative: false,
        exponent: (exponent - shift) / 2,
        significand: root,
        sticky: root * root != radicand,
    };
    exact.pack::<F>(rounding)
}

/// Rounds to an integer in `min..=max`; saturates with the invalid flag.
fn to_integer<F: Format>(a: F::Bits, rounding: Rounding, min: i128, max: i128) -> (i128, Flags) {
    let x = unpack::<F>(a);
    match x.kind {
        QuietNan | SignalingNan => return (max, NV),
        Zero => return (0, 0),
        Finite if x.exact.magnitude() < 64 => {
            let (magnitude, inexact) = x.exact.round_to(0, rounding);
            let value = if x.negative { -(magnitude as i128) } else { magnitude as i128 };
            if (min..=max).contains(&value) {
                return (value, inexact.into());
            }
        }
        _ => {}
    }
    (if x.negative { min } else { max }, NV)
}

macro_rules! to_integer {
    ($($name:ident $integer:ty;)*) => {$(
        #[cold]
        #[inline(never)]
        pub(crate) fn $name<F: Format>(a: F::Bits, rounding: Rounding) -> ($integer, Flags) {
            let range = (<$integer>::MIN as i128, <$integer>::MAX as i128);
            let (value, flags) = to_integer::<F>(a, rounding, range.0, range.1);
            (value as $integer, flags)
        }
    )*};
}

to_integer! { to_i32 i32; to_u32 u32; to_i64 i64; to_u64 u64; }

fn from_integer<F: Format>(negative: bool, magnitude: u64, rounding: Rounding) -> (F::Bits, Flags) {
    Exact { negative, exponent: 0, significand: magnitude.into(), sticky: false }
        .pack::<F>(rounding)
}

#[cold]
#[inline(never)]
pub(super) fn from_i64<F: Format>(value: i64, rounding: Rounding) -> (F::Bits, Flags) {
    from_integer::<F>(value < 0, value.unsigned_abs(), rounding)
}

#[cold]
#[inline(never)]
pub(super) fn from_u64<F: Format>(value: u64, rounding: Rounding) -> (F::Bits, Flags) {
    from_integer::<F>(false, value, rounding)
}

/// From one format to another.
#[cold]
#[inline(never)]
pub(super) fn reformat<A: Format, B: Format>(a: A::Bits, rounding: Rounding) -> (B::Bits, Flags) {
    let x = unpack::<A>(a);
    if let Some(nan) = nan::<B>(&[x]) {
        return nan;
    }
    match x.kind {
        Infinite => (infinity::<B>(x.negative), 0),
        _ => x.exact.pack::<B>(rounding),
    }
}

/// Rounds to an integer of the same format, inexact if that changes the value.
#[cold]
#[inline(never)]
pub(super) fn round<F: Format>(a: F::Bits, rounding: Rounding) -> (F::Bits, Flags) {
    let x = unpack::<F>(a);
    if let Some(nan) = nan::<F>(&[x]) {
        return nan;
    }
    if x.kind != Finite || x.exact.exponent >= 0 {
        return (a, 0);
    }
    let (significand, inexact) = x.exact.round_to(0, rounding);
    let integer = Exact { exponent: 0, significand, ..x.exact };
    // An integer below the format's precision, or the power of two that follows.
    let (bits, _) = integer.pack::<F>(rounding);
    (bits, inexact.into())
}

/// The low 32 bits of the integer that is left without the fraction; 0 for infinities and NaNs. Invalid where
/// [`to_i32`] is.
#[cold]
#[inline(never)]
pub(super) fn modular_i32<F: Format>(a: F::Bits) -> (i32, Flags) {
    let x = unpack::<F>(a);
    let (_, flags) = to_i32::<F>(a, Rounding::Zero);
    let unit = x.exact.exponent;
    let low = match x.kind {
        Infinite | QuietNan | SignalingNan => 0,
        _ if unit >= 32 => 0,
        _ => x.exact.round_to(0, Rounding::Zero).0 as i32,
    };
    (if x.negative { low.wrapping_neg() } else { low }, flags)
}
