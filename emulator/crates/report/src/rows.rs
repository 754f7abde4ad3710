//! The rows of the tables: functions and instructions with every column's share.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use commit_trace::{InstId, StaticInfo};
use profile::topdown::Slots;
use profile::{Evaluation, Margin};
use symbols::{FunctionId, Location, Source, Symbols};

use super::gather::{Gathered, Rows, SubsampleRows, Weights};
use super::margins::SubsampleTotals;
use super::tables::{FunctionRow, InstructionRow};

/// Rows that a report keeps: more than anybody reads, few enough for a page.
const MAX_INSTRUCTIONS: usize = 10_000;
const MAX_FUNCTIONS: usize = 10_000;

/// The inputs from which rows are made.
pub(super) struct Selection<'a> {
    pub evaluation: &'a Evaluation,
    pub symbols: &'a Symbols,
    pub disassemble: &'a dyn Fn(u32, u64) -> String,
    pub units: f64,
    pub subsample_totals: &'a SubsampleTotals,
}

/// A function row and where it came from.
pub(super) struct Function {
    pub row: FunctionRow,
    /// Index into the gathered processes.
    pub process: usize,
    pub id: FunctionId,
    /// The function's commit slots; all 0 if they were not counted.
    pub slots: Slots,
}

/// Scales a column's weights to shares of a process.
fn share(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

/// Units of a process by subsample.
fn totals(subsamples: &[SubsampleRows]) -> Vec<u64> {
    subsamples.iter().map(|of| of.stack.iter().sum()).collect()
}

/// Returns the margins of the shares that columns give to a part, by the number of the column; `part` is what each subsample of a column has of it.
fn share_margins(
    selection: &Selection<'_>,
    columns: &[Weights],
    part: impl Fn(usize) -> Vec<u64>,
) -> BTreeMap<usize, Margin> {
    let known = columns.iter().enumerate().filter(|(_, column)| !column.subsamples.is_empty());
    let margin = |(at, column): (usize, &Weights)| {
        let whole = &column.subsample_totals;
        Some((at, selection.subsample_totals.margin_of_share(&part(at), whole)?))
    };
    known.filter_map(margin).collect()
}

/// The functions with the most time by the Oracle, of the processes added so far.
#[derive(Default)]
pub(super) struct Functions(Vec<Function>);

impl Functions {
    /// Adds the functions of the process at `process` among the gathered.
    pub(crate) fn add(&mut self, selection: &Selection<'_>, process: usize, rows: &Rows) {
        let evaluation = selection.evaluation;
        let keys = &rows.function;
        let oracle = keys.sum(rows.oracle.iter().copied().enumerate());
        let columns: Vec<Vec<u64>> =
            rows.columns.iter().map(|c| keys.sum(c.by_row.iter())).collect();
        let subsamples: Vec<Vec<u64>> =
            rows.subsamples.iter().map(|of| keys.sum(of.by_row.iter())).collect();
        let whole = totals(&rows.subsamples);
        let of_column = |column: &Weights| {
            let parts = column.subsamples.iter().map(|part| keys.sum(part.iter()));
            parts.collect::<Vec<_>>()
        };
        let column_subsamples: Vec<_> = rows.columns.iter().map(of_column).collect();
        let mut stacks = vec![[0u64; 7]; keys.count];
        let mut store_queue = vec![0; keys.count];
        let mut ids = vec![FunctionId(0); keys.count];
        for (row, key) in keys.of_row.iter().enumerate() {
            let key = *key as usize;
            for (sum, part) in stacks[key].iter_mut().zip(rows.stacks[row]) {
                *sum += part;
            }
            store_queue[key] += rows.store_queue[row];
            ids[key] = selection.symbols.locations[rows.places[row] as usize].function;
        }
        let mut slots = vec![Slots::default(); keys.count];
        for (inst, slot, count) in evaluation.top_down.iter().flat_map(|t| t.of(rows.process)) {
            if let Ok(row) = rows.insts.binary_search(&inst) {
                slots[keys.of_row[row] as usize][slot] += count;
            }
        }
        for key in 0..keys.count {
            let function = selection.symbols.function(ids[key]);
            let by_subsample: Vec<u64> = subsamples.iter().map(|of| of[key]).collect();
            self.0.push(Function {
                process,
                id: ids[key],
                slots: slots[key],
                row: FunctionRow {
                    process: process + 1,
                    name: function.name.to_string(),
                    module: function.module.0 as usize,
                    cycles: oracle[key] as f64 / selection.units,
                    share: share(oracle[key], rows.oracle_total),
                    margins: selection.subsample_totals.margins(&by_subsample, &whole),
                    by_subsample,
                    total: None,
                    stack: stacks[key].map(|units| share(units, rows.oracle_total)),
                    store_queue: share(store_queue[key], rows.oracle_total),
                    shares: columns
                        .iter()
                        .zip(&rows.columns)
                        .map(|(sums, column)| share(sums[key], column.totals.total))
                        .collect(),
                    share_margins: share_margins(selection, &rows.columns, |column| {
                        column_subsamples[column].iter().map(|parts| parts[key]).collect()
                    }),
                    missing: selection.symbols.missing(ids[key]),
                },
            });
        }
        if self.0.len() > 2 * MAX_FUNCTIONS {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.0.sort_by(|a, b| {
            b.row
                .cycles
                .total_cmp(&a.row.cycles)
                .then(a.process.cmp(&b.process))
                .then(a.id.cmp(&b.id))
        });
        self.0.truncate(MAX_FUNCTIONS);
    }

    /// Returns the functions, the most expensive first.
    pub(crate) fn finish(mut self) -> Vec<Function> {
        self.cut();
        self.0
    }
}

/// The instructions that the Oracle or any column gives most cycles to, of the processes seen so far: units, process
/// (an index into the gathered ones) and row.
#[derive(Default)]
pub(super) struct Instructions {
    /// Instructions of the processes in focus (`first`) and of the others (`rest`), each at most [`MAX_INSTRUCTIONS`].
    first: Vec<(u64, usize, usize)>,
    rest: Vec<(u64, usize, usize)>,
}

impl Instructions {
    /// Adds the instructions of a process.
    pub(crate) fn add(&mut self, process: usize, rows: &Rows, in_focus: bool) {
        let mut most = rows.oracle.clone();
        for (row, units) in rows.columns.iter().flat_map(|column| column.by_row.iter()) {
            most[row] = most[row].max(units);
        }
        let own = most.into_iter().enumerate();
        let best = if in_focus { &mut self.first } else { &mut self.rest };
        best.extend(own.map(|(row, units)| (units, process, row)));
        best.sort_unstable_by_key(|&(units, process, row)| (Reverse(units), process, row));
        best.truncate(MAX_INSTRUCTIONS);
    }

    /// Returns the rows of the instructions, those with most cycles by the Oracle first. At least half of
    /// [`MAX_INSTRUCTIONS`] is for the processes in focus, if they have as many.
    pub(crate) fn finish(
        self,
        selection: &Selection<'_>,
        gathered: &Gathered<'_>,
    ) -> Vec<InstructionRow> {
        let Self { first: mut picked, rest } = self;
        let rest_room = MAX_INSTRUCTIONS - picked.len().min(MAX_INSTRUCTIONS / 2);
        let rest_count = rest.len().min(rest_room);
        picked.truncate(MAX_INSTRUCTIONS - rest_count);
        picked.extend(rest.into_iter().take(rest_count));
        // Process after process, since the rows of one are made at a time.
        let mut order: Vec<usize> = (0..picked.len()).collect();
        order.sort_by_key(|at| picked[*at].1);
        let mut builder = RowBuilder::new(selection);
        let mut out: Vec<Option<InstructionRow>> = vec![None; picked.len()];
        for same in order.chunk_by(|one, next| picked[*one].1 == picked[*next].1) {
            let process = picked[same[0]].1;
            let rows = gathered.rows(process);
            for at in same {
                out[*at] = Some(builder.instruction(&rows, process, picked[*at].2));
            }
        }
        let mut out: Vec<InstructionRow> = out.into_iter().flatten().collect();
        out.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
        out
    }
}

/// Names and texts of an instruction.
pub(super) struct Code {
    /// The function that the instruction is in.
    pub function: String,
    /// The place in the function: the function's name, with the distance from its start.
    pub label: String,
    /// Address, in hexadecimal.
    pub pc: String,
    /// Disassembly, in one line.
    pub text: String,
    /// `file:line` of the program, if known.
    pub source: Option<String>,
    /// `file:line` of library code that is inlined there.
    pub library_source: Option<String>,
}

/// Makes instruction rows; remembers disassembly, which processes share.
pub(super) struct RowBuilder<'a> {
    selection: &'a Selection<'a>,
    texts: HashMap<(u32, u64), String>,
}

impl<'a> RowBuilder<'a> {
    pub(crate) fn new(selection: &'a Selection<'a>) -> Self {
        Self { selection, texts: HashMap::new() }
    }

    /// Returns the privilege mode of a row's instruction.
    pub(crate) fn privilege(&self, rows: &Rows, row: usize) -> u8 {
        self.selection.evaluation.static_info[rows.insts[row].0 as usize].privilege
    }

    /// Returns the name of a row's function.
    pub(crate) fn function(&self, rows: &Rows, row: usize) -> String {
        let symbols = self.selection.symbols;
        let at = &symbols.locations[rows.places[row] as usize];
        symbols.function(at.function).name.to_string()
    }

    /// Returns names and texts of an instruction, whose location is `place` in the symbols.
    pub(crate) fn code(&mut self, inst: InstId, place: usize) -> Code {
        let symbols = self.selection.symbols;
        let at = &symbols.locations[place];
        let StaticInfo { raw, pc, .. } = self.selection.evaluation.static_info[inst.0 as usize];
        Code {
            function: symbols.function(at.function).name.to_string(),
            label: symbols.label(place),
            pc: format!("{pc:x}"),
            text: self.text(raw, at.offset).replace('\t', " "),
            source: source(at),
            library_source: at.library_line().map(line),
        }
    }

    fn text(&mut self, raw: u32, address: u64) -> &str {
        let disassemble = self.selection.disassemble;
        let text = self.texts.entry((raw, address));
        text.or_insert_with(|| disassemble(raw, address))
    }

    pub(crate) fn instruction(
        &mut self,
        rows: &Rows,
        process: usize,
        row: usize,
    ) -> InstructionRow {
        let Selection { evaluation, symbols, units, .. } = self.selection;
        let place = rows.places[row] as usize;
        let at = &symbols.locations[place];
        let StaticInfo { raw, pc, .. } = evaluation.static_info[rows.insts[row].0 as usize];
        let text = self.text(raw, at.offset).to_owned();
        let by_subsample: Vec<u64> = rows.subsamples.iter().map(|of| of.by_row.get(row)).collect();
        let margins =
            self.selection.subsample_totals.margins(&by_subsample, &totals(&rows.subsamples));
        let share_margins = share_margins(self.selection, &rows.columns, |column| {
            rows.columns[column].subsamples.iter().map(|part| part.get(row)).collect()
        });
        InstructionRow {
            process: process + 1,
            inst: rows.insts[row],
            pc: format!("{pc:x}"),
            address: format!("{:x}", at.offset),
            label: symbols.label(place),
            function: symbols.function(at.function).name.to_string(),
            inlined: at.inlined.iter().map(|frame| frame.function.to_string()).collect(),
            source: source(at),
            library_source: at.library_line().map(line),
            text,
            cycles: rows.oracle[row] as f64 / units,
            share: share(rows.oracle[row], rows.oracle_total),
            margins,
            stack: rows.stacks[row].map(|units| share(units, rows.oracle_total)),
            store_queue: share(rows.store_queue[row], rows.oracle_total),
            shares: rows.columns.iter().map(|c| share(c.by_row.get(row), c.totals.total)).collect(),
            share_margins,
        }
    }
}

/// Returns `file:line`.
pub(super) fn line(source: &Source) -> String {
    format!("{}:{}", source.file, source.line)
}

fn source(at: &Location) -> Option<String> {
    at.program_line().map(line)
}
