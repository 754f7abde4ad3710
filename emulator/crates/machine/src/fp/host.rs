//! What can be known of a result that the host's FPU computed.
//!
//! The host rounds to nearest, ties to even, so only that mode comes here. Then a finite result of
//! IEEE 754's basic operations is *the* result, and what is left to find out are the flags:
//! - Invalid and division by zero give a NaN or an infinity, overflow an infinity: a finite result
//!   excludes them.
//! - Underflow needs a result that is tiny after rounding: an exponent field above 1 excludes it.
//!   (A result of exactly the smallest normal number, field 1, may have been tiny.)
//! - Inexact is decided by recomputing in integers or by exact differences, and only if the flag
//!   is not set already.

use super::{Format, OnHost};

/// True for normal numbers but for those of the smallest exponent.
#[inline]
pub(super) fn is_comfortable<F: Format>(result: F) -> bool {
    result.exponent().wrapping_sub(2) < F::MAX_EXPONENT - 2
}

/// Neither infinite nor NaN.
#[inline]
pub(super) fn is_finite<F: Format>(value: F) -> bool {
    value.exponent() != F::MAX_EXPONENT
}

#[inline]
pub(super) fn is_zero<F: Format>(value: F) -> bool {
    value.exponent() == 0 && value.significand() == 0
}

/// True if `sum`, the rounded `a + b`, is exact.
///
/// If it is, both differences are exact and true. If it is not, the difference with the larger
/// operand is still exact (Dekker), hence it is not the smaller operand.
#[inline]
pub(super) fn sum_is_exact<F: OnHost>(a: F, b: F, sum: F) -> bool {
    (sum - a == b) & (sum - b == a)
}

/// True if the product of the significands fits the precision, so that `a * b` is exact unless it
/// leaves the range of normal numbers.
#[inline]
pub(super) fn product_is_exact<F: Format>(a: F, b: F) -> bool {
    let product = u128::from(a.significand()) * u128::from(b.significand());
    u128::BITS - product.leading_zeros() <= F::PRECISION + product.trailing_zeros()
}

/// True if `a * b`, two comfortable numbers and hence without the exponents, is `product`.
#[inline]
pub(super) fn is_product<F: Format>(a: F, b: F, product: F) -> bool {
    let odd = |value: u128| value >> value.trailing_zeros();
    odd(u128::from(a.significand()) * u128::from(b.significand()))
        == odd(product.significand().into())
}
