//! One process's weights, instruction by instruction, of the Oracle and of every column.

use commit_trace::InstId;

use super::guest::Matched;
use super::place;
use super::published::Level;
use crate::symbolize::{Symbolizer, Symbols};
use crate::{Evaluation, Filter, ProcessId};

/// The rows of a process: one per static instruction that anything gave weight to.
pub(super) struct Rows {
    pub process: ProcessId,
    pub insts: Vec<InstId>,
    /// Index into the symbols' locations, per row.
    pub places: Vec<u32>,
    pub oracle: Vec<u64>,
    pub oracle_total: u64,
    pub columns: Vec<Weights>,
    /// Symbol of each row per level; symbols are dense numbers of this process.
    pub instruction: Keys,
    pub block: Keys,
    pub function: Keys,
    /// Address of the first instruction of each row's block.
    pub leaders: Vec<u64>,
}

/// A column's weights in one process.
#[derive(Default)]
pub(super) struct Weights {
    pub by_row: Sparse,
    /// The sum, plus what fell on unknown addresses.
    pub total: u64,
    /// Samples that made it; 0 means that the column says nothing about this process.
    pub samples: f64,
    /// True for what perf measured in the guest.
    pub is_guest: bool,
    /// The Oracle's weights to compare with, where that is not all of them: those that the sampler's filter
    /// lets through, or of the privileges that the guest's event sampled.
    pub scope: Option<Vec<u64>>,
}

/// What rows have that have any: few have, of most columns.
#[derive(Default)]
pub(super) struct Sparse(Vec<(u32, u64)>);

impl Sparse {
    fn of(by_row: impl Iterator<Item = u64>) -> Self {
        let mut some: Vec<_> = (0..).zip(by_row).filter(|(_, units)| *units > 0).collect();
        some.shrink_to_fit();
        Self(some)
    }

    pub fn get(&self, row: usize) -> u64 {
        let found = self.0.binary_search_by_key(&(row as u32), |(row, _)| *row);
        found.map_or(0, |at| self.0[at].1)
    }

    /// Rows and what they have.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|(row, units)| (*row as usize, *units))
    }
}

/// Row to symbol.
#[derive(Default)]
pub(super) struct Keys {
    pub of_row: Vec<u32>,
    pub count: usize,
}

impl Rows {
    /// The symbols of a level.
    pub fn keys(&self, level: Level) -> &Keys {
        match level {
            Level::Instruction => &self.instruction,
            Level::Block => &self.block,
            Level::Function => &self.function,
        }
    }

    /// A row's units per published category.
    pub fn stack(&self, evaluation: &Evaluation, row: usize) -> [u64; 7] {
        let inst = self.insts[row];
        let class = evaluation.facts[inst.0 as usize].class;
        evaluation.stacks.get(self.process, inst).categories(class)
    }

    /// The Oracle's weights that a column is compared with.
    pub fn oracle_for(&self, column: usize) -> &[u64] {
        self.columns[column]
            .scope
            .as_deref()
            .unwrap_or(&self.oracle)
    }
}

impl Keys {
    /// Numbers equal keys alike, in order of first appearance.
    fn new<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> Self {
        let mut known = std::collections::HashMap::new();
        let of_row = keys
            .map(|key| {
                let next = known.len() as u32;
                *known.entry(key).or_insert(next)
            })
            .collect();
        Self {
            of_row,
            count: known.len(),
        }
    }

    /// Sums rows into symbols.
    pub fn sum(&self, rows: impl Iterator<Item = (usize, u64)>) -> Vec<u64> {
        let mut sums = vec![0u64; self.count];
        for (row, units) in rows {
            sums[self.of_row[row] as usize] += units;
        }
        sums
    }
}

/// Rows of every process that has any weight, and the names of all of them.
pub(super) fn gather(
    evaluation: &Evaluation,
    symbolizer: &Symbolizer,
    guest: Option<&Matched>,
) -> (Vec<Rows>, Symbols) {
    // A trace that lost its facts must not take the report with it.
    let known = evaluation.facts.len() as u32;
    // Per process, a bit for each instruction: most are named by many profiles.
    let mut named: Vec<Vec<u64>> = Vec::new();
    let mut note = |process: ProcessId, inst: InstId| {
        let (index, word) = (process.0 as usize, inst.0 as usize / 64);
        if inst.0 >= known {
            return;
        }
        if named.len() <= index {
            named.resize_with(index + 1, Vec::new);
        }
        let words = &mut named[index];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (inst.0 % 64);
    };
    let profiles = evaluation.samplers.iter().map(|result| &result.profile);
    for profile in std::iter::once(&evaluation.oracle).chain(profiles) {
        profile
            .iter()
            .for_each(|(process, inst, _)| note(process, inst));
    }
    for (process, inst) in guest.iter().flat_map(|matched| matched.weights.keys()) {
        note(*process, *inst);
    }
    let mut rows: Vec<Rows> = Vec::new();
    for (process, words) in named.into_iter().enumerate() {
        let bits = (0..known).take(64 * words.len());
        let insts: Vec<InstId> = bits
            .filter(|inst| words[*inst as usize / 64] >> (inst % 64) & 1 != 0)
            .map(InstId)
            .collect();
        if !insts.is_empty() {
            rows.push(weights(evaluation, ProcessId(process as u32), insts, guest));
        }
    }
    let symbols = name(evaluation, symbolizer, &mut rows);
    (rows, symbols)
}

fn weights(
    evaluation: &Evaluation,
    process: ProcessId,
    insts: Vec<InstId>,
    guest: Option<&Matched>,
) -> Rows {
    let of = |profile: &crate::Profile| -> Vec<u64> {
        insts
            .iter()
            .map(|inst| profile.weight(process, *inst))
            .collect()
    };
    let oracle = of(&evaluation.oracle);
    let mut columns: Vec<Weights> = Vec::new();
    for result in &evaluation.samplers {
        let by_row = Sparse::of(
            insts
                .iter()
                .map(|inst| result.profile.weight(process, *inst)),
        );
        let total = by_row.iter().map(|(_, units)| units).sum();
        // Samples are not counted per process: their cycles say how many it got.
        let whole = result.profile.total().max(1) as f64;
        let samples = result.samples as f64 * (total as f64 / whole);
        columns.push(Weights {
            by_row,
            total,
            samples,
            is_guest: false,
            scope: (result.sampler.filter != Filter::NONE)
                .then(|| of(&evaluation.oracle_of(result))),
        });
    }
    if let Some(matched) = guest {
        let weight = |inst: &InstId| matched.weights.get(&(process, *inst)).copied().unwrap_or(0);
        let by_row = Sparse::of(insts.iter().map(weight));
        let unmatched = matched.unmatched.get(&process).copied().unwrap_or(0);
        let total = by_row.iter().map(|(_, units)| units).sum::<u64>();
        let total = total.saturating_add(unmatched);
        let samples = matched.samples.get(&process).copied().unwrap_or(0.0);
        let covered = |inst: &InstId| {
            let privilege = evaluation.facts[inst.0 as usize].privilege;
            matched.covers[usize::from(privilege & 3)]
        };
        let scope = matched.covers.contains(&false).then(|| {
            insts
                .iter()
                .zip(&oracle)
                .map(|(i, w)| if covered(i) { *w } else { 0 })
                .collect()
        });
        columns.push(Weights {
            by_row,
            total,
            samples,
            is_guest: true,
            scope,
        });
    }
    let keys = Keys::new(insts.iter().map(|inst| {
        let fact = &evaluation.facts[inst.0 as usize];
        (fact.space, fact.pc)
    }));
    Rows {
        process,
        oracle_total: oracle.iter().sum(),
        places: Vec::new(),
        leaders: Vec::new(),
        instruction: keys,
        block: Keys::default(),
        function: Keys::default(),
        insts,
        oracle,
        columns,
    }
}

/// Resolves every row's address, and with it the block and function levels.
fn name(evaluation: &Evaluation, symbolizer: &Symbolizer, rows: &mut [Rows]) -> Symbols {
    let mut places = Vec::new();
    let mut shared = std::collections::HashMap::new();
    for process in rows.iter_mut() {
        for inst in &process.insts {
            let fact = &evaluation.facts[inst.0 as usize];
            let mut add = || {
                places.push(place::place(evaluation, process.process, fact));
                places.len() as u32 - 1
            };
            let index = if place::is_shared(fact) {
                *shared.entry(*inst).or_insert_with(add)
            } else {
                add()
            };
            process.places.push(index);
        }
    }
    let symbols = symbolizer.resolve(&places);
    let leaders = super::blocks::leaders(&evaluation.facts);
    for process in rows.iter_mut() {
        let locate = |row: usize| &symbols.locations[process.places[row] as usize];
        process.leaders = (0..process.insts.len())
            .map(|row| {
                let inst = process.insts[row].0 as usize;
                let (fact, at) = (&evaluation.facts[inst], locate(row));
                let function = symbols.function(at.function);
                // Functions that fall through into the next one still end there.
                let start = if function.size == 0 {
                    0
                } else {
                    fact.pc
                        .saturating_sub(at.offset.wrapping_sub(function.start))
                };
                leaders[inst].max(start)
            })
            .collect();
        let space = |row: usize| evaluation.facts[process.insts[row].0 as usize].space;
        process.block = Keys::new(
            process
                .leaders
                .iter()
                .enumerate()
                .map(|(row, pc)| (space(row), *pc)),
        );
        process.function = Keys::new((0..process.insts.len()).map(|row| locate(row).function));
    }
    symbols
}
