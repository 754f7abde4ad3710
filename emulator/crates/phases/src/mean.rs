//! Arithmetic of vectors, and numbers that look random.

use crate::survey::Vector;

/// A vector that others are compared with.
pub(crate) type Mean = Vec<f64>;

/// Returns the mean of vectors; no numbers of none.
pub(crate) fn mean_of<'a>(vectors: impl Iterator<Item = &'a Vector>) -> Mean {
    let (mut sum, mut count) = (Mean::new(), 0);
    for vector in vectors {
        sum.resize(vector.len(), 0.0);
        for (sum, number) in sum.iter_mut().zip(vector) {
            *sum += f64::from(*number);
        }
        count += 1;
    }
    sum.iter_mut().for_each(|sum| *sum /= f64::from(count.max(1)));
    sum
}

/// Returns a vector less another.
pub(crate) fn difference(vector: &[f32], other: &[f64]) -> Mean {
    vector.iter().zip(other).map(|(a, b)| f64::from(*a) - b).collect()
}

/// Returns the square of the distance.
pub(crate) fn squared_distance(vector: &[f32], other: &[f64]) -> f64 {
    let off = vector.iter().zip(other).map(|(a, b)| f64::from(*a) - b);
    off.map(|off| off * off).sum()
}

/// Returns the scalar product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A sequence of numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns the next number, which is less than `most`; 0 if that is 0.
    pub fn below(&mut self, most: usize) -> usize {
        ((u128::from(self.bits()) * most as u128) >> 64) as usize
    }

    /// Returns the next number from 0 up to 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}
