//! Loops of the code that was executed: how often, how long, and what bounds each, out of excerpts of the execution.

mod build;
mod page;
mod text;
mod view;

#[cfg(test)]
mod tests;

use critical_path::{Cause, Excerpts, Widths};
use profile::Evaluation;
use serde::Serialize;
use symbols::Symbolizer;

use super::model::Report;
use super::text::fit::fit_name;
use build::Builder;
pub(crate) use page::PIPELINE_SCRIPT;
pub(crate) use text::{fit_place, place, short};
use view::View;

/// The section's content.
#[derive(Clone, Debug, Serialize)]
pub struct LoopsReport {
    /// Excerpts that were taken,
    pub excerpts: usize,
    /// their instructions,
    pub instructions: usize,
    /// and their cycles.
    pub cycles: u64,
    /// The core's widths.
    pub widths: Widths,
    /// Those that take most of a process's cycles by themselves first.
    pub loops: Vec<LoopRow>,
}

/// A loop.
#[derive(Clone, Debug, Serialize)]
pub struct LoopRow {
    /// Index into [`processes`](Report::processes); 0 for the kernel's, which all have.
    pub process: usize,
    /// The function that it is in.
    pub function: String,
    /// The loop's first instruction: function, with the distance from the start.
    pub label: String,
    /// Source of the loop's first instruction, `file:line`, if known: the innermost line of the program's own files.
    pub source: Option<String>,
    /// Source of library code that was inlined there, `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_source: Option<String>,
    /// How many loops of the function are around it.
    pub depth: usize,
    /// Cycles of its instructions, by the Oracle, those of inner loops included,
    pub cycles: f64,
    /// as a share of the process's cycles,
    pub share: f64,
    /// and the same without inner loops.
    pub own_share: f64,
    /// Iterations, estimated.
    pub iterations: f64,
    /// Iterations each time that it is entered; none if no excerpt shows its begin or end.
    pub trips: Option<f64>,
    /// Whole iterations in excerpts, from which all below is.
    pub measured: usize,
    /// Cycles of an iteration: mean,
    pub cycles_per_iteration: f64,
    /// least, median, most.
    pub range: [u64; 3],
    /// Instructions of an iteration, those of functions that it calls included.
    pub instructions_per_iteration: f64,
    /// What an iteration takes at least.
    pub least: LeastCycles,
    /// What the cycles of an iteration go to, by the critical path; the most first.
    pub causes: Vec<CauseCycles>,
    /// The load with most of the path's cycles waits for itself of the iteration before, as a step of a linked list does.
    pub chases_pointers: bool,
    /// The instructions that the critical path goes through, in order of address.
    pub chain: Vec<ChainLink>,
    /// The best, the median and the worst iteration as pictures.
    #[serde(skip)]
    pub(super) views: Vec<View>,
}

/// Cycles of an iteration if nothing but one thing bounded it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LeastCycles {
    /// Decode.
    pub decode: f64,
    /// The integer ports,
    pub int: f64,
    /// the memory ports,
    pub mem: f64,
    /// the FP ports.
    pub fp: f64,
}

/// Cycles of an iteration with their cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CauseCycles {
    /// Why they pass.
    pub cause: Cause,
    /// Cycles per iteration.
    pub cycles: f64,
}

/// An instruction on the critical path.
#[derive(Clone, Debug, Serialize)]
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
    /// What takes most of its cycles.
    pub cause: Cause,
    /// Cycles per iteration.
    pub cycles: f64,
}

impl LeastCycles {
    /// The port that bounds it most.
    fn ports(&self) -> f64 {
        self.int.max(self.mem).max(self.fp)
    }
}

impl LoopRow {
    /// Returns what takes at least this share of an iteration's cycles, the most first.
    pub(super) fn causes_from(&self, share: f64) -> impl Iterator<Item = Cause> {
        let least = share * self.cycles_per_iteration.max(f64::MIN_POSITIVE);
        let causes = self.causes.iter();
        causes
            .filter(move |it| it.cycles >= least)
            .map(|it| it.cause)
    }

    /// The causes worth a word, in words.
    fn bound(&self) -> String {
        let whole = self.cycles_per_iteration.max(f64::MIN_POSITIVE);
        let words: Vec<String> = { self.causes.iter() }
            .filter(|cause| cause.cycles >= 0.1 * whole)
            .take(3)
            .map(|cause| {
                format!(
                    "{} {:.0} %",
                    cause.cause.name(),
                    100.0 * cause.cycles / whole
                )
            })
            .collect();
        words.join(", ")
    }
}

impl Report {
    /// Returns the loop of a function in which some processes spend most of the function's cycles.
    pub(super) fn loop_of(&self, processes: &[usize], function: &str) -> Option<&LoopRow> {
        let loops = &self.loops.as_ref()?.loops;
        let own = |row: &&LoopRow| processes.contains(&row.process) && row.function == function;
        loops.iter().find(own)
    }

    /// Says where the loop of [`Self::loop_of`] is, how long its iterations are, and what bounds it.
    pub(super) fn loop_in_words(&self, processes: &[usize], function: &str) -> Option<String> {
        let found = self.loop_of(processes, function)?;
        Some(format!(
            "the loop at {}: {:.1} instructions and {:.1} cycles an iteration; {}",
            place(
                &fit_name(&found.label, 60),
                found.source.as_deref(),
                found.library_source.as_deref()
            ),
            found.instructions_per_iteration,
            found.cycles_per_iteration,
            found.bound()
        ))
    }

    /// The same with what excerpts of the evaluated execution say of its loops. `disassemble` as for [`Report::build`].
    pub fn with_loops(
        mut self,
        evaluation: &Evaluation,
        excerpts: &Excerpts,
        symbolizer: &Symbolizer,
        disassemble: &dyn Fn(u32, u64) -> String,
    ) -> Self {
        let found = Builder::new(evaluation, excerpts, symbolizer, disassemble).build(&self);
        self.loops = (!found.loops.is_empty()).then_some(found);
        self.advise();
        self
    }
}
