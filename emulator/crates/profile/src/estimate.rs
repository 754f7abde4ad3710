//! Estimates from a part of what is estimated, with their intervals.
//!
//! An interval tells of chance alone: what is timed in another state than it would have comes on top.

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
    /// Returns the ratio of two sums over units, each of which has a part of both (Cochran, *Sampling Techniques*, 6.4). `rest` is the share of all that there is which is in no unit: what is known has no error. `None` without two units.
    pub fn of_ratio(units: impl Iterator<Item = (f64, f64)> + Clone, rest: f64) -> Option<Self> {
        let count = units.clone().count() as f64;
        if count < 2.0 {
            return None;
        }
        let (part, whole) =
            units.clone().fold((0.0, 0.0), |sums, unit| (sums.0 + unit.0, sums.1 + unit.1));
        let value = part / whole;
        let squares: f64 = units.map(|(part, whole)| (part - value * whole).powi(2)).sum();
        let error = (rest * squares / (count - 1.0) / count).sqrt() / (whole / count);
        let interval =
            |confidence| Interval { half_width: error * student(confidence, count - 1.0) };
        Some(Self { value, within_95: interval(0.95), within_99_7: interval(0.997) })
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

/// Returns how many standard errors a two-sided interval reaches for a confidence, by Student's t with so many degrees of freedom.
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
