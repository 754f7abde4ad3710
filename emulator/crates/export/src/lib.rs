//! Profiles for other tools: pprof, Firefox Profiler, folded stacks, speedscope, perf.data, and
//! cycle stacks over time for Perfetto.
//!
//! The Oracle is exported as one of the profilers. Every weight is in whole cycles: fractions (a cycle shared by three
//! instructions) are rounded such that each profile's sum stays exact.
//! A stack is process, callers (of an evaluation [with call stacks](profile::Evaluator::with_call_stacks)), function,
//! inlined functions, and, if [asked for](Options::instructions), the instruction.
//!
//! ```no_run
//! # fn example(evaluation: &profile::Evaluation) -> std::io::Result<()> {
//! use export::{Export, Format, Options};
//! use symbols::{SymbolFiles, Symbolizer};
//!
//! let options = Options {
//!     name: "demo",
//!     notice: None,
//!     clock_hz: 3_200_000_000,
//!     oracle: true,
//!     instructions: false,
//!     exact: false,
//!     by_address: true,
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
mod rows;
mod speedscope;
mod timed;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

pub use model::Export;

use symbols::Module;

/// Which profilers a file of a format holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// One.
    One,
    /// Any number, by default one.
    Several,
    /// Any number, by default the Oracle and one sampler of each profiler.
    All,
    /// None: the Oracle's cycle stacks over time.
    CycleStacks,
}

/// The properties of a [`Format`], whose methods explain the fields.
struct FormatProperties {
    name: &'static str,
    help: &'static str,
    holds: Holds,
    is_timed: bool,
    is_text: bool,
    names_jit_by_files: bool,
    is_by_address: bool,
    write: fn(&Export<'_>, &mut dyn Write) -> io::Result<()>,
}

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident { $($field:ident: $value:expr),* $(,)? })*) => {
        /// A file format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        const ROWS: &[FormatProperties] = &[$(FormatProperties { $($field: $value),* }),*];

        impl Format {
            /// All formats.
            pub const ALL: [Self; ROWS.len()] = [$(Self::$format),*];
        }
    };
}

// To add a format: a file that writes it, its `mod`, and a row.
formats! {
    /// pprof's protocol buffer, gzipped; a sample type per profiler.
    Pprof {
        name: "pprof", help: "pprof: a sample type per profiler", holds: Holds::All,
        is_timed: false, is_text: false, names_jit_by_files: false, is_by_address: true, write: pprof::write,
    }
    /// Firefox Profiler's processed profile (JSON); a track per profiler and process, over time.
    Firefox {
        name: "firefox", help: "Firefox Profiler: a thread per profiler and process, over time", holds: Holds::Several,
        is_timed: true, is_text: false, names_jit_by_files: false, is_by_address: false, write: firefox::write,
    }
    /// Folded stacks of one profiler, as flamegraph.pl reads them.
    Folded {
        name: "folded", help: "Folded stacks for flame graphs, of one profiler", holds: Holds::One,
        is_timed: false, is_text: true, names_jit_by_files: false, is_by_address: false, write: folded::write,
    }
    /// speedscope's JSON; a profile per profiler.
    Speedscope {
        name: "speedscope", help: "speedscope: a profile per profiler", holds: Holds::All,
        is_timed: false, is_text: false, names_jit_by_files: false, is_by_address: false, write: speedscope::write,
    }
    /// Linux's perf.data; an event per profiler, a record per sample.
    PerfData {
        name: "perf-data", help: "Linux's perf.data: an event per profiler, a record per sample", holds: Holds::Several,
        is_timed: true, is_text: false, names_jit_by_files: true, is_by_address: true, write: perf_data::write,
    }
    /// Perfetto's trace; the Oracle's cycle stacks over time, whichever profilers are chosen.
    Perfetto {
        name: "perfetto", help: "Perfetto: the Oracle's cycle stacks over time", holds: Holds::CycleStacks,
        is_timed: true, is_text: false, names_jit_by_files: false, is_by_address: false, write: perfetto::write,
    }
}

impl Format {
    const fn row(self) -> &'static FormatProperties {
        &ROWS[self as usize]
    }

    /// Returns the format's name on the command line.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns a line of help on the format.
    pub const fn help(self) -> &'static str {
        self.row().help
    }

    /// Returns which profilers a file of the format holds.
    pub const fn holds(self) -> Holds {
        self.row().holds
    }

    /// True if every single sample is written, with its time: the evaluation must have kept them
    /// ([`profile::Evaluator::keep_samples`]), and the Oracle's come from [`profile::Timeline`].
    pub const fn is_timed(self) -> bool {
        self.row().is_timed
    }

    /// True if the format is text that a person can read.
    pub const fn is_text(self) -> bool {
        self.row().is_text
    }

    /// True if tools show where in a function the time goes whatever called it: see [`Options::by_address`].
    pub const fn is_by_address(self) -> bool {
        self.row().is_by_address
    }

    /// True if the names of code made at run time go into separate files ([`Export::write_jit`]).
    pub const fn names_jit_by_files(self) -> bool {
        self.row().names_jit_by_files
    }
}

/// What an export needs besides the profiles.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// What has to be known first of what is exported, such as that the run is not whole: the file says it where its format has room.
    pub notice: Option<&'a str>,
    /// Cycles per second.
    pub clock_hz: u64,
    /// Export the Oracle too, before the samplers.
    pub oracle: bool,
    /// An instruction is the innermost frame of each stack; else its function is.
    pub instructions: bool,
    /// Leave nothing out ([`Export::left_out`]), however large the file becomes.
    pub exact: bool,
    /// Leave out only instructions that are small in all calling contexts together, not in each: larger files, but an instruction's
    /// own time can be told ([`Format::is_by_address`]).
    pub by_address: bool,
    /// An instruction in assembly, from its encoding and address.
    pub disassemble: &'a dyn Fn(u32, u64) -> String,
    /// Absolute path of the folder where [`Export::write_jit`] puts code made at run time, and perf reads its names.
    pub jit_folder: Option<&'a Path>,
}

impl Export<'_> {
    /// Returns the title that a file has inside: the run's name, after the notice if there is one.
    fn title(&self) -> Cow<'_, str> {
        match self.options.notice {
            None => Cow::Borrowed(self.options.name),
            Some(notice) => Cow::Owned(format!("{notice}: {}", self.options.name)),
        }
    }

    /// Writes a file.
    ///
    /// # Errors
    /// If `out` cannot be written. [`Format::Folded`] holds one profiler only.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        (format.row().write)(self, out)
    }

    /// Writes the code made at run time, if there is any, into [`Options::jit_folder`], for formats whose
    /// [`Format::names_jit_by_files`] is true. Returns warnings about functions that were left out.
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

    /// Warnings about missing names, a sentence each, in alphabetical order.
    pub fn warnings(&self) -> Vec<String> {
        let nameless =
            |module: &Module| Some(format!("{}: {}", module.path, module.nameless.as_ref()?));
        let nameless = self.symbols.modules.iter().filter_map(nameless);
        let warnings = self.symbols.warnings.iter().cloned();
        // Modules come in any order.
        let mut all: Vec<String> = warnings.chain(nameless).collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests;
