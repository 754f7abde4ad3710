//! Latencies and data sources: what samples say, beside all executions that the event counts.

use std::collections::BTreeMap;

use guest_samples::DataSrc;
use rustc_hash::FxHashMap;
use truth::Metric;

use super::index::{Placed, Scope, TruthIndex};
use super::{Latency, SourceBias};

/// A number of executions or samples, and the sum of their latencies (perf's weights), in cycles.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    times: u64,
    cycles: u64,
}

impl Weights {
    fn add(&mut self, (times, cycles): (u64, u64)) {
        self.times += times;
        self.cycles += cycles;
    }

    fn mean(self) -> Option<f64> {
        (self.times > 0).then(|| self.cycles as f64 / self.times as f64)
    }
}

/// Latencies by row and data sources, of an event's samples and of all executions that the event counts.
pub(super) struct Latencies {
    truth: FxHashMap<usize, Weights>,
    sampled: FxHashMap<usize, Weights>,
    /// Counts by data source, over all rows: true executions, and samples.
    sources: BTreeMap<&'static str, [u64; 2]>,
}

impl Latencies {
    pub(crate) fn new(
        index: &TruthIndex<'_>,
        metric: Metric,
        scope: &Scope,
        samples: &[Placed<'_>],
    ) -> Self {
        let mut own = Self {
            truth: FxHashMap::default(),
            sampled: FxHashMap::default(),
            sources: BTreeMap::new(),
        };
        for (sample, row) in samples {
            if let (Some(row), Some(weight)) = (row, sample.weight.filter(|weight| *weight != 0)) {
                own.sampled.entry(*row as usize).or_default().add((1, weight));
            }
            if let Some(source) = sample.data_src.and_then(answered) {
                own.sources.entry(source).or_default()[1] += 1;
            }
        }
        for (instruction, row) in index.truth.instructions.iter().zip(&index.row_of) {
            if !scope.has(instruction.process) {
                continue;
            }
            for executions in &instruction.counts.records {
                let passing = metric.passing(executions);
                own.truth.entry(*row as usize).or_default().add(passing);
                if let Some(source) =
                    answered(DataSrc::of_record(executions.header)).filter(|_| passing.0 > 0)
                {
                    own.sources.entry(source).or_default()[0] += passing.0;
                }
            }
        }
        own
    }

    /// Returns the mean latencies of a row, if its samples have latencies and its executions that the event counts are known.
    pub(crate) fn of(&self, row: usize) -> Option<Latency> {
        Some(Latency {
            sampled: self.sampled.get(&row)?.mean()?,
            truth: self.truth.get(&row)?.mean()?,
        })
    }

    /// Returns the mean latency of all samples. The true latency beside it is the mean where each sample has the true latency of its row.
    pub(crate) fn whole(&self) -> Option<Latency> {
        let mut times = 0;
        let mut sums = Latency::default();
        for (row, weights) in &self.sampled {
            if let Some(own) = self.of(*row) {
                times += weights.times;
                sums.sampled += weights.cycles as f64;
                sums.truth += own.truth * weights.times as f64;
            }
        }
        (times > 0).then(|| Latency {
            sampled: sums.sampled / times as f64,
            truth: sums.truth / times as f64,
        })
    }

    /// Returns the shares of data sources; nothing if the truth or the samples have none.
    pub(crate) fn sources(&self) -> Vec<SourceBias> {
        let all = |side: usize| self.sources.values().map(|counts| counts[side]).sum::<u64>();
        let (truth, sampled) = (all(0), all(1));
        if truth == 0 || sampled == 0 {
            return Vec::new();
        }
        let mut out: Vec<SourceBias> = self
            .sources
            .iter()
            .map(|(source, counts)| SourceBias {
                source: (*source).to_owned(),
                truth: counts[0] as f64 / truth as f64,
                sampled: counts[1] as f64 / sampled as f64,
            })
            .collect();
        out.sort_by(|a, b| b.truth.total_cmp(&a.truth));
        out
    }
}

/// Returns the level that answered, in a word; `None` if the record is of no access.
fn answered(source: DataSrc) -> Option<&'static str> {
    let shared = match source.snoop().as_str() {
        "hit" => 1,
        "HITM" => 2,
        _ => 0,
    };
    Some(match (source.level().as_str(), shared) {
        ("L1 miss", _) => "L1 miss",
        ("L1 hit", 0) => "L1",
        ("L1 hit", _) => "L1, snoop hit",
        ("LFB hit", _) => "LFB",
        ("L2 hit", _) => "L2",
        ("L3 hit", 0) => "L3",
        ("L3 hit", 1) => "L3, snoop hit",
        ("L3 hit", _) => "L3, HITM",
        ("RAM hit", _) => "RAM",
        ("I/O hit", _) => "I/O",
        _ => return None,
    })
}
