//! The sums of one process, or of all, over the rows of its instructions.

use profile::{ErrorSums, ErrorTotals, Level, OracleWeights};

use super::columns::{LevelError, Levels};
use super::gather::{Rows, Summary};
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
    errors: Vec<Option<(ErrorTotals, [ErrorSums; 3])>>,
}

impl ProcessSums {
    /// The sums of these processes before any of their rows.
    pub fn new(summaries: &[Summary], columns: usize) -> Self {
        let sum = |column: usize| summaries.iter().map(|s| s.columns[column].samples).sum();
        let whole = |column| Some((compared(summaries, column)?, Default::default()));
        Self {
            oracle_total: summaries.iter().map(|summary| summary.oracle_total).sum(),
            samples: (0..columns).map(sum).collect(),
            stack: [0; 7],
            by_subsample: Vec::new(),
            errors: (0..columns).map(whole).collect(),
        }
    }

    /// Adds the rows of a process to its sum and to that of all processes.
    pub fn add(&mut self, rows: &Rows, all: &mut Self) {
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
            let truth =
                |oracle: &[u64]| OracleWeights::new(keys.sum(oracle.iter().copied().enumerate()));
            let whole = truth(&rows.oracle);
            for (column, weights) in rows.columns.iter().enumerate() {
                let part = weights.scope.as_deref().map(truth);
                let truth = part.as_ref().unwrap_or(&whole);
                let profile = keys.sum(weights.by_row.iter());
                for sum in [&mut *self, &mut *all] {
                    if let Some((whole, sums)) = &mut sum.errors[column] {
                        sums[at].add(whole, truth, &profile);
                    }
                }
            }
        }
    }

    /// Returns the row of the process, or of all, under this name.
    pub fn finish(
        self,
        name: &str,
        share: f64,
        units: f64,
        subsample_totals: &SubsampleTotals,
    ) -> ProcessReport {
        let total = self.stack.iter().sum::<u64>().max(1) as f64;
        let stack = self.stack.map(|part| part as f64 / total);
        let error = |(whole, sums): (ErrorTotals, [ErrorSums; 3])| {
            let [instruction, block, function] = sums.map(|sums| LevelError::of(&sums, &whole));
            Levels { instruction, block, function }
        };
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
            errors: self.errors.into_iter().map(|errors| errors.map(error)).collect(),
        }
    }
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
