//! One process's weights, instruction by instruction, of the Oracle and of every column.

use commit_trace::InstId;
use profile::{Component, Evaluation, Filter, Level, ProcessId, SamplerResult, Subsample};
use rustc_hash::FxHashMap;
use symbols::{Place, Symbolizer, Symbols, place};

use super::guest::Matched;
use super::margins::SubsampleTotals;
use super::parts::Parts;

/// Every process that has any weight. Their rows together take much memory: they are made when they are asked for, one
/// process at a time.
pub(super) struct Gathered<'a> {
    evaluation: &'a Evaluation,
    guests: &'a [Matched],
    /// The names of all rows.
    pub symbols: Symbols,
    /// Address of the first instruction of each static instruction's block, as far as the code tells.
    leaders: Vec<u64>,
    /// The most expensive by the Oracle first.
    pub processes: Vec<Summary>,
    /// What the subsamples of a sampled region have.
    pub subsample_totals: SubsampleTotals,
}

/// The part of a process's rows that is kept.
pub(super) struct Summary {
    pub process: ProcessId,
    /// See [`Rows::places`].
    places: Vec<u32>,
    pub oracle_total: u64,
    pub columns: Vec<Totals>,
    /// Totals of each column, and of the Oracle, in each subsample of a sampled region; none if the column has no subsamples.
    pub by_subsample: Vec<Vec<ComparedUnits>>,
}

/// What a subsample has of a process.
#[derive(Clone, Copy)]
pub(super) struct ComparedUnits {
    /// Units by the column.
    pub column: u64,
    /// Units by the Oracle.
    pub oracle: u64,
}

/// A column in one process.
#[derive(Clone, Copy)]
pub(super) struct Totals {
    /// The sum of the column's weights, plus what fell on unknown addresses.
    pub total: u64,
    /// Samples of the column in the process; 0 means that the column says nothing about the process.
    pub samples: f64,
    /// True for what perf measured in the guest.
    pub is_guest: bool,
    /// The sum of the Oracle's weights to compare with.
    pub oracle_total: u64,
}

/// The rows of a process: one per static instruction that the Oracle or any column gave weight to.
pub(super) struct Rows {
    pub process: ProcessId,
    pub insts: Vec<InstId>,
    /// Index into the symbols' locations, per row.
    pub places: Vec<u32>,
    pub oracle: Vec<u64>,
    pub oracle_total: u64,
    pub columns: Vec<Weights>,
    /// Symbol of each row per level; symbols are dense numbers of this process.
    pub instruction: SymbolMap,
    pub block: SymbolMap,
    pub function: SymbolMap,
    /// Address of the first instruction of each row's block.
    pub leaders: Vec<u64>,
    /// Units of each row per published category.
    pub stacks: Vec<[u64; 7]>,
    /// Units of each row that are due to a full store queue; they are part of `stacks`.
    pub store_queue: Vec<u64>,
    /// The Oracle in each subsample; none if the region was not sampled.
    pub subsamples: Vec<SubsampleRows>,
}

/// What a subsample has of a process.
pub(super) struct SubsampleRows {
    /// Units of each row.
    pub by_row: Sparse,
    /// Units by published category.
    pub stack: [u64; 7],
}

/// A column's weights in one process.
pub(super) struct Weights {
    pub by_row: Sparse,
    /// The column in each subsample of a sampled region; none if the column is not known by subsample.
    pub subsamples: Vec<Sparse>,
    /// Units of all rows in each subsample.
    pub subsample_totals: Vec<u64>,
    pub totals: Totals,
    /// The Oracle's weights to compare with, if they are not all of its weights: those that the sampler's filter
    /// lets through, or those of the privilege modes that the guest's event sampled.
    pub scope: Option<Vec<u64>>,
}

/// Rows with any weight, ascending, and their weights: most columns give weight to few rows.
#[derive(Default)]
pub(super) struct Sparse(Vec<(u32, u64)>);

impl Sparse {
    /// Makes the rows of `weights`, which are sorted by instruction; `insts` are the instructions of the rows.
    fn of(insts: &[InstId], weights: impl Iterator<Item = (InstId, u64)>) -> Self {
        let mut rows = Finder::new(insts);
        let some = weights.filter_map(|(inst, units)| Some((rows.find(inst)? as u32, units)));
        Self(some.collect())
    }

    pub(crate) fn get(&self, row: usize) -> u64 {
        let found = self.0.binary_search_by_key(&(row as u32), |(row, _)| *row);
        found.map_or(0, |at| self.0[at].1)
    }

    /// Returns the units of all rows.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|(_, units)| units).sum()
    }

    /// Returns the rows by index, with the units charged to each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|(row, units)| (*row as usize, *units))
    }
}

/// The symbol of each row.
#[derive(Default)]
pub(super) struct SymbolMap {
    pub of_row: Vec<u32>,
    pub count: usize,
}

impl Rows {
    /// Returns a row's units by part.
    pub(crate) fn parts(&self, row: usize) -> Parts {
        let stack = self.stacks[row].map(|units| units as f64);
        Parts::new(stack, self.store_queue[row] as f64)
    }

    /// Returns the symbols of a level.
    pub(crate) fn keys(&self, level: Level) -> &SymbolMap {
        match level {
            Level::Instruction => &self.instruction,
            Level::Block => &self.block,
            Level::Function => &self.function,
        }
    }
}

impl SymbolMap {
    /// Numbers equal keys alike, in order of first appearance.
    fn new<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> Self {
        let mut known = FxHashMap::default();
        let of_row = keys
            .map(|key| {
                let next = known.len() as u32;
                *known.entry(key).or_insert(next)
            })
            .collect();
        Self { of_row, count: known.len() }
    }

    /// Sums rows into symbols.
    pub(crate) fn sum(&self, rows: impl Iterator<Item = (usize, u64)>) -> Vec<u64> {
        let mut sums = vec![0u64; self.count];
        for (row, units) in rows {
            sums[self.of_row[row] as usize] += units;
        }
        sums
    }
}

/// Finds rows of ascending instructions.
struct Finder<'a> {
    insts: &'a [InstId],
    at: usize,
}

impl<'a> Finder<'a> {
    fn new(insts: &'a [InstId]) -> Self {
        Self { insts, at: 0 }
    }

    /// The instruction's row; each must be greater than the last.
    fn find(&mut self, inst: InstId) -> Option<usize> {
        let rest = &self.insts[self.at..];
        self.at += rest.iter().take_while(|row| **row < inst).count();
        (self.insts.get(self.at) == Some(&inst)).then_some(self.at)
    }
}

/// Returns the weight of each of `insts`, 0 where there is none; `weights` are sorted by instruction.
fn by_row(insts: &[InstId], weights: impl Iterator<Item = (InstId, u64)>) -> Vec<u64> {
    let mut out = vec![0; insts.len()];
    let mut rows = Finder::new(insts);
    for (inst, units) in weights {
        if let Some(row) = rows.find(inst) {
            out[row] = units;
        }
    }
    out
}

impl<'a> Gathered<'a> {
    /// Names everything that has any weight.
    pub(crate) fn new(
        evaluation: &'a Evaluation,
        symbolizer: &Symbolizer,
        guests: &'a [Matched],
    ) -> Self {
        let mut gathered = Self {
            evaluation,
            guests,
            symbols: Symbols::default(),
            leaders: Vec::new(),
            processes: Vec::new(),
            subsample_totals: SubsampleTotals::new(evaluation),
        };
        let profiles = evaluation.samplers.iter().map(|result| &result.profile);
        let profiles = std::iter::once(&evaluation.oracle).chain(profiles);
        let last = guests.iter().filter_map(|matched| matched.weights.last_key_value());
        let sampled = last.map(|((process, _), _)| process.0 + 1).max();
        let count =
            profiles.map(|profile| profile.processes()).fold(sampled.unwrap_or(0), u32::max);
        let mut places = Places::default();
        for process in (0..count).map(ProcessId) {
            let rows = gathered.weights(process);
            if rows.insts.is_empty() {
                continue;
            }
            let place = |inst: &InstId| places.number(evaluation, process, *inst);
            let oracle: Vec<u64> = gathered
                .subsamples(process, &rows.insts)
                .iter()
                .map(|of| of.stack.iter().sum())
                .collect();
            let by_subsample = |column: &Weights| {
                let totals = column.subsample_totals.iter().zip(&oracle);
                let of = |(column, oracle): (&u64, &u64)| ComparedUnits {
                    column: *column,
                    oracle: *oracle,
                };
                totals.map(of).collect()
            };
            gathered.processes.push(Summary {
                by_subsample: rows.columns.iter().map(by_subsample).collect(),
                process,
                places: rows.insts.iter().map(place).collect(),
                oracle_total: rows.oracle_total,
                columns: rows.columns.iter().map(|column| column.totals).collect(),
            });
        }
        gathered
            .processes
            .sort_by_key(|summary| (std::cmp::Reverse(summary.oracle_total), summary.process));
        gathered.symbols = symbolizer.resolve(&places.list);
        gathered.leaders = super::blocks::leaders(&evaluation.static_info);
        gathered
    }

    /// Returns the instructions of one of [`Self::processes`], and the place of each: an index into the symbols' locations.
    pub(crate) fn places(&self, at: usize) -> (Vec<InstId>, &[u32]) {
        let summary = &self.processes[at];
        (self.insts(summary.process), &summary.places)
    }

    /// Returns the rows of one of [`Self::processes`].
    pub(crate) fn rows(&self, at: usize) -> Rows {
        let summary = &self.processes[at];
        let static_info = &self.evaluation.static_info;
        let mut rows = self.weights(summary.process);
        rows.places.clone_from(&summary.places);
        let fact = |row: usize| &static_info[rows.insts[row].0 as usize];
        let locate = |row: usize| &self.symbols.locations[summary.places[row] as usize];
        let all = 0..rows.insts.len();
        let leader = |row: usize| {
            let (fact, at) = (fact(row), locate(row));
            let function = self.symbols.function(at.function);
            // Functions that fall through into the next one still end there.
            let start = if function.size == 0 {
                0
            } else {
                fact.pc.saturating_sub(at.offset.wrapping_sub(function.start))
            };
            self.leaders[fact.id.0 as usize].max(start)
        };
        let leaders: Vec<u64> = all.clone().map(leader).collect();
        let instruction = SymbolMap::new(all.clone().map(|row| (fact(row).space, fact(row).pc)));
        let block =
            SymbolMap::new(leaders.iter().zip(all.clone()).map(|(pc, row)| (fact(row).space, *pc)));
        let function = SymbolMap::new(all.map(|row| locate(row).function.0));
        let mut stacks = vec![[0; 7]; rows.insts.len()];
        let mut store_queue = vec![0; rows.insts.len()];
        let mut finder = Finder::new(&rows.insts);
        for (inst, stack) in self.evaluation.stacks.of(summary.process) {
            if let Some(row) = finder.find(inst) {
                stacks[row] = stack.categories(static_info[inst.0 as usize].class);
                store_queue[row] = stack[Component::FrontEndStores];
            }
        }
        let subsamples = self.subsamples(summary.process, &rows.insts);
        Rows { instruction, block, function, leaders, stacks, store_queue, subsamples, ..rows }
    }

    /// Returns what each subsample has of a process, whose instructions by row are given.
    fn subsamples(&self, process: ProcessId, insts: &[InstId]) -> Vec<SubsampleRows> {
        let rows = |subsample: &Subsample| {
            let mut sum = [0; 7];
            let stacks = subsample.stacks.of(process).filter_map(|(inst, stack)| {
                let info = self.evaluation.static_info.get(inst.0 as usize)?;
                let units = stack.categories(info.class);
                sum.iter_mut().zip(units).for_each(|(sum, units)| *sum += units);
                Some((inst, units.iter().sum()))
            });
            let by_row = Sparse::of(insts, stacks);
            SubsampleRows { by_row, stack: sum }
        };
        self.evaluation.subsamples.iter().map(rows).collect()
    }

    /// Returns the rows of a process without their names.
    fn weights(&self, process: ProcessId) -> Rows {
        let evaluation = self.evaluation;
        let insts = self.insts(process);
        let oracle = by_row(&insts, evaluation.oracle.of(process));
        let oracle_total = oracle.iter().sum();
        let mut columns: Vec<Weights> = Vec::new();
        for result in &evaluation.samplers {
            let by_row = Sparse::of(&insts, result.profile.of(process));
            let total = by_row.iter().map(|(_, units)| units).sum();
            // Samples are not counted per process: the process's share of the sampled cycles tells how many samples it got.
            let whole = result.profile.total().max(1) as f64;
            let scope = (result.sampler.filter != Filter::NONE)
                .then(|| self.scope(process, &insts, result));
            let subsamples: Vec<Sparse> = match result.subsamples.is_empty() {
                true => Vec::new(),
                // In the last subsamples there may be no sample.
                false => (0..evaluation.subsamples.len())
                    .map(|at| result.subsamples.get(at))
                    .map(|part| Sparse::of(&insts, part.into_iter().flat_map(|of| of.of(process))))
                    .collect(),
            };
            columns.push(Weights {
                by_row,
                subsample_totals: subsamples.iter().map(Sparse::total).collect(),
                subsamples,
                totals: Totals {
                    total,
                    samples: result.samples as f64 * (total as f64 / whole),
                    is_guest: false,
                    oracle_total: scope.as_ref().map_or(oracle_total, |scope| scope.iter().sum()),
                },
                scope,
            });
        }
        for matched in self.guests {
            let by_row = Sparse::of(&insts, matched.of(process));
            let unmatched = matched.unmatched.get(&process).copied().unwrap_or(0);
            let total = by_row.iter().map(|(_, units)| units).sum::<u64>();
            let covered = |inst: &InstId| {
                let privilege = evaluation.static_info[inst.0 as usize].privilege;
                matched.covers[usize::from(privilege & 3)]
            };
            let covered = |(inst, units): (&InstId, &u64)| if covered(inst) { *units } else { 0 };
            let scope: Option<Vec<u64>> = matched
                .covers
                .contains(&false)
                .then(|| insts.iter().zip(&oracle).map(covered).collect());
            columns.push(Weights {
                by_row,
                subsamples: Vec::new(),
                subsample_totals: Vec::new(),
                totals: Totals {
                    total: total.saturating_add(unmatched),
                    samples: matched.samples.get(&process).copied().unwrap_or(0.0),
                    is_guest: true,
                    oracle_total: scope.as_ref().map_or(oracle_total, |scope| scope.iter().sum()),
                },
                scope,
            });
        }
        Rows {
            process,
            oracle_total,
            places: Vec::new(),
            leaders: Vec::new(),
            stacks: Vec::new(),
            store_queue: Vec::new(),
            subsamples: Vec::new(),
            instruction: SymbolMap::default(),
            block: SymbolMap::default(),
            function: SymbolMap::default(),
            insts,
            oracle,
            columns,
        }
    }

    /// Returns the instructions that the Oracle or any column gave weight to in a process.
    fn insts(&self, process: ProcessId) -> Vec<InstId> {
        // A trace that lost its static info must not take the report with it.
        let known = |inst: &InstId| (inst.0 as usize) < self.evaluation.static_info.len();
        let inst = |(inst, _)| inst;
        let mut insts: Vec<InstId> =
            self.evaluation.oracle.of(process).map(inst).filter(known).collect();
        let mut add = |named: &mut dyn Iterator<Item = InstId>| {
            let mut finder = Finder::new(&insts);
            let more: Vec<_> =
                named.filter(known).filter(|inst| finder.find(*inst).is_none()).collect();
            if !more.is_empty() {
                insts.extend(more);
                insts.sort_unstable();
            }
        };
        for result in &self.evaluation.samplers {
            add(&mut result.profile.of(process).map(inst));
        }
        for matched in self.guests {
            add(&mut matched.of(process).map(inst));
        }
        insts
    }

    /// Returns the Oracle's weights that a sampler's filter lets through.
    fn scope(&self, process: ProcessId, insts: &[InstId], result: &SamplerResult) -> Vec<u64> {
        let part = self.evaluation.oracle_in(result, process);
        by_row(insts, part)
    }
}

/// Numbered places, without duplicates: processes share most places.
#[derive(Default)]
struct Places {
    list: Vec<Place>,
    known: FxHashMap<Place, u32>,
    /// Numbers of the places of instructions that have the same place in every process.
    shared: FxHashMap<InstId, u32>,
}

impl Places {
    /// Returns the number of an instruction's place, and adds the place if it is new.
    fn number(&mut self, evaluation: &Evaluation, process: ProcessId, inst: InstId) -> u32 {
        if let Some(number) = self.shared.get(&inst) {
            return *number;
        }
        let fact = &evaluation.static_info[inst.0 as usize];
        let place = place::place(evaluation, process, fact);
        let list = &mut self.list;
        let number = *self.known.entry(place).or_insert_with_key(|place| {
            list.push(place.clone());
            list.len() as u32 - 1
        });
        if place::is_shared(fact) {
            self.shared.insert(inst, number);
        }
        number
    }
}
