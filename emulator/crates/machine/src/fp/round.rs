//! Rounding and packing of exact numbers.

use super::{Flags, Format, NX, OF, Rounding, UF};

/// The number ±(`significand` + ε) × 2^`exponent`, where 0 < ε < 1 if `sticky` and ε = 0 if not.
/// With `sticky`, the significand must have two bits more than the precision that it is rounded to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u128,
    pub sticky: bool,
}

impl Exact {
    /// The position of the most significant bit: the number lies in [2^n, 2^(n+1)).
    pub(super) fn magnitude(&self) -> i32 {
        self.exponent + (u128::BITS - self.significand.leading_zeros()) as i32 - 1
    }

    /// Rounds to a multiple of 2^`unit`: the multiple, and whether it is inexact.
    pub(super) fn round_to(&self, unit: i32, rounding: Rounding) -> (u128, bool) {
        let shift = unit - self.exponent;
        if shift <= 0 {
            debug_assert!(!self.sticky);
            return (self.significand << -shift, false);
        }
        // The bits that stay, the bit below them, and whether anything is below that.
        let (kept, half, more) = if shift > 127 {
            (0, false, self.significand != 0 || self.sticky)
        } else {
            let below = self.significand & ((1 << (shift - 1)) - 1);
            let half = self.significand >> (shift - 1) & 1 != 0;
            (self.significand >> shift, half, below != 0 || self.sticky)
        };
        let away = match rounding {
            Rounding::NearestEven => half && (more || kept & 1 != 0),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => self.negative && (half || more),
            Rounding::Up => !self.negative && (half || more),
        };
        (kept + u128::from(away), half || more)
    }

    /// Rounds to a format. Zeros keep their sign.
    pub(super) fn pack<F: Format>(&self, rounding: Rounding) -> (F::Bits, Flags) {
        let with_sign = |bits: u64| {
            if self.negative { F::encode(bits) | F::SIGN } else { F::encode(bits) }
        };
        if self.significand == 0 {
            return (with_sign(0), 0);
        }
        let fraction_bits = F::PRECISION as i32 - 1;
        let bias = F::MAX_EXPONENT as i32 / 2;
        let min_magnitude = 1 - bias;
        let magnitude = self.magnitude();
        // A number's unit in the last place; subnormal numbers share the smallest one.
        let min_unit = min_magnitude - fraction_bits;
        let unit = magnitude - fraction_bits;
        let tiny = magnitude < min_magnitude;

        let (significand, inexact) = self.round_to(unit.max(min_unit), rounding);
        if tiny && inexact {
            // Underflow is judged after rounding as if the exponent had no limit, which may carry.
            let (unlimited, _) = self.round_to(unit, rounding);
            let carries = magnitude == min_magnitude - 1 && unlimited >> F::PRECISION != 0;
            let flags = if carries { NX } else { NX | UF };
            return (with_sign(significand as u64), flags);
        }
        let infinity = u64::from(F::MAX_EXPONENT) << fraction_bits;
        let exponent_field = i64::from(unit.max(min_unit) - min_unit);
        // The implicit bit of a normal number adds one to the exponent field, and so does a carry.
        if exponent_field < i64::from(F::MAX_EXPONENT) {
            let bits = ((exponent_field as u64) << fraction_bits) + significand as u64;
            if bits < infinity {
                return (with_sign(bits), if inexact { NX } else { 0 });
            }
        }
        let to_infinity = match rounding {
            Rounding::NearestEven | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Down => self.negative,
            Rounding::Up => !self.negative,
        };
        (with_sign(if to_infinity { infinity } else { infinity - 1 }), OF | NX)
    }
}

/// The sum, for significands of at most 107 bits.
pub(super) fn sum(a: Exact, b: Exact, rounding: Rounding) -> Exact {
    if a.significand == 0 && b.significand == 0 && a.negative == b.negative {
        return a;
    }
    let zero =
        Exact { negative: rounding == Rounding::Down, exponent: 0, significand: 0, sticky: false };
    // Most significant bit at bit 125: room for the carry, and 19 zeros at the end. Those make
    // an alignment that loses bits so wide that at most one leading bit cancels.
    let normalize = |x: Exact| {
        let shift = x.significand.leading_zeros() - 2;
        Exact { exponent: x.exponent - shift as i32, significand: x.significand << shift, ..x }
    };
    let (a, b) = match (a.significand, b.significand) {
        (0, 0) => return zero,
        (0, _) => return b,
        (_, 0) => return a,
        _ => (normalize(a), normalize(b)),
    };
    let (large, small) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let distance = large.exponent.abs_diff(small.exponent);
    let aligned = small.significand.checked_shr(distance).unwrap_or(0);
    let sticky = distance > 127 || aligned << distance != small.significand;
    if large.negative == small.negative {
        return Exact { significand: large.significand + aligned, sticky, ..large };
    }
    // What was lost of the smaller one is taken from the last bit of the difference.
    match large.significand.checked_sub(aligned + u128::from(sticky)) {
        Some(0) => zero,
        Some(significand) => Exact { significand, sticky, ..large },
        // Only with equal exponents.
        None => Exact { significand: aligned - large.significand, sticky: false, ..small },
    }
}
