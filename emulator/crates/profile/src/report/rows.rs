//! The rows of the tables: functions and instructions with every column's share.

use std::cmp::Reverse;
use std::collections::HashMap;

use commit_trace::InstFacts;

use super::gather::Rows;
use super::model::{FunctionRow, InstructionRow};
use crate::Evaluation;
use crate::symbolize::{FunctionId, Location, Symbols};

/// Rows that a report keeps: more than anybody reads, few enough for a page.
const MAX_INSTRUCTIONS: usize = 10_000;
const MAX_FUNCTIONS: usize = 2_000;

/// What rows are made from.
pub(super) struct Selection<'a> {
    pub evaluation: &'a Evaluation,
    pub symbols: &'a Symbols,
    pub disassemble: &'a dyn Fn(u32, u64) -> String,
    pub units: f64,
}

/// A function row and where it came from.
pub(super) struct Function {
    pub row: FunctionRow,
    /// Index into the gathered processes.
    pub process: usize,
    pub id: FunctionId,
}

/// Scales a column's weights to shares of a process.
fn share(part: u64, total: u64) -> f64 {
    if total == 0 {
        0.0
    } else {
        part as f64 / total as f64
    }
}

/// Functions of all processes, the most expensive by the Oracle first.
pub(super) fn functions(selection: &Selection<'_>, gathered: &[Rows]) -> Vec<Function> {
    let mut out = Vec::new();
    for (process, rows) in gathered.iter().enumerate() {
        let keys = &rows.function;
        let oracle = keys.sum(rows.oracle.iter().copied().enumerate());
        let columns: Vec<Vec<u64>> = rows
            .columns
            .iter()
            .map(|c| keys.sum(c.by_row.iter()))
            .collect();
        let mut stacks = vec![[0u64; 7]; keys.count];
        let mut ids = vec![FunctionId(0); keys.count];
        for (row, key) in keys.of_row.iter().enumerate() {
            let key = *key as usize;
            for (sum, part) in stacks[key]
                .iter_mut()
                .zip(rows.stack(selection.evaluation, row))
            {
                *sum += part;
            }
            ids[key] = selection.symbols.locations[rows.places[row] as usize].function;
        }
        for key in 0..keys.count {
            let function = selection.symbols.function(ids[key]);
            out.push(Function {
                process,
                id: ids[key],
                row: FunctionRow {
                    process: process + 1,
                    name: function.name.to_string(),
                    module: function.module.0 as usize,
                    cycles: oracle[key] as f64 / selection.units,
                    share: share(oracle[key], rows.oracle_total),
                    stack: stacks[key].map(|units| share(units, rows.oracle_total)),
                    shares: columns
                        .iter()
                        .zip(&rows.columns)
                        .map(|(sums, column)| share(sums[key], column.total))
                        .collect(),
                },
            });
        }
    }
    out.sort_by(|a, b| {
        b.row
            .cycles
            .total_cmp(&a.row.cycles)
            .then(a.process.cmp(&b.process))
            .then(a.id.cmp(&b.id))
    });
    out.truncate(MAX_FUNCTIONS);
    out
}

/// The instructions that the Oracle or any column gives most cycles to, by the Oracle's order. The
/// first half of the room is for the processes in focus.
pub(super) fn instructions(
    selection: &Selection<'_>,
    gathered: &[Rows],
    focus: &[usize],
) -> Vec<InstructionRow> {
    // Units, process and row: the best in focus and of the rest, as many as there is room for.
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (process, rows) in gathered.iter().enumerate() {
        let mut most = rows.oracle.clone();
        for (row, units) in rows.columns.iter().flat_map(|column| column.by_row.iter()) {
            most[row] = most[row].max(units);
        }
        let own = most.into_iter().enumerate();
        let best = match focus.contains(&(process + 1)) {
            true => &mut first,
            false => &mut rest,
        };
        best.extend(own.map(|(row, units)| (units, process, row)));
        best.sort_unstable_by_key(|&(units, process, row)| (Reverse(units), process, row));
        best.truncate(MAX_INSTRUCTIONS);
    }
    let rest_room = MAX_INSTRUCTIONS - first.len().min(MAX_INSTRUCTIONS / 2);
    let rest_count = rest.len().min(rest_room);
    first.truncate(MAX_INSTRUCTIONS - rest_count);
    first.extend(rest.into_iter().take(rest_count));
    let picked = first;
    let mut maker = Maker::new(selection);
    let mut out: Vec<InstructionRow> = picked
        .into_iter()
        .map(|(_, process, row)| maker.instruction(&gathered[process], process, row))
        .collect();
    out.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    out
}

/// Makes instruction rows; remembers disassembly, which processes share.
pub(super) struct Maker<'a> {
    selection: &'a Selection<'a>,
    texts: HashMap<(u32, u64), String>,
}

impl<'a> Maker<'a> {
    pub fn new(selection: &'a Selection<'a>) -> Self {
        Self {
            selection,
            texts: HashMap::new(),
        }
    }

    pub fn instruction(&mut self, rows: &Rows, process: usize, row: usize) -> InstructionRow {
        let Selection {
            evaluation,
            symbols,
            disassemble,
            units,
        } = self.selection;
        let place = rows.places[row] as usize;
        let at = &symbols.locations[place];
        let InstFacts { raw, pc, .. } = evaluation.facts[rows.insts[row].0 as usize];
        let text = self
            .texts
            .entry((raw, pc))
            .or_insert_with(|| disassemble(raw, pc));
        InstructionRow {
            process: process + 1,
            pc: format!("{pc:x}"),
            label: symbols.label(place),
            function: symbols.function(at.function).name.to_string(),
            inlined: at
                .inlined
                .iter()
                .map(|frame| frame.function.to_string())
                .collect(),
            source: source(at),
            text: text.clone(),
            cycles: rows.oracle[row] as f64 / units,
            share: share(rows.oracle[row], rows.oracle_total),
            stack: { rows.stack(evaluation, row) }.map(|units| share(units, rows.oracle_total)),
            shares: rows
                .columns
                .iter()
                .map(|c| share(c.by_row.get(row), c.total))
                .collect(),
        }
    }
}

fn source(at: &Location) -> Option<String> {
    at.source
        .as_ref()
        .map(|source| format!("{}:{}", source.file, source.line))
}
