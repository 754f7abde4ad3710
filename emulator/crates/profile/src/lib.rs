//! Sampling profilers, the Oracle that judges them, and the reports made of both.
//!
//! An [`Evaluator`] reads one hart's stream, live or from a trace file, and yields an
//! [`Evaluation`]: the Oracle's [`Profile`] and cycle stacks, and one profile per sampler.
//!
//! ```
//! use commit_trace::{Batch, Event};
//! use profile::{Evaluator, Profiler, Region, Sampler, Schedule};
//!
//! let samplers = [Sampler::new(Profiler::Tip, Schedule::frequency(4_000, 3_200_000_000))];
//! let mut evaluator = Evaluator::new(&samplers, Region::Whole);
//! let batch = Batch { events: vec![(0, Event::End)], ..Batch::default() };
//! evaluator.batch(&batch).unwrap();
//! let evaluation = evaluator.finish();
//! assert_eq!(evaluation.oracle.total(), (evaluation.cycles - evaluation.idle) * 840);
//! ```

mod block;
mod busy_harts;
mod calls;
mod check;
mod clock;
mod counts;
mod dense;
mod error;
mod estimate;
mod evaluate;
mod evaluation;
mod events;
mod guest_context;
mod inactive;
mod merge;
mod names;
mod oracle;
mod over_time;
mod packed;
mod paged;
mod process;
mod profile;
mod profilers;
mod published;
mod regression;
mod sampler;
mod scripts;
mod speedup;
pub mod spinning;
mod stack;
mod stacks;
mod stalls;
mod subsample;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
mod tables;
mod tally;
mod timeline;
pub mod topdown;
mod view;
pub mod waits;

pub use busy_harts::BusyHarts;
pub use calls::{Context, ContextId, ContextWeights, Contexts, fold};
pub use clock::SamplingClock;
pub use error::{
    ErrorSums, ErrorTotals, OracleLevel, OracleWeights, mean_deviation, profile_error,
    sampling_error,
};
pub use estimate::{Deviations, Estimate, Interval, Margin, RatioSums, StratumUnit};
pub use evaluate::{Evaluator, Region};
pub use evaluation::{Evaluation, Sample, SamplerResult, ThreadPart};
pub use events::{Misplaced, Signatures};
pub use guest_context::{GuestContext, describe_side_band};
pub use merge::MergedNumbers;
pub use names::{command_name, process_names};
pub use oracle::UNITS_PER_CYCLE;
pub use over_time::{ProcessTime, TimeBin};
pub use process::{Mapping, Process, ProcessId, ProcessKey, Thread, ThreadId};
pub use profile::Profile;
pub use profilers::Profiler;
pub use published::{Level, Published};
pub use regression::{CountedUnit, KnownCounts};
pub use sampler::{Filter, Privilege, Sampler, Schedule};
pub use scripts::{
    MIN_KIND as MIN_SCRIPT_KIND, SampleSum, ScriptFrame, ScriptFunction, ScriptFunctionTime,
    ScriptLineTime, ScriptProcess, ScriptRecord, Scripts,
};
pub use speedup::{HartCycles, SpeedupComponent};
pub use stack::{CATEGORIES, Category, Component, CycleStack};
pub use stacks::CycleStacks;
pub use subsample::{LEAST_SUBSAMPLES, Subsample, jackknife, ratio_of_subsamples, unseen_by};
pub use timeline::{Timeline, Window};
pub use topdown::TopDown;
