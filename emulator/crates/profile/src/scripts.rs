//! Time of interpreted programs by function and line, from samples of their frames.
//!
//! The simulator looks into the guest's memory now and then (after so many instructions, drawn at random), and puts what it
//! finds into the stream as side-band records of its own ([`ScriptRecord`]): that a window of some dozen instructions begins,
//! and at its end the frames. A sample stands for as many cycles as the instructions between two looks would take if all took
//! as long as those in the window. Instructions are drawn, but cycles counted: where instructions take long, samples weigh
//! more.

mod count;
mod wire;

use serde::{Deserialize, Serialize};

use crate::ProcessId;

pub(crate) use count::{Profiled, ScriptSamples};
pub use wire::{MIN_KIND, ScriptFrame, ScriptRecord};

/// A function of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScriptFunction {
    /// Qualified name; empty for the functions that are not told apart.
    pub name: String,
    /// Source file, as the interpreter knows it.
    pub file: String,
    /// First line.
    pub line: u32,
}

/// What samples say of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleSum {
    /// Samples.
    pub samples: u64,
    /// Cycles that the samples stand for.
    pub cycles: f64,
    /// Sum of the squares of each sample's cycles.
    pub squares: f64,
}

impl SampleSum {
    pub(crate) fn add(&mut self, cycles: f64) {
        self.samples += 1;
        self.cycles += cycles;
        self.squares += cycles * cycles;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.cycles += other.cycles;
        self.squares += other.squares;
    }

    /// Returns the share of this part in a whole, and the share's standard error: that of a ratio of two sums over the same
    /// samples.
    ///
    /// ```
    /// use profile::SampleSum;
    ///
    /// let of = |samples| SampleSum { samples, cycles: samples as f64, squares: samples as f64 };
    /// let (share, error) = of(20).share_of(&of(100));
    /// assert!((share - 0.2).abs() < 1e-12);
    /// assert!((error - (0.2f64 * 0.8 / 100.0).sqrt()).abs() < 1e-12);
    /// ```
    pub fn share_of(&self, whole: &Self) -> (f64, f64) {
        if whole.cycles <= 0.0 {
            return (0.0, 0.0);
        }
        let share = (self.cycles / whole.cycles).clamp(0.0, 1.0);
        let variance = (1.0 - 2.0 * share) * self.squares + share * share * whole.squares;
        (share, variance.max(0.0).sqrt() / whole.cycles)
    }
}

/// Time of a function in a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptFunctionTime {
    /// Number of the function ([`Scripts::functions`]).
    pub function: u32,
    /// Time while the function was the innermost one, with what the interpreter and the kernel do for it.
    pub own: SampleSum,
    /// Time of the function and of all functions that it calls.
    pub total: SampleSum,
}

/// Time of a line of a function in a process, while the function was the innermost one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptLineTime {
    /// Number of the function.
    pub function: u32,
    /// The line; 0 if it is not known.
    pub line: u32,
    /// Time of the line.
    pub own: SampleSum,
}

/// Time of a process that an interpreter executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptProcess {
    /// The process.
    pub process: ProcessId,
    /// All time of the process, with what is in no function: the interpreter's start and end, threads of libraries.
    pub whole: SampleSum,
    /// Functions of the process, by number.
    pub functions: Vec<ScriptFunctionTime>,
    /// Lines of these functions, by function and line.
    pub lines: Vec<ScriptLineTime>,
}

/// Interpreted programs of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scripts {
    /// Functions by number.
    pub functions: Vec<ScriptFunction>,
    /// Processes by number.
    pub processes: Vec<ScriptProcess>,
}

impl Scripts {
    /// Adds up processes into one, which has the number of the first.
    pub fn together<'a>(processes: impl Iterator<Item = &'a ScriptProcess>) -> ScriptProcess {
        let mut all: Option<ScriptProcess> = None;
        for process in processes {
            match &mut all {
                Some(all) => all.add(process, Some),
                None => all = Some(process.clone()),
            }
        }
        all.unwrap_or_else(|| ScriptProcess::new(ProcessId::BOOT))
    }

    /// True if no process was sampled.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }
}
