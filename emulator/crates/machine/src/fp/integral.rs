//! Rounding to integers within a format, and the constants of `fli` (Zfa).

use isa::FliConstant;

use super::{Flags, Format, NX, Rounding, soft};

/// `fround`: never inexact.
pub(crate) fn round<F: Format>(a: F::Bits, rounding: Rounding, _: Flags) -> (F::Bits, Flags) {
    let (bits, flags) = soft::round::<F>(a, rounding);
    (bits, flags & !NX)
}

/// `froundnx`: inexact if the value changes.
pub(crate) fn round_inexact<F: Format>(
    a: F::Bits,
    rounding: Rounding,
    _: Flags,
) -> (F::Bits, Flags) {
    soft::round::<F>(a, rounding)
}

/// A constant of `fli` in a format. In half precision 2^16 is infinity.
pub(crate) fn constant<F: Format>(constant: FliConstant) -> F::Bits {
    let value = match constant {
        FliConstant::MinPositive => return F::encode(1 << (F::PRECISION - 1)),
        FliConstant::Nan => return F::CANONICAL_NAN,
        FliConstant::Infinity => f64::INFINITY,
        FliConstant::Value(value) => value,
    };
    soft::reformat::<f64, F>(value.to_bits(), Rounding::NearestEven).0
}
