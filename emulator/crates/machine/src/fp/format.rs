//! Formats; single and double precision, named by the host's types `f32` and `f64`.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

/// A binary format. [`Format::Bits`] holds its encoding.
pub(crate) trait Format: Copy + PartialOrd {
    /// The unsigned integer of the format's size.
    type Bits: Copy
        + Eq
        + BitAnd<Output = Self::Bits>
        + BitOr<Output = Self::Bits>
        + BitXor<Output = Self::Bits>
        + Not<Output = Self::Bits>;

    /// Bits of precision, with the implicit one.
    const PRECISION: u32;
    /// The exponent field of infinities and NaNs.
    const MAX_EXPONENT: u32;
    /// The sign bit.
    const SIGN: Self::Bits;
    /// The NaN that every operation returns.
    const CANONICAL_NAN: Self::Bits;

    /// The encoding in the low bits of `bits`.
    fn encode(bits: u64) -> Self::Bits;
    /// The value of an encoding.
    fn from_bits(bits: Self::Bits) -> Self;
    /// The encoding of a value.
    fn to_bits(self) -> Self::Bits;
    /// The biased exponent field.
    fn exponent(self) -> u32;
    /// The fraction field, with the implicit one of normal numbers.
    fn significand(self) -> u64;
    /// The most significant fraction bit, which tells quiet from signaling NaNs.
    fn quiet_bit(self) -> bool;
    /// The smaller of two numbers that are not equal.
    fn smaller(self, other: Self) -> Self;
    /// The larger of two numbers that are not equal.
    fn larger(self, other: Self) -> Self;
    /// Every number of a format is an `f64`; NaNs stay NaNs.
    fn widen(self) -> f64;
}

/// A format that the host's FPU computes in.
pub(crate) trait OnHost:
    Format
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The host's square root.
    fn host_sqrt(self) -> Self;
    /// The host's fused multiply-add.
    fn host_fma(self, factor: Self, addend: Self) -> Self;
    /// The nearest value, ties to even.
    fn from_i64(value: i64) -> Self;
    /// The nearest value, ties to even.
    fn from_u64(value: u64) -> Self;
}

macro_rules! format {
    ($float:ty, $bits:ty) => {
        impl Format for $float {
            type Bits = $bits;

            const PRECISION: u32 = <$float>::MANTISSA_DIGITS;
            const MAX_EXPONENT: u32 = (1 << (<$bits>::BITS - Self::PRECISION)) - 1;
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            const CANONICAL_NAN: $bits =
                ((1 << (<$bits>::BITS - Self::PRECISION + 1)) - 1) << (Self::PRECISION - 2);

            #[inline]
            fn encode(bits: u64) -> $bits {
                bits as $bits
            }
            #[inline]
            fn from_bits(bits: $bits) -> Self {
                <$float>::from_bits(bits)
            }
            #[inline]
            fn to_bits(self) -> $bits {
                <$float>::to_bits(self)
            }
            #[inline]
            fn exponent(self) -> u32 {
                (<$float>::to_bits(self) >> (Self::PRECISION - 1)) as u32 & Self::MAX_EXPONENT
            }
            #[inline]
            fn significand(self) -> u64 {
                let implicit = 1 << (Self::PRECISION - 1);
                let fraction = u64::from(<$float>::to_bits(self)) & (implicit - 1);
                if self.exponent() == 0 { fraction } else { fraction | implicit }
            }
            #[inline]
            fn quiet_bit(self) -> bool {
                <$float>::to_bits(self) >> (Self::PRECISION - 2) & 1 != 0
            }
            #[inline]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
            #[inline]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            #[inline]
            fn widen(self) -> f64 {
                self.into()
            }
        }

        impl OnHost for $float {
            #[inline]
            fn host_sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline]
            fn host_fma(self, factor: Self, addend: Self) -> Self {
                self.mul_add(factor, addend)
            }
            #[inline]
            fn from_i64(value: i64) -> Self {
                value as $float
            }
            #[inline]
            fn from_u64(value: u64) -> Self {
                value as $float
            }
        }
    };
}

format!(f32, u32);
format!(f64, u64);

/// A single-precision value as it stands in a 64-bit register.
#[inline]
pub(crate) const fn nan_box(bits: u32) -> u64 {
    0xffff_ffff_0000_0000 | bits as u64
}

/// The single-precision value in a 64-bit register: the canonical NaN if it is not boxed.
#[inline]
pub(crate) const fn unbox(register: u64) -> u32 {
    if register >> 32 == 0xffff_ffff { register as u32 } else { f32::CANONICAL_NAN }
}
