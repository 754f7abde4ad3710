//! The rows of the tables. All shares are fractions of the process's own total, unless said otherwise.

use std::collections::BTreeMap;

use commit_trace::InstId;
use profile::{Margin, ProcessId};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{LevelError, Levels};
use super::margins::Margins;

/// One process, or all.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ProcessReport {
    /// Unique name: the command, with the process id where several have it.
    pub name: String,
    /// The command, which several processes may have.
    pub command: String,
    /// Processes that the row stands for: more than one where very many have the command; for "all" the number of all
    /// processes.
    pub count: usize,
    /// Process id; `None` for "all" and for "boot".
    pub pid: Option<u32>,
    /// The process's number in the evaluation; `None` for "all".
    #[serde(skip)]
    pub id: Option<ProcessId>,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of all processes' cycles.
    pub share: f64,
    /// Share of each category of [`profile::CATEGORIES`].
    pub stack: [f64; 7],
    /// Margins of `share` and `cycles`, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// Margins of `stack`, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_margins: Option<[Margin; 7]>,
    /// Units by subsample of a sampled region, and category.
    #[serde(skip)]
    pub by_subsample: Vec<[u64; 7]>,
    /// `compute` if over half of the cycles commit, else `flush` if over 3 % are flush, else `stall`.
    pub class: &'static str,
    /// Samples per column that fell into the process.
    pub samples: Vec<f64>,
    /// Error per column; `None` where the column says nothing about this process.
    pub errors: Vec<Option<Levels<LevelError>>>,
}

/// The processes of one command.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CommandRow {
    /// The command.
    pub name: String,
    /// How many processes run the command.
    pub count: usize,
    /// Rows of the command's processes, by index into [`processes`](crate::Common::processes), the most expensive first; a row
    /// may stand for many processes.
    pub members: Vec<usize>,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of all processes' cycles.
    pub share: f64,
    /// Share of each category of [`profile::CATEGORIES`].
    pub stack: [f64; 7],
    /// Margins of `share` and `cycles`, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// Margins of `stack`, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_margins: Option<[Margin; 7]>,
    /// The command's class by its cycle stack, in the words of [`ProcessReport::class`].
    pub class: &'static str,
}

impl CommandRow {
    /// Returns the command, with the number of its processes if these are several.
    pub fn title(&self) -> String {
        match self.count {
            0 | 1 => self.name.clone(),
            count => format!("{} ({count} processes)", self.name),
        }
    }

    /// Returns [`Self::title`], with the number alone if it has more than `width` characters.
    pub(super) fn short_title(&self, width: usize) -> String {
        let title = self.title();
        match title.chars().count() <= width {
            true => title,
            false => format!("{} ({})", self.name, self.count),
        }
    }
}

/// A function of a process.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FunctionRow {
    /// Index into [`processes`](crate::Common::processes).
    pub process: usize,
    /// Demangled name.
    pub name: String,
    /// Index into [`modules`](crate::Common::modules).
    pub module: usize,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of the process by the Oracle.
    pub share: f64,
    /// Margins of `share` and `cycles`, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// Units by subsample of a sampled region.
    #[serde(skip)]
    pub by_subsample: Vec<u64>,
    /// Share of the process's cycles that the function has with all that it calls, if calls were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Share of the process by category; their sum is `share`.
    pub stack: [f64; 7],
    /// Share of the process in which a full store queue held dispatch back; it is part of `stack`.
    pub store_queue: f64,
    /// Share of the process by each column.
    pub shares: Vec<f64>,
    /// Margins of `shares` by the number of the column, if the region was sampled: of the first sampler of each profiler.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub share_margins: BTreeMap<usize, Margin>,
    /// What its name lacks, one sentence each, which say what file to hand in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// An instruction of a process.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InstructionRow {
    /// Index into [`processes`](crate::Common::processes).
    pub process: usize,
    /// The instruction's number in the evaluation.
    #[serde(skip)]
    pub inst: InstId,
    /// Address, in hexadecimal: JavaScript's numbers end at 53 bits.
    pub pc: String,
    /// Address in the file, as disassemblers show it; `pc` where no file is known.
    pub address: String,
    /// Function that the instruction is in, with the distance from its start.
    pub label: String,
    /// Name of the function alone.
    pub function: String,
    /// Functions inlined here, the innermost first.
    pub inlined: Vec<String>,
    /// `file:line`, if known: the innermost of the program's own files.
    pub source: Option<String>,
    /// `file:line` of library code, if that is what was inlined there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_source: Option<String>,
    /// Disassembly; targets of jumps as `address`.
    pub text: String,
    /// Cycles by the Oracle.
    pub cycles: f64,
    /// Share of the process by the Oracle.
    pub share: f64,
    /// Margins of `share` and `cycles`, if the region was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// Share of the process by category; their sum is `share`.
    pub stack: [f64; 7],
    /// Share of the process in which a full store queue held dispatch back; it is part of `stack`.
    pub store_queue: f64,
    /// Share of the process by each column.
    pub shares: Vec<f64>,
    /// Margins of `shares` by the number of the column, if the region was sampled: of the first sampler of each profiler.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub share_margins: BTreeMap<usize, Margin>,
}

/// The executed instructions of a function.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// Index into [`functions`](crate::Common::functions).
    pub function: usize,
    /// The function's executed instructions, in order of address.
    pub rows: Vec<ListingRow>,
    /// Source lines that have some of these instructions, and those around them, if their files are known; by file and line.
    pub source: Vec<SourceLine>,
    /// Files of the source lines that are not what was compiled, or may not be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<StaleSource>,
}

/// A source file on the host that is not what was compiled, or may not be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StaleSource {
    /// Path as the compiler saw it.
    pub file: String,
    /// Why the file is not what was compiled, in a sentence.
    pub why: String,
}

/// A line of a source file.
#[derive(Clone, Debug, Serialize)]
pub struct SourceLine {
    /// Path as the compiler saw it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
}

/// A line of a listing.
#[derive(Clone, Debug, Serialize)]
pub struct ListingRow {
    /// True for the first instruction of a basic block.
    pub leader: bool,
    /// True if code between the line before and this one was never executed.
    pub gap: bool,
    /// The instruction.
    #[serde(flatten)]
    pub instruction: InstructionRow,
}

/// A module and where its names came from.
#[derive(Clone, Debug, JsonSchema, Serialize)]
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
