//! Half precision and Zfa: what the digests leave out.

use isa::FliConstant;

use super::super::{half, *};

const ONE: u16 = 0x3c00;
const INFINITY: u16 = 0x7c00;
const SIGNALING: u16 = 0x7d00;

#[test]
fn every_half_converts_to_integers_as_the_integer_path_says() {
    for a in 0..=u16::MAX {
        for mode in Rounding::ALL {
            let (w, flags) = soft::to_i32::<F16>(a, mode);
            assert_eq!(to_w::<F16>(a, mode), (w as u64, flags), "{a:#x} {mode:?}");
            let (wu, flags) = soft::to_u32::<F16>(a, mode);
            let wu = wu as i32 as u64;
            assert_eq!(to_wu::<F16>(a, mode), (wu, flags), "{a:#x} {mode:?}");
            let (l, flags) = soft::to_i64::<F16>(a, mode);
            assert_eq!(to_l::<F16>(a, mode), (l as u64, flags), "{a:#x} {mode:?}");
            assert_eq!(to_lu::<F16>(a, mode), soft::to_u64::<F16>(a, mode), "{a:#x} {mode:?}");
        }
    }
}

#[test]
fn every_half_survives_the_way_to_the_other_formats() {
    for a in 0..=u16::MAX {
        let (single, flags) = reformat::<F16, f32>(a, Rounding::Down);
        let (double, same) = reformat::<F16, f64>(a, Rounding::Up);
        assert_eq!(flags, same);
        if F16::from_bits(a).widen().is_nan() {
            assert_eq!(flags, if a & 0x200 == 0 { NV } else { 0 });
            assert_eq!((single, double), (f32::CANONICAL_NAN, f64::CANONICAL_NAN));
            continue;
        }
        assert_eq!(f64::from(f32::from_bits(single)), f64::from_bits(double));
        for mode in Rounding::ALL {
            assert_eq!(reformat::<f32, F16>(single, mode), (a, 0));
            assert_eq!(reformat::<f64, F16>(double, mode), (a, 0));
        }
    }
}

/// 1 + 2^-11 + 2^-40: a single between would round it to a tie, and that to even.
#[test]
fn doubles_are_rounded_to_halves_once() {
    let value = 1.0 + 1.0 / 2048.0 + 1.0 / (1u64 << 40) as f64;
    let mode = Rounding::NearestEven;
    assert_eq!(reformat::<f64, F16>(value.to_bits(), mode), (ONE + 1, NX), "straight");
    let (single, _) = f64_to_f32(value.to_bits(), mode);
    assert_eq!(reformat::<f32, F16>(single, mode), (ONE, NX), "by way of a single");
}

#[test]
fn integers_overflow_halves() {
    let nearest = Rounding::NearestEven;
    assert_eq!(half::from_w(65519, nearest), (0x7bff, NX));
    assert_eq!(half::from_w(65520, nearest), (INFINITY, OF | NX));
    assert_eq!(half::from_lu(1 << 63, nearest), (INFINITY, OF | NX));
    assert_eq!(half::from_lu(1 << 63, Rounding::Zero), (0x7bff, OF | NX));
    assert_eq!(half::from_l(1 << 63, nearest), (INFINITY | 0x8000, OF | NX));
    assert_eq!(half::from_wu(0xffff_ffff_8000_0001, Rounding::Down).1, OF | NX);
    assert_eq!(half::from_w(0xffff_ffff, nearest), (0xbc00, 0));
}

#[test]
fn halves_are_boxed_in_48_ones() {
    assert_eq!(half::unbox(half::nan_box(ONE)), ONE);
    assert_eq!(half::unbox(nan_box(ONE.into())), F16::CANONICAL_NAN);
    assert_eq!(unbox(half::nan_box(ONE)), 0xffff_3c00, "a NaN");
    assert_eq!(classify::<F16>(1), 1 << 5);
    assert_eq!(classify::<F16>(SIGNALING), 1 << 8);
    assert_eq!(classify::<F16>(INFINITY | F16::SIGN), 1 << 0);
}

#[test]
fn halves_compare() {
    assert_eq!(lt::<F16>(0x8000, 0), (false, 0));
    assert_eq!(eq::<F16>(0x8000, 0), (true, 0));
    assert_eq!(le::<F16>(1, 2), (true, 0));
    assert_eq!(lt::<F16>(0x7e00, ONE), (false, NV));
    assert_eq!(min::<F16>(0, 0x8000), (0x8000, 0));
    assert_eq!(max::<F16>(0x7e00, ONE), (ONE, 0));
    assert_eq!(max::<F16>(0x8001, SIGNALING), (0x8001, NV));
}

#[test]
fn quiet_comparisons_are_invalid_for_signaling_nans_alone() {
    let (one, quiet, signaling) = (1.0f64.to_bits(), f64::CANONICAL_NAN, 0x7ff0_0000_0000_0001);
    assert_eq!(leq::<f64>(one, one), (true, 0));
    assert_eq!(ltq::<f64>(one, one), (false, 0));
    assert_eq!(ltq::<f64>(0, one), (true, 0));
    assert_eq!(leq::<f64>(one, quiet), (false, 0));
    assert_eq!(ltq::<f64>(signaling, one), (false, NV));
}

#[test]
fn minimum_and_maximum_that_propagate_nans() {
    let (one, quiet, signaling) = (1.0f32.to_bits(), 0xffc0_0001, 0x7f80_0001);
    assert_eq!(minm::<f32>(one, 0), (0, 0));
    assert_eq!(minm::<f32>(1 << 31, 0), (1 << 31, 0));
    assert_eq!(maxm::<f32>(1 << 31, 0), (0, 0));
    assert_eq!(minm::<f32>(one, quiet), (f32::CANONICAL_NAN, 0));
    assert_eq!(maxm::<f32>(signaling, one), (f32::CANONICAL_NAN, NV));
}

#[test]
fn rounding_to_integers_within_a_format() {
    let nearest = Rounding::NearestEven;
    let f = |value: f64| value.to_bits();
    assert_eq!(round::<f64>(f(2.5), nearest, 0), (f(2.0), 0));
    assert_eq!(round_inexact::<f64>(f(2.5), nearest, 0), (f(2.0), NX));
    assert_eq!(round_inexact::<f64>(f(-0.25), Rounding::Up, 0), (f(-0.0), NX));
    assert_eq!(round_inexact::<f64>(f(-0.0), Rounding::Down, 0), (f(-0.0), 0));
    assert_eq!(round_inexact::<f64>(f(1e300), Rounding::Up, 0), (f(1e300), 0));
    assert_eq!(round::<f64>(f(f64::MIN_POSITIVE), Rounding::Up, 0), (f(1.0), 0));
    assert_eq!(round::<f64>(f(-f64::INFINITY), nearest, 0), (f(-f64::INFINITY), 0));
    let signaling = 0x7ff0_0000_0000_0001;
    assert_eq!(round::<f64>(signaling, nearest, 0), (f64::CANONICAL_NAN, NV));
    // The largest half with a fraction, 1023.5, goes to the next power of two.
    assert_eq!(round::<F16>(0x63ff, nearest, 0), (0x6400, 0));
}

#[test]
fn modular_conversion() {
    let convert = |value: f64| modular_w(value.to_bits());
    let two = |exponent| 2f64.powi(exponent);
    assert_eq!(convert(-1.5), (u64::MAX, NX));
    assert_eq!(convert(two(31)), (0xffff_ffff_8000_0000, NV));
    assert_eq!(convert(two(32) + 5.75), (5, NV));
    assert_eq!(convert(-two(32) - 5.75), (-5i64 as u64, NV));
    assert_eq!(convert(two(52) + 1.0), (1, NV));
    assert_eq!(convert(two(83) + two(31)), (0xffff_ffff_8000_0000, NV));
    assert_eq!(convert(two(84)), (0, NV));
    assert_eq!(convert(f64::INFINITY), (0, NV));
    assert_eq!(convert(f64::NAN), (0, NV));
    assert_eq!(convert(-2147483648.5), (0xffff_ffff_8000_0000, NX));
    assert_eq!(convert(-0.0), (0, 0));
}

#[test]
fn constants_in_every_format() {
    for number in 0..32 {
        let it = FliConstant::numbered(number);
        let [h, s, d] = [
            F16::from_bits(constant::<F16>(it)).widen(),
            f32::from_bits(constant::<f32>(it)).into(),
            f64::from_bits(constant::<f64>(it)),
        ];
        match it {
            FliConstant::Value(65536.0) => assert_eq!((h, s, d), (f64::INFINITY, 65536.0, 65536.0)),
            FliConstant::Value(value) => assert_eq!((h, s, d), (value, value, value)),
            FliConstant::Infinity => assert_eq!((h, s, d), (d, d, f64::INFINITY)),
            FliConstant::Nan => assert_eq!(constant::<F16>(it), 0x7e00),
            FliConstant::MinPositive => {
                let smallest = (2f64.powi(-14), f32::MIN_POSITIVE.into(), f64::MIN_POSITIVE);
                assert_eq!((h, s, d), smallest);
            }
        }
    }
}
