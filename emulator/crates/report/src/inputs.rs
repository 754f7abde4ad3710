//! What a report is made of.

use critical_path::Excerpts;
use guest_samples::{GuestProfile, SampleFile, SampledEvent};
use profile::Evaluation;
use symbols::Symbolizer;
use truth::{Metric, Truth};

use super::counters::CounterInputs;
use super::run_description::RunDescription;
use super::units::UnitInputs;

/// Everything that a report is made of. [`ReportInputs::new`] has what every report needs; a field that it leaves empty leaves out a
/// section.
pub struct ReportInputs<'a> {
    /// The evaluation, of all harts together or of one.
    pub evaluation: &'a Evaluation,
    /// Names of the code.
    pub symbolizer: &'a Symbolizer,
    /// Disassembles an instruction by its encoding and its address.
    pub disassemble: &'a dyn Fn(u32, u64) -> String,
    /// The run's description (run.json), which the report shows as it is.
    pub meta: RunDescription,
    /// True if `evaluation` is of all harts of the run. Only then it tells what threads waited for: a hart knows but its own part of
    /// what they do.
    pub of_all_harts: bool,
    /// Evaluations of the single harts of the run, if `evaluation` is of all harts together.
    pub harts: &'a [Evaluation],
    /// Profiles that perf sampled in the guest with the TIP unit.
    pub guests: &'a [GuestProfile],
    /// Excerpts of the evaluated execution.
    pub excerpts: Option<&'a Excerpts>,
    /// Units of a sampled region.
    pub units: Option<UnitInputs>,
    /// Counts of events, by the host and by the guest.
    pub counters: Option<CounterInputs>,
    /// The true counts of events, and the guest's samples of these.
    pub truth: Option<TruthInputs<'a>>,
}

/// The true counts of events, and what perf sampled of these in the guest.
pub struct TruthInputs<'a> {
    /// The counts, of all harts.
    pub truth: &'a Truth,
    /// The guest's files.
    pub files: &'a [SampleFile],
    /// Returns the count that an event is compared with, or why there is none.
    pub metric: &'a dyn Fn(&SampledEvent) -> Result<Metric, &'static str>,
}

impl<'a> ReportInputs<'a> {
    /// Returns the inputs of a report of an evaluation alone.
    pub fn new(
        evaluation: &'a Evaluation,
        symbolizer: &'a Symbolizer,
        disassemble: &'a dyn Fn(u32, u64) -> String,
        meta: impl Into<RunDescription>,
    ) -> Self {
        Self {
            evaluation,
            symbolizer,
            disassemble,
            meta: meta.into(),
            of_all_harts: false,
            harts: &[],
            guests: &[],
            excerpts: None,
            units: None,
            counters: None,
            truth: None,
        }
    }
}
