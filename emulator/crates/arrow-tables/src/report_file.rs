//! What the tables are made of: parts of a `report.json`, as they are written.

use std::collections::BTreeMap;

use profile::{CATEGORIES, Margin};
use serde::Deserialize;

/// A share for each category of [`CATEGORIES`], in their order.
pub(crate) type Stack = [f64; CATEGORIES.len()];

/// A report.
#[derive(Deserialize)]
pub(crate) struct ReportFile {
    pub columns: Vec<Sampler>,
    pub processes: Vec<Process>,
    pub modules: Vec<Module>,
    pub functions: Vec<Function>,
    pub instructions: Vec<Instruction>,
    /// The loops, if the run has excerpts of its execution.
    pub loops: Option<Loops>,
    /// The top-down analysis, if the run has one.
    pub top_down: Option<TopDown>,
}

/// A profile that is compared with the Oracle.
#[derive(Deserialize)]
pub(crate) struct Sampler {
    pub name: String,
    pub profiler: Option<String>,
    pub schedule: Option<Schedule>,
}

#[derive(Deserialize)]
pub(crate) struct Schedule {
    pub period: u64,
}

#[derive(Deserialize)]
pub(crate) struct Process {
    pub name: String,
    /// Older reports do not say.
    pub command: Option<String>,
    pub pid: Option<u32>,
    pub class: String,
    pub cycles: f64,
    pub share: f64,
    pub stack: Stack,
    /// Samples in the process, by sampler.
    pub samples: Vec<f64>,
    /// Errors by sampler, of those that say something of the process.
    pub errors: Vec<Option<LevelErrors>>,
}

/// Errors of a sampler in a process by the level at which profiles are compared.
#[derive(Deserialize)]
pub(crate) struct LevelErrors {
    pub function: Option<LevelError>,
    pub block: Option<LevelError>,
    pub instruction: Option<LevelError>,
}

#[derive(Deserialize)]
pub(crate) struct LevelError {
    pub error: f64,
    pub sampling: f64,
    pub margin: Option<Margin>,
}

#[derive(Deserialize)]
pub(crate) struct Module {
    pub path: String,
}

/// What a profile says of a function or an instruction.
#[derive(Deserialize)]
pub(crate) struct ProfiledCode {
    /// Index of the process.
    pub process: usize,
    pub cycles: f64,
    pub share: f64,
    pub margins: Option<Margins>,
    pub stack: Stack,
    pub store_queue: f64,
    /// Shares by sampler.
    pub shares: Vec<Option<f64>>,
    /// Margins of these shares by the number of the sampler, if the region was sampled.
    #[serde(default)]
    pub share_margins: BTreeMap<String, Margin>,
}

impl ProfiledCode {
    /// Returns the margin of a sampler's share, if the report has it.
    pub(crate) fn share_margin(&self, sampler: usize) -> Option<Margin> {
        self.share_margins.get(&sampler.to_string()).copied()
    }
}

#[derive(Deserialize)]
pub(crate) struct Margins {
    pub share: Margin,
}

#[derive(Deserialize)]
pub(crate) struct Function {
    #[serde(flatten)]
    pub code: ProfiledCode,
    pub name: String,
    /// Index of the module.
    pub module: usize,
    pub total: Option<f64>,
}

#[derive(Deserialize)]
pub(crate) struct Instruction {
    #[serde(flatten)]
    pub code: ProfiledCode,
    pub pc: String,
    pub function: String,
    pub label: String,
    pub inlined: Vec<String>,
    pub source: Option<String>,
    pub library_source: Option<String>,
    pub text: String,
}

#[derive(Deserialize)]
pub(crate) struct Loops {
    pub loops: Vec<Loop>,
}

#[derive(Deserialize)]
pub(crate) struct Loop {
    /// Index of the process.
    pub process: usize,
    pub function: String,
    pub label: String,
    pub source: Option<String>,
    pub depth: u32,
    pub cycles: f64,
    pub share: f64,
    pub own_share: f64,
    pub iterations: f64,
    pub trips: Option<f64>,
    pub measured: u64,
    pub cycles_per_iteration: f64,
    pub instructions_per_iteration: f64,
    pub least: LoopBounds,
    pub causes: Vec<LoopCause>,
}

/// Lower bounds on the cycles of an iteration, by the width of decode and by the kinds of execution units.
#[derive(Deserialize)]
pub(crate) struct LoopBounds {
    pub decode: f64,
    pub int: f64,
    pub mem: f64,
    pub fp: f64,
}

#[derive(Deserialize)]
pub(crate) struct LoopCause {
    pub cause: String,
}

#[derive(Deserialize)]
pub(crate) struct TopDown {
    pub processes: Vec<TopDownProcess>,
    pub windows: Vec<Window>,
}

#[derive(Deserialize)]
pub(crate) struct TopDownProcess {
    pub name: String,
    pub slots: u64,
    /// Shares of the slots by path of the node.
    pub shares: BTreeMap<String, f64>,
    #[serde(default)]
    pub margins: BTreeMap<String, Margin>,
}

#[derive(Deserialize)]
pub(crate) struct Window {
    pub start: u64,
    pub end: u64,
    pub cycles: u64,
    /// Cycle stacks by index of the process.
    pub stacks: BTreeMap<String, Stack>,
}
