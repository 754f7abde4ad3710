//! The profile error and the part of it that is due to sampling alone, as [`profile::profile_error`] and
//! [`profile::sampling_error`] define them, over symbols that are already summed.

use profile::mean_deviation;

use super::columns::LevelError;

/// The totals that are compared, of one process or of many.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    /// The Oracle's total weight.
    pub oracle: u64,
    /// The profile's total weight. It may exceed the sum of its symbols' weights (samples at unknown addresses): that part is
    /// wrong.
    pub profile: u64,
    pub samples: f64,
}

/// The Oracle's weights per symbol of a process.
pub(super) struct Truth {
    weights: Vec<u64>,
    /// The distinct weights, ascending: far fewer than symbols.
    distinct: Vec<u64>,
    /// Index into `distinct` per symbol.
    which: Vec<u32>,
}

impl Truth {
    pub fn new(weights: Vec<u64>) -> Self {
        let mut distinct = weights.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let which = |weight| distinct.partition_point(|other| other < weight) as u32;
        Self { which: weights.iter().map(which).collect(), distinct, weights }
    }
}

/// Sums over the symbols of one or more processes.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// Sum of the weights that agree, each side scaled by the other's total: integers, so that the error of equal distributions
    /// is exactly 0.
    correct: u128,
    scatter: f64,
}

impl Sums {
    /// Adds a process: the weights of the same symbols, in the same order.
    pub fn add(&mut self, whole: &Whole, truth: &Truth, profile: &[u64]) {
        let (oracle, found) = (u128::from(whole.oracle), u128::from(whole.profile));
        let correct = truth.weights.iter().zip(profile).map(|(weight, profile)| {
            (u128::from(*weight) * found).min(u128::from(*profile) * oracle)
        });
        self.correct += correct.sum::<u128>();
        let n = whole.samples.round();
        if whole.oracle == 0 || n < 1.0 {
            return;
        }
        let deviation = |weight: &u64| mean_deviation(n, *weight as f64 / whole.oracle as f64);
        let deviations: Vec<f64> = truth.distinct.iter().map(deviation).collect();
        let scatter = truth.which.iter().map(|which| deviations[*which as usize]);
        self.scatter = scatter.fold(self.scatter, |sum, deviation| sum + deviation);
    }

    /// Returns the measured error and the error by sampling alone.
    pub fn error(&self, whole: &Whole) -> LevelError {
        LevelError { error: self.measured(whole), sampling: self.sampling(whole) }
    }

    /// `e = (C_total - C_correct) / C_total`, with both totals scaled to 1: half the L1 distance. A profile without
    /// samples is all wrong.
    fn measured(&self, whole: &Whole) -> f64 {
        if whole.oracle == 0 {
            return 0.0;
        }
        if whole.profile == 0 {
            return 1.0;
        }
        let total = u128::from(whole.oracle) * u128::from(whole.profile);
        total.saturating_sub(self.correct) as f64 / total as f64
    }

    /// The expected error of as many random samples of the Oracle's own distribution.
    fn sampling(&self, whole: &Whole) -> f64 {
        let n = whole.samples.round();
        if whole.oracle == 0 {
            return 0.0;
        }
        if n < 1.0 {
            return 1.0;
        }
        (self.scatter / (2.0 * n)).clamp(0.0, 1.0)
    }
}

/// One of two profiles that are compared with each other: weights of the same symbols, in the same order.
pub(super) struct Side {
    pub weights: Vec<u64>,
    /// Total weight, which may exceed the sum of `weights`, as [`Whole::profile`] may.
    pub total: u64,
    pub samples: f64,
}

/// The error between two profiles, and what is expected if both are samples of one distribution, whichever that is: of the
/// samples that a symbol has in both together, each is the first profile's by the same chance.
pub(super) fn between(one: &Side, other: &Side) -> LevelError {
    let (n, m) = (one.samples.round(), other.samples.round());
    if one.total == 0 || other.total == 0 || n < 1.0 || m < 1.0 {
        return LevelError { error: 1.0, sampling: 1.0 };
    }
    let pairs = || one.weights.iter().copied().zip(other.weights.iter().copied());
    let (first, second) = (u128::from(one.total), u128::from(other.total));
    let correct = pairs().map(|(a, b)| (u128::from(a) * second).min(u128::from(b) * first));
    let total = first * second;
    let wrong = total.saturating_sub(correct.sum());
    let scatter = pairs().map(|(a, b)| {
        let samples = n * a as f64 / one.total as f64 + m * b as f64 / other.total as f64;
        mean_deviation(samples.ceil(), n / (n + m))
    });
    let sampling = scatter.sum::<f64>() * (1.0 / n + 1.0 / m) / 2.0;
    LevelError { error: wrong as f64 / total as f64, sampling: sampling.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(oracle: &[u64], profile: &[u64], whole: Whole) -> LevelError {
        let mut sums = Sums::default();
        sums.add(&whole, &Truth::new(oracle.to_vec()), profile);
        sums.error(&whole)
    }

    fn of(oracle: &[u64], profile: &[u64]) -> f64 {
        let whole =
            Whole { oracle: oracle.iter().sum(), profile: profile.iter().sum(), samples: 0.0 };
        error(oracle, profile, whole).error
    }

    #[test]
    fn half_the_distance_of_the_distributions() {
        assert_eq!(of(&[1, 3], &[25, 75]), 0.0);
        assert_eq!(of(&[1, 0], &[0, 5]), 1.0);
        assert!((of(&[1, 1], &[1, 3]) - 0.25).abs() < 1e-12);
        assert_eq!(of(&[1, 1], &[0, 0]), 1.0);
        assert_eq!(of(&[0, 0], &[1, 0]), 0.0);
    }

    #[test]
    fn two_profiles_of_one_distribution_differ_by_what_is_expected() {
        let side = |weights: &[u64]| Side {
            weights: weights.to_vec(),
            total: weights.iter().sum(),
            samples: weights.iter().sum::<u64>() as f64,
        };
        // One sample each of two symbols: in the same one or not.
        let error = between(&side(&[1, 0]), &side(&[0, 1]));
        assert!((error.error - 1.0).abs() < 1e-9 && (error.sampling - 1.0).abs() < 1e-9);
        let error = between(&side(&[1, 0]), &side(&[1, 0]));
        assert_eq!(error.error, 0.0);
        assert!((error.sampling - 0.5).abs() < 1e-9);
        let mut state = 1u64;
        let mut drawn = |samples: u64| {
            let mut weights = vec![0; 40];
            for _ in 0..samples {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
                weights[(40.0 * uniform * uniform) as usize] += 1;
            }
            side(&weights)
        };
        let (mut found, mut expected) = (0.0, 0.0);
        for _ in 0..300 {
            let error = between(&drawn(300), &drawn(100));
            found += error.error;
            expected += error.sampling;
        }
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    }

    #[test]
    fn unknown_addresses_count_as_wrong() {
        let whole = Whole { oracle: 10, profile: 8, samples: 0.0 };
        assert!((error(&[10], &[6], whole).error - 0.25).abs() < 1e-12);
    }

    #[test]
    fn sampling_error_falls_with_the_root_of_the_samples() {
        let weights = vec![1u64; 100];
        let at = |samples| {
            let whole = Whole { oracle: 100, profile: 0, samples };
            error(&weights, &[], whole).sampling
        };
        assert_eq!(at(0.0), 1.0);
        assert!(at(1.0) > 0.98);
        assert!((at(40_000.0) / at(160_000.0) - 2.0).abs() < 0.01);
    }
}
