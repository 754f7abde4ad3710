//! How wrong a profile is, and how wrong it must be for want of samples.

use commit_trace::InstId;

use crate::packed::summed;
use crate::{ProcessId, Profile};

/// What the Oracle says at one level, for many profiles to be compared with: its weights by symbol are summed once.
pub struct Truth<S, F> {
    /// Maps an instruction of a process to its function, basic block, or itself.
    symbol: F,
    /// Units per symbol, ascending by symbol.
    weights: Vec<(S, u64)>,
    /// Pairs of units of a symbol, ascending, and how many symbols have this many: there are far fewer pairs than symbols.
    sizes: Vec<(u64, u64)>,
    /// Units in all.
    total: u64,
}

impl<S: Ord, F: FnMut(ProcessId, InstId) -> S> Truth<S, F> {
    /// The level at which `symbol` is the symbol of a process's instruction.
    pub fn new(oracle: &Profile, mut symbol: F) -> Self {
        let weights = by_symbol(oracle, &mut symbol);
        let mut units: Vec<u64> = weights.iter().map(|(_, units)| *units).collect();
        units.sort_unstable();
        let sizes = units.chunk_by(|a, b| a == b);
        Self {
            sizes: sizes.map(|same| (same[0], same.len() as u64)).collect(),
            symbol,
            weights,
            total: oracle.total(),
        }
    }

    /// The profile error of MICRO'21, section 4: the share of cycles that the profiler gives to the
    /// wrong symbol, 0 to 1. Both profiles are first scaled to the same total, so it is half the L1
    /// distance of two distributions, and symmetric.
    ///
    /// A profile without a sample is wrong about everything, unless the other is empty too.
    pub fn error(&mut self, profile: &Profile) -> f64 {
        let (found, truth) = (u128::from(profile.total()), u128::from(self.total));
        if found == 0 || truth == 0 {
            return if found == truth { 0.0 } else { 1.0 };
        }
        // In integers, each side scaled by the other's total: exactly 0 for equal distributions.
        let mut weights = self.weights.iter();
        let mut correct = 0;
        for (symbol, units) in by_symbol(profile, &mut self.symbol) {
            while let Some((other, weight)) = weights.as_slice().first()
                && *other <= symbol
            {
                weights.next();
                if *other == symbol {
                    correct += (u128::from(units) * truth).min(u128::from(*weight) * found);
                }
            }
        }
        let total = found * truth;
        (total - correct) as f64 / total as f64
    }

    /// The error that a perfect profiler is expected to show at this level after `samples` samples: each
    /// names one symbol, drawn from the Oracle's own distribution. What a profiler's error exceeds it by
    /// is its own fault. Half the sum over symbols of E|k/n - p|, k binomial, by de Moivre's formula
    /// (near sqrt(2 p (1-p) / (pi n)) where n p is large).
    ///
    /// For profilers that split a sample over the instructions that commit together (TIP, NCI+ILP) it is
    /// an upper bound at levels where such a group has several symbols: shares of a sample scatter less
    /// than whole ones. It is one for periodic sampling too, as far as that covers a run more evenly
    /// than random draws do.
    pub fn sampling_error(&self, samples: u64) -> f64 {
        if samples == 0 {
            return if self.total == 0 { 0.0 } else { 1.0 };
        }
        let (total, n) = (self.total as f64, samples as f64);
        let scatter = self
            .sizes
            .iter()
            .map(|(units, symbols)| *symbols as f64 * mean_deviation(n, *units as f64 / total));
        scatter.sum::<f64>() / (2.0 * n)
    }
}

/// Units per symbol, ascending by symbol.
fn by_symbol<S: Ord>(
    profile: &Profile,
    symbol: &mut impl FnMut(ProcessId, InstId) -> S,
) -> Vec<(S, u64)> {
    let weights = profile.iter();
    let weights = weights.map(|(process, inst, units)| (symbol(process, inst), units));
    summed(weights.collect())
}

/// [`Truth::error`] of one profile.
pub fn profile_error<S: Ord>(
    profile: &Profile,
    oracle: &Profile,
    symbol: impl FnMut(ProcessId, InstId) -> S,
) -> f64 {
    Truth::new(oracle, symbol).error(profile)
}

/// [`Truth::sampling_error`] for one number of samples.
pub fn sampling_error<S: Ord>(
    oracle: &Profile,
    samples: u64,
    symbol: impl FnMut(ProcessId, InstId) -> S,
) -> f64 {
    Truth::new(oracle, symbol).sampling_error(samples)
}

/// E|k - np| of a binomial: 2 v C(n, v) p^v (1-p)^(n-v+1) with v = floor(np) + 1.
pub fn mean_deviation(n: f64, p: f64) -> f64 {
    let v = (n * p).floor() + 1.0;
    if p <= 0.0 || p >= 1.0 || v > n {
        return 0.0;
    }
    let ln_choose = ln_factorial(n) - ln_factorial(v) - ln_factorial(n - v);
    2.0 * v * (ln_choose + v * p.ln() + (n - v + 1.0) * (-p).ln_1p()).exp()
}

/// ln n!, by Stirling's series; exact to 10^-10 from 8 on, by the product below.
fn ln_factorial(n: f64) -> f64 {
    if n < 8.0 {
        return (2..=n as u64).map(|k| k as f64).product::<f64>().ln();
    }
    let m = 1.0 / n;
    let series = m * (1.0 / 12.0 - m * m * (1.0 / 360.0 - m * m * (1.0 / 1260.0 - m * m / 1680.0)));
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(weights: &[u64]) -> Profile {
        let mut profile = Profile::new(1);
        for (inst, units) in weights.iter().enumerate() {
            profile.add(ProcessId(0), InstId(inst as u32), *units);
        }
        profile
    }

    fn instruction(process: ProcessId, inst: InstId) -> (ProcessId, InstId) {
        (process, inst)
    }

    #[test]
    fn error_is_half_the_distance_of_the_distributions() {
        let oracle = profile(&[50, 30, 20]);
        assert_eq!(profile_error(&oracle, &oracle, instruction), 0.0);
        assert_eq!(profile_error(&profile(&[5, 3, 2]), &oracle, instruction), 0.0);
        let wrong = profile(&[40, 30, 30]);
        assert!((profile_error(&wrong, &oracle, instruction) - 0.1).abs() < 1e-12);
        assert!((profile_error(&oracle, &wrong, instruction) - 0.1).abs() < 1e-12);
        assert_eq!(profile_error(&profile(&[0, 0, 0, 7]), &oracle, instruction), 1.0);
        // At a coarser level this mistake is none.
        let block = |_, inst: InstId| inst.0.is_multiple_of(2);
        assert_eq!(profile_error(&wrong, &oracle, block), 0.0);
        assert_eq!(profile_error(&profile(&[]), &oracle, instruction), 1.0);
        assert_eq!(profile_error(&profile(&[]), &profile(&[]), instruction), 0.0);
    }

    #[test]
    fn expected_error_matches_small_cases_counted_by_hand() {
        // Two symbols of one half, one sample: always half of it is wrong.
        assert!((sampling_error(&profile(&[1, 1]), 1, instruction) - 0.5).abs() < 1e-9);
        // Two samples: (2,0), (1,1) twice, (0,2): a half, none, none, a half.
        assert!((sampling_error(&profile(&[1, 1]), 2, instruction) - 0.25).abs() < 1e-9);
        // Many: the normal approximation.
        let approximate = (2.0 * 0.25 / (std::f64::consts::PI * 1e6)).sqrt();
        let exact = sampling_error(&profile(&[1, 1]), 1_000_000, instruction);
        assert!((exact / approximate - 1.0).abs() < 1e-3);
        assert_eq!(sampling_error(&profile(&[9]), 10, instruction), 0.0);
        assert_eq!(sampling_error(&profile(&[9, 1]), 0, instruction), 1.0);
    }

    #[test]
    fn expected_error_matches_drawn_samples() {
        let weights: Vec<u64> = (1..=60).map(|k| 1_000_000 / (k * k)).collect();
        let oracle = profile(&weights);
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut at = (state >> 20) % oracle.total();
            weights
                .iter()
                .position(|w| {
                    at < *w || {
                        at -= w;
                        false
                    }
                })
                .unwrap()
        };
        let trials = 400;
        let mut sum = 0.0;
        for _ in 0..trials {
            let mut counts = vec![0; weights.len()];
            for _ in 0..200 {
                counts[draw()] += 1;
            }
            sum += profile_error(&profile(&counts), &oracle, instruction);
        }
        let (mean, expected) = (sum / 400.0, sampling_error(&oracle, 200, instruction));
        assert!((mean / expected - 1.0).abs() < 0.03, "{mean} against {expected}");
    }
}
