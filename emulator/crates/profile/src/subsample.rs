//! Subsamples of a sampled region: the variance between them tells how far their sum may be off by chance.

use std::collections::BTreeMap;

use commit_trace::InstId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::oracle::UNITS_PER_CYCLE;
use crate::topdown::Slots;
use crate::{CycleStacks, Estimate, Margin, ProcessId, Profile};

/// Number of subsamples of a region that has as many units.
pub(crate) const SUBSAMPLES: usize = 32;

/// What the Oracle charged in some of the units of a sampled region.
///
/// The units are dealt out to the subsamples in turn, so that each subsample covers the region as all units do: *interpenetrating subsamples*
/// (Wolter, *Introduction to Variance Estimation*, 2.4 and 8.2). Whatever is computed of all units can be computed of each subsample, and differs
/// between subsamples by chance alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subsample {
    /// Number of units.
    pub units: u64,
    /// Instructions that committed in the units.
    pub instructions: u64,
    /// The Oracle's cycle stacks of the units.
    pub stacks: CycleStacks,
    /// Commit slots of the units by process and leaf of the top-down tree, if [`crate::Evaluator::in_detail`] asked for slots.
    pub slots: BTreeMap<ProcessId, Slots>,
}

/// A sampler's weights by subsample, process and instruction: far fewer than in its profile have any.
#[derive(Default)]
pub(crate) struct SubsampleProfiles(FxHashMap<(usize, ProcessId, InstId), u64>);

impl SubsampleProfiles {
    /// Adds what a sample weighs.
    pub(crate) fn add(&mut self, subsample: usize, process: ProcessId, inst: InstId, units: u64) {
        let sum = self.0.entry((subsample, process, inst)).or_default();
        *sum = sum.saturating_add(units);
    }

    /// Returns the profile of each subsample, up to the last that has any.
    pub(crate) fn finish(self) -> Vec<Profile> {
        let mut weights: Vec<_> = self.0.into_iter().collect();
        weights.sort_unstable();
        let count = weights.last().map_or(0, |((subsample, ..), _)| subsample + 1);
        let mut profiles = vec![Profile::new(UNITS_PER_CYCLE); count];
        for ((subsample, process, inst), units) in weights {
            profiles[subsample].add(process, inst, units);
        }
        profiles.iter_mut().for_each(Profile::cool_all);
        profiles
    }
}

/// Least number of subsamples that must have something of a whole: the variance between fewer is hardly known.
pub const LEAST_SUBSAMPLES: usize = 5;

/// Returns the ratio of two sums over a region. `part` and `whole` have both sums by subsample. `None` if fewer than five subsamples have any of the
/// whole.
pub fn ratio_of_subsamples(part: &[u64], whole: &[u64]) -> Option<Estimate> {
    if whole.iter().filter(|whole| **whole > 0).count() < LEAST_SUBSAMPLES {
        return None;
    }
    let parts = part.iter().zip(whole).map(|(part, whole)| (*part as f64, *whole as f64));
    Estimate::of_ratio(parts, 1.0)
}

/// Returns the margins of a value that is no ratio of sums, from the values that it has if one subsample after the other is left out. `None` with
/// fewer than five subsamples.
///
/// This is the *delete-a-group jackknife* of Wolter, *Introduction to Variance Estimation*, 4.2.
pub fn jackknife(without_each: &[f64]) -> Option<Margin> {
    if without_each.len() < LEAST_SUBSAMPLES {
        return None;
    }
    let groups = without_each.len() as f64;
    let mean = without_each.iter().sum::<f64>() / groups;
    let squares: f64 = without_each.iter().map(|value| (value - mean).powi(2)).sum();
    let error = ((groups - 1.0) / groups * squares).sqrt();
    Some(Margin::of_standard_error(error, groups - 1.0))
}

/// Returns the largest share of a region that may have been, by chance, in none of `units` units (the *rule of three* for a confidence of 95 %).
pub fn unseen_by(units: u64) -> Margin {
    let most = |confidence: f64| 1.0 - (1.0 - confidence).powf(1.0 / units.max(1) as f64);
    Margin { within_95: most(0.95), within_99_7: most(0.997) }
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
    fn margins_by_jackknife_hold_as_often_as_they_say() {
        let state = &mut 3;
        // A value that is no ratio of sums: half the distance of a ratio from 0.4.
        let truth = (0.25 * 0.8 + 0.75 * 0.05 - 0.4f64).abs() / 2.0;
        let value = |part: u64, whole: u64| (part as f64 / whole as f64 - 0.4).abs() / 2.0;
        let (mut held_95, mut held_99_7) = (0, 0);
        for _ in 0..2000 {
            let (part, whole) = sampled(state, 300);
            let (parts, wholes) = (part.iter().sum::<u64>(), whole.iter().sum::<u64>());
            let each = part.iter().zip(&whole);
            let without: Vec<f64> = each.map(|(p, w)| value(parts - p, wholes - w)).collect();
            let margin = jackknife(&without).unwrap();
            let error = (value(parts, wholes) - truth).abs();
            held_95 += usize::from(error <= margin.within_95);
            held_99_7 += usize::from(error <= margin.within_99_7);
        }
        assert!((1860..=1940).contains(&held_95), "{held_95} of 2000");
        assert!((1975..=2000).contains(&held_99_7), "{held_99_7} of 2000");
        assert_eq!(jackknife(&[0.1, 0.2, 0.3, 0.4]), None);
        assert_eq!(jackknife(&[0.5; 5]), Some(Margin::default()));
    }

    #[test]
    fn what_does_not_differ_has_no_error() {
        let estimate = ratio_of_subsamples(&[1, 2, 3, 4, 5], &[2, 4, 6, 8, 10]).unwrap();
        assert_eq!((estimate.value, estimate.margin().within_99_7), (0.5, 0.0));
        // Four subsamples with something of the whole say too little.
        assert_eq!(ratio_of_subsamples(&[1, 2, 3, 4, 0], &[2, 4, 6, 8, 0]), None);
        assert_eq!(ratio_of_subsamples(&[], &[]), None);
    }

    #[test]
    fn what_no_unit_saw_is_about_three_units_long() {
        let Margin { within_95, within_99_7 } = unseen_by(1000);
        assert!((within_95 * 1000.0 - 3.0).abs() < 0.01, "{within_95}");
        assert!((within_99_7 * 1000.0 - 5.8).abs() < 0.1, "{within_99_7}");
        assert!((unseen_by(1).within_95 - 0.95).abs() < 1e-9);
    }
}
