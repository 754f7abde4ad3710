//! What is common to all sections of a report. All shares are fractions of the process's own total.

use std::collections::HashMap;

use profile::ProcessId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::columns::Column;
use crate::disagreements::Disagreement;
use crate::elapsed::Elapsed;
use crate::flame::Flame;
use crate::margins::SubsampleTotals;
use crate::over_time::OverTime;
use crate::tables::{CommandRow, FunctionRow, InstructionRow, Listing, ModuleRow, ProcessReport};

/// The entry of run.json that says why its run is not whole.
const PART: &str = "part";

/// Returns the line that a report or comparison of a part of a run begins with.
pub fn part_line(part: &str) -> String {
    format!("NOT WHOLE: {part}")
}

/// Key of the metadata that says how the guest's command failed, if it did.
const FAILURE_KEY: &str = "failure";

/// Returns what became of the sampling of a run's region, in words, from the run's metadata; `None` if all of the region was timed.
pub fn sampled_words(meta: &Value) -> Option<String> {
    let found = meta.get("sampling").and_then(|found| found.get("in_words")?.as_str());
    // A run that was killed knows its plan alone.
    let planned = meta.get("spec").and_then(|spec| spec.get("run")?.get("sampling"));
    match (found, planned) {
        (Some(words), _) => Some(words.to_owned()),
        (None, Some(Value::Object(_))) => Some("units alone were timed".to_owned()),
        (None, _) => None,
    }
}

/// Returns how many times as long a run's region is as what was recorded of it, from the run's metadata; `None` if all of it was
/// timed, or if a run that was killed does not say.
pub(crate) fn sampled_scale(meta: &Value) -> Option<f64> {
    let count = |key: &str| meta.get("sampling").and_then(|found| found.get(key)?.as_f64());
    // What was recorded counts as often as units weigh.
    let recorded = count("weighted_instructions").or_else(|| count("unit_instructions"));
    let scale = count("instructions").zip(recorded);
    scale.map(|(all, recorded)| all / recorded).filter(|scale| scale.is_finite() && *scale > 0.0)
}

/// Returns how many times as many cycles a run's region takes as what was recorded of it, as [`sampled_scale`] does, with what the estimate knows beside the units.
pub(crate) fn sampled_cycles_scale(meta: &Value) -> Option<f64> {
    let cycles =
        |key: &str| meta.get("sampling").and_then(|found| found.get(key)?["value"].as_f64());
    let beside =
        cycles("cycles").zip(cycles("units_alone")).map_or(1.0, |(all, units)| all / units);
    let beside = if beside.is_finite() && beside > 0.0 { beside } else { 1.0 };
    sampled_scale(meta).map(|scale| scale * beside)
}

/// Returns what says of anything made from a run that it is of units alone; `words`: of [`sampled_words`].
pub fn sampled_notice(words: &str) -> String {
    format!("SAMPLED: {words}")
}

/// Returns the line that a report of units begins with.
pub fn sampled_line(words: &str) -> String {
    format!("{}; what follows is of the units", sampled_notice(words))
}

/// Returns the line that a comparison of a sampled run begins with.
pub(crate) fn estimated_line(words: &str) -> String {
    format!("{}; its cycles below are estimates of the whole region", sampled_notice(words))
}

/// The report of the whole run, its processes and its code, which every section may read.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Common {
    /// Metadata that the caller gave about the run (run.json).
    pub meta: Value,
    /// Totals of the run.
    pub totals: Totals,
    /// Profiles that are compared with the Oracle.
    pub columns: Vec<Column>,
    /// Processes by share of cycles; the first is all of them together, named "all".
    pub processes: Vec<ProcessReport>,
    /// Commands by share of cycles: all processes of a command are one row.
    pub commands: Vec<CommandRow>,
    /// Functions of all processes, the most expensive first.
    pub functions: Vec<FunctionRow>,
    /// The most expensive instructions of all processes.
    pub instructions: Vec<InstructionRow>,
    /// Every executed instruction of the most expensive functions.
    #[schemars(skip)]
    pub listings: Vec<Listing>,
    /// Trees of where the time went; flame.json has them.
    #[serde(skip)]
    pub flame: Flame,
    /// The Oracle over time, if that was counted; the page has it.
    #[serde(skip)]
    pub over_time: OverTime,
    /// What the subsamples of a sampled region have of the whole.
    #[serde(skip)]
    pub(crate) subsample_totals: SubsampleTotals,
    /// Disagreements in words: time that profilers charge to the wrong instruction; the largest of each process first.
    pub disagreements: Vec<Disagreement>,
    /// The files that names came from.
    pub modules: Vec<ModuleRow>,
    /// Warnings about what is missing or doubtful, one sentence each.
    pub warnings: Vec<String>,
}

impl Common {
    /// Returns why the report is not of a whole run, in words (`part` of run.json); `None` if it is of a whole run.
    pub fn part(&self) -> Option<&str> {
        self.meta.get(PART)?.as_str()
    }

    /// Returns the lines that come before everything else: that the report is of a part of a run, how the guest's command
    /// failed, and that only units of the region were timed.
    pub fn notices(&self) -> Vec<String> {
        let failure = self.meta.get(FAILURE_KEY).and_then(Value::as_str);
        let failure = failure.map(|failure| format!("FAILED: {failure}"));
        let sampled = sampled_words(&self.meta).map(|words| sampled_line(&words));
        self.part().map(part_line).into_iter().chain(failure).chain(sampled).collect()
    }

    /// Returns whether the region was sampled, and margins of error are known.
    pub(crate) fn is_sampled(&self) -> bool {
        self.subsample_totals.are_of_any()
    }

    /// Returns the row of a process of the evaluation.
    pub(crate) fn row_of(&self, id: ProcessId) -> Option<usize> {
        self.processes.iter().position(|row| row.id == Some(id))
    }

    /// Returns the command of a process, by index.
    pub(crate) fn command_of(&self, process: usize) -> Option<&CommandRow> {
        self.commands.iter().find(|row| row.members.contains(&process))
    }

    /// Returns the processes that a reader wants first, by index, the most expensive first: those that perf sampled in the
    /// guest, if it did, else those with at least a twentieth of the cycles, and the most expensive one of each command that
    /// has as much.
    pub fn focus(&self) -> Vec<usize> {
        let samples = |index: usize, column: usize| self.processes[index].samples[column];
        let share = |index: usize| self.processes[index].share;
        let command = |index: usize| &*self.processes[index].command;
        focus(&self.columns, self.processes.len(), samples, share, command)
    }

    /// Returns those of [`Self::focus`] that are the first of their command.
    pub(crate) fn focus_by_command(&self) -> Vec<usize> {
        let mut known: Vec<&str> = Vec::new();
        let mut found = self.focus();
        found.retain(|index| {
            let command = &*self.processes[*index].command;
            let is_new = !known.contains(&command);
            known.push(command);
            is_new
        });
        found
    }
}

/// See [`Common::focus`]; from the number of processes, the samples of one in a column, its share and its command.
pub(crate) fn focus<'a>(
    columns: &[Column],
    processes: usize,
    samples: impl Fn(usize, usize) -> f64,
    share: impl Fn(usize) -> f64,
    command: impl Fn(usize) -> &'a str,
) -> Vec<usize> {
    const NOTICEABLE: f64 = 0.05;
    let guests = || (0..columns.len()).filter(|column| columns[*column].profiler.is_none());
    let sampled = |index: &usize| guests().any(|column| samples(*index, column) > 0.0);
    let own = 1..processes;
    let found: Vec<usize> = own.clone().filter(sampled).collect();
    if !found.is_empty() {
        return found;
    }
    let mut by_command: HashMap<&str, (usize, f64)> = HashMap::new();
    for index in own.clone() {
        // The first is the most expensive one.
        by_command.entry(command(index)).or_insert((index, 0.0)).1 += share(index);
    }
    let leads = |index: usize| {
        let (first, share) = by_command[command(index)];
        first == index && share >= NOTICEABLE
    };
    own.filter(|index| share(*index) >= NOTICEABLE || leads(*index)).collect()
}

/// Totals of the region of interest.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Totals {
    /// Simulated time of the region, if the run's description tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Elapsed>,
    /// Cycles of all harts together, idle ones included.
    pub cycles: u64,
    /// Cycles in which the hart slept; not profiled.
    pub idle: u64,
    /// Committed instructions.
    pub instructions: u64,
    /// Exceptions and interrupts.
    pub traps: u64,
    /// Instructions per cycle that was not idle.
    pub ipc: f64,
}
