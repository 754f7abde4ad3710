//! Addition, multiplication, fused multiply-add, division, square root, in the formats that the host has.

use super::host::{is_comfortable, is_finite, is_product, is_zero, product_is_exact, sum_is_exact};
use super::{Flags, NX, OnHost, Rounding, soft};

#[inline]
fn inexact_unless(exact: bool) -> Flags {
    if exact { 0 } else { NX }
}

/// `a + b`.
#[inline]
pub(crate) fn add<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    let sum = x + y;
    // A subnormal sum is exact, so it does not underflow.
    if rounding == Rounding::NearestEven && is_finite(sum) {
        let flags = if sticky & NX != 0 { 0 } else { inexact_unless(sum_is_exact(x, y, sum)) };
        return (sum.to_bits(), flags);
    }
    soft::add::<F>(a, b, rounding)
}

/// `a - b`.
#[inline]
pub(crate) fn sub<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    let difference = x - y;
    if rounding == Rounding::NearestEven && is_finite(difference) {
        let exact = sticky & NX != 0 || sum_is_exact(x, -y, difference);
        return (difference.to_bits(), inexact_unless(exact));
    }
    soft::sub::<F>(a, b, rounding)
}

/// `a * b`.
#[inline]
pub(crate) fn mul<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    let product = x * y;
    if rounding == Rounding::NearestEven {
        if is_comfortable(product) {
            let exact = sticky & NX != 0 || product_is_exact(x, y);
            return (product.to_bits(), inexact_unless(exact));
        }
        // The product with an infinity or a NaN is not zero.
        if is_zero(product) && (is_zero(x) || is_zero(y)) {
            return (product.to_bits(), 0);
        }
    }
    soft::mul::<F>(a, b, rounding)
}

/// `a / b`.
#[inline]
pub(crate) fn div<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    let (x, y) = (F::from_bits(a), F::from_bits(b));
    let quotient = x / y;
    if rounding == Rounding::NearestEven {
        if is_comfortable(quotient) {
            let exact = sticky & NX != 0 || is_product(quotient, y, x);
            return (quotient.to_bits(), inexact_unless(exact));
        }
        // The quotient of two zeros, or with a NaN, is not zero.
        if is_zero(quotient) && is_zero(x) {
            return (quotient.to_bits(), 0);
        }
    }
    soft::div::<F>(a, b, rounding)
}

/// The square root of `a`.
#[inline]
pub(crate) fn sqrt<F: OnHost>(a: F::Bits, rounding: Rounding, sticky: Flags) -> (F::Bits, Flags) {
    let x = F::from_bits(a);
    let root = x.host_sqrt();
    if rounding == Rounding::NearestEven && is_comfortable(root) {
        let exact = sticky & NX != 0 || is_product(root, root, x);
        return (root.to_bits(), inexact_unless(exact));
    }
    soft::sqrt::<F>(a, rounding)
}

/// `a * b + c`, rounded once.
#[inline]
pub(crate) fn fmadd<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    if rounding == Rounding::NearestEven {
        let (x, y, z) = (F::from_bits(a), F::from_bits(b), F::from_bits(c));
        if sticky & NX != 0 {
            let result = x.host_fma(y, z);
            if is_comfortable(result) {
                return (result.to_bits(), 0);
            }
        }
        // An exact product makes it a sum.
        let product = x * y;
        let exact = is_comfortable(product) && product_is_exact(x, y);
        if exact || is_zero(product) && (is_zero(x) || is_zero(y)) {
            let sum = product + z;
            if is_finite(sum) {
                return (sum.to_bits(), inexact_unless(sum_is_exact(product, z, sum)));
            }
        }
    }
    soft::fma::<F>(a, b, c, rounding)
}

/// `a * b - c`, rounded once.
#[inline]
pub(crate) fn fmsub<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    fmadd::<F>(a, b, c ^ F::SIGN, rounding, sticky)
}

/// `-(a * b) + c`, rounded once.
#[inline]
pub(crate) fn fnmsub<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    fmadd::<F>(a ^ F::SIGN, b, c, rounding, sticky)
}

/// `-(a * b) - c`, rounded once.
#[inline]
pub(crate) fn fnmadd<F: OnHost>(
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    rounding: Rounding,
    sticky: Flags,
) -> (F::Bits, Flags) {
    fmadd::<F>(a ^ F::SIGN, b, c ^ F::SIGN, rounding, sticky)
}
