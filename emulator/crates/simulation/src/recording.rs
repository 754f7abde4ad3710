//! What a session records, and the host's side of its streams.

mod consumer;

use std::fs::File;
use std::io::Write;

use critical_path::{CoreDescription, Delays, Widths};
use profile::Sampler;
use timing::Preset;

use crate::error::SimulationError;
use crate::options::Region;
use crate::sampling::{ChosenUnits, SamplingPlan, Scheme};
use crate::survey::SurveyOptions;

pub(crate) use consumer::SpareWorker;
pub(crate) use consumer::{IN_FLIGHT, StreamConsumer};
pub use consumer::{Recorded, RecordingError};

/// What a session records: one value, given when it begins. By default nothing.
#[derive(Default)]
pub struct Recording {
    /// The trace.
    pub trace: Option<TraceOutput>,
    /// The profilers that evaluate the stream while it is recorded.
    pub profilers: Option<Profilers>,
    /// The trace has all stages of each instruction, not only its commit.
    pub stages: bool,
    /// All events are counted, also those that are counted only if somebody asks.
    pub all_events: bool,
    /// What samples should say is collected: exact counts by instruction and cache line.
    pub truth: bool,
    /// Excerpts of some thousand instructions with all their stages are taken now and then.
    pub excerpts: bool,
    /// Interpreted programs are sampled from outside.
    pub scripts: bool,
    /// What is recorded of the run.
    pub region: Region,
    /// The functional hart keeps the timing core warm from [`Session::keep_warm`](crate::Session::keep_warm) on, and where timing pauses, with one hart.
    pub warm: bool,
    /// How the region is sampled, after a functional boot; `None`: all of it is timed.
    pub sampling: Option<SamplingPlan>,
    /// The units, if they are chosen.
    pub chosen: ChosenUnits,
    /// Where the units of a sampled region are stored, with all that a core is told; `None`: nowhere.
    pub stored_units: Option<Box<dyn Write + Send>>,
    /// The region is surveyed, with one hart and after a functional boot: nothing is timed or recorded.
    pub survey: Option<SurveyOptions>,
}

impl Recording {
    /// Returns whether something takes the stream of records.
    pub(crate) fn has_stream(&self) -> bool {
        self.trace.is_some() || self.profilers.is_some()
    }
}

/// Where a trace goes.
pub struct TraceOutput {
    /// Creates the file, when the first timed part begins.
    pub create: Box<dyn FnOnce() -> Result<File, SimulationError>>,
    /// What messages call the file.
    pub name: String,
    /// What the trace says of the run, in JSON.
    pub metadata: String,
    /// zstd level, 1 to 19.
    pub level: i32,
}

/// The profilers of each hart.
#[derive(Clone, Debug, Default)]
pub struct Profilers {
    /// Which profilers, and their sampling schedules.
    pub samplers: Vec<Sampler>,
    /// What a report says beyond profiles is counted, too: top-down slots, time by event, misplaced time.
    pub detail: bool,
    /// Calls are followed.
    pub call_stacks: bool,
    /// Counts are kept by subsample, too, as the region is sampled by such a scheme.
    pub sampled: Option<Scheme>,
}

/// Returns what excerpts say of a core.
pub(crate) fn core_description(preset: &Preset) -> CoreDescription {
    CoreDescription {
        widths: Widths {
            decode: preset.decode.width,
            int: preset.issue.int_width,
            mem: preset.issue.mem_width,
            fp: preset.issue.fp_width,
        },
        delays: Delays {
            load_search: timing::delays::LOAD_SEARCH,
            store_data: timing::delays::STORE_DATA,
            branch_tag: timing::delays::BRANCH_TAG,
            register: timing::delays::REGISTER,
        },
    }
}
