//! Loops of the code that was executed: how often, how long, and what bounds each, out of excerpts of the execution.

mod build;
mod page;
pub(crate) mod rules;
mod text;
mod view;

#[cfg(test)]
mod tests;

use critical_path::{Cause, Excerpts, Widths};
use profile::Evaluation;
use schemars::JsonSchema;
use serde::Serialize;
use symbols::Symbolizer;

use super::model::Common;
use super::places::place;
use super::widths::fit_name;
use build::Builder;
pub(crate) use page::PIPELINE_SCRIPT;
use view::View;

/// The section's content.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LoopsReport {
    /// Excerpts that were taken of the execution.
    pub excerpts: usize,
    /// Instructions in the excerpts.
    pub instructions: usize,
    /// Cycles of the excerpts.
    pub cycles: u64,
    /// The core's widths.
    pub widths: Widths,
    /// Loops, those with the most cycles of their own (without inner loops) first.
    pub loops: Vec<LoopRow>,
}

/// A loop.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LoopRow {
    /// Index into [`processes`](Common::processes); 0 for loops of the kernel, which all processes share.
    pub process: usize,
    /// The function that the loop is in.
    pub function: String,
    /// The loop's first instruction: function, with the distance from the start.
    pub label: String,
    /// Source of the loop's first instruction, `file:line`, if known: the innermost line of the program's own files.
    pub source: Option<String>,
    /// Source of library code that was inlined there, `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_source: Option<String>,
    /// Number of the function's loops that this loop is nested in.
    pub depth: usize,
    /// Cycles of the loop's instructions by the Oracle, inner loops included.
    pub cycles: f64,
    /// Share of the process's cycles in the loop, inner loops included.
    pub share: f64,
    /// Share of the process's cycles in the loop without inner loops.
    pub own_share: f64,
    /// Estimated number of iterations.
    pub iterations: f64,
    /// Mean iterations each time that the loop is entered; `None` if no excerpt shows its begin or end.
    pub trips: Option<f64>,
    /// Whole iterations in excerpts; the fields below are measured from these.
    pub measured: usize,
    /// Mean cycles of an iteration.
    pub cycles_per_iteration: f64,
    /// Cycles of an iteration: least, median, most.
    pub range: [u64; 3],
    /// Mean instructions of an iteration, those of called functions included.
    pub instructions_per_iteration: f64,
    /// Least cycles of an iteration by each limit of the core.
    pub least: LeastCycles,
    /// Cycles of an iteration by cause, by the critical path; the largest first.
    pub causes: Vec<CauseCycles>,
    /// True if, in most iterations, the load with the largest part of the critical path's cycles waits for itself of the
    /// iteration before, as a step of a linked list does.
    pub chases_pointers: bool,
    /// The instructions that the critical path goes through, in order of address.
    pub chain: Vec<ChainLink>,
    /// The best, the median and the worst iteration as pictures.
    #[serde(skip)]
    pub(super) views: Vec<View>,
}

/// Least cycles of an iteration, by the one limit of the core that would bound it.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct LeastCycles {
    /// Cycles if only decode bounded the iteration.
    pub decode: f64,
    /// Cycles if only the integer ports bounded the iteration.
    pub int: f64,
    /// Cycles if only the memory ports bounded the iteration.
    pub mem: f64,
    /// Cycles if only the FP ports bounded the iteration.
    pub fp: f64,
}

/// Cycles of an iteration with their cause.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct CauseCycles {
    /// Why the cycles pass.
    pub cause: Cause,
    /// Cycles per iteration.
    pub cycles: f64,
}

/// An instruction on the critical path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ChainLink {
    /// Function, with the distance from its start.
    pub label: String,
    /// Disassembly.
    pub text: String,
    /// `file:line`, if known: the innermost of the program's own files.
    pub source: Option<String>,
    /// `file:line` of library code, if that is what was inlined there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_source: Option<String>,
    /// The cause of most of the instruction's cycles.
    pub cause: Cause,
    /// Cycles per iteration.
    pub cycles: f64,
}

impl LeastCycles {
    /// Returns the least cycles by the kind of port that bounds the iteration most.
    fn ports(&self) -> f64 {
        self.int.max(self.mem).max(self.fp)
    }
}

impl LoopRow {
    /// Returns what takes at least this share of an iteration's cycles, the most first.
    pub(super) fn causes_from(&self, share: f64) -> impl Iterator<Item = Cause> {
        let least = share * self.cycles_per_iteration.max(f64::MIN_POSITIVE);
        let causes = self.causes.iter();
        causes.filter(move |it| it.cycles >= least).map(|it| it.cause)
    }

    /// Returns the largest causes in words.
    fn bound(&self) -> String {
        let whole = self.cycles_per_iteration.max(f64::MIN_POSITIVE);
        let words: Vec<String> = self
            .causes
            .iter()
            .filter(|cause| cause.cycles >= 0.1 * whole)
            .take(3)
            .map(|cause| format!("{} {:.0} %", cause.cause.name(), 100.0 * cause.cycles / whole))
            .collect();
        words.join(", ")
    }
}

impl LoopsReport {
    /// Finds the loops in `excerpts` of the evaluated execution; `None` if there are none.
    pub(super) fn new(
        common: &Common,
        evaluation: &Evaluation,
        excerpts: &Excerpts,
        symbolizer: &Symbolizer,
        disassemble: &dyn Fn(u32, u64) -> String,
    ) -> Option<Self> {
        let found = Builder::new(evaluation, excerpts, symbolizer, disassemble).build(common);
        (!found.loops.is_empty()).then_some(found)
    }

    /// Returns the loop of a function in which some processes spend most of the function's cycles.
    pub(super) fn loop_of(&self, processes: &[usize], function: &str) -> Option<&LoopRow> {
        let own = |row: &&LoopRow| processes.contains(&row.process) && row.function == function;
        self.loops.iter().find(own)
    }
}

impl LoopRow {
    /// Says where the loop is, how long its iterations are, and what bounds it.
    pub(super) fn in_words(&self) -> String {
        format!(
            "the loop at {}: {:.1} instructions and {:.1} cycles an iteration; {}",
            place(
                &fit_name(&self.label, 60),
                self.source.as_deref(),
                self.library_source.as_deref()
            ),
            self.instructions_per_iteration,
            self.cycles_per_iteration,
            self.bound()
        )
    }
}
