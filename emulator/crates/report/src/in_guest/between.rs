//! How much two profiles differ of which neither is the truth.

use profile::mean_deviation;

use crate::columns::LevelError;

/// One of two profiles that are compared with each other: weights of the same symbols, in the same order.
pub(super) struct Side {
    pub weights: Vec<u64>,
    /// Total weight, which may exceed the sum of `weights`, as [`ErrorTotals::profile`](profile::ErrorTotals) may.
    pub total: u64,
    pub samples: f64,
}

/// Returns the error between two profiles, and what is expected if both are samples of one distribution, whichever that is: of the
/// samples that a symbol has in both together, each is the first profile's by the same chance.
pub(super) fn between(one: &Side, other: &Side) -> LevelError {
    let (n, m) = (one.samples.round(), other.samples.round());
    if one.total == 0 || other.total == 0 || n < 1.0 || m < 1.0 {
        return LevelError { error: 1.0, sampling: 1.0, margin: None };
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
    LevelError {
        error: wrong as f64 / total as f64,
        sampling: sampling.clamp(0.0, 1.0),
        margin: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
