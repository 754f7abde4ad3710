//! Conversions between integers and floating point, and between formats. Integers travel
//! as 64-bit register values: 32-bit results are sign-extended, the unsigned ones too; 32-bit
//! operands are taken from the low half.

use super::compare::is_signaling;
use super::host::{is_comfortable, is_zero};
use super::{Flags, Format, NV, NX, OnHost, Rounding, soft};

/// Rounds to an integer; the result is meaningful if `value`'s magnitude is below 2^62, which
/// `None` says it is not. True if inexact.
#[inline]
fn round(value: f64, rounding: Rounding) -> Option<(i64, bool)> {
    const LIMIT: f64 = (1u64 << 62) as f64;
    // NaNs are not less.
    let in_range = value.abs() < LIMIT;
    if !in_range {
        return None;
    }
    let truncated = value as i64;
    // Exact: what is left of a fraction after its integer part.
    let rest = value - truncated as f64;
    let away = match rounding {
        Rounding::Zero => false,
        Rounding::NearestEven => (rest.abs() > 0.5) | ((rest.abs() == 0.5) & (truncated & 1 != 0)),
        Rounding::Down => rest < 0.0,
        Rounding::Up => rest > 0.0,
        Rounding::NearestAway => rest.abs() >= 0.5,
    };
    // Without branches: fractions are as good as random.
    let step = i64::from(away) * (1 - 2 * i64::from(rest < 0.0));
    Some((truncated + step, rest != 0.0))
}

macro_rules! to_integer {
    ($($(#[$doc:meta])* $name:ident $integer:ty, $extended:ty, $soft:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name<F: Format>(a: F::Bits, rounding: Rounding) -> (u64, Flags) {
            if let Some((integer, inexact)) = round(F::from_bits(a).widen(), rounding)
                && let Ok(integer) = <$integer>::try_from(integer)
            {
                return (integer as $extended as u64, if inexact { NX } else { 0 });
            }
            let (integer, flags) = soft::$soft::<F>(a, rounding);
            (integer as $extended as u64, flags)
        }
    )*};
}

to_integer! {
    /// `fcvt.w`: to a signed 32-bit integer. Out of range saturates, NaN gives the maximum; invalid.
    to_w i32, i64, to_i32;
    /// `fcvt.wu`: to an unsigned 32-bit integer, otherwise as [`to_w`].
    to_wu u32, i32, to_u32;
    /// `fcvt.l`: to a signed 64-bit integer, otherwise as [`to_w`].
    to_l i64, i64, to_i64;
    /// `fcvt.lu`: to an unsigned 64-bit integer, otherwise as [`to_w`].
    to_lu u64, u64, to_u64;
}

/// True if the magnitude's significant bits fit the precision. The range of the host's formats has every integer.
#[inline]
fn fits<F: Format>(magnitude: u64) -> bool {
    u64::BITS - magnitude.leading_zeros() <= F::PRECISION + magnitude.trailing_zeros()
}

/// `fcvt.*.l`: from a signed 64-bit integer.
#[inline]
pub(crate) fn from_l<F: OnHost>(value: u64, rounding: Rounding) -> (F::Bits, Flags) {
    let value = value as i64;
    if fits::<F>(value.unsigned_abs()) {
        (F::from_i64(value).to_bits(), 0)
    } else if rounding == Rounding::NearestEven {
        (F::from_i64(value).to_bits(), NX)
    } else {
        soft::from_i64::<F>(value, rounding)
    }
}

/// `fcvt.*.lu`: from an unsigned 64-bit integer.
#[inline]
pub(crate) fn from_lu<F: OnHost>(value: u64, rounding: Rounding) -> (F::Bits, Flags) {
    if fits::<F>(value) {
        (F::from_u64(value).to_bits(), 0)
    } else if rounding == Rounding::NearestEven {
        (F::from_u64(value).to_bits(), NX)
    } else {
        soft::from_u64::<F>(value, rounding)
    }
}

/// `fcvt.*.w`: from the signed 32-bit integer in the low half.
#[inline]
pub(crate) fn from_w<F: OnHost>(value: u64, rounding: Rounding) -> (F::Bits, Flags) {
    from_l::<F>(value as i32 as u64, rounding)
}

/// `fcvt.*.wu`: from the unsigned 32-bit integer in the low half.
#[inline]
pub(crate) fn from_wu<F: OnHost>(value: u64, rounding: Rounding) -> (F::Bits, Flags) {
    from_l::<F>(value as u32 as u64, rounding)
}

/// `fcvt.d.s`: exact but for NaNs, which become the canonical one.
#[inline]
pub(crate) fn f32_to_f64(a: u32) -> (u64, Flags) {
    let value = f32::from_bits(a);
    if value.is_nan() {
        return (f64::CANONICAL_NAN, if is_signaling(value) { NV } else { 0 });
    }
    (f64::from(value).to_bits(), 0)
}

/// `fcvt.s.d`.
#[inline]
pub(crate) fn f64_to_f32(a: u64, rounding: Rounding) -> (u32, Flags) {
    let value = f64::from_bits(a);
    let narrow = value as f32;
    // If it is exact, it is so in every mode; a zero is exact only if it was one.
    if f64::from(narrow) == value && (is_comfortable(narrow) || is_zero(narrow)) {
        return (narrow.to_bits(), 0);
    }
    if rounding == Rounding::NearestEven && is_comfortable(narrow) {
        return (narrow.to_bits(), NX);
    }
    soft::reformat::<f64, f32>(a, rounding)
}

/// Conversions from and to half precision, which go straight from one format to the other: rounding a double to
/// a single and that to a half would round twice.
#[inline]
pub(crate) fn reformat<A: Format, B: Format>(a: A::Bits, rounding: Rounding) -> (B::Bits, Flags) {
    soft::reformat::<A, B>(a, rounding)
}

/// `fcvtmod.w.d`: the integer modulo 2^32 that is left without the fraction, sign-extended; flags as of [`to_w`]
/// (Zfa 1.0).
#[inline]
pub(crate) fn modular_w(a: u64) -> (u64, Flags) {
    let (integer, flags) = to_w::<f64>(a, Rounding::Zero);
    if flags & NV == 0 {
        return (integer, flags);
    }
    let (low, flags) = soft::modular_i32::<f64>(a);
    (low as u64, flags)
}
