//! What is common to all sections of a report. All shares are fractions of the process's own total.

use std::collections::HashMap;

use profile::ProcessId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::columns::Column;
use crate::disagreements::Disagreement;
use crate::elapsed::Elapsed;
use crate::flame::Flame;
use crate::margins::SubsampleTotals;
use crate::over_time::OverTime;
use crate::run_description::RunDescription;
use crate::tables::{CommandRow, FunctionRow, InstructionRow, Listing, ModuleRow, ProcessReport};

/// Returns the line that a report or comparison of a part of a run begins with.
pub fn part_line(part: &str) -> String {
    format!("NOT WHOLE: {part}")
}

/// Returns what says of anything made from a run that it is of units alone; `words`: of [`RunDescription::sampled_words`].
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
    /// The run's description (run.json), as the caller gave it.
    pub meta: RunDescription,
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
        self.meta.part()
    }

    /// Returns the lines that come before everything else: that the report is of a part of a run, how the guest's command
    /// failed, that only units of the region were timed, and that nothing was executed, as by a hart that sleeps.
    pub fn notices(&self) -> Vec<String> {
        let failure = self.meta.failure().map(|failure| format!("FAILED: {failure}"));
        let sampled = self.meta.sampled_words().map(sampled_line);
        let empty = (self.totals.instructions == 0)
            .then(|| "EMPTY: no instruction committed in the region.".to_owned());
        self.part().map(part_line).into_iter().chain(failure).chain(sampled).chain(empty).collect()
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
