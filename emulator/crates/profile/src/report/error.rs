//! The profile error and what sampling alone leaves of it, as [`crate::profile_error`] and
//! [`crate::sampling_error`] define them, over symbols that are already summed.

use crate::error::mean_deviation;

/// A profiler's and the Oracle's weight per symbol, the same symbols in the same order.
pub(super) struct Pair<'a> {
    pub oracle: &'a [u64],
    pub profile: &'a [u64],
}

/// `e = (C_total - C_correct) / C_total`, with both totals scaled to 1: half the L1 distance.
/// `profile_total` may exceed the sum of the weights (samples at unknown addresses): that part is
/// wrong. A profile without samples is all wrong.
pub(super) fn error<'a>(
    pairs: impl Iterator<Item = Pair<'a>>,
    oracle_total: u64,
    profile_total: u64,
) -> f64 {
    let (truth, found) = (u128::from(oracle_total), u128::from(profile_total));
    if truth == 0 {
        return 0.0;
    }
    if found == 0 {
        return 1.0;
    }
    // In integers, each side scaled by the other's total: exactly 0 for equal distributions.
    let correct: u128 = pairs
        .flat_map(|pair| pair.oracle.iter().zip(pair.profile))
        .map(|(oracle, profile)| (u128::from(*oracle) * found).min(u128::from(*profile) * truth))
        .sum();
    let total = truth * found;
    total.saturating_sub(correct) as f64 / total as f64
}

/// The expected error of `samples` random samples of the Oracle's own distribution.
pub(super) fn sampling_error<'a>(
    weights: impl Iterator<Item = &'a [u64]>,
    total: u64,
    samples: f64,
) -> f64 {
    let n = samples.round();
    if total == 0 {
        return 0.0;
    }
    if n < 1.0 {
        return 1.0;
    }
    let sum: f64 = weights
        .flatten()
        .filter(|weight| **weight != 0)
        .map(|weight| mean_deviation(n, *weight as f64 / total as f64))
        .sum();
    (sum / (2.0 * n)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(oracle: &[u64], profile: &[u64]) -> f64 {
        let totals = (oracle.iter().sum(), profile.iter().sum());
        error(
            std::iter::once(Pair { oracle, profile }),
            totals.0,
            totals.1,
        )
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
    fn unknown_addresses_count_as_wrong() {
        let pair = Pair {
            oracle: &[10],
            profile: &[6],
        };
        assert!((error(std::iter::once(pair), 10, 8) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn sampling_error_falls_with_the_root_of_the_samples() {
        let weights = vec![1u64; 100];
        let at = |n| sampling_error(std::iter::once(&weights[..]), 100, n);
        assert_eq!(at(0.0), 1.0);
        assert!(at(1.0) > 0.98);
        assert!((at(40_000.0) / at(160_000.0) - 2.0).abs() < 0.01);
    }
}
