//! The host's FPU against the integer path, and that against digests of Berkeley SoftFloat's results.

use super::*;

mod digests;
mod half;
mod operands;

use operands::{Random, Sample, pair};

const ROUNDS: u32 = 400_000;

/// Runs a test in every rounding mode, most often in the one that has a fast path.
fn for_all_modes(seed: u64, mut test: impl FnMut(&mut Random, Rounding)) {
    let mut random = Random(seed);
    for round in 0..ROUNDS {
        let rounding = if round % 2 == 0 {
            Rounding::NearestEven
        } else {
            Rounding::ALL[random.below(5) as usize]
        };
        test(&mut random, rounding);
    }
}

/// `result` must be `expected` without sticky flags, and but for the inexact flag with it.
fn check<T: PartialEq>(result: impl Fn(Flags) -> (T, Flags), expected: (T, Flags), case: &str) {
    let (value, flags) = result(0);
    assert!(value == expected.0, "{case}: value");
    assert_eq!(flags, expected.1, "{case}: flags");
    let (value, flags) = result(NX);
    assert!(value == expected.0, "{case}: value, NX set");
    assert_eq!(flags | NX, expected.1 | NX, "{case}: flags, NX set");
}

macro_rules! against_integers {
    ($($test:ident $float:ty;)*) => {$(
        #[test]
        fn $test() {
            type F = $float;
            for_all_modes(1, |random, mode| {
                let (a, b) = pair::<F>(random);
                let case = |name| format!("{name} {a:#x} {b:#x} {mode:?}");
                check(|s| add::<F>(a, b, mode, s), soft::add::<F>(a, b, mode), &case("add"));
                check(|s| sub::<F>(a, b, mode, s), soft::sub::<F>(a, b, mode), &case("sub"));
                check(|s| mul::<F>(a, b, mode, s), soft::mul::<F>(a, b, mode), &case("mul"));
                check(|s| div::<F>(a, b, mode, s), soft::div::<F>(a, b, mode), &case("div"));
                check(|s| sqrt::<F>(a, mode, s), soft::sqrt::<F>(a, mode), &case("sqrt"));

                // Exact quotients and roots are rare among random operands.
                let (square, _) = soft::mul::<F>(a, a, Rounding::Zero);
                check(|s| sqrt::<F>(square, mode, s), soft::sqrt::<F>(square, mode), &case("a²"));
                let (p, _) = soft::mul::<F>(a, b, Rounding::Zero);
                check(|s| div::<F>(p, b, mode, s), soft::div::<F>(p, b, mode), &case("ab/b"));

                let c = match random.below(3) {
                    0 => F::near(p ^ F::SIGN, random.below(5) as i64 - 2),
                    _ => F::sample(random),
                };
                let case = |name| format!("{name} {a:#x} {b:#x} {c:#x} {mode:?}");
                let (na, nc) = (a ^ F::SIGN, c ^ F::SIGN);
                let soft = soft::fma::<F>;
                check(|s| fmadd::<F>(a, b, c, mode, s), soft(a, b, c, mode), &case("fmadd"));
                check(|s| fmsub::<F>(a, b, c, mode, s), soft(a, b, nc, mode), &case("fmsub"));
                check(|s| fnmsub::<F>(a, b, c, mode, s), soft(na, b, c, mode), &case("fnmsub"));
                check(|s| fnmadd::<F>(a, b, c, mode, s), soft(na, b, nc, mode), &case("fnmadd"));
            });
        }
    )*};
}

against_integers! {
    single_arithmetic_agrees_with_integers f32;
    double_arithmetic_agrees_with_integers f64;
}

macro_rules! conversions_against_integers {
    ($($test:ident $float:ty;)*) => {$(
        #[test]
        fn $test() {
            type F = $float;
            for_all_modes(2, |random, mode| {
                let a = F::sample(random);
                let (w, flags) = soft::to_i32::<F>(a, mode);
                assert_eq!(to_w::<F>(a, mode), (w as u64, flags), "w {a:#x} {mode:?}");
                let (wu, flags) = soft::to_u32::<F>(a, mode);
                assert_eq!(to_wu::<F>(a, mode), (wu as i32 as u64, flags), "wu {a:#x} {mode:?}");
                let (l, flags) = soft::to_i64::<F>(a, mode);
                assert_eq!(to_l::<F>(a, mode), (l as u64, flags), "l {a:#x} {mode:?}");
                assert_eq!(to_lu::<F>(a, mode), soft::to_u64::<F>(a, mode), "lu {a:#x} {mode:?}");

                let integer = random.next() >> random.below(64) << random.below(64);
                let integer = if random.below(2) == 0 { integer } else { integer.wrapping_neg() };
                let case = format!("{integer:#x} {mode:?}");
                let signed = |value| soft::from_i64::<F>(value, mode);
                assert_eq!(from_l::<F>(integer, mode), signed(integer as i64), "l {case}");
                assert_eq!(from_lu::<F>(integer, mode), soft::from_u64::<F>(integer, mode), "{case}");
                assert_eq!(from_w::<F>(integer, mode), signed((integer as i32).into()), "w {case}");
                assert_eq!(from_wu::<F>(integer, mode), signed((integer as u32).into()), "{case}");
            });
        }
    )*};
}

conversions_against_integers! {
    single_to_and_from_integers_agrees_with_integers f32;
    double_to_and_from_integers_agrees_with_integers f64;
}

#[test]
fn conversions_between_formats_agree_with_integers() {
    for_all_modes(3, |random, mode| {
        let wide = f64::sample(random);
        assert_eq!(
            f64_to_f32(wide, mode),
            soft::reformat::<f64, f32>(wide, mode),
            "{wide:#x} {mode:?}"
        );
        // Doubles in the range of single precision: singles, and a quarter, half or three quarters of the way to the next.
        let narrow = f32::sample(random);
        let (wide, _) = f32_to_f64(narrow);
        let wide = wide.wrapping_add(random.below(5) << 27);
        assert_eq!(
            f64_to_f32(wide, mode),
            soft::reformat::<f64, f32>(wide, mode),
            "{wide:#x} {mode:?}"
        );
    });
}

#[test]
fn minimum_and_maximum() {
    let (zero, minus_zero, one) = (0u64, 1 << 63, 1.0f64.to_bits());
    let (quiet, signaling) = (0xfff8_0000_0000_0001, 0x7ff0_0000_0000_0001);
    assert_eq!(min::<f64>(zero, minus_zero), (minus_zero, 0));
    assert_eq!(min::<f64>(minus_zero, zero), (minus_zero, 0));
    assert_eq!(max::<f64>(zero, minus_zero), (zero, 0));
    assert_eq!(max::<f64>(minus_zero, zero), (zero, 0));
    assert_eq!(max::<f64>(minus_zero, one), (one, 0));
    assert_eq!(min::<f64>(one, quiet), (one, 0));
    assert_eq!(max::<f64>(quiet, one), (one, 0));
    assert_eq!(min::<f64>(signaling, one), (one, NV));
    assert_eq!(max::<f64>(quiet, quiet), (f64::CANONICAL_NAN, 0));
    assert_eq!(max::<f64>(quiet, signaling), (f64::CANONICAL_NAN, NV));
}

#[test]
fn classes() {
    let classes: [u32; 10] = [
        0xff80_0000,
        0xbf80_0000,
        0x8000_0001,
        0x8000_0000,
        0,
        1,
        0x3f80_0000,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
    ];
    for (bit, value) in classes.into_iter().enumerate() {
        assert_eq!(classify::<f32>(value), 1 << bit, "{value:#x}");
    }
    assert_eq!(classify::<f64>(0xffef_ffff_ffff_ffff), 1 << 1);
    assert_eq!(classify::<f64>(0x7ff0_0000_0000_0000), 1 << 7);
}

#[test]
fn signs_and_boxes() {
    let (plus, minus) = (1.0f32.to_bits(), (-2.0f32).to_bits());
    assert_eq!(sgnj::<f32>(plus, minus), (-1.0f32).to_bits());
    assert_eq!(sgnjn::<f32>(minus, minus), 2.0f32.to_bits());
    assert_eq!(sgnjx::<f32>(minus, minus), 2.0f32.to_bits());
    assert_eq!(unbox(nan_box(plus)), plus);
    assert_eq!(unbox(plus.into()), 0x7fc0_0000);
    assert_eq!(f64::CANONICAL_NAN, 0x7ff8_0000_0000_0000);
}
