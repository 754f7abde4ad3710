//! Digests of the integer path's results and flags. `digests.txt` was made by this very code with
//! `soft` being a thin layer over Berkeley SoftFloat 3e in its RISC-V specialisation (crate
//! softfloat-wrapper 0.3.4, feature `riscv`; its own C sources for half precision and rounding to integers),
//! which is no dependency because its build needs CMake. Renew the file in the same way if the operands or
//! operations here change.

use super::operands::{Sample, pair};
use super::*;

const CASES: u32 = 4000;

/// FNV-1a.
struct Digest(u64);

impl Digest {
    fn add(&mut self, result: impl Into<i128>, flags: Flags) {
        for byte in result.into().to_le_bytes().into_iter().chain([flags]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

struct Operands<F: Format> {
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    signed: i64,
    unsigned: u64,
}

impl<F: Sample> Operands<F> {
    fn new(random: &mut Random) -> Self {
        let (a, b) = pair::<F>(random);
        // The sum of the product and this is often zero or a rounding error.
        let product = soft::mul::<F>(a, b, Rounding::Zero).0;
        let opposite = F::near(product ^ F::SIGN, 1);
        Self {
            a,
            b,
            c: if random.below(2) == 0 { opposite } else { F::sample(random) },
            signed: (random.next() as i64) >> random.below(64),
            unsigned: random.next() >> random.below(64),
        }
    }
}

/// Adds one line for each operation and rounding mode.
fn write_digests<F: Sample<Bits: Into<i128>>>(format: &str, lines: &mut String) {
    for mode in Rounding::ALL {
        let mut random = Random(mode as u64);
        macro_rules! digest {
            ($($operation:ident |$o:ident| $($operand:expr),+;)*) => {$(
                let mut digest = Digest(0xcbf2_9ce4_8422_2325);
                for _ in 0..CASES {
                    let $o = Operands::<F>::new(&mut random);
                    let (result, flags) = soft::$operation::<F>($($operand,)+ mode);
                    digest.add(result, flags);
                }
                let operation = stringify!($operation);
                lines.push_str(&format!("{format} {operation} {mode:?} {:016x}\n", digest.0));
            )*};
        }
        digest! {
            add |o| o.a, o.b;
            sub |o| o.a, o.b;
            mul |o| o.a, o.b;
            div |o| o.a, o.b;
            sqrt |o| o.a;
            fma |o| o.a, o.b, o.c;
            to_i32 |o| o.a;
            to_u32 |o| o.a;
            to_i64 |o| o.a;
            to_u64 |o| o.a;
            from_i64 |o| o.signed;
            from_u64 |o| o.unsigned;
            round |o| o.a;
        }
    }
}

/// From half precision, and to it: values that it has, others halfway between two of them or a bit off, and any.
fn half_conversions(lines: &mut String) {
    for mode in Rounding::ALL {
        let mut random = Random(mode as u64);
        let mut digests = [(); 4].map(|()| Digest(0xcbf2_9ce4_8422_2325));
        for _ in 0..CASES {
            let half = F16::sample(&mut random);
            let (single, single_flags) = soft::reformat::<F16, f32>(half, mode);
            let (double, double_flags) = soft::reformat::<F16, f64>(half, mode);
            digests[0].add(single, single_flags);
            digests[1].add(double, double_flags);
            let (halves, bits) = (random.below(3), random.below(3) as i64 - 1);
            let single = f32::near(single, (halves << 12) as i64 + bits);
            let double = f64::near(double, (halves << 41) as i64 + bits);
            for single in [single, f32::sample(&mut random)] {
                let (result, flags) = soft::reformat::<f32, F16>(single, mode);
                digests[2].add(result, flags);
            }
            for double in [double, f64::sample(&mut random)] {
                let (result, flags) = soft::reformat::<f64, F16>(double, mode);
                digests[3].add(result, flags);
            }
        }
        for (name, digest) in
            ["f16 to_f32", "f16 to_f64", "f32 to_f16", "f64 to_f16"].iter().zip(digests)
        {
            lines.push_str(&format!("{name} {mode:?} {:016x}\n", digest.0));
        }
    }
}

#[test]
fn integer_path_agrees_with_berkeley_softfloat() {
    let mut lines = String::new();
    write_digests::<F16>("f16", &mut lines);
    write_digests::<f32>("f32", &mut lines);
    write_digests::<f64>("f64", &mut lines);
    for mode in Rounding::ALL {
        let mut random = Random(mode as u64);
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        for _ in 0..CASES {
            // Around the values that single precision has, and any.
            let narrow = f32::from_bits(f32::sample(&mut random));
            let near = f64::near(f64::from(narrow).to_bits(), (random.below(3) << 28) as i64);
            for wide in [near, f64::sample(&mut random)] {
                let (result, flags) = soft::reformat::<f64, f32>(wide, mode);
                digest.add(result, flags);
            }
        }
        lines.push_str(&format!("f64 to_f32 {mode:?} {:016x}\n", digest.0));
    }
    half_conversions(&mut lines);
    assert_eq!(lines, include_str!("digests.txt"));
}
