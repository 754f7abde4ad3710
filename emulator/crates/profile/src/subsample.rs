//! Subsamples of a sampled region: how much they differ says how far their sum is off by chance.

use serde::{Deserialize, Serialize};

use crate::{CycleStacks, Estimate};

/// Number of subsamples of a region that has as many units.
pub(crate) const SUBSAMPLES: usize = 32;

/// What the Oracle charged in some of the units of a sampled region.
///
/// The units are dealt out to the subsamples in turn, so that each subsample covers the region as all units do: *interpenetrating
/// subsamples* (Wolter, *Introduction to Variance Estimation*, 2.4 and 8.2). What is computed of each of them can be computed of all, and
/// differs between them by chance alone, whatever it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subsample {
    /// Instructions that committed in the units.
    pub instructions: u64,
    /// The Oracle's cycle stacks of the units.
    pub stacks: CycleStacks,
}

/// Returns the ratio of two sums over a region, of both of which each subsample has a part; `None` without two subsamples.
pub fn ratio_of_subsamples(part: &[u64], whole: &[u64]) -> Option<Estimate> {
    let parts = part.iter().zip(whole).map(|(part, whole)| (*part as f64, *whole as f64));
    let estimate = Estimate::of_ratio(parts, 1.0)?;
    estimate.value.is_finite().then_some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, from 0 to 1.
    fn random(state: &mut u64) -> f64 {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as f64 / f64::from(1u32 << 31)
    }

    /// Units of which each has cycles of its own, a part of which is a function's; dealt out to subsamples.
    fn sampled(state: &mut u64, units: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut part, mut whole) = (vec![0; SUBSAMPLES], vec![0; SUBSAMPLES]);
        for unit in 0..units {
            let cycles = 1000.0 + 9000.0 * random(state);
            // In a quarter of the units the function takes most of the time.
            let share = if random(state) < 0.25 { 0.8 } else { 0.1 * random(state) };
            whole[unit % SUBSAMPLES] += cycles as u64;
            part[unit % SUBSAMPLES] += (share * cycles) as u64;
        }
        (part, whole)
    }

    #[test]
    fn intervals_hold_as_often_as_they_say() {
        let state = &mut 1;
        let truth = 0.25 * 0.8 + 0.75 * 0.05;
        let (mut held_95, mut held_99_7) = (0, 0);
        for _ in 0..4000 {
            let (part, whole) = sampled(state, 300);
            let estimate = ratio_of_subsamples(&part, &whole).unwrap();
            let error = (estimate.value - truth).abs();
            held_95 += usize::from(error <= estimate.margin().within_95);
            held_99_7 += usize::from(error <= estimate.margin().within_99_7);
        }
        assert!((3740..=3860).contains(&held_95), "{held_95} of 4000");
        assert!((3960..=4000).contains(&held_99_7), "{held_99_7} of 4000");
    }

    #[test]
    fn what_does_not_differ_has_no_error() {
        let estimate = ratio_of_subsamples(&[1, 2, 3], &[2, 4, 6]).unwrap();
        assert_eq!((estimate.value, estimate.margin().within_99_7), (0.5, 0.0));
        assert_eq!(ratio_of_subsamples(&[1], &[2]), None);
        assert_eq!(ratio_of_subsamples(&[0, 0], &[0, 0]), None);
    }
}
