//! What a report holds. All shares are fractions of the process's own total.

use profile::{Filter, Level, Profiler, Published, Schedule};
use serde::Serialize;
use serde_json::Value;

use super::tea::TeaReport;
use super::topdown::TopDownReport;
use super::words::Disagreement;

/// A whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What the caller said about the run.
    pub meta: Value,
    /// Totals of the run.
    pub totals: Totals,
    /// What is compared with the Oracle.
    pub columns: Vec<Column>,
    /// Processes by share of cycles; the first is all of them together, named "all".
    pub processes: Vec<ProcessReport>,
    /// Threads by process and share of cycles; those of a process that have the same name are one.
    pub threads: Vec<ThreadRow>,
    /// Functions of all processes, the most expensive first.
    pub functions: Vec<FunctionRow>,
    /// The most expensive instructions of all processes.
    pub instructions: Vec<InstructionRow>,
    /// Every executed instruction of the most expensive functions.
    pub listings: Vec<Listing>,
    /// Where the commit slots went, if that was counted.
    pub top_down: Option<TopDownReport>,
    /// Time by event, if that was counted.
    pub tea: Option<TeaReport>,
    /// What profilers charge to the wrong instruction, in words; the largest of each process first.
    pub disagreements: Vec<Disagreement>,
    /// The files that names came from.
    pub modules: Vec<ModuleRow>,
    /// What is missing or doubtful, one sentence each.
    pub warnings: Vec<String>,
}

impl Report {
    /// The processes that a reader wants first, by index: those that perf sampled in the guest, if it
    /// did, else those with at least a twentieth of the cycles; the most expensive first.
    pub fn focus(&self) -> Vec<usize> {
        let samples = |index: usize, column: usize| self.processes[index].samples[column];
        let share = |index: usize| self.processes[index].share;
        focus(&self.columns, self.processes.len(), samples, share)
    }
}

/// See [`Report::focus`]; from the number of processes, the samples of one in a column, and its share.
pub(super) fn focus(
    columns: &[Column],
    processes: usize,
    samples: impl Fn(usize, usize) -> f64,
    share: impl Fn(usize) -> f64,
) -> Vec<usize> {
    let guest = columns.iter().position(|column| column.profiler.is_none());
    let sampled = |index: &usize| guest.is_some_and(|column| samples(*index, column) > 0.0);
    let own = 1..processes;
    let found: Vec<usize> = own.clone().filter(sampled).collect();
    if !found.is_empty() {
        return found;
    }
    own.filter(|index| share(*index) >= 0.05).collect()
}

/// Totals of the region of interest.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// Cycles, idle ones included.
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

/// One profile that is compared with the Oracle.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Name, `guest-tip` for what perf measured in the guest.
    pub name: String,
    /// The sampler's rule; `None` for a profile from the guest.
    pub profiler: Option<Profiler>,
    /// When it sampled; `None` for a profile from the guest.
    pub schedule: Option<Schedule>,
    /// The cycles that it saw, of a sampler.
    pub filter: Filter,
    /// Samples taken.
    pub samples: u64,
    /// Samples dropped or lost.
    pub dropped: u64,
    /// Cycles after the last sample.
    pub tail_cycles: u64,
    /// Cycles that its samples gave to addresses that never executed.
    pub unmatched_cycles: f64,
    /// Published mean errors per level.
    pub published: Levels<Option<Published>>,
    /// The column that stands for its profiler where only one fits (the first of its kind).
    pub primary: bool,
}

impl Column {
    /// The profiler's name without its rate.
    pub fn label(&self) -> &str {
        self.profiler.map_or(&self.name, |profiler| profiler.name())
    }
}

/// One value per level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Levels<T> {
    /// Of instructions.
    pub instruction: T,
    /// Of basic blocks.
    pub block: T,
    /// Of functions.
    pub function: T,
}

impl<T> Levels<T> {
    /// The values that `value` gives per level.
    pub fn from_fn(mut value: impl FnMut(Level) -> T) -> Self {
        Self {
            instruction: value(Level::Instruction),
            block: value(Level::Block),
            function: value(Level::Function),
        }
    }

    /// The value of a level.
    pub fn get(&self, level: Level) -> &T {
        match level {
            Level::Instruction => &self.instruction,
            Level::Block => &self.block,
            Level::Function => &self.function,
        }
    }
}

/// A profile error, as fractions from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LevelError {
    /// Measured: half the L1 distance of the two distributions.
    pub error: f64,
    /// What that many independent samples of the Oracle's own distribution would leave on average.
    pub sampling: f64,
}

/// One process, or all.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// Unique name: the command, with the process id where several have it.
    pub name: String,
    /// Process id; `None` for "all" and for "boot".
    pub pid: Option<u32>,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of all processes' cycles.
    pub share: f64,
    /// Share of each category of [`profile::CATEGORIES`].
    pub stack: [f64; 7],
    /// `compute` if over half of the cycles commit, else `flush` if over 3 % are flush, else `stall`.
    pub class: &'static str,
    /// Samples per column that fell into it.
    pub samples: Vec<f64>,
    /// Error per column; `None` where the column says nothing about this process.
    pub errors: Vec<Option<Levels<LevelError>>>,
}

/// The threads of a process that have the same name.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadRow {
    /// Index into [`Report::processes`].
    pub process: usize,
    /// The kernel's name, the last one that they had.
    pub name: String,
    /// The kernel's numbers of them: the first ten.
    pub tids: Vec<u32>,
    /// How many they are.
    pub count: usize,
    /// Cycles in which they ran.
    pub cycles: f64,
    /// Share of all processes' cycles.
    pub share: f64,
}

/// A function of a process.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionRow {
    /// Index into [`Report::processes`].
    pub process: usize,
    /// Demangled name.
    pub name: String,
    /// Index into [`Report::modules`].
    pub module: usize,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of the process by the Oracle.
    pub share: f64,
    /// Share of the process by category; their sum is `share`.
    pub stack: [f64; 7],
    /// Share of the process by each column.
    pub shares: Vec<f64>,
    /// What its name lacks, one sentence each, which say what file to hand in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// An instruction of a process.
#[derive(Clone, Debug, Serialize)]
pub struct InstructionRow {
    /// Index into [`Report::processes`].
    pub process: usize,
    /// Address, in hexadecimal: JavaScript's numbers end at 53 bits.
    pub pc: String,
    /// Function it is in, with its distance from the start.
    pub label: String,
    /// Name of that function alone.
    pub function: String,
    /// Functions inlined here, the innermost first.
    pub inlined: Vec<String>,
    /// `file:line`, if known.
    pub source: Option<String>,
    /// Disassembly.
    pub text: String,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of the process by the Oracle.
    pub share: f64,
    /// Share of the process by category; their sum is `share`.
    pub stack: [f64; 7],
    /// Share of the process by each column.
    pub shares: Vec<f64>,
}

/// The executed instructions of a function.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// Index into [`Report::functions`].
    pub function: usize,
    /// Its instructions in order of address.
    pub rows: Vec<ListingRow>,
}

/// A line of a listing.
#[derive(Clone, Debug, Serialize)]
pub struct ListingRow {
    /// The first of its basic block.
    pub leader: bool,
    /// Code between the line before and this one was never executed.
    pub gap: bool,
    /// Text of its source line, if that is another than of the instruction before and known.
    pub source_text: Option<String>,
    /// The instruction.
    #[serde(flatten)]
    pub instruction: InstructionRow,
}

/// A module and where its names came from.
#[derive(Clone, Debug, Serialize)]
pub struct ModuleRow {
    /// Guest path or bracketed name.
    pub path: String,
    /// Host file.
    pub file: Option<String>,
    /// Build ID in hexadecimal.
    pub build_id: Option<String>,
    /// Share of all cycles.
    pub share: f64,
    /// What its names lack, one sentence each, which say what file to hand in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
