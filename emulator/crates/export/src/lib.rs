//! Profiles for other tools: pprof, Firefox Profiler, folded stacks, speedscope, perf.data, and
//! cycle stacks over time for Perfetto.
//!
//! The Oracle is one profiler among the others. Every weight is in cycles; what does not divide
//! (a cycle shared by three instructions) is rounded so that each profile's sum stays exact.
//! A stack is process, callers (of an evaluation [with call stacks](profile::Evaluator::with_call_stacks)), function,
//! inlined functions, instruction.
//!
//! ```no_run
//! # fn example(evaluation: &profile::Evaluation) -> std::io::Result<()> {
//! use export::{Export, Format, Options};
//! use symbols::{SymbolFiles, Symbolizer};
//!
//! let options = Options {
//!     name: "demo",
//!     clock_hz: 3_200_000_000,
//!     oracle: true,
//!     disassemble: &|raw, _pc| format!("{raw:08x}"),
//!     jit_folder: None,
//! };
//! let symbolizer = Symbolizer::new(SymbolFiles::default());
//! let export = Export::new(evaluation, &[], &symbolizer, options);
//! export.write(Format::Pprof, &mut std::fs::File::create("profile.pb.gz")?)
//! # }
//! ```

mod firefox;
mod folded;
mod images;
mod jit;
mod model;
mod perf_data;
mod perfetto;
mod pprof;
mod speedscope;

use std::io::{self, Write};
use std::path::Path;

pub use model::Export;

use symbols::Module;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pprof's protocol buffer, gzipped; a sample type per profiler.
    Pprof,
    /// Firefox Profiler's processed profile (JSON); a track per profiler and process, over time.
    Firefox,
    /// Folded stacks of one profiler, as flamegraph.pl reads them.
    Folded,
    /// speedscope's JSON; a profile per profiler.
    Speedscope,
    /// Linux's perf.data; an event per profiler, a record per sample.
    PerfData,
    /// Perfetto's trace; the Oracle's cycle stacks over time, whichever profilers are chosen.
    Perfetto,
}

impl Format {
    /// True if every single sample is written, with its time: the evaluation must have kept them
    /// ([`profile::Evaluator::keep_samples`]), and the Oracle's come from [`profile::Timeline`].
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Firefox | Self::PerfData | Self::Perfetto)
    }
}

/// What an export needs besides the profiles.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// Cycles per second.
    pub clock_hz: u64,
    /// Export the Oracle too, before the samplers.
    pub oracle: bool,
    /// An instruction in assembly, from its encoding and address.
    pub disassemble: &'a dyn Fn(u32, u64) -> String,
    /// Where [`Export::write_jit`] puts code that was made at run time, absolute: perf reads its names from there.
    pub jit_folder: Option<&'a Path>,
}

impl Export<'_> {
    /// Writes a file.
    ///
    /// # Errors
    /// If `out` cannot be written. [`Format::Folded`] holds one profiler only.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Pprof => pprof::write(self, out),
            Format::Firefox => firefox::write(self, out),
            Format::Folded => folded::write(self, out),
            Format::Speedscope => speedscope::write(self, out),
            Format::PerfData => perf_data::write(self, out),
            Format::Perfetto => perfetto::write(self, out),
        }
    }

    /// Writes the files that [`Format::PerfData`] names code by that was made at run time, if there is any, into
    /// [`Options::jit_folder`]. What there is no room for in them, one sentence each.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_jit(&self) -> io::Result<Vec<String>> {
        let code = jit::JitFunctions::of(self);
        match self.options.jit_folder {
            Some(folder) => code.write(self, folder)?,
            None if !code.functions.is_empty() => {
                let warning = "code made at run time has no names: they go into a folder beside the file (-o FILE)";
                return Ok(vec![warning.to_owned()]);
            }
            None => {}
        }
        let left_out = (code.left_out > 0).then(|| {
            let count = code.left_out;
            format!("functions made at run time without names here, as they are too large: {count}")
        });
        Ok(left_out.into_iter().collect())
    }

    /// What could not be named, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let nameless =
            |module: &Module| Some(format!("{}: {}", module.path, module.nameless.as_ref()?));
        let nameless = self.symbols.modules.iter().filter_map(nameless);
        self.symbols
            .warnings
            .iter()
            .cloned()
            .chain(nameless)
            .collect()
    }
}

#[cfg(test)]
mod tests;
