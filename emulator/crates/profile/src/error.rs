//! How wrong a profile is, and how wrong it must be for want of samples: one formula, for `trace evaluate` and for reports.

use commit_trace::InstId;

use crate::packed::summed;
use crate::{ProcessId, Profile};

/// The totals of two profiles that are compared, over one process or many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorTotals {
    /// The Oracle's total weight.
    pub oracle: u64,
    /// The profile's total weight. It may exceed the sum of its symbols' weights (samples at unknown addresses): that part is
    /// wrong.
    pub profile: u64,
    /// Samples of the profile; a share of a sampler's samples is no whole number.
    pub samples: f64,
}

/// The Oracle's weights by symbol, for many profiles to be compared with.
#[derive(Clone, Debug, Default)]
pub struct OracleWeights {
    weights: Vec<u64>,
    /// The distinct weights, ascending: far fewer than symbols.
    distinct: Vec<u64>,
    /// Index into `distinct` per symbol.
    which: Vec<u32>,
}

impl OracleWeights {
    /// Takes the weight of each symbol, in an order that the profiles' weights have, too.
    pub fn new(weights: Vec<u64>) -> Self {
        let mut distinct = weights.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let which = |weight| distinct.partition_point(|other| other < weight) as u32;
        Self { which: weights.iter().map(which).collect(), distinct, weights }
    }
}

/// Sums over the symbols of one or more processes, from which their error is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorSums {
    /// Sum of the weights that agree, each side scaled by the other's total: integers, so that the error of equal distributions
    /// is exactly 0.
    correct: u128,
    /// Sum of the mean deviations of random samples.
    scatter: f64,
}

impl ErrorSums {
    /// Adds a process: its weights by the Oracle, and those of the same symbols by the profile, in the same order. `totals` are of all
    /// processes that are added.
    pub fn add(&mut self, totals: &ErrorTotals, oracle: &OracleWeights, profile: &[u64]) {
        self.add_correct(totals, &oracle.weights, profile);
        self.add_scatter(totals, oracle);
    }

    /// Adds as much of a process as [`Self::measured`] needs; [`Self::sampling`] needs [`Self::add`].
    pub fn add_correct(&mut self, totals: &ErrorTotals, oracle: &[u64], profile: &[u64]) {
        let (truth, found) = (u128::from(totals.oracle), u128::from(totals.profile));
        let correct = oracle.iter().zip(profile).map(|(weight, profile)| {
            (u128::from(*weight) * found).min(u128::from(*profile) * truth)
        });
        self.correct += correct.sum::<u128>();
    }

    fn add_scatter(&mut self, totals: &ErrorTotals, oracle: &OracleWeights) {
        let n = totals.samples.round();
        if totals.oracle == 0 || n < 1.0 {
            return;
        }
        let deviation = |weight: &u64| mean_deviation(n, *weight as f64 / totals.oracle as f64);
        let deviations: Vec<f64> = oracle.distinct.iter().map(deviation).collect();
        let scatter = oracle.which.iter().map(|which| deviations[*which as usize]);
        self.scatter = scatter.fold(self.scatter, |sum, deviation| sum + deviation);
    }

    /// Returns the profile error of MICRO'21, section 4: the share of cycles that the profiler gives to the wrong symbol (0 to 1).
    /// `e = (C_total - C_correct) / C_total`. Both profiles are first scaled to the same total, so it is half the L1 distance of
    /// two distributions, and symmetric.
    ///
    /// A profile without a sample is wrong about everything, unless the Oracle is empty.
    pub fn measured(&self, totals: &ErrorTotals) -> f64 {
        if totals.oracle == 0 {
            return 0.0;
        }
        if totals.profile == 0 {
            return 1.0;
        }
        let total = u128::from(totals.oracle) * u128::from(totals.profile);
        total.saturating_sub(self.correct) as f64 / total as f64
    }

    /// Returns the error that a perfect profiler is expected to show with as many samples: each names one symbol, drawn from the
    /// Oracle's own distribution. What a profiler's error exceeds it by is its own fault. It is half the sum over symbols of
    /// E|k/n - p| with k binomial, by de Moivre's formula (near sqrt(2 p (1-p) / (pi n)) where n p is large).
    ///
    /// For profilers that split a sample over the instructions that commit together (TIP, NCI+ILP) it is an upper bound at levels
    /// where such a group has several symbols: shares of a sample scatter less than whole ones. It is one for periodic sampling
    /// too, as far as that covers a run more evenly than random draws do.
    pub fn sampling(&self, totals: &ErrorTotals) -> f64 {
        let n = totals.samples.round();
        if totals.oracle == 0 {
            return 0.0;
        }
        if n < 1.0 {
            return 1.0;
        }
        (self.scatter / (2.0 * n)).clamp(0.0, 1.0)
    }
}

/// What the Oracle says at one level, for many profiles to be compared with: its weights by symbol are summed once.
pub struct OracleLevel<S, F> {
    /// Maps an instruction of a process to its function, basic block, or itself.
    symbol: F,
    /// Symbols of `weights`, ascending.
    symbols: Vec<S>,
    weights: OracleWeights,
    /// Units in all.
    total: u64,
}

impl<S: Ord, F: FnMut(ProcessId, InstId) -> S> OracleLevel<S, F> {
    /// Takes the level at which `symbol` is the symbol of a process's instruction.
    pub fn new(oracle: &Profile, mut symbol: F) -> Self {
        let (symbols, weights) = by_symbol(oracle, &mut symbol).into_iter().unzip();
        Self { symbol, symbols, weights: OracleWeights::new(weights), total: oracle.total() }
    }

    /// Returns [`ErrorSums::measured`] of a profile.
    pub fn error(&mut self, profile: &Profile) -> f64 {
        let mut weights = vec![0; self.symbols.len()];
        let mut at = 0;
        for (symbol, units) in by_symbol(profile, &mut self.symbol) {
            at += self.symbols[at..].iter().take_while(|other| **other < symbol).count();
            if self.symbols.get(at) == Some(&symbol) {
                weights[at] = units;
            }
        }
        let totals = ErrorTotals { oracle: self.total, profile: profile.total(), samples: 0.0 };
        let mut sums = ErrorSums::default();
        sums.add_correct(&totals, &self.weights.weights, &weights);
        sums.measured(&totals)
    }

    /// Returns [`ErrorSums::sampling`] for a number of samples.
    pub fn sampling_error(&self, samples: u64) -> f64 {
        let totals = ErrorTotals { oracle: self.total, profile: 0, samples: samples as f64 };
        let mut sums = ErrorSums::default();
        sums.add_scatter(&totals, &self.weights);
        sums.sampling(&totals)
    }
}

/// Returns units per symbol, ascending by symbol.
fn by_symbol<S: Ord>(
    profile: &Profile,
    symbol: &mut impl FnMut(ProcessId, InstId) -> S,
) -> Vec<(S, u64)> {
    let weights = profile.iter();
    let weights = weights.map(|(process, inst, units)| (symbol(process, inst), units));
    summed(weights.collect())
}

/// Returns [`OracleLevel::error`] of one profile.
pub fn profile_error<S: Ord>(
    profile: &Profile,
    oracle: &Profile,
    symbol: impl FnMut(ProcessId, InstId) -> S,
) -> f64 {
    OracleLevel::new(oracle, symbol).error(profile)
}

/// Returns [`OracleLevel::sampling_error`] for one number of samples.
pub fn sampling_error<S: Ord>(
    oracle: &Profile,
    samples: u64,
    symbol: impl FnMut(ProcessId, InstId) -> S,
) -> f64 {
    OracleLevel::new(oracle, symbol).sampling_error(samples)
}

/// Returns E|k - np| of a binomial: 2 v C(n, v) p^v (1-p)^(n-v+1) with v = floor(np) + 1.
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

    fn errors(oracle: &[u64], profile: &[u64], totals: ErrorTotals) -> [f64; 2] {
        let mut sums = ErrorSums::default();
        sums.add(&totals, &OracleWeights::new(oracle.to_vec()), profile);
        [sums.measured(&totals), sums.sampling(&totals)]
    }

    fn of(oracle: &[u64], profile: &[u64]) -> f64 {
        let totals = ErrorTotals {
            oracle: oracle.iter().sum(),
            profile: profile.iter().sum(),
            samples: 0.0,
        };
        errors(oracle, profile, totals)[0]
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
        let totals = ErrorTotals { oracle: 10, profile: 8, samples: 0.0 };
        assert!((errors(&[10], &[6], totals)[0] - 0.25).abs() < 1e-12);
    }

    #[test]
    fn sampling_error_falls_with_the_root_of_the_samples() {
        let weights = vec![1u64; 100];
        let at = |samples| {
            let totals = ErrorTotals { oracle: 100, profile: 0, samples };
            errors(&weights, &[], totals)[1]
        };
        assert_eq!(at(0.0), 1.0);
        assert!(at(1.0) > 0.98);
        assert!((at(40_000.0) / at(160_000.0) - 2.0).abs() < 0.01);
    }
}
