//! Operands that provoke exceptions.

use super::{F16, Format};

/// SplitMix64.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// An encoding of a format with `fraction` fraction and `exponent` exponent bits: often a
    /// special value, one near a limit, or one with few significant bits.
    pub(super) fn operand(&mut self, fraction: u32, exponent: u32) -> u64 {
        let max = (1 << exponent) - 1;
        let bias = max / 2;
        let ones = (1 << fraction) - 1;
        let exponent_field = match self.below(8) {
            0 => self.below(4),
            1 => max - self.below(4),
            2 | 3 => bias + self.below(8) - 4,
            4 => (bias / 2 + self.below(u64::from(fraction) * 3)).wrapping_sub(fraction.into()),
            5 => bias + self.below(80),
            _ => self.below(max + 1),
        } & max;
        let fraction_field = match self.below(8) {
            0 => 0,
            1 => ones,
            2 => (ones + 1) >> 1,
            3 => self.below(4),
            4 => ones - self.below(4),
            5 => self.next() & ones & (ones << self.below(fraction.into())),
            _ => self.next() & ones,
        };
        self.below(2) << (fraction + exponent) | exponent_field << fraction | fraction_field
    }
}

/// A format that the tests can make operands of.
pub(super) trait Sample: Format {
    fn sample(random: &mut Random) -> Self::Bits;
    /// The encoding `distance` above.
    fn near(bits: Self::Bits, distance: i64) -> Self::Bits;
}

impl Sample for F16 {
    fn sample(random: &mut Random) -> u16 {
        random.operand(10, 5) as u16
    }
    fn near(bits: u16, distance: i64) -> u16 {
        bits.wrapping_add(distance as u16)
    }
}

impl Sample for f32 {
    fn sample(random: &mut Random) -> u32 {
        random.operand(23, 8) as u32
    }
    fn near(bits: u32, distance: i64) -> u32 {
        bits.wrapping_add(distance as u32)
    }
}

impl Sample for f64 {
    fn sample(random: &mut Random) -> u64 {
        random.operand(52, 11)
    }
    fn near(bits: u64, distance: i64) -> u64 {
        bits.wrapping_add(distance as u64)
    }
}

/// Two operands; sometimes close, so that they cancel.
pub(super) fn pair<F: Sample>(random: &mut Random) -> (F::Bits, F::Bits) {
    let a = F::sample(random);
    match random.below(8) {
        0 => (a, F::near(a ^ F::SIGN, random.below(5) as i64 - 2)),
        1 => (a, F::near(a, random.below(5) as i64 - 2)),
        _ => (a, F::sample(random)),
    }
}
