//! How far the numbers of a sampled run may be off by chance.

use profile::{Estimate, Evaluation, Margin, jackknife, ratio_of_subsamples, unseen_by};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::widths::fixed;

/// Margins of error of what a sampled run says of some code: chance alone, as if few of the region's instructions were timed. They hold two
/// parts: how much subsamples differ, and what may have been in no unit, which makes every share of what was in units too large.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
pub struct Margins {
    /// Margin of the share by the Oracle, as a fraction of the same whole.
    pub share: Margin,
    /// Margin of the share of all processes' cycles.
    pub of_all: Margin,
    /// Margin of the Oracle's cycles.
    pub cycles: Margin,
}

/// What each subsample of a sampled region has of the whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubsampleTotals {
    /// Instructions by subsample.
    instructions: Vec<u64>,
    /// Units of all processes by subsample.
    totals: Vec<u64>,
    units_per_cycle: f64,
    /// Share of the region that may have been in no unit.
    unseen: Margin,
}

impl SubsampleTotals {
    /// Returns what the subsamples of an evaluation have; nothing if its region was not sampled.
    pub(crate) fn new(evaluation: &Evaluation) -> Self {
        let subsamples = || evaluation.subsamples.iter();
        let total =
            |stacks: &profile::CycleStacks| stacks.iter().map(|(.., stack)| stack.total()).sum();
        Self {
            instructions: subsamples().map(|subsample| subsample.instructions).collect(),
            totals: subsamples().map(|subsample| total(&subsample.stacks)).collect(),
            units_per_cycle: evaluation.oracle.units_per_cycle().max(1) as f64,
            unseen: unseen_by(subsamples().map(|subsample| subsample.units).sum()),
        }
    }

    /// Returns whether the region was sampled.
    pub(crate) fn are_of_any(&self) -> bool {
        !self.totals.is_empty()
    }

    /// Returns the margins of a part of a whole. `part` and `whole` have the units of both by subsample. `None` if the whole is in too few
    /// subsamples.
    pub(crate) fn margins(&self, part: &[u64], whole: &[u64]) -> Option<Margins> {
        let share = self.margin(ratio_of_subsamples(part, whole)?);
        let of_all = self.margin_of_all(part)?;
        let instructions: u64 = self.instructions.iter().sum();
        let per_instruction = ratio_of_subsamples(part, &self.instructions)?;
        let scale = instructions as f64 / self.units_per_cycle;
        let cycles = self.margin(per_instruction.times(scale));
        Some(Margins { share, of_all, cycles })
    }

    /// Returns the margin of the share that a part has of a whole, both by subsample.
    pub(crate) fn margin_of_share(&self, part: &[u64], whole: &[u64]) -> Option<Margin> {
        Some(self.margin(ratio_of_subsamples(part, whole)?))
    }

    /// Returns the margin of a part's share of all processes' cycles. `part` has the part's units by subsample.
    pub(crate) fn margin_of_all(&self, part: &[u64]) -> Option<Margin> {
        Some(self.margin(ratio_of_subsamples(part, &self.totals)?))
    }

    /// Returns the margin of a part: by how much subsamples differ, and what was in no unit.
    fn margin(&self, estimate: Estimate) -> Margin {
        self.with_unseen(estimate.value, estimate.margin())
    }

    /// Returns the margin of a value, with what was in no unit.
    fn with_unseen(&self, value: f64, differing: Margin) -> Margin {
        let unseen = self.unseen;
        Margin {
            within_95: differing.within_95.hypot(value * unseen.within_95),
            within_99_7: differing.within_99_7.hypot(value * unseen.within_99_7),
        }
    }

    /// Returns the margin of a value that is no ratio of sums, from the values that it has if one subsample after the other is left out.
    pub(crate) fn margin_by_jackknife(&self, value: f64, without_each: &[f64]) -> Option<Margin> {
        Some(self.with_unseen(value, jackknife(without_each)?))
    }

    /// Returns the margin of each category's share of a whole. `by_subsample` has the whole's units by subsample and category.
    pub(crate) fn stack_margins(&self, by_subsample: &[[u64; 7]]) -> Option<[Margin; 7]> {
        let whole = sums(by_subsample);
        let mut margins = [Margin::default(); 7];
        for (category, margin) in margins.iter_mut().enumerate() {
            let part: Vec<u64> = by_subsample.iter().map(|stack| stack[category]).collect();
            *margin = self.margin(ratio_of_subsamples(&part, &whole)?);
        }
        Some(margins)
    }

    /// Returns the margins of some processes as a part of all processes. `by_subsample` has their units by subsample and category.
    pub(crate) fn margins_of_stacks(&self, by_subsample: &[[u64; 7]]) -> Option<Margins> {
        self.margins(&sums(by_subsample), &self.totals)
    }
}

/// Title of a column or row of margins.
pub(crate) const MARGIN_TITLE: &str = "± 95 %";

/// Returns a margin in per cent, `?` if it is not known.
pub(crate) fn percent(margin: Option<Margin>) -> String {
    margin.map_or_else(|| "?".to_owned(), |margin| fixed(margin.within_95))
}

/// Sums the units of all categories, by subsample.
fn sums(by_subsample: &[[u64; 7]]) -> Vec<u64> {
    by_subsample.iter().map(|stack| stack.iter().sum()).collect()
}

/// Adds units by subsample and category to sums of such.
pub(crate) fn add_stacks(sums: &mut Vec<[u64; 7]>, more: &[[u64; 7]]) {
    sums.resize(sums.len().max(more.len()), [0; 7]);
    for (sum, stack) in sums.iter_mut().zip(more) {
        sum.iter_mut().zip(stack).for_each(|(sum, units)| *sum += units);
    }
}

/// Adds amounts by subsample to sums of such.
pub(crate) fn add(sums: &mut Vec<u64>, amounts: &[u64]) {
    sums.resize(sums.len().max(amounts.len()), 0);
    sums.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
}
