//! Shares by class of instruction and decode slot, and the instructions with the largest.

use commit_trace::{Class, MAX_COMMIT_WIDTH};

use super::index::{Sides, TruthIndex};
use super::latency::Latencies;
use super::{ClassBias, PreciseRow, SlotBias};

/// Instructions of a profile that are listed.
const MAX_ROWS: usize = 20;

impl TruthIndex<'_> {
    pub(super) fn classes(&self, sides: &Sides) -> Vec<ClassBias> {
        let share = |weights: &[u64], class: Class, all: u64| {
            let own = self.rows.iter().zip(weights).filter(|(row, _)| row.class == class);
            own.map(|(_, weight)| *weight).sum::<u64>() as f64 / all.max(1) as f64
        };
        let whole = sides.truth.iter().sum();
        Class::ALL
            .into_iter()
            .map(|class| ClassBias {
                class,
                truth: share(&sides.truth, class, whole),
                sampled: share(&sides.sampled, class, sides.all()),
            })
            .filter(|bias| bias.truth > 0.0 || bias.sampled > 0.0)
            .collect()
    }

    /// An instruction counts for each slot in proportion to how often it was decoded there.
    pub(super) fn slots(&self, sides: &Sides) -> Vec<SlotBias> {
        let mut decoded = vec![[0u64; MAX_COMMIT_WIDTH]; self.rows.len()];
        for (instruction, row) in self.truth.instructions.iter().zip(&self.row_of) {
            let slots = decoded[*row as usize].iter_mut();
            for (sum, times) in slots.zip(instruction.counts.slots) {
                *sum += times;
            }
        }
        let shares = |weights: &[u64]| {
            let mut shares = [0.0; MAX_COMMIT_WIDTH];
            for (weight, slots) in weights.iter().zip(&decoded).filter(|(w, _)| **w != 0) {
                let all = slots.iter().sum::<u64>().max(1) as f64;
                for (share, times) in shares.iter_mut().zip(slots) {
                    *share += *weight as f64 * *times as f64 / all;
                }
            }
            let whole = shares.iter().sum::<f64>();
            shares.map(|share| if whole > 0.0 { share / whole } else { 0.0 })
        };
        let (truth, sampled) = (shares(&sides.truth), shares(&sides.sampled));
        let mut used = truth.iter().zip(&sampled);
        let used = used.rposition(|(truth, sampled)| *truth > 0.0 || *sampled > 0.0);
        (0..used.map_or(0, |last| last + 1))
            .map(|slot| SlotBias { slot, truth: truth[slot], sampled: sampled[slot] })
            .collect()
    }

    pub(super) fn largest(
        &self,
        sides: &Sides,
        latencies: &Latencies,
        disassemble: &dyn Fn(u32, u64) -> String,
    ) -> Vec<PreciseRow> {
        let whole = sides.truth.iter().sum::<u64>().max(1) as f64;
        let all = sides.all().max(1) as f64;
        let shares =
            |row: usize| (sides.truth[row] as f64 / whole, sides.sampled[row] as f64 / all);
        let mut rows: Vec<usize> = (0..self.rows.len()).collect();
        rows.retain(|row| shares(*row) != (0.0, 0.0));
        let most = |row: usize| shares(row).0.max(shares(row).1);
        rows.sort_by(|a, b| most(*b).total_cmp(&most(*a)).then(a.cmp(b)));
        rows.truncate(MAX_ROWS);
        let named = |row: usize| {
            let (truth, sampled) = shares(row);
            let instruction = self.rows[row];
            PreciseRow {
                name: self.truth.label(instruction),
                text: disassemble(instruction.raw, instruction.pc),
                truth,
                sampled,
                latency: latencies.of(row),
            }
        };
        rows.into_iter().map(named).collect()
    }
}
