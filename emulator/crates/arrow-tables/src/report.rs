//! The tables of a report.

use std::collections::BTreeSet;

use ::report::{CountedEvents, REPORT_FORMAT, UnknownFormat, check_format};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use profile::Margin;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::{
    COUNTERS, CYCLE_STACK, ERRORS, FUNCTIONS, INSTRUCTIONS, LOOPS, PROCESSES, TOP_DOWN, WINDOWS,
};
use crate::report_file::{ProfiledCode, ReportFile, Stack};
use crate::rows::{JsonRow, batch_of_rows, row};
use crate::schema::Table;

/// Why there is no such table.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A table that is none of a report.
    #[error("expected a table of a report, found {0}")]
    NotOfAReport(&'static str),
    /// The report is of a later version.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// A file is not one of `tipsim run`.
    #[error("{file}: {error}")]
    File {
        /// The file: `report.json`, or `run.json`.
        file: &'static str,
        /// What is wrong with it, and where.
        error: serde_path_to_error::Error<serde_json::Error>,
    },
    /// Arrow cannot hold the table.
    #[error("{0}")]
    Arrow(#[from] ArrowError),
}

/// A table of a report, from its `report.json` and, for counters, the run's `run.json`; empty if the run did not collect it.
///
/// # Errors
/// If it is none of a report, or the report is of a later version or lacks what each has.
pub fn report_table(
    table: &'static Table,
    report: &Value,
    run: &Value,
) -> Result<RecordBatch, ReportError> {
    check_format(report, REPORT_FORMAT)?;
    if table.name == COUNTERS.name {
        let run: Option<CountedEvents> = read("run.json", run)?;
        return Ok(batch_of_rows(table, &[], &counters(&run.unwrap_or_default()))?);
    }
    let report: ReportFile = read("report.json", report)?;
    let columns = SamplerColumns::new(&report);
    let (rows, more): (Vec<JsonRow>, &[String]) = match table.name {
        name if name == PROCESSES.name => (report.processes(), &[]),
        name if name == ERRORS.name => (report.errors(), &[]),
        name if name == FUNCTIONS.name => (report.functions(&columns), &columns.names),
        name if name == INSTRUCTIONS.name => (report.instructions(&columns), &columns.names),
        name if name == LOOPS.name => (report.loops(), &[]),
        name if name == TOP_DOWN.name => (report.top_down(), &[]),
        name if name == WINDOWS.name => (report.windows(), &[]),
        other => return Err(ReportError::NotOfAReport(other)),
    };
    Ok(batch_of_rows(table, more, &rows)?)
}

/// Returns what a file holds.
fn read<'a, T: Deserialize<'a>>(file: &'static str, content: &'a Value) -> Result<T, ReportError> {
    serde_path_to_error::deserialize(content).map_err(|error| ReportError::File { file, error })
}

/// Columns for the shares by each sampler, and for the margins of those shares if the report has some.
struct SamplerColumns {
    /// Names of the columns, which want no quotes in SQL.
    names: Vec<String>,
    /// By sampler, index into the names of the share's column and, if there is one, of the margin's.
    samplers: Vec<(usize, Option<usize>)>,
}

impl SamplerColumns {
    fn new(report: &ReportFile) -> Self {
        let fixed =
            |table: &'static Table| table.fixed_columns().map(|column| column.name.to_owned());
        let mut taken: BTreeSet<String> = fixed(&FUNCTIONS).chain(fixed(&INSTRUCTIONS)).collect();
        let functions = report.functions.iter().map(|function| &function.code);
        let codes = || functions.clone().chain(report.instructions.iter().map(|one| &one.code));
        let mut columns = Self { names: Vec::new(), samplers: Vec::new() };
        for (number, sampler) in report.columns.iter().enumerate() {
            let share = columns.names.len();
            columns.names.push(plain(&sampler.name, &mut taken));
            let has_margins = codes().any(|code| code.share_margin(number).is_some());
            let margin = has_margins.then(|| {
                let name = format!("{}_margin_95", columns.names[share]);
                columns.names.push(plain(&name, &mut taken));
                share + 1
            });
            columns.samplers.push((share, margin));
        }
        columns
    }

    /// Adds a row's share by each sampler, and the margins of those shares.
    fn add(&self, row: &mut JsonRow, code: &ProfiledCode) {
        for (number, &(share, margin)) in self.samplers.iter().enumerate() {
            let value = code.shares.get(number).copied().flatten();
            row.insert(self.names[share].clone(), json!(value));
            if let Some(margin) = margin {
                let value = code.share_margin(number).map(|margin| margin.within_95);
                row.insert(self.names[margin].clone(), json!(value));
            }
        }
    }
}

/// Returns the name with an underscore for each character that would make it want quotes in SQL, different from those that are `taken`.
fn plain(name: &str, taken: &mut BTreeSet<String>) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut plain: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_digit()) {
        plain.insert(0, '_');
    }
    while !taken.insert(plain.clone()) {
        plain.push('_');
    }
    plain
}

/// Adds the categories of a stack.
fn categories(row: &mut JsonRow, stack: &Stack) {
    for (column, share) in CYCLE_STACK.iter().zip(stack) {
        row.insert(column.name.to_owned(), json!(share));
    }
}

/// Adds two columns, for 95 and for 99.7 % of seeds.
fn margins(row: &mut JsonRow, of: &str, margin: Option<Margin>) {
    row.insert(format!("{of}_95"), json!(margin.map(|margin| margin.within_95)));
    row.insert(format!("{of}_99_7"), json!(margin.map(|margin| margin.within_99_7)));
}

impl ReportFile {
    /// Returns the name of a process, if there is one of that number.
    fn process_name(&self, index: usize) -> Option<&str> {
        self.processes.get(index).map(|process| &*process.name)
    }

    fn processes(&self) -> Vec<JsonRow> {
        let rows = self.processes.iter().map(|process| {
            let mut row = row([
                ("process", json!(process.name)),
                ("command", json!(process.command)),
                ("pid", json!(process.pid)),
                ("class", json!(process.class)),
                ("cycles", json!(process.cycles)),
                ("share", json!(process.share)),
            ]);
            categories(&mut row, &process.stack);
            row
        });
        rows.collect()
    }

    fn errors(&self) -> Vec<JsonRow> {
        let mut rows = Vec::new();
        for process in &self.processes {
            let found = self.columns.iter().zip(&process.errors).zip(&process.samples);
            for ((sampler, errors), samples) in found {
                let Some(errors) = errors else { continue };
                let levels = [
                    ("function", &errors.function),
                    ("block", &errors.block),
                    ("instruction", &errors.instruction),
                ];
                for (level, error) in levels {
                    let Some(error) = error else { continue };
                    let period = sampler.schedule.as_ref().map(|schedule| schedule.period);
                    let mut row = row([
                        ("process", json!(process.name)),
                        ("sampler", json!(sampler.name)),
                        ("profiler", json!(sampler.profiler)),
                        ("period", json!(period)),
                        ("level", json!(level)),
                        ("samples", json!(samples)),
                        ("error", json!(error.error)),
                        ("sampling_error", json!(error.sampling)),
                    ]);
                    margins(&mut row, "error_margin", error.margin);
                    rows.push(row);
                }
            }
        }
        rows
    }

    /// Returns what functions and instructions have in common.
    fn code(&self, code: &ProfiledCode, columns: &SamplerColumns) -> JsonRow {
        let process = self.processes.get(code.process);
        let mut row = row([
            ("process", json!(process.map(|process| &process.name))),
            ("pid", json!(process.and_then(|process| process.pid))),
            ("cycles", json!(code.cycles)),
            ("oracle", json!(code.share)),
            ("store_queue", json!(code.store_queue)),
        ]);
        margins(&mut row, "oracle_margin", code.margins.as_ref().map(|margins| margins.share));
        categories(&mut row, &code.stack);
        columns.add(&mut row, code);
        row
    }

    fn functions(&self, columns: &SamplerColumns) -> Vec<JsonRow> {
        let rows = self.functions.iter().map(|function| {
            let module = self.modules.get(function.module).map(|module| &module.path);
            let mut row = self.code(&function.code, columns);
            row.insert("function".to_owned(), json!(function.name));
            row.insert("module".to_owned(), json!(module));
            row.insert("total".to_owned(), json!(function.total));
            row
        });
        rows.collect()
    }

    fn instructions(&self, columns: &SamplerColumns) -> Vec<JsonRow> {
        let rows = self.instructions.iter().map(|instruction| {
            let mut row = self.code(&instruction.code, columns);
            for (name, value) in [
                ("pc", json!(instruction.pc)),
                ("function", json!(instruction.function)),
                ("label", json!(instruction.label)),
                ("inlined", json!(instruction.inlined)),
                ("source", json!(instruction.source)),
                ("library_source", json!(instruction.library_source)),
                ("instruction", json!(instruction.text)),
            ] {
                row.insert(name.to_owned(), value);
            }
            row
        });
        rows.collect()
    }

    fn loops(&self) -> Vec<JsonRow> {
        let loops = self.loops.iter().flat_map(|section| &section.loops);
        let rows = loops.map(|found| {
            row([
                ("process", json!(self.process_name(found.process))),
                ("function", json!(found.function)),
                ("label", json!(found.label)),
                ("source", json!(found.source)),
                ("depth", json!(found.depth)),
                ("cycles", json!(found.cycles)),
                ("share", json!(found.share)),
                ("own_share", json!(found.own_share)),
                ("iterations", json!(found.iterations)),
                ("trips", json!(found.trips)),
                ("measured", json!(found.measured)),
                ("cycles_per_iteration", json!(found.cycles_per_iteration)),
                ("instructions_per_iteration", json!(found.instructions_per_iteration)),
                ("decode_bound", json!(found.least.decode)),
                ("int_bound", json!(found.least.int)),
                ("mem_bound", json!(found.least.mem)),
                ("fp_bound", json!(found.least.fp)),
                ("binds", json!(found.causes.first().map(|first| &first.cause))),
            ])
        });
        rows.collect()
    }

    fn top_down(&self) -> Vec<JsonRow> {
        let mut rows = Vec::new();
        for process in self.top_down.iter().flat_map(|section| &section.processes) {
            for (node, share) in &process.shares {
                let mut row = row([
                    ("process", json!(process.name)),
                    ("slots", json!(process.slots)),
                    ("node", json!(node)),
                    ("share", json!(share)),
                ]);
                margins(&mut row, "margin", process.margins.get(node).copied());
                rows.push(row);
            }
        }
        rows
    }

    fn windows(&self) -> Vec<JsonRow> {
        let mut rows = Vec::new();
        for window in self.top_down.iter().flat_map(|section| &section.windows) {
            for (index, stack) in &window.stacks {
                let process = index.parse().ok().and_then(|index| self.process_name(index));
                let mut row = row([
                    ("process", json!(process)),
                    ("start", json!(window.start)),
                    ("end_cycle", json!(window.end)),
                    ("cycles", json!(window.cycles)),
                ]);
                categories(&mut row, stack);
                rows.push(row);
            }
        }
        rows
    }
}

fn counters(run: &CountedEvents) -> Vec<JsonRow> {
    let mut rows = Vec::new();
    let Some(counters) = &run.counters else { return rows };
    for (hart, counts) in counters.harts.iter().enumerate() {
        for (event, count) in counts {
            let estimate = counters.estimates.get(event);
            let margin = estimate.map(|estimate| Margin {
                within_95: estimate.within_95.half_width,
                within_99_7: estimate.within_99_7.half_width,
            });
            let mut row = row([
                ("hart", json!(hart)),
                ("event", json!(event)),
                ("count", json!(count)),
                ("estimate", json!(estimate.map(|estimate| estimate.value))),
            ]);
            margins(&mut row, "estimate_margin", margin);
            rows.push(row);
        }
    }
    rows
}
