//! Estimates from units, with intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Unit;

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

impl Estimate {
    /// Returns the cycles for each instruction of a region of `instructions`, as a ratio of sums (Cochran, *Sampling Techniques*, 6.4).
    /// `None` without two units.
    pub(crate) fn of_ratio(units: &[Unit], instructions: u64) -> Option<Self> {
        let count = units.len() as f64;
        if units.len() < 2 {
            return None;
        }
        let (timed, cycles) = units.iter().fold((0, 0), |(timed, cycles), unit| {
            (timed + unit.instructions, cycles + unit.cycles)
        });
        let value = cycles as f64 / timed as f64;
        let residual = |unit: &Unit| unit.cycles as f64 - value * unit.instructions as f64;
        let squares: f64 = units.iter().map(|unit| residual(unit).powi(2)).sum();
        let mean = timed as f64 / count;
        // What is timed has no error.
        let rest = 1.0 - timed as f64 / (instructions.max(timed)) as f64;
        let error = (rest * squares / (count - 1.0) / count).sqrt() / mean;
        let interval =
            |confidence| Interval { half_width: error * student(confidence, count - 1.0) };
        Some(Self { value, within_95: interval(0.95), within_99_7: interval(0.997) })
    }

    /// Returns the estimate of a multiple.
    pub(crate) fn times(self, factor: f64) -> Self {
        let times = |interval: Interval| Interval { half_width: factor * interval.half_width };
        Self {
            value: factor * self.value,
            within_95: times(self.within_95),
            within_99_7: times(self.within_99_7),
        }
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
        let unit = |cycles| Unit { at: 0, instructions: 1000, cycles };
        let units = [unit(1000), unit(3000), unit(1000), unit(3000)];
        let estimate = Estimate::of_ratio(&units, u64::MAX).unwrap();
        // Standard deviation 2/√3, divided by √4.
        let error = 2.0 / 3f64.sqrt() / 2.0;
        assert_eq!(estimate.value, 2.0);
        assert!((estimate.within_95.half_width / (3.1824 * error) - 1.0).abs() < 1e-3);
        assert_eq!(Estimate::of_ratio(&units, 4000).unwrap().within_95.half_width, 0.0);
        assert_eq!(Estimate::of_ratio(&units[..1], 4000), None);
    }
}
