//! Estimates from a sample, with their confidence intervals.
//!
//! An interval covers the sampling error alone. The error of a unit that is timed from another state than it would have in a whole run comes on top.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimate. Its intervals are those of chance alone: what the state is off in which units begin comes on top.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval that holds the true value for 95 % of seeds.
    pub within_95: Interval,
    /// The interval that holds the true value for 99.7 % of seeds.
    pub within_99_7: Interval,
}

/// Sums over units, each of which has a part and a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioSums {
    /// Number of units.
    pub units: f64,
    /// Sum of the parts.
    pub part: f64,
    /// Sum of the wholes.
    pub whole: f64,
    /// Sum of the squares of the parts.
    pub part_squares: f64,
    /// Sum of the squares of the wholes.
    pub whole_squares: f64,
    /// Sum of the products of part and whole.
    pub products: f64,
}

/// A unit that was drawn from a stratum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StratumUnit {
    /// Number of the stratum.
    pub stratum: u64,
    /// Number of units of the stratum that this one stands for, with itself.
    pub stands_for: f64,
    /// What the unit has of the first sum.
    pub part: f64,
    /// What the unit has of the second sum.
    pub whole: f64,
}

/// Degrees of freedom of a variance by successive differences, for each difference.
const FREEDOM_OF_DIFFERENCES: f64 = 2.0 / 3.0;

/// What the variance of a stratum's units is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviations {
    /// From how far each unit is off the stratum's mean. A drift within the stratum makes the interval wider than it need be, which suits strata of few units.
    FromMean,
    /// From the differences between successive units, if each unit was drawn from the same number of successive places (*successive differences*:
    /// Wolter, *Introduction to Variance Estimation*, 8.2). A slow drift within the stratum adds nothing.
    Successive,
}

impl Deviations {
    /// Returns the degrees of freedom that each unit of a stratum adds, except one unit.
    fn freedom(self) -> f64 {
        match self {
            Self::FromMean => 1.0,
            Self::Successive => FREEDOM_OF_DIFFERENCES,
        }
    }
}

/// An interval around an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Interval {
    /// Distance of both ends from the estimate.
    pub half_width: f64,
}

/// Margins of error of an estimate: how far it may be off by chance, either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Margin {
    /// The estimate is off by no more for 95 % of seeds.
    pub within_95: f64,
    /// The estimate is off by no more for 99.7 % of seeds.
    pub within_99_7: f64,
}

impl Estimate {
    /// Returns the ratio of two sums over units, each of which has a part of both (Cochran, *Sampling Techniques*, 6.4). `rest` is the share of the
    /// whole that is in no unit: what is in units is known exactly (finite-population correction). `None` without two units.
    pub fn of_ratio(units: impl Iterator<Item = (f64, f64)> + Clone, rest: f64) -> Option<Self> {
        let count = units.clone().count() as f64;
        let (part, whole) =
            units.clone().fold((0.0, 0.0), |sums, unit| (sums.0 + unit.0, sums.1 + unit.1));
        let value = part / whole;
        let squares: f64 = units.map(|(part, whole)| (part - value * whole).powi(2)).sum();
        Self::of_squares(value, squares, (count, whole), rest)
    }

    /// Returns the ratio as [`Self::of_ratio`] does, from sums over the units.
    pub fn of_sums(sums: &RatioSums, rest: f64) -> Option<Self> {
        let RatioSums { units, part, whole, part_squares, whole_squares, products } = *sums;
        let value = part / whole;
        // The square of (part - value * whole), summed up; rounding may leave less than nothing.
        let squares = part_squares - 2.0 * value * products + value * value * whole_squares;
        Self::of_squares(value, squares.max(0.0), (units, whole), rest)
    }

    /// Returns the ratio of two sums over strata, of each of which some units were drawn (Cochran, *Sampling Techniques*, 5.5 and 6.11). `None` without two units, or if no stratum
    /// has two of them. Where a stratum has one unit that stands for more than itself, the others' variance is taken for its own.
    ///
    /// The units of each stratum must be in the order of their places.
    pub fn of_strata(units: &[StratumUnit], deviations: Deviations) -> Option<Self> {
        let (part, whole) = units.iter().fold((0.0, 0.0), |sums, unit| {
            (sums.0 + unit.stands_for * unit.part, sums.1 + unit.stands_for * unit.whole)
        });
        if whole <= 0.0 {
            return None;
        }
        let value = part / whole;
        let mut strata: BTreeMap<u64, Vec<&StratumUnit>> = BTreeMap::new();
        units.iter().for_each(|unit| strata.entry(unit.stratum).or_default().push(unit));
        let off = |unit: &StratumUnit| unit.part - value * unit.whole;
        let squares = |units: &[&StratumUnit]| match deviations {
            Deviations::FromMean => {
                let mean = units.iter().map(|unit| off(unit)).sum::<f64>() / units.len() as f64;
                units.iter().map(|unit| (off(unit) - mean).powi(2)).sum::<f64>()
            }
            Deviations::Successive => {
                let pairs = units.windows(2).map(|pair| (off(pair[1]) - off(pair[0])).powi(2));
                pairs.sum::<f64>() / 2.0
            }
        };
        let pooled: f64 = strata.values().map(|units| squares(units)).sum();
        let freedom = (units.len() - strata.len()) as f64;
        if freedom < 1.0 {
            return None;
        }
        // The variance of each stratum's part, and what its square adds to the inverse of the degrees of freedom (Satterthwaite).
        let (mut variance, mut inverse) = (0.0, 0.0);
        for units in strata.values() {
            let drawn = units.len() as f64;
            let (of_one, freedom) = match units.len() {
                1 => (pooled / freedom, freedom),
                _ => {
                    (squares(units) / (drawn - 1.0), 1f64.max((drawn - 1.0) * deviations.freedom()))
                }
            };
            // Only the unit itself is known of all the units that it stands for.
            let unknown =
                units.iter().map(|unit| unit.stands_for * (unit.stands_for - 1.0).max(0.0));
            let of_stratum = of_one * unknown.sum::<f64>();
            variance += of_stratum;
            inverse += of_stratum * of_stratum / freedom;
        }
        let freedom = if inverse > 0.0 { variance * variance / inverse } else { freedom };
        let error = variance.sqrt() / whole;
        Some(Self::of_standard_error(value, error, freedom.max(1.0)))
    }

    /// Returns a ratio of two sums over `count` units, the second of which is `whole`, from the sum of the units' squared residuals.
    fn of_squares(value: f64, squares: f64, (count, whole): (f64, f64), rest: f64) -> Option<Self> {
        if count < 2.0 || whole <= 0.0 {
            return None;
        }
        let error = (rest * squares / (count - 1.0) / count).sqrt() / (whole / count);
        Some(Self::of_standard_error(value, error, count - 1.0))
    }

    /// Returns an estimate with a standard error that was estimated with `freedom` degrees of freedom.
    pub(crate) fn of_standard_error(value: f64, error: f64, freedom: f64) -> Self {
        let interval = |confidence| Interval { half_width: error * student(confidence, freedom) };
        Self { value, within_95: interval(0.95), within_99_7: interval(0.997) }
    }

    /// Returns the estimate of a multiple.
    pub fn times(self, factor: f64) -> Self {
        let times = |interval: Interval| Interval { half_width: factor * interval.half_width };
        Self {
            value: factor * self.value,
            within_95: times(self.within_95),
            within_99_7: times(self.within_99_7),
        }
    }

    /// Returns the margins of error.
    pub fn margin(self) -> Margin {
        Margin { within_95: self.within_95.half_width, within_99_7: self.within_99_7.half_width }
    }
}

impl Margin {
    /// Returns the margins of a value with a standard error that was estimated with `freedom` degrees of freedom.
    pub(crate) fn of_standard_error(error: f64, freedom: f64) -> Self {
        Self {
            within_95: error * student(0.95, freedom),
            within_99_7: error * student(0.997, freedom),
        }
    }
}

/// Returns the half width of a two-sided confidence interval in standard errors, by Student's t distribution with `freedom` degrees of freedom.
fn student(confidence: f64, freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom).expect("there are two units or more");
    distribution.inverse_cdf(0.5 + confidence / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        // Two-sided 95 %, from the tables of any textbook; with a million degrees of freedom the normal distribution's 99.7 %.
        for (freedom, expected) in
            [(1.0, 12.706), (2.0, 4.3027), (5.0, 2.5706), (29.0, 2.0452), (1000.0, 1.9623)]
        {
            assert!((student(0.95, freedom) / expected - 1.0).abs() < 1e-3, "{freedom}");
        }
        assert!((student(0.997, 1e6) - 2.9677).abs() < 1e-3);
        assert!(student(0.997, 29.0) > student(0.997, 300.0));
    }

    #[test]
    fn sums_say_what_units_say() {
        let units = [(7.0, 1000.0), (30.0, 3000.0), (11.0, 900.0), (0.0, 1000.0), (5.0, 1100.0)];
        let sum = |of: fn((f64, f64)) -> f64| units.into_iter().map(of).sum();
        let sums = RatioSums {
            units: 5.0,
            part: sum(|unit| unit.0),
            whole: sum(|unit| unit.1),
            part_squares: sum(|unit| unit.0 * unit.0),
            whole_squares: sum(|unit| unit.1 * unit.1),
            products: sum(|unit| unit.0 * unit.1),
        };
        let expected = Estimate::of_ratio(units.into_iter(), 0.9).unwrap();
        let found = Estimate::of_sums(&sums, 0.9).unwrap();
        assert_eq!(found.value, expected.value);
        let ratio = found.margin().within_95 / expected.margin().within_95;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        assert_eq!(Estimate::of_sums(&RatioSums { units: 1.0, ..sums }, 1.0), None);
    }

    #[test]
    fn intervals_of_strata_hold_as_often_as_they_say() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        // Two strata of 900 and 100 units, whose cycles are 1 to 2 and 10 to 30 for each instruction.
        let strata: [Vec<f64>; 2] = [
            (0..900).map(|_| 1.0 + random()).collect(),
            (0..100).map(|_| 10.0 + 20.0 * random()).collect(),
        ];
        let truth = strata.iter().flatten().sum::<f64>() / 1000.0;
        let (mut held_95, mut held_99_7, mut unstratified) = (0, 0, 0);
        for number in 0..2000 {
            let deviations =
                [Deviations::FromMean, Deviations::Successive][usize::from(number % 2 == 0)];
            let mut units = Vec::new();
            for (stratum, all) in (0..).zip(&strata) {
                for block in all.chunks(all.len() / 10) {
                    let part = block[(random() * block.len() as f64) as usize];
                    let stands_for = block.len() as f64;
                    units.push(StratumUnit { stratum, stands_for, part, whole: 1.0 });
                }
            }
            let estimate = Estimate::of_strata(&units, deviations).unwrap();
            let error = (estimate.value - truth).abs();
            held_95 += usize::from(error <= estimate.margin().within_95);
            held_99_7 += usize::from(error <= estimate.margin().within_99_7);
            let alone = units.iter().map(|unit| (unit.part, unit.whole));
            let alone = Estimate::of_ratio(alone, 1.0).unwrap();
            unstratified += usize::from((alone.value - truth).abs() <= alone.margin().within_95);
        }
        assert!((1860..=1960).contains(&held_95), "{held_95} of 2000");
        assert!(held_99_7 >= 1980, "{held_99_7} of 2000");
        // Without weights the rare stratum counts for half of all.
        assert!(unstratified < 1000, "{unstratified} of 2000");
    }

    #[test]
    fn a_drift_within_a_stratum_widens_one_interval_alone() {
        // A stratum in ten parts, of each of which one unit was drawn: it drifts from 1 to 10 cycles, and units differ by a tenth beside that.
        let units: Vec<StratumUnit> = (0..10)
            .map(|at| StratumUnit {
                stratum: 0,
                stands_for: 100.0,
                part: 1.0 + f64::from(at) + if at % 2 == 0 { 0.1 } else { 0.0 },
                whole: 1.0,
            })
            .collect();
        let width = |deviations| {
            Estimate::of_strata(&units, deviations).unwrap().margin().within_99_7
                / student(0.997, 9.0 * Deviations::freedom(deviations))
        };
        let mean = units.iter().map(|unit| unit.part).sum::<f64>() / 10.0;
        let squares: f64 = units.iter().map(|unit| (unit.part - mean).powi(2)).sum();
        let expected = (squares / 9.0 / 10.0 * 0.99).sqrt();
        assert!((width(Deviations::FromMean) / expected - 1.0).abs() < 1e-9);
        let pairs = 5.0 * 0.9f64.powi(2) + 4.0 * 1.1f64.powi(2);
        let expected = (pairs / 2.0 / 9.0 / 10.0 * 0.99).sqrt();
        assert!((width(Deviations::Successive) / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn strata_of_one_unit_borrow_the_variance_of_others() {
        let unit =
            |stratum, stands_for, part| StratumUnit { stratum, stands_for, part, whole: 1.0 };
        let single = [unit(0, 3.0, 1.0), unit(1, 2.0, 1.0)];
        assert_eq!(Estimate::of_strata(&single, Deviations::Successive), None);
        assert_eq!(Estimate::of_strata(&[], Deviations::Successive), None);
        // All units of the second stratum are known.
        let known = [unit(0, 5.0, 1.0), unit(0, 5.0, 3.0), unit(1, 1.0, 9.0)];
        let estimate = Estimate::of_strata(&known, Deviations::Successive).unwrap();
        assert!((estimate.value - 29.0 / 11.0).abs() < 1e-12);
        // s² = 2; 10² · (1 - 2/10) · 2 / 2 = 80.
        let expected = 12.706 * 80f64.sqrt() / 11.0;
        assert!((estimate.margin().within_95 / expected - 1.0).abs() < 1e-3);
        let mut borrowed = known;
        borrowed[2].stands_for = 4.0;
        let wider = Estimate::of_strata(&borrowed, Deviations::Successive).unwrap();
        assert!(wider.margin().within_95 * 14.0 > estimate.margin().within_95 * 11.0 * 0.5);
    }

    #[test]
    fn an_interval_is_as_wide_as_units_differ() {
        let units = [1000.0, 3000.0, 1000.0, 3000.0].map(|cycles| (cycles, 1000.0));
        let estimate = Estimate::of_ratio(units.into_iter(), 1.0).unwrap();
        // Standard deviation 2/√3, divided by √4.
        let error = 2.0 / 3f64.sqrt() / 2.0;
        assert_eq!(estimate.value, 2.0);
        assert!((estimate.margin().within_95 / (3.1824 * error) - 1.0).abs() < 1e-3);
        let known = Estimate::of_ratio(units.into_iter(), 0.0).unwrap();
        assert_eq!(known.margin().within_95, 0.0);
        assert_eq!(Estimate::of_ratio(units[..1].iter().copied(), 1.0), None);
    }
}
