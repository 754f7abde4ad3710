//! Time by event, per process and instruction: TEA (ISCA 2023), see [`crate::Signatures`].

use std::collections::{BTreeMap, HashMap};

use commit_trace::{InstId, TeaEvents};
use serde::Serialize;

use super::gather::Rows;
use super::model::{Column, Levels};
use super::published::Level;
use super::rows::Maker;
use crate::{Evaluation, Profiler};

/// Instructions per process with a stack, the most expensive first.
const MAX_INSTRUCTIONS: usize = 100;
/// The signature of what met no event.
const NONE: &str = "none";

/// The report's part on events.
#[derive(Clone, Debug, Serialize)]
pub struct TeaReport {
    /// The profilers whose samples carry events.
    pub columns: Vec<TeaColumn>,
    /// Processes with time, in the order of [`super::Report::processes`], without "all".
    pub processes: Vec<TeaProcess>,
    /// The most expensive instructions of the processes in focus.
    pub instructions: Vec<TeaInstruction>,
}

/// A sampler whose samples carry events.
#[derive(Clone, Debug, Serialize)]
pub struct TeaColumn {
    /// `tea` for TIP's samples with their events, `nci-tea` and `dispatch-tea` for the others'; then the
    /// sampler's name, if that is not its profiler's.
    pub name: String,
    /// Index into [`super::Report::columns`].
    pub column: usize,
}

/// Time by signature: shares of the process's cycles, the events of a signature joined by `|`.
pub type EventStack = BTreeMap<String, f64>;

/// A process's time by event.
#[derive(Clone, Debug, Serialize)]
pub struct TeaProcess {
    /// Index into [`super::Report::processes`].
    pub process: usize,
    /// Its name.
    pub name: String,
    /// By the Oracle: every cycle.
    pub stack: EventStack,
    /// By each of [`TeaReport::columns`].
    pub stacks: BTreeMap<String, EventStack>,
    /// Share of the cycles in signatures with this event. Their sum may exceed 1: cycles of several events count
    /// for each.
    pub events: EventStack,
    /// Error of each column: as the profile error, of symbols that are (instruction, block or function) and
    /// signature.
    pub errors: BTreeMap<String, Levels<f64>>,
}

/// An instruction's time by event.
#[derive(Clone, Debug, Serialize)]
pub struct TeaInstruction {
    /// Index into [`super::Report::processes`].
    pub process: usize,
    /// Address, in hexadecimal.
    pub pc: String,
    /// Function it is in, with its distance from the start.
    pub label: String,
    /// Disassembly.
    pub text: String,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// By the Oracle, as shares of the process; their sum is the instruction's share.
    pub stack: EventStack,
    /// By the first column of each profiler.
    pub stacks: BTreeMap<String, EventStack>,
}

/// Units per row of a process and signature, ascending.
#[derive(Clone, Default)]
struct Weights {
    list: Vec<(u32, u16, u64)>,
    total: u64,
}

impl Weights {
    /// Those of one row.
    fn of(&self, row: u32) -> &[(u32, u16, u64)] {
        let start = self.list.partition_point(|(r, ..)| *r < row);
        let end = self.list.partition_point(|(r, ..)| *r <= row);
        &self.list[start..end]
    }
}

/// Units per symbol and signature.
type Sums = HashMap<(u32, u16), u64>;

fn sums(symbols: &[u32], weights: &Weights) -> Sums {
    let mut sums = Sums::new();
    for (row, events, units) in &weights.list {
        *sums.entry((symbols[*row as usize], *events)).or_default() += units;
    }
    sums
}

pub(super) fn tea(
    evaluation: &Evaluation,
    gathered: &[Rows],
    names: &[String],
    columns: &[Column],
    focus: &[usize],
    maker: &mut Maker<'_>,
) -> Option<TeaReport> {
    let truth = evaluation.signatures.as_ref()?;
    let of_process: HashMap<_, _> = gathered
        .iter()
        .enumerate()
        .map(|(at, rows)| (rows.process, at))
        .collect();
    let by_process = |weights: Vec<(crate::ProcessId, InstId, TeaEvents, u64)>| {
        let mut out = vec![Weights::default(); gathered.len()];
        for (process, inst, events, units) in weights {
            if let Some(at) = of_process.get(&process)
                && let Ok(row) = gathered[*at].insts.binary_search(&inst)
            {
                out[*at].list.push((row as u32, events.0, units));
                out[*at].total += units;
            }
        }
        out
    };
    let truth = by_process(truth.with_base(&evaluation.oracle));
    let sampled: Vec<(TeaColumn, Vec<Weights>)> = evaluation
        .samplers
        .iter()
        .enumerate()
        .filter_map(|(column, result)| {
            let weights = by_process(result.signatures.as_ref()?.with_base(&result.profile));
            Some((
                TeaColumn {
                    name: name(&columns[column]),
                    column,
                },
                weights,
            ))
        })
        .collect();
    let processes = (0..gathered.len())
        .filter(|at| gathered[*at].oracle_total > 0)
        .map(|at| {
            let whole = |w: &Weights| stack(&w.list, w.total);
            let keys = Levels::from_fn(|level| &gathered[at].keys(level).of_row[..]);
            let of_truth = Levels::from_fn(|level| sums(keys.get(level), &truth[at]));
            let stack = whole(&truth[at]);
            let mut events = EventStack::new();
            for (signature, share) in &stack {
                for event in signature.split('|').filter(|event| *event != NONE) {
                    *events.entry(event.to_owned()).or_default() += share;
                }
            }
            TeaProcess {
                process: at + 1,
                name: names[at].clone(),
                stack,
                stacks: sampled
                    .iter()
                    .map(|(column, w)| (column.name.clone(), whole(&w[at])))
                    .collect(),
                events,
                errors: sampled
                    .iter()
                    .map(|(column, w)| {
                        let of = |level| {
                            let found = sums(keys.get(level), &w[at]);
                            error(of_truth.get(level), truth[at].total, &found, w[at].total)
                        };
                        (column.name.clone(), Levels::from_fn(of))
                    })
                    .collect(),
            }
        });
    let processes = processes.collect();
    let mut instructions = Vec::new();
    for at in focus.iter().filter_map(|index| index.checked_sub(1)) {
        let rows = &gathered[at];
        let mut order: Vec<usize> = (0..rows.insts.len())
            .filter(|row| rows.oracle[*row] > 0)
            .collect();
        order.sort_by_key(|row| (std::cmp::Reverse(rows.oracle[*row]), *row));
        order.truncate(MAX_INSTRUCTIONS);
        instructions.extend(order.into_iter().map(|row| {
            let made = maker.instruction(rows, at, row);
            let of = |weights: &Weights| stack(weights.of(row as u32), weights.total);
            let first = |(column, _): &&(TeaColumn, Vec<Weights>)| columns[column.column].primary;
            TeaInstruction {
                process: at + 1,
                pc: made.pc,
                label: made.label,
                text: made.text,
                cycles: made.cycles,
                stack: of(&truth[at]),
                stacks: sampled
                    .iter()
                    .filter(first)
                    .map(|(column, w)| (column.name.clone(), of(&w[at])))
                    .collect(),
            }
        }));
    }
    Some(TeaReport {
        columns: sampled.into_iter().map(|(column, _)| column).collect(),
        processes,
        instructions,
    })
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

/// Shares by signature of these weights, of a whole of `total`.
fn stack(weights: &[(u32, u16, u64)], total: u64) -> EventStack {
    let mut sums: BTreeMap<u16, u64> = BTreeMap::new();
    for (_, events, units) in weights {
        *sums.entry(*events).or_default() += units;
    }
    let named = |events: u16| match events {
        0 => NONE.to_owned(),
        _ => TeaEvents(events).to_string(),
    };
    sums.into_iter()
        .map(|(events, units)| (named(events), units as f64 / total as f64))
        .collect()
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
    /// A process's part.
    pub fn process(&self, process: usize) -> Option<&TeaProcess> {
        self.processes.iter().find(|row| row.process == process)
    }

    /// The value of an error at a level.
    pub fn error(&self, process: usize, column: &TeaColumn, level: Level) -> Option<f64> {
        Some(*self.process(process)?.errors.get(&column.name)?.get(level))
    }
}
