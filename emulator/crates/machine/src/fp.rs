//! IEEE 754 arithmetic of the F, D, Zfh and Zfa extensions on raw bits: every operation returns its result
//! and the exception flags that it raises.
//!
//! ```ignore
//! let (sum, flags) = fp::add::<f64>(a, b, Rounding::NearestEven, fflags);
//! ```
//!
//! Operations are generic over the format, named by the host's type. The common case runs on the
//! host's FPU where it is provably exact; everything else (other rounding modes, NaNs, infinite
//! and subnormal results, half precision) in integers. [`host`] says why the two agree, and the tests check it.
//!
//! `sticky` is what `fflags` holds already. Flags in it may be missing from the returned flags:
//! once the inexact flag is set, nothing has to find out whether further results are inexact.

mod arith;
mod compare;
mod convert;
mod format;
pub(crate) mod half;
mod host;
mod integral;
mod round;
mod soft;
#[cfg(test)]
mod tests;

pub(crate) use arith::{add, div, fmadd, fmsub, fnmadd, fnmsub, mul, sqrt, sub};
pub(crate) use compare::{
    classify, eq, le, leq, lt, ltq, max, maxm, min, minm, sgnj, sgnjn, sgnjx,
};
pub(crate) use convert::{
    f32_to_f64, f64_to_f32, from_l, from_lu, from_w, from_wu, modular_w, reformat, to_l, to_lu,
    to_w, to_wu,
};
pub(crate) use format::{Format, OnHost, nan_box, unbox};
pub(crate) use half::F16;
pub(crate) use integral::{constant, round, round_inexact};

/// Accrued exceptions, in the layout of the `fflags` CSR.
pub(crate) type Flags = u8;

/// Inexact.
pub(crate) const NX: Flags = 1;
/// Underflow.
pub(crate) const UF: Flags = 2;
/// Overflow.
pub(crate) const OF: Flags = 4;
/// Division by zero.
pub(crate) const DZ: Flags = 8;
/// Invalid operation.
pub(crate) const NV: Flags = 16;

/// A rounding mode, in the encoding of the `frm` CSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Rounding {
    /// To nearest, ties to even (`rne`).
    NearestEven = 0,
    /// Towards zero (`rtz`).
    Zero = 1,
    /// Towards minus infinity (`rdn`).
    Down = 2,
    /// Towards plus infinity (`rup`).
    Up = 3,
    /// To nearest, ties away from zero (`rmm`).
    NearestAway = 4,
}

impl Rounding {
    /// All modes, in numeric order.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] =
        [Self::NearestEven, Self::Zero, Self::Down, Self::Up, Self::NearestAway];

    /// Decodes the field of an instruction or of `frm`. Codes 5 and 6 are reserved, and 7, which in
    /// an instruction means "as `frm` says", is not a mode: `None`.
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::NearestEven),
            1 => Some(Self::Zero),
            2 => Some(Self::Down),
            3 => Some(Self::Up),
            4 => Some(Self::NearestAway),
            _ => None,
        }
    }
}
