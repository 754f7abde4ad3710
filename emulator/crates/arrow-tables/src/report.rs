//! The tables of a report.

use std::collections::BTreeSet;

use ::report::{REPORT_FORMAT, UnknownFormat, check_format};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use serde_json::{Value, json};

use crate::catalog::{
    COUNTERS, CYCLE_STACK, ERRORS, FUNCTIONS, INSTRUCTIONS, LOOPS, PROCESSES, TOP_DOWN, WINDOWS,
};
use crate::rows::{Row, batch_of_rows, row};
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
    /// The report is not one of `tipsim run`, or of another version.
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
    let report = Report(report);
    let samplers = report.samplers();
    let (rows, more): (Vec<Row>, &[String]) = match table.name {
        name if name == PROCESSES.name => (report.processes(), &[]),
        name if name == ERRORS.name => (report.errors(), &[]),
        name if name == FUNCTIONS.name => (report.functions(), &samplers),
        name if name == INSTRUCTIONS.name => (report.instructions(), &samplers),
        name if name == LOOPS.name => (report.loops(), &[]),
        name if name == TOP_DOWN.name => (report.top_down(), &[]),
        name if name == WINDOWS.name => (report.windows(), &[]),
        name if name == COUNTERS.name => (counters(run), &[]),
        other => return Err(ReportError::NotOfAReport(other)),
    };
    Ok(batch_of_rows(table, more, &rows)?)
}

struct Report<'a>(&'a Value);

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The name with an underscore for each character that would make it want quotes in SQL, different from those that are `taken`.
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
fn categories(row: &mut Row, stack: &Value) {
    for (column, share) in CYCLE_STACK.iter().zip(array(stack)) {
        row.insert(column.name.to_owned(), share.clone());
    }
}

impl Report<'_> {
    /// Names of the samplers' columns, which want no quotes in SQL.
    fn samplers(&self) -> Vec<String> {
        let columns = array(&self.0["columns"]).iter();
        let names = columns.filter_map(|column| column["name"].as_str());
        let fixed =
            |table: &'static Table| table.fixed_columns().map(|column| column.name.to_owned());
        let mut taken: BTreeSet<String> = fixed(&FUNCTIONS).chain(fixed(&INSTRUCTIONS)).collect();
        names.map(|name| plain(name, &mut taken)).collect()
    }

    fn process(&self, index: &Value) -> &Value {
        let index = index.as_u64().unwrap_or(u64::MAX) as usize;
        &self.0["processes"][index]
    }

    /// Adds a sampler's share each.
    fn shares(&self, row: &mut Row, shares: &Value) {
        for (name, share) in self.samplers().into_iter().zip(array(shares)) {
            row.insert(name, share.clone());
        }
    }

    fn processes(&self) -> Vec<Row> {
        let rows = array(&self.0["processes"]).iter().map(|process| {
            let mut row = row([
                ("process", process["name"].clone()),
                ("command", process["command"].clone()),
                ("pid", process["pid"].clone()),
                ("class", process["class"].clone()),
                ("cycles", process["cycles"].clone()),
                ("share", process["share"].clone()),
            ]);
            categories(&mut row, &process["stack"]);
            row
        });
        rows.collect()
    }

    fn errors(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for process in array(&self.0["processes"]) {
            let columns = array(&self.0["columns"]).iter();
            let found = columns.zip(array(&process["errors"])).zip(array(&process["samples"]));
            for ((column, errors), samples) in found {
                for level in ["function", "block", "instruction"] {
                    let error = &errors[level];
                    if error.is_null() {
                        continue;
                    }
                    rows.push(row([
                        ("process", process["name"].clone()),
                        ("sampler", column["name"].clone()),
                        ("profiler", column["profiler"].clone()),
                        ("period", column["schedule"]["period"].clone()),
                        ("level", json!(level)),
                        ("samples", samples.clone()),
                        ("error", error["error"].clone()),
                        ("sampling_error", error["sampling"].clone()),
                        ("error_margin_95", error["margin"]["within_95"].clone()),
                        ("error_margin_99_7", error["margin"]["within_99_7"].clone()),
                    ]));
                }
            }
        }
        rows
    }

    fn functions(&self) -> Vec<Row> {
        let rows = array(&self.0["functions"]).iter().map(|function| {
            let process = self.process(&function["process"]);
            let module = function["module"].as_u64().unwrap_or(u64::MAX) as usize;
            let mut row = row([
                ("process", process["name"].clone()),
                ("pid", process["pid"].clone()),
                ("function", function["name"].clone()),
                ("module", self.0["modules"][module]["path"].clone()),
                ("cycles", function["cycles"].clone()),
                ("oracle", function["share"].clone()),
                ("oracle_margin_95", function["margins"]["share"]["within_95"].clone()),
                ("oracle_margin_99_7", function["margins"]["share"]["within_99_7"].clone()),
                ("total", function["total"].clone()),
                ("store_queue", function["store_queue"].clone()),
            ]);
            categories(&mut row, &function["stack"]);
            self.shares(&mut row, &function["shares"]);
            row
        });
        rows.collect()
    }

    fn instructions(&self) -> Vec<Row> {
        let rows = array(&self.0["instructions"]).iter().map(|instruction| {
            let process = self.process(&instruction["process"]);
            let mut row = row([
                ("process", process["name"].clone()),
                ("pid", process["pid"].clone()),
                ("pc", instruction["pc"].clone()),
                ("function", instruction["function"].clone()),
                ("label", instruction["label"].clone()),
                ("inlined", instruction["inlined"].clone()),
                ("source", instruction["source"].clone()),
                ("library_source", instruction["library_source"].clone()),
                ("instruction", instruction["text"].clone()),
                ("cycles", instruction["cycles"].clone()),
                ("oracle", instruction["share"].clone()),
                ("oracle_margin_95", instruction["margins"]["share"]["within_95"].clone()),
                ("oracle_margin_99_7", instruction["margins"]["share"]["within_99_7"].clone()),
                ("store_queue", instruction["store_queue"].clone()),
            ]);
            categories(&mut row, &instruction["stack"]);
            self.shares(&mut row, &instruction["shares"]);
            row
        });
        rows.collect()
    }

    fn loops(&self) -> Vec<Row> {
        let rows = array(&self.0["loops"]["loops"]).iter().map(|found| {
            let mut row = row([
                ("process", self.process(&found["process"])["name"].clone()),
                ("decode_bound", found["least"]["decode"].clone()),
                ("int_bound", found["least"]["int"].clone()),
                ("mem_bound", found["least"]["mem"].clone()),
                ("fp_bound", found["least"]["fp"].clone()),
                ("binds", found["causes"][0]["cause"].clone()),
            ]);
            for name in [
                "function",
                "label",
                "source",
                "depth",
                "cycles",
                "share",
                "own_share",
                "iterations",
                "trips",
                "measured",
                "cycles_per_iteration",
                "instructions_per_iteration",
            ] {
                row.insert(name.to_owned(), found[name].clone());
            }
            row
        });
        rows.collect()
    }

    fn top_down(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for process in array(&self.0["top_down"]["processes"]) {
            for (node, share) in process["shares"].as_object().into_iter().flatten() {
                rows.push(row([
                    ("process", process["name"].clone()),
                    ("slots", process["slots"].clone()),
                    ("node", json!(node)),
                    ("share", share.clone()),
                    ("margin_95", process["margins"][node]["within_95"].clone()),
                    ("margin_99_7", process["margins"][node]["within_99_7"].clone()),
                ]));
            }
        }
        rows
    }

    fn windows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for window in array(&self.0["top_down"]["windows"]) {
            for (index, stack) in window["stacks"].as_object().into_iter().flatten() {
                let index = json!(index.parse::<usize>().ok());
                let mut row = row([
                    ("process", self.process(&index)["name"].clone()),
                    ("start", window["start"].clone()),
                    ("end_cycle", window["end"].clone()),
                    ("cycles", window["cycles"].clone()),
                ]);
                categories(&mut row, stack);
                rows.push(row);
            }
        }
        rows
    }
}

fn counters(run: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let estimates = &run["counters"]["estimates"];
    for (hart, counts) in array(&run["counters"]["harts"]).iter().enumerate() {
        for (event, count) in counts.as_object().into_iter().flatten() {
            rows.push(row([
                ("hart", json!(hart)),
                ("event", json!(event)),
                ("count", count.clone()),
                ("estimate", estimates[event]["value"].clone()),
                ("estimate_margin_95", estimates[event]["within_95"]["half_width"].clone()),
                ("estimate_margin_99_7", estimates[event]["within_99_7"]["half_width"].clone()),
            ]));
        }
    }
    rows
}
