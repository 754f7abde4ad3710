//! Time by event, per process and instruction: TEA (ISCA 2023), see [`profile::Signatures`].

pub(crate) mod rules;
pub(crate) mod text;

use std::collections::BTreeMap;

use commit_trace::TeaEvents;
use profile::{Evaluation, Level, Profile, Profiler, Signatures};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Column, Levels};
use super::gather::Rows;
use super::rows;

/// Instructions per process with a stack, the most expensive first.
const MAX_INSTRUCTIONS: usize = 100;
/// Name of the signature of instructions that met no event.
const NO_EVENT: &str = "none";

/// The report's part on events.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TeaReport {
    /// The profilers whose samples carry events.
    pub columns: Vec<TeaColumn>,
    /// Processes with time, in the order of [`crate::Common::processes`], without "all".
    pub processes: Vec<TeaProcess>,
    /// The most expensive instructions of the processes in focus.
    pub instructions: Vec<TeaInstruction>,
}

/// A sampler whose samples carry events.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TeaColumn {
    /// `tea` for TIP's samples with their events, `nci-tea` and `dispatch-tea` for the others'; then the rest of the sampler's
    /// name, if that is not its profiler's.
    pub name: String,
    /// Index into [`crate::Common::columns`].
    pub column: usize,
}

/// Time by signature: shares of the process's cycles, the events of a signature joined by `|`.
pub type EventStack = BTreeMap<String, f64>;

/// A process's time by event.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TeaProcess {
    /// Index into [`crate::Common::processes`].
    pub process: usize,
    /// The process's name.
    pub name: String,
    /// Time of the process by signature, by the Oracle: every cycle.
    pub stack: EventStack,
    /// Time of the process by signature, by each of [`TeaReport::columns`].
    pub stacks: BTreeMap<String, EventStack>,
    /// Share of the cycles in signatures with each event. The sum of the shares may exceed 1: cycles of several events count
    /// for each.
    pub events: EventStack,
    /// Error of each column: the profile error with (instruction, signature), (block, signature) or (function, signature) as
    /// symbols.
    pub errors: BTreeMap<String, Levels<f64>>,
}

/// An instruction's time by event.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TeaInstruction {
    /// Index into [`crate::Common::processes`].
    pub process: usize,
    /// Address, in hexadecimal.
    pub pc: String,
    /// Function that the instruction is in, with the distance from its start.
    pub label: String,
    /// Disassembly.
    pub text: String,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Time of the instruction by signature, by the Oracle, as shares of the process; their sum is the instruction's share.
    pub stack: EventStack,
    /// Time of the instruction by signature, by the first column of each profiler.
    pub stacks: BTreeMap<String, EventStack>,
}

/// Units per row of a process and signature, ascending.
#[derive(Clone, Default)]
struct Weights {
    list: Vec<(u32, u16, u64)>,
    total: u64,
}

impl Weights {
    /// Returns the weights of one row.
    fn of(&self, row: u32) -> &[(u32, u16, u64)] {
        let start = self.list.partition_point(|(r, ..)| *r < row);
        let end = self.list.partition_point(|(r, ..)| *r <= row);
        &self.list[start..end]
    }
}

/// Units per symbol and signature.
type Sums = FxHashMap<(u32, u16), u64>;

fn sums(symbols: &[u32], weights: &Weights) -> Sums {
    let mut sums = Sums::default();
    for (row, events, units) in &weights.list {
        *sums.entry((symbols[*row as usize], *events)).or_default() += units;
    }
    sums
}

/// Makes a [`TeaReport`], one process after the other.
pub(super) struct TeaBuilder<'a> {
    evaluation: &'a Evaluation,
    columns: &'a [Column],
    report: TeaReport,
}

impl<'a> TeaBuilder<'a> {
    /// Creates the builder; `None` if time was not counted by event.
    pub(crate) fn new(evaluation: &'a Evaluation, columns: &'a [Column]) -> Option<Self> {
        evaluation.signatures.as_ref()?;
        let samplers = evaluation.samplers.iter().enumerate();
        let seeing = samplers.filter(|(_, result)| result.signatures.is_some());
        let named = seeing.map(|(column, _)| TeaColumn { name: name(&columns[column]), column });
        Some(Self {
            evaluation,
            columns,
            report: TeaReport {
                columns: named.collect(),
                processes: Vec::new(),
                instructions: Vec::new(),
            },
        })
    }

    /// Adds the process at `at` among the gathered; with `builder`, its instructions too.
    pub(crate) fn add(
        &mut self,
        at: usize,
        rows: &Rows,
        name: &str,
        builder: Option<&mut rows::RowBuilder<'_>>,
    ) {
        let weights = |signatures: &Option<Signatures>, profile: &Profile| {
            let mut weights = Weights::default();
            let signatures = signatures.iter();
            for (inst, events, units) in signatures.flat_map(|s| s.with_base(profile, rows.process))
            {
                if let Ok(row) = rows.insts.binary_search(&inst) {
                    weights.list.push((row as u32, events.0, units));
                    weights.total += units;
                }
            }
            weights
        };
        let truth = weights(&self.evaluation.signatures, &self.evaluation.oracle);
        let of_column = |column: &TeaColumn| {
            let result = &self.evaluation.samplers[column.column];
            (column.clone(), weights(&result.signatures, &result.profile))
        };
        let sampled: Vec<(TeaColumn, Weights)> =
            self.report.columns.iter().map(of_column).collect();
        if rows.oracle_total > 0 {
            self.report.processes.push(process(at, rows, name, &truth, &sampled));
        }
        if let Some(builder) = builder {
            self.instructions(at, rows, &truth, &sampled, builder);
        }
    }

    fn instructions(
        &mut self,
        at: usize,
        rows: &Rows,
        truth: &Weights,
        sampled: &[(TeaColumn, Weights)],
        builder: &mut rows::RowBuilder<'_>,
    ) {
        let mut order: Vec<usize> =
            (0..rows.insts.len()).filter(|row| rows.oracle[*row] > 0).collect();
        order.sort_by_key(|row| (std::cmp::Reverse(rows.oracle[*row]), *row));
        order.truncate(MAX_INSTRUCTIONS);
        self.report.instructions.extend(order.into_iter().map(|row| {
            let made = builder.instruction(rows, at, row);
            let of = |weights: &Weights| stack(weights.of(row as u32), weights.total);
            let first = |(column, _): &&(TeaColumn, Weights)| self.columns[column.column].primary;
            TeaInstruction {
                process: at + 1,
                pc: made.pc,
                label: made.label,
                text: made.text,
                cycles: made.cycles,
                stack: of(truth),
                stacks: sampled
                    .iter()
                    .filter(first)
                    .map(|(column, w)| (column.name.clone(), of(w)))
                    .collect(),
            }
        }));
    }

    /// The whole.
    pub(crate) fn finish(self) -> TeaReport {
        self.report
    }
}

fn process(
    at: usize,
    rows: &Rows,
    name: &str,
    truth: &Weights,
    sampled: &[(TeaColumn, Weights)],
) -> TeaProcess {
    let whole = |w: &Weights| stack(&w.list, w.total);
    let keys = Levels::from_fn(|level| &rows.keys(level).of_row[..]);
    let of_truth = Levels::from_fn(|level| sums(keys.get(level), truth));
    let stack = whole(truth);
    let mut events = EventStack::new();
    for (signature, share) in &stack {
        for event in signature.split('|').filter(|event| *event != NO_EVENT) {
            *events.entry(event.to_owned()).or_default() += share;
        }
    }
    TeaProcess {
        process: at + 1,
        name: name.to_owned(),
        stack,
        stacks: sampled.iter().map(|(column, w)| (column.name.clone(), whole(w))).collect(),
        events,
        errors: sampled
            .iter()
            .map(|(column, w)| {
                let of = |level| {
                    let found = sums(keys.get(level), w);
                    error(of_truth.get(level), truth.total, &found, w.total)
                };
                (column.name.clone(), Levels::from_fn(of))
            })
            .collect(),
    }
}

fn name(column: &Column) -> String {
    let kind = match column.profiler {
        Some(Profiler::Tip) | None => "tea".to_owned(),
        Some(other) => format!("{other}-tea"),
    };
    match column.name.strip_prefix(column.label()) {
        Some(rate) => kind + rate,
        None => format!("{kind} {}", column.name),
    }
}

/// Shares of `total` by signature, from weights in the same unit.
fn stack(weights: &[(u32, u16, u64)], total: u64) -> EventStack {
    let mut sums: BTreeMap<u16, u64> = BTreeMap::new();
    for (_, events, units) in weights {
        *sums.entry(*events).or_default() += units;
    }
    let named = |events: u16| match events {
        0 => NO_EVENT.to_owned(),
        _ => TeaEvents(events).to_string(),
    };
    sums.into_iter().map(|(events, units)| (named(events), units as f64 / total as f64)).collect()
}

/// The profile error over (symbol, signature), from both sums and their totals.
fn error(truth: &Sums, truth_total: u64, found: &Sums, found_total: u64) -> f64 {
    if truth_total == 0 || found_total == 0 {
        return if truth_total == found_total { 0.0 } else { 1.0 };
    }
    let (all_truth, all_found) = (u128::from(truth_total), u128::from(found_total));
    // In integers, each side scaled by the other's total: exactly 0 for equal distributions.
    let correct: u128 = found
        .iter()
        .map(|(symbol, units)| {
            let truth = truth.get(symbol).copied().unwrap_or(0);
            (u128::from(*units) * all_truth).min(u128::from(truth) * all_found)
        })
        .sum();
    let total = all_truth * all_found;
    (total - correct) as f64 / total as f64
}

impl TeaReport {
    /// The stacks of a process, by its index into [`crate::Common::processes`].
    pub fn process(&self, process: usize) -> Option<&TeaProcess> {
        self.processes.iter().find(|row| row.process == process)
    }

    /// The value of an error at a level.
    pub fn error(&self, process: usize, column: &TeaColumn, level: Level) -> Option<f64> {
        Some(*self.process(process)?.errors.get(&column.name)?.get(level))
    }
}
