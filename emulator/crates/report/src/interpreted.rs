//! Functions and lines of interpreted programs, by samples of their frames.

pub(crate) mod rules;

use std::fmt::{self, Write};

use maud::{Markup, html};
use profile::{
    Evaluation, SampleSum, ScriptFunction, ScriptFunctionTime, ScriptLineTime, ScriptProcess,
    Scripts,
};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::markup::words;
use super::model::Common;
use super::options::Options;
use super::places::short;
use super::section::Section;
use super::tables::{CommandRow, ProcessReport};
use super::widths::{count, fit, fit_end, fit_name, fixed};

/// Functions of a process, and lines of a function, that report.json has.
const MAX_FUNCTIONS: usize = 500;
const MAX_LINES: usize = 50;
/// Functions of the page and of a verdict.
const MAX_PAGE_FUNCTIONS: usize = 50;
const MAX_PLACES: usize = 3;
/// Share from which on a verdict names a function, and what it calls beside it.
const MIN_NOTICEABLE_SHARE: f64 = 0.05;
/// Standard errors on each side of a share that hold the true one in 95 of 100 cases.
const STANDARD_ERRORS_OF_95_PERCENT: f64 = 1.96;

/// A process that an interpreter executes.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InterpretedProcess {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// Language of the program.
    pub language: &'static str,
    /// Samples of the process.
    pub samples: u64,
    /// Share of the process in no function: the interpreter's start and end, threads of libraries.
    pub outside: f64,
    /// Functions, those with most time of their own first.
    pub functions: Vec<InterpretedFunction>,
}

/// A function of an interpreted program. Shares are of the process's cycles, as samples estimate them; each error is half the width of the
/// interval that holds the true share in 95 of 100 cases.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InterpretedFunction {
    /// Qualified name.
    pub name: String,
    /// Source file.
    pub file: String,
    /// First line.
    pub line: u32,
    /// Samples in which the function is the innermost one.
    pub samples: u64,
    /// Cycles by that share.
    pub cycles: f64,
    /// Share of the function itself, with what the interpreter and the kernel do for it.
    pub share: f64,
    /// Error of that share.
    pub share_error: f64,
    /// Share with all functions that it calls.
    pub total: f64,
    /// Error of that share.
    pub total_error: f64,
    /// Lines of the function itself, the most expensive first.
    pub lines: Vec<InterpretedLine>,
}

/// A line of a function.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InterpretedLine {
    /// The line; 0 if the interpreter has none for the code.
    pub line: u32,
    /// Samples.
    pub samples: u64,
    /// Share of the process's cycles.
    pub share: f64,
    /// Error of that share.
    pub share_error: f64,
}

fn share_of(part: &SampleSum, whole: &SampleSum) -> (f64, f64) {
    let (share, error) = part.share_of(whole);
    (share, STANDARD_ERRORS_OF_95_PERCENT * error)
}

/// Functions with the lines of each, the most expensive first.
fn functions(
    known: &[ScriptFunction],
    (whole, cycles): (&SampleSum, f64),
    times: &[ScriptFunctionTime],
    lines: &[ScriptLineTime],
) -> Vec<InterpretedFunction> {
    let mut of_function: FxHashMap<u32, Vec<InterpretedLine>> = FxHashMap::default();
    for time in lines {
        let (share, share_error) = share_of(&time.own, whole);
        of_function.entry(time.function).or_default().push(InterpretedLine {
            line: time.line,
            samples: time.own.samples,
            share,
            share_error,
        });
    }
    let mut rows: Vec<InterpretedFunction> = times
        .iter()
        .filter_map(|time| {
            let function = known.get(time.function as usize)?;
            let (share, share_error) = share_of(&time.own, whole);
            let (total, total_error) = share_of(&time.total, whole);
            let mut lines = of_function.remove(&time.function).unwrap_or_default();
            lines.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.line.cmp(&b.line)));
            lines.truncate(MAX_LINES);
            Some(InterpretedFunction {
                name: match function.name.is_empty() {
                    true => "(other functions)".to_owned(),
                    false => function.name.clone(),
                },
                file: function.file.clone(),
                line: function.line,
                samples: time.own.samples,
                cycles: share * cycles,
                share,
                share_error,
                total,
                total_error,
                lines,
            })
        })
        .collect();
    rows.sort_by(|a, b| {
        let by_share = b.share.total_cmp(&a.share).then(b.total.total_cmp(&a.total));
        by_share.then_with(|| (&a.name, &a.file, a.line).cmp(&(&b.name, &b.file, b.line)))
    });
    rows
}

/// The processes that an interpreter executes, in the order of the report's.
pub(super) fn interpreted(
    evaluation: &Evaluation,
    processes: &[ProcessReport],
) -> Vec<InterpretedProcess> {
    let Scripts { functions: known, processes: sampled } = &evaluation.scripts;
    let rows = processes.iter().enumerate().filter_map(|(index, process)| {
        let of = sampled.iter().find(|of| Some(of.process) == process.id)?;
        // Nothing but the interpreter's start, or one of a version that cannot be read.
        if of.functions.is_empty() {
            return None;
        }
        let mut rows = functions(known, (&of.whole, process.cycles), &of.functions, &of.lines);
        let inside: f64 = rows.iter().map(|row| row.share).sum();
        rows.truncate(MAX_FUNCTIONS);
        Some(InterpretedProcess {
            process: index,
            language: "Python",
            samples: of.whole.samples,
            outside: (1.0 - inside).clamp(0.0, 1.0),
            functions: rows,
        })
    });
    rows.collect()
}

/// The most expensive functions of a command's processes together.
pub(super) fn of_command(
    evaluation: &Evaluation,
    processes: &[ProcessReport],
    command: &CommandRow,
) -> Vec<InterpretedFunction> {
    let members = command.members.iter().filter_map(|index| processes.get(*index)?.id);
    let members: Vec<_> = members.collect();
    let sampled = evaluation.scripts.processes.iter().filter(|of| members.contains(&of.process));
    let all = Scripts::together(sampled);
    let ScriptProcess { whole, functions: times, lines, .. } = all;
    let known = &evaluation.scripts.functions;
    let mut rows = functions(known, (&whole, command.cycles), &times, &lines);
    rows.retain(|row| row.share >= MIN_NOTICEABLE_SHARE);
    rows.truncate(MAX_PLACES);
    rows
}

/// A share with its error.
fn with_error(share: f64, error: f64) -> String {
    format!("{} % ± {} %", fixed(share), fixed(error))
}

impl InterpretedFunction {
    /// File and first line, `file:line`.
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Returns what a verdict says of the function.
    pub(super) fn in_words(&self) -> String {
        let mut words = format!(
            "{}  Python function {} ({})",
            with_error(self.share, self.share_error),
            fit_name(&self.name, 60),
            short(&self.place()),
        );
        if let Some(line) = self.lines.first().filter(|line| line.line > 0) {
            let of_it = with_error(line.share, line.share_error);
            words += &format!(", most at line {}: {of_it}", line.line);
        }
        if self.total - self.share >= MIN_NOTICEABLE_SHARE {
            words += &format!("; {} with what it calls", with_error(self.total, self.total_error));
        }
        words
    }
}

impl InterpretedProcess {
    /// What the table's shares are.
    fn sentence(&self) -> String {
        format!(
            "{} samples of the interpreter's frames; ± holds the true share in 95 of 100 cases. {} % is in no function",
            count(self.samples as f64),
            fixed(self.outside),
        )
    }
}

/// Returns the processes whose functions are listed.
fn listed<'a>(
    rows: &'a [InterpretedProcess],
    common: &Common,
    options: &Options,
) -> Vec<&'a InterpretedProcess> {
    let listed = |row: &&InterpretedProcess| {
        let process = &common.processes[row.process];
        match &options.process {
            Some(name) => process.name == *name,
            None => process.share >= options.min_share,
        }
    };
    rows.iter().filter(listed).take(options.processes.max(1)).collect()
}

impl Section for Vec<InterpretedProcess> {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> fmt::Result {
        for process in listed(self, common, options) {
            writeln!(
                out,
                "\n{:<43}{:>9}{:>8}{:>9}{:>8}{:>15}  hottest line",
                fit(
                    &format!(
                        "{} functions of {}",
                        process.language, common.processes[process.process].name
                    ),
                    42
                ),
                "own %",
                "±",
                "total %",
                "±",
                "cycles"
            )?;
            for row in process.functions.iter().take(options.functions.max(1)) {
                let line = row.lines.first().filter(|line| line.line > 0);
                let line = line.map_or_else(
                    || short(&row.place()).to_owned(),
                    |line| format!("{}:{}", short(&row.file), line.line),
                );
                writeln!(
                    out,
                    "{:<43}{:>9}{:>8}{:>9}{:>8}{:>15}  {}",
                    fit_name(&row.name, 42),
                    fixed(row.share),
                    fixed(row.share_error),
                    fixed(row.total),
                    fixed(row.total_error),
                    count(row.cycles),
                    fit_end(&line, 26),
                )?;
            }
            writeln!(out, "{}", process.sentence())?;
        }
        Ok(())
    }

    /// Returns a table of each process; empty if nothing was interpreted.
    fn page(&self, common: &Common) -> Markup {
        let options = Options { processes: usize::MAX, ..Options::default() };
        let rows = listed(self, common, &options);
        if rows.is_empty() {
            return html! {};
        }
        html! {
            section id="interpreted" {
                h2 { "Python functions" }
                @for process in rows {
                    h3 { (common.processes[process.process].name) }
                    p { (words(&process.sentence())) "." }
                    table {
                        thead {
                            tr {
                                @for title in ["function", "own %", "±", "total %", "±", "cycles", "lines"] {
                                    th { (title) }
                                }
                            }
                        }
                        tbody {
                            @for row in process.functions.iter().take(MAX_PAGE_FUNCTIONS) {
                                tr { (row.cells()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl InterpretedFunction {
    /// Returns the cells of the function's row.
    fn cells(&self) -> Markup {
        let place = self.place();
        let lines = self.lines.iter().filter(|line| line.line > 0).take(MAX_PLACES);
        html! {
            td {
                span title={ (self.name) " " (place) } { (fit_name(&self.name, 60)) }
                " "
                span class="muted" title=(place) { (short(&place)) }
            }
            @for number in [self.share, self.share_error, self.total, self.total_error] {
                td { (fixed(number)) }
            }
            td { (count(self.cycles)) }
            td {
                @for (at, line) in lines.enumerate() {
                    @if at > 0 { br; }
                    (line.line) ": " (words(&with_error(line.share, line.share_error)))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
