//! The sums of one process, or of all, over the rows of its instructions.

use profile::{ErrorSums, ErrorTotals, LEAST_SUBSAMPLES, Level, OracleWeights};

use super::columns::{LevelError, Levels};
use super::gather::{Rows, SubsampleRows, Summary};
use super::margins::{SubsampleTotals, add_stacks};
use super::parts::class;
use super::tables::ProcessReport;

/// A process with at least this share of all cycles must be in the guest's profile for that to count as one of the whole
/// machine.
const NOTICEABLE: f64 = 0.01;

/// The sums that a [`ProcessReport`] is made from, over the rows of one or all processes.
pub(super) struct ProcessSums {
    oracle_total: u64,
    samples: Vec<f64>,
    /// Units by category.
    stack: [u64; 7],
    /// Units by subsample of a sampled region, and category.
    by_subsample: Vec<[u64; 7]>,
    /// Per column the totals that it is compared by, and sums for each of [`Level::ALL`]; `None` if it did not measure the
    /// process.
    errors: Vec<Option<TotalsAndSums>>,
    /// Totals and sums as in `errors`, without each of the subsamples of a sampled region; none if the column is not known by subsample.
    without_each: Vec<Vec<TotalsAndSums>>,
}

type TotalsAndSums = (ErrorTotals, [ErrorSums; 3]);

impl ProcessSums {
    /// The sums of these processes before any of their rows.
    pub(crate) fn new(summaries: &[Summary], columns: usize) -> Self {
        let sum = |column: usize| summaries.iter().map(|s| s.columns[column].samples).sum();
        let whole = |column| Some((compared(summaries, column)?, Default::default()));
        Self {
            oracle_total: summaries.iter().map(|summary| summary.oracle_total).sum(),
            samples: (0..columns).map(sum).collect(),
            stack: [0; 7],
            by_subsample: Vec::new(),
            errors: (0..columns).map(whole).collect(),
            without_each: (0..columns).map(|column| without_each(summaries, column)).collect(),
        }
    }

    /// Adds the rows of a process to its sum and to that of all processes.
    pub(crate) fn add(&mut self, rows: &Rows, all: &mut Self) {
        for stack in &rows.stacks {
            for (at, units) in stack.iter().enumerate() {
                self.stack[at] += units;
                all.stack[at] += units;
            }
        }
        let by_subsample: Vec<[u64; 7]> = rows.subsamples.iter().map(|of| of.stack).collect();
        add_stacks(&mut self.by_subsample, &by_subsample);
        add_stacks(&mut all.by_subsample, &by_subsample);
        for (at, level) in Level::ALL.into_iter().enumerate() {
            let keys = rows.keys(level);
            let truth = |oracle: &[u64]| keys.sum(oracle.iter().copied().enumerate());
            let oracle = truth(&rows.oracle);
            let of_subsample = |of: &SubsampleRows| without(&oracle, &keys.sum(of.by_row.iter()));
            let oracle_without_each: Vec<_> = rows.subsamples.iter().map(of_subsample).collect();
            let whole = OracleWeights::new(oracle);
            for (column, weights) in rows.columns.iter().enumerate() {
                let part = weights.scope.as_deref().map(|scope| OracleWeights::new(truth(scope)));
                let truth = part.as_ref().unwrap_or(&whole);
                let profile = keys.sum(weights.by_row.iter());
                for sum in [&mut *self, &mut *all] {
                    if let Some((whole, sums)) = &mut sum.errors[column] {
                        sums[at].add(whole, truth, &profile);
                    }
                }
                let subsamples = weights.subsamples.iter().zip(&oracle_without_each);
                for (number, (part, oracle)) in subsamples.enumerate() {
                    let profile = without(&profile, &keys.sum(part.iter()));
                    for sum in [&mut *self, &mut *all] {
                        if let Some((whole, sums)) = sum.without_each[column].get_mut(number) {
                            sums[at].add_correct(whole, oracle, &profile);
                        }
                    }
                }
            }
        }
    }

    /// Returns the row of the process, or of all, under this name.
    pub(crate) fn finish(
        self,
        name: &str,
        share: f64,
        units: f64,
        subsample_totals: &SubsampleTotals,
    ) -> ProcessReport {
        let total = self.stack.iter().sum::<u64>().max(1) as f64;
        let stack = self.stack.map(|part| part as f64 / total);
        let error = |((whole, sums), without_each): (TotalsAndSums, &[TotalsAndSums])| {
            let error = |at: usize| {
                let error = LevelError::of(&sums[at], &whole);
                let without_each: Vec<f64> =
                    without_each.iter().map(|(whole, sums)| sums[at].measured(whole)).collect();
                let margin = subsample_totals.margin_by_jackknife(error.error, &without_each);
                LevelError { margin, ..error }
            };
            Levels { instruction: error(0), block: error(1), function: error(2) }
        };
        let errors = self.errors.into_iter().zip(&self.without_each);
        let errors = errors.map(|(errors, without)| Some(error((errors?, without)))).collect();
        ProcessReport {
            name: name.to_owned(),
            command: name.to_owned(),
            count: 1,
            pid: None,
            id: None,
            cycles: self.oracle_total as f64 / units,
            share,
            class: class(&stack),
            stack,
            margins: subsample_totals.margins_of_stacks(&self.by_subsample),
            stack_margins: subsample_totals.stack_margins(&self.by_subsample),
            by_subsample: self.by_subsample,
            samples: self.samples,
            errors,
        }
    }
}

/// Returns the rest of each weight.
fn without(all: &[u64], part: &[u64]) -> Vec<u64> {
    all.iter().zip(part).map(|(all, part)| all.saturating_sub(*part)).collect()
}

/// The totals of a column over one or all processes without each of the subsamples; none if the column is not known by subsample, or too few
/// subsamples have anything of the processes.
fn without_each(summaries: &[Summary], column: usize) -> Vec<TotalsAndSums> {
    let count = summaries.iter().map(|summary| summary.by_subsample[column].len()).max();
    let totals = |of: fn(&Summary, usize) -> u64| {
        summaries.iter().map(|summary| of(summary, column)).sum::<u64>()
    };
    let oracle = totals(|summary, column| summary.columns[column].oracle_total);
    let profile = totals(|summary, column| summary.columns[column].total);
    let without = |number: usize| {
        let parts = summaries.iter().filter_map(|of| of.by_subsample[column].get(number));
        let (of_oracle, of_profile) =
            parts.fold((0, 0), |sums, part| (sums.0 + part.oracle, sums.1 + part.column));
        let totals = ErrorTotals {
            oracle: oracle.saturating_sub(of_oracle),
            profile: profile.saturating_sub(of_profile),
            samples: 0.0,
        };
        (of_oracle > 0, (totals, Default::default()))
    };
    let found: Vec<_> = (0..count.unwrap_or(0)).map(without).collect();
    if found.iter().filter(|(any, _)| *any).count() < LEAST_SUBSAMPLES {
        return Vec::new();
    }
    found.into_iter().map(|(_, of)| of).collect()
}

/// The totals of a column over one or all processes; `None` if it did not measure one of them that takes much time.
fn compared(summaries: &[Summary], column: usize) -> Option<ErrorTotals> {
    let whole: u64 = summaries.iter().map(|summary| summary.oracle_total).sum();
    // What perf measured of one program says nothing about the others.
    let silent = |summary: &Summary| {
        summary.columns[column].is_guest
            && summary.columns[column].samples == 0.0
            && summary.oracle_total as f64 >= NOTICEABLE * whole as f64
    };
    if summaries.iter().any(silent) {
        return None;
    }
    let totals = || summaries.iter().map(|summary| &summary.columns[column]);
    Some(ErrorTotals {
        oracle: totals().map(|totals| totals.oracle_total).sum(),
        profile: totals().map(|totals| totals.total).sum(),
        samples: totals().map(|totals| totals.samples).sum(),
    })
}
