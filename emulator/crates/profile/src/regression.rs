//! Estimates that use counts of the whole region, not of its units alone.
//!
//! A unit's part, such as its cycles, may correlate with counts, such as misses, whose sums over the whole are known. If the units have more or less
//! of the counts than their share, this tells how far their parts are off: the *regression estimator* (Cochran, *Sampling Techniques*, chapter 7).
//! The coefficients are those of a Bayesian linear regression (Gelman et al., *Bayesian Data Analysis*, 14.8). Its prior says how much a count should
//! add to the part; the fewer units there are, the more the prior counts.

use crate::{Deviations, Estimate, StratumUnit};

/// Mean of the prior of a coefficient: the share of a count's cost that adds to the part. Other work may hide none of the cost, or all of it.
const EXPECTED_SHARE: f64 = 0.5;
/// Standard deviation of the prior of a coefficient.
const SHARE_DEVIATION: f64 = 0.5;
/// Rounds of a fixed-point iteration: the coefficients follow from the residual variance, and the residual variance follows from the coefficients.
const ROUNDS: usize = 4;
/// Number of units below which coefficients are not estimated.
const LEAST_UNITS: usize = 3;

/// A unit with counts whose sums over the whole are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedUnit<const KINDS: usize> {
    /// What the unit has of the first sum.
    pub part: f64,
    /// What the unit has of the second sum.
    pub whole: f64,
    /// The unit's counts.
    pub counts: [f64; KINDS],
}

/// What is known of the whole that units were drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownCounts<const KINDS: usize> {
    /// The second sum.
    pub whole: f64,
    /// The sum of each kind of count.
    pub counts: [f64; KINDS],
    /// What one of a kind adds to the part if nothing hides it.
    pub costs: [f64; KINDS],
}

impl<const KINDS: usize> KnownCounts<KINDS> {
    /// Returns the excess of a unit by kind of count: the counts beyond the unit's share of all counts, which is proportional to its part of the
    /// second sum, times the cost of one.
    fn excess(&self, unit: &CountedUnit<KINDS>) -> [f64; KINDS] {
        std::array::from_fn(|kind| {
            let expected = self.counts[kind] / self.whole * unit.whole;
            self.costs[kind] * (unit.counts[kind] - expected)
        })
    }
}

impl Estimate {
    /// Returns the ratio of two sums over units, as [`Self::of_ratio`] does. The more the part correlates with the counts, the nearer to the truth
    /// this estimate is. All units must have about the same length.
    ///
    /// The variance is that of leave-one-out residuals: the distance of each unit from a line through the others (*HC3*: `MacKinnon` and
    /// White, 1985). Otherwise the intervals of few units would be too narrow.
    pub fn of_counted<const KINDS: usize>(
        units: &[CountedUnit<KINDS>],
        known: &KnownCounts<KINDS>,
        rest: f64,
    ) -> Option<Self> {
        let plain = || Self::of_ratio(units.iter().map(|unit| (unit.part, unit.whole)), rest);
        if units.len() < LEAST_UNITS || known.whole <= 0.0 {
            return plain();
        }
        Regression::of(units, known).and_then(|found| found.estimate(units, rest)).or_else(plain)
    }

    /// Returns the ratio of two sums over strata, as [`Self::of_strata`] does. The more the part correlates with the counts of units, the nearer to
    /// the truth this estimate is (the *combined regression estimator*: Cochran, 7.10).
    pub fn of_counted_strata<const KINDS: usize>(
        units: &[(StratumUnit, [f64; KINDS])],
        known: &KnownCounts<KINDS>,
        deviations: Deviations,
    ) -> Option<Self> {
        let parts = |part: &dyn Fn(usize, f64) -> f64| {
            let strata = units
                .iter()
                .enumerate()
                .map(|(number, (unit, _))| StratumUnit { part: part(number, unit.part), ..*unit });
            Self::of_strata(&strata.collect::<Vec<_>>(), deviations)
        };
        let plain = || parts(&|_, part| part);
        if units.len() < LEAST_UNITS || known.whole <= 0.0 {
            return plain();
        }
        let counted = units.iter().map(|(unit, counts)| CountedUnit {
            part: unit.part,
            whole: unit.whole,
            counts: *counts,
        });
        let counted: Vec<CountedUnit<KINDS>> = counted.collect();
        let Some(found) = Regression::of(&counted, known) else { return plain() };
        let of_excess: Vec<f64> =
            counted.iter().map(|unit| found.part_of_excess(unit, known)).collect();
        let estimate = parts(&|number, part| part - of_excess[number])?;
        // Leave-one-out residuals, which are the distance of each unit from a line through the others: otherwise the intervals of few units would be
        // too narrow.
        let wider = parts(&|number, part| {
            let one_minus_leverage = found.one_minus_leverage(&found.excess[number]);
            part - of_excess[number] + found.residuals[number] * (1.0 / one_minus_leverage - 1.0)
        })?;
        match estimate.value.is_finite() && estimate.value > 0.0 {
            true => Some(Self { value: estimate.value, ..wider }),
            false => plain(),
        }
    }
}

/// A regression of the units' parts on their counts: coefficients and residuals.
struct Regression<const KINDS: usize> {
    /// Excess of each unit ([`KnownCounts::excess`]), less the mean excess in proportion to the unit's length.
    excess: Vec<[f64; KINDS]>,
    mean_excess: [f64; KINDS],
    mean_whole: f64,
    /// Share of each count's cost that adds to the part.
    coefficients: [f64; KINDS],
    /// Ratio of the sums for units without an excess of counts.
    value: f64,
    residuals: Vec<f64>,
    /// Inverse of the matrix of the coefficients' normal equations, to whose diagonal `expected` was added.
    inverse: [[f64; KINDS]; KINDS],
    /// Weight of the prior: the residual variance divided by the variance of the prior.
    expected: f64,
}

impl<const KINDS: usize> Regression<KINDS> {
    /// Returns the regression over units; `None` if they do not differ.
    fn of(units: &[CountedUnit<KINDS>], known: &KnownCounts<KINDS>) -> Option<Self> {
        let count = units.len() as f64;
        let mean_whole = units.iter().map(|unit| unit.whole).sum::<f64>() / count;
        let ratio = units.iter().map(|unit| unit.part).sum::<f64>() / (mean_whole * count);
        let mut excess: Vec<[f64; KINDS]> = units.iter().map(|unit| known.excess(unit)).collect();
        let mean_excess: [f64; KINDS] =
            std::array::from_fn(|kind| excess.iter().map(|of| of[kind]).sum::<f64>() / count);
        for (excess, unit) in excess.iter_mut().zip(units) {
            for (excess, mean) in excess.iter_mut().zip(mean_excess) {
                *excess -= mean * unit.whole / mean_whole;
            }
        }
        // Residuals where each coefficient has the mean of its prior.
        let off = |unit: &CountedUnit<KINDS>| unit.part - ratio * unit.whole;
        let left = |(excess, unit): (&[f64; KINDS], &CountedUnit<KINDS>)| {
            off(unit) - EXPECTED_SHARE * excess.iter().sum::<f64>()
        };
        let left: Vec<f64> = excess.iter().zip(units).map(left).collect();
        let squares = |of: &mut dyn Iterator<Item = f64>| of.map(|off| off * off).sum::<f64>();
        let mut variance = squares(&mut units.iter().map(off))
            .min(squares(&mut left.iter().copied()))
            / (count - 1.0);
        let mut products = [[0.0; KINDS]; KINDS];
        let mut with_left = [0.0; KINDS];
        for (excess, left) in excess.iter().zip(&left) {
            for row in 0..KINDS {
                with_left[row] += excess[row] * left;
                for column in 0..KINDS {
                    products[row][column] += excess[row] * excess[column];
                }
            }
        }
        let mut found = None;
        for _ in 0..ROUNDS {
            let mut sums = products;
            let expected = variance / SHARE_DEVIATION.powi(2);
            for (kind, row) in sums.iter_mut().enumerate() {
                row[kind] += expected;
            }
            // If neither a count nor the part differs between units, the matrix has no inverse.
            let Some(inverse) = inverse(sums) else { break };
            let beyond = times(&inverse, &with_left);
            let residual = |(excess, left): (&[f64; KINDS], &f64)| left - product(excess, &beyond);
            let residuals: Vec<f64> = excess.iter().zip(&left).map(residual).collect();
            let leverage: f64 =
                excess.iter().map(|excess| product(excess, &times(&inverse, excess))).sum();
            variance = squares(&mut residuals.iter().copied()) / (count - 1.0 - leverage).max(1.0);
            let coefficients: [f64; KINDS] = beyond.map(|beyond| EXPECTED_SHARE + beyond);
            let value = ratio - product(&coefficients, &mean_excess) / mean_whole;
            found = Some((coefficients, value, residuals, inverse, expected));
        }
        let (coefficients, value, residuals, inverse, expected) = found?;
        Some(Self {
            excess,
            mean_excess,
            mean_whole,
            coefficients,
            value,
            residuals,
            inverse,
            expected,
        })
    }

    /// Returns how much the excess of a unit's counts adds to its part.
    fn part_of_excess(&self, unit: &CountedUnit<KINDS>, known: &KnownCounts<KINDS>) -> f64 {
        product(&self.coefficients, &known.excess(unit))
    }

    /// Returns one less the leverage of a unit (Cook and Weisberg, *Residuals and Influence in Regression*, 2.1). A unit draws the regression line
    /// towards itself: its residual is only this share of its distance from the line through the others.
    fn one_minus_leverage(&self, excess: &[f64; KINDS]) -> f64 {
        let own = product(excess, &times(&self.inverse, excess));
        (1.0 - 1.0 / self.residuals.len() as f64 - own).max(f64::EPSILON)
    }

    /// Returns the estimate; `None` if its value is not positive, or is not finite.
    fn estimate(&self, units: &[CountedUnit<KINDS>], rest: f64) -> Option<Estimate> {
        let count = units.len() as f64;
        let mut variance = 0.0;
        let mut freedom = count - 1.0;
        for (excess, residual) in self.excess.iter().zip(&self.residuals) {
            let turned = times(&self.inverse, excess);
            let leverage = product(excess, &turned);
            freedom -= leverage;
            let weight = 1.0 / count - product(&self.mean_excess, &turned);
            let without_itself = residual / self.one_minus_leverage(excess);
            variance += (weight * without_itself).powi(2);
        }
        // Where units do not determine a coefficient, its uncertainty is that of the prior.
        let untold = times(&self.inverse, &self.mean_excess).map(|turned| self.expected * turned);
        variance += SHARE_DEVIATION.powi(2) * product(&untold, &untold);
        let error = (rest.max(0.0) * variance).sqrt() / self.mean_whole;
        let is_sound = self.value.is_finite() && self.value > 0.0 && error.is_finite();
        is_sound.then(|| Estimate::of_standard_error(self.value, error, freedom.max(1.0)))
    }
}

fn product<const N: usize>(left: &[f64; N], right: &[f64; N]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn times<const N: usize>(matrix: &[[f64; N]; N], vector: &[f64; N]) -> [f64; N] {
    matrix.map(|row| product(&row, vector))
}

/// Returns the inverse of a symmetric matrix none of whose eigenvalues is negative, by Gauss and Jordan; `None` if it has none.
fn inverse<const N: usize>(mut matrix: [[f64; N]; N]) -> Option<[[f64; N]; N]> {
    let mut inverse: [[f64; N]; N] =
        std::array::from_fn(|row| std::array::from_fn(|column| f64::from(row == column)));
    for at in 0..N {
        let pivot = matrix[at][at];
        if pivot <= 0.0 || !pivot.is_finite() {
            return None;
        }
        matrix[at] = matrix[at].map(|value| value / pivot);
        inverse[at] = inverse[at].map(|value| value / pivot);
        let (own, own_inverse) = (matrix[at], inverse[at]);
        for row in (0..N).filter(|row| *row != at) {
            let factor = matrix[row][at];
            for column in 0..N {
                matrix[row][column] -= factor * own[column];
                inverse[row][column] -= factor * own_inverse[column];
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of numbers from 0 to 1.
    struct Random(u64);

    impl Random {
        fn share(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as f64 / f64::from(1u32 << 31)
        }
    }

    /// Returns a population of units with two counts, of which one misses rarely and much. Each adds to the part with a noise of its own.
    fn population(shares: [f64; 2], noise: f64) -> Vec<CountedUnit<2>> {
        let mut random = Random(9);
        let unit = |_| {
            let rare = if random.share() < 0.1 { 40.0 * random.share() } else { 0.0 };
            let counts = [100.0 * random.share(), rare];
            let part = 800.0 + noise * random.share() + shares[0] * 10.0 * counts[0];
            CountedUnit { part: part + shares[1] * 100.0 * counts[1], whole: 1000.0, counts }
        };
        (0..20_000).map(unit).collect()
    }

    /// Coverage of the intervals of many samples, which is how often they hold the truth, and the sums of the absolute errors of the estimates.
    #[derive(Default)]
    struct Coverage {
        held_95: u32,
        held_99_7: u32,
        off: f64,
        plain_off: f64,
    }

    impl Coverage {
        /// Takes an estimate of one sample, and that of its units alone.
        fn add(&mut self, found: Estimate, plain: Estimate, truth: f64) {
            let error = (found.value - truth).abs();
            self.held_95 += u32::from(error <= found.margin().within_95);
            self.held_99_7 += u32::from(error <= found.margin().within_99_7);
            self.off += error;
            self.plain_off += (plain.value - truth).abs();
        }
    }

    fn known(all: &[CountedUnit<2>]) -> KnownCounts<2> {
        let counts = std::array::from_fn(|kind| all.iter().map(|unit| unit.counts[kind]).sum());
        let whole = all.iter().map(|unit| unit.whole).sum();
        KnownCounts { whole, counts, costs: [10.0, 100.0] }
    }

    #[test]
    fn counts_that_tell_the_part_make_estimates_near_and_intervals_narrow_that_hold() {
        let all = population([0.3, 0.8], 40.0);
        let known = known(&all);
        let truth = all.iter().map(|unit| unit.part).sum::<f64>() / known.whole;
        for (count, nearer) in [(100, 5.0), (20, 3.0)] {
            let mut random = Random(count);
            let mut coverage = Coverage::default();
            for _ in 0..1000 {
                let unit = |_| all[(random.share() * all.len() as f64) as usize];
                let units: Vec<_> = (0..count).map(unit).collect();
                let found = Estimate::of_counted(&units, &known, 1.0).unwrap();
                let plain = units.iter().map(|unit| (unit.part, unit.whole));
                let plain = Estimate::of_ratio(plain, 1.0).unwrap();
                coverage.add(found, plain, truth);
            }
            let Coverage { held_95, held_99_7, off, plain_off } = coverage;
            assert!((935..=990).contains(&held_95), "{count}: {held_95} of 1000");
            assert!(held_99_7 >= 985, "{count}: {held_99_7} of 1000");
            assert!(plain_off / off > nearer, "{count}: {off} {plain_off}");
        }
    }

    #[test]
    fn strata_use_counts_too() {
        // A stratum of units without the rare count and one of all others, of each of which some were drawn.
        let all = population([0.3, 0.8], 40.0);
        let known = known(&all);
        let truth = all.iter().map(|unit| unit.part).sum::<f64>() / known.whole;
        let strata: [Vec<_>; 2] = [0, 1].map(|stratum| {
            let own = all.iter().filter(|unit| (unit.counts[1] > 0.0) == (stratum == 1));
            own.copied().collect()
        });
        let mut random = Random(11);
        let mut coverage = Coverage::default();
        for number in 0..1000 {
            let deviations = [Deviations::FromMean, Deviations::Successive][number % 2];
            let mut units = Vec::new();
            for (stratum, own) in (0..).zip(&strata) {
                for block in own.chunks(own.len().div_ceil(20)) {
                    let unit = block[(random.share() * block.len() as f64) as usize];
                    let (part, whole) = (unit.part, unit.whole);
                    let stands_for = block.len() as f64;
                    units.push((StratumUnit { stratum, stands_for, part, whole }, unit.counts));
                }
            }
            let found = Estimate::of_counted_strata(&units, &known, deviations).unwrap();
            let plain: Vec<_> = units.iter().map(|(unit, _)| *unit).collect();
            let plain = Estimate::of_strata(&plain, deviations).unwrap();
            coverage.add(found, plain, truth);
        }
        let Coverage { held_95, held_99_7, off, plain_off } = coverage;
        assert!((930..=985).contains(&held_95), "{held_95} of 1000");
        assert!(held_99_7 >= 985, "{held_99_7} of 1000");
        assert!(plain_off / off > 4.0, "{off} {plain_off}");
        let two: Vec<_> = [700.0, 900.0]
            .map(|part| (StratumUnit { stratum: 0, stands_for: 4.0, part, whole: 1e3 }, [1.0, 0.0]))
            .to_vec();
        let plain: Vec<_> = two.iter().map(|(unit, _)| *unit).collect();
        assert_eq!(
            Estimate::of_counted_strata(&two, &known, Deviations::FromMean),
            Estimate::of_strata(&plain, Deviations::FromMean)
        );
    }

    #[test]
    fn counts_that_tell_nothing_do_little_harm() {
        let all = population([0.0, 0.0], 400.0);
        let known = known(&all);
        let truth = all.iter().map(|unit| unit.part).sum::<f64>() / known.whole;
        let mut random = Random(4);
        let (mut off, mut plain_off) = (0.0, 0.0);
        for _ in 0..1000 {
            let unit = |_| all[(random.share() * all.len() as f64) as usize];
            let units: Vec<_> = (0..40).map(unit).collect();
            off += (Estimate::of_counted(&units, &known, 1.0).unwrap().value - truth).abs();
            let plain = units.iter().map(|unit| (unit.part, unit.whole));
            plain_off += (Estimate::of_ratio(plain, 1.0).unwrap().value - truth).abs();
        }
        assert!(off < 1.2 * plain_off, "{off} {plain_off}");
    }

    #[test]
    fn what_says_nothing_leaves_the_plain_estimate() {
        let unit = |part, count| CountedUnit { part, whole: 1000.0, counts: [count] };
        let known = KnownCounts { whole: 1e6, counts: [5000.0], costs: [10.0] };
        let plain = |units: &[CountedUnit<1>]| {
            Estimate::of_ratio(units.iter().map(|unit| (unit.part, unit.whole)), 0.9)
        };
        // All is as all else.
        let same = [unit(700.0, 5.0); 4];
        assert_eq!(Estimate::of_counted(&same, &known, 0.9), plain(&same));
        // Two units have no line.
        let two = [unit(700.0, 5.0), unit(900.0, 8.0)];
        assert_eq!(Estimate::of_counted(&two, &known, 0.9), plain(&two));
        assert_eq!(Estimate::of_counted(&two[..1], &known, 0.9), None);
        // Where no unit misses and all others do not either, the count says nothing.
        let none = KnownCounts { counts: [0.0], ..known };
        let units = [unit(700.0, 0.0), unit(900.0, 0.0), unit(800.0, 0.0)];
        let (found, plain) =
            (Estimate::of_counted(&units, &none, 0.9).unwrap(), plain(&units).unwrap());
        assert!((found.value - plain.value).abs() < 1e-12);
        assert!(found.margin().within_95 >= plain.margin().within_95);
        assert!(found.margin().within_95 < 1.3 * plain.margin().within_95);
    }

    #[test]
    fn an_exact_line_is_found() {
        let known = KnownCounts { whole: 1e6, counts: [5000.0], costs: [10.0] };
        let unit =
            |count: f64| CountedUnit { part: 500.0 + 7.0 * count, whole: 1000.0, counts: [count] };
        let units = [2.0, 9.0, 4.0, 30.0, 8.0].map(unit);
        let found = Estimate::of_counted(&units, &known, 1.0).unwrap();
        // Five misses in a thousand instructions, of seven cycles each.
        assert!((found.value - 0.535).abs() < 1e-3, "{found:?}");
        assert!(found.margin().within_95 < 5e-3, "{found:?}");
    }
}
