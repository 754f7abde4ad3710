//! `[run]`: what is run, and by what.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::quantity::parse_duration;

/// What is run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// How the guest boots. After a functional boot the timing core takes over where the region begins; with the region
    /// `run` everything is functional.
    pub boot: Mode,
    /// What is translated to host code.
    pub translator: Translator,
    /// Threads of the host that simulate under the timing core. Not part of what a run is: results are the same.
    #[serde(skip_serializing)]
    pub threads: Threads,
    /// A functional boot is done once: later runs go on from where its guest mounts the shared folder.
    pub checkpoint: bool,
    /// Shell command that the guest runs; none: the guest's own init decides.
    pub command: Option<String>,
    /// Files and folders of the host that lie in the command's working folder.
    pub files: Vec<PathBuf>,
    /// File of the host that is the command's standard input. Without it, that is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<PathBuf>,
    /// What is profiled.
    pub region: Region,
    /// The run fails after this many cycles (0: no limit).
    pub max_cycles: u64,
    /// The run fails when no program executed an instruction for so long in simulated time, such as "10min" ("0s": no limit).
    #[serde(skip_serializing_if = "is_default_max_idle")]
    pub max_idle: String,
    /// The run fails once this process has so much of the host's memory in use, such as "8G"; none: what the host has left as the run starts, less a margin.
    /// Not part of what a run is.
    #[serde(skip_serializing)]
    pub host_memory: Option<String>,
    /// Variables in the command's environment, beside those of the guest's init. None of the host's passes by itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Default of [`Run::max_idle`]: more than programs sleep on purpose.
const MAX_IDLE: &str = "2h";

impl Run {
    /// Simulated seconds of `max_idle`, of a spec that was checked.
    pub fn max_idle_seconds(&self) -> u64 {
        parse_duration(&self.max_idle).unwrap_or(0)
    }
}

fn is_default_max_idle(text: &str) -> bool {
    text == MAX_IDLE
}

impl Default for Run {
    fn default() -> Self {
        Self {
            boot: Mode::default(),
            translator: Translator::default(),
            threads: Threads::default(),
            checkpoint: true,
            command: None,
            files: Vec::new(),
            input: None,
            region: Region::default(),
            max_cycles: 0,
            max_idle: MAX_IDLE.to_owned(),
            host_memory: None,
            env: BTreeMap::new(),
        }
    }
}

/// Which machine boots the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Under the timing core.
    #[default]
    Timing,
    /// Functional: one cycle per instruction, no profilers.
    Functional,
}

/// What is translated to host code; the guest cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Translator {
    /// Code that is executed often, where the host has a translator (x86-64).
    #[default]
    Auto,
    /// Nothing: the interpreter executes everything.
    Off,
    /// All code, at once: slow, for tests.
    Eager,
}

impl From<Translator> for machine::Translate {
    fn from(translator: Translator) -> Self {
        match translator {
            Translator::Auto => Self::Hot,
            Translator::Off => Self::Nothing,
            Translator::Eager => Self::Everything,
        }
    }
}

/// Threads of the host that simulate under the timing core; the results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// Two, if the host has so many processors and the guest one hart, as long as they seldom wait for each other.
    #[default]
    Auto,
    /// One.
    One,
    /// Two, if the guest has one hart.
    Two,
}

impl Threads {
    /// Returns the threads for this host: one, if it has but one processor and nobody says otherwise.
    pub fn of_this_host(self) -> Self {
        let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        match self {
            Self::Auto if !several => Self::One,
            other => other,
        }
    }
}

/// What is profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Region {
    /// From reset to the end.
    #[default]
    Run,
    /// While the command runs, and of that what its programs mark, if they do.
    Command,
    /// What the command's programs mark, alone: after a functional boot the command is functional, too, up to the first mark.
    Marked,
}

impl Region {
    /// Returns whether the region begins and ends by marks, not with the run.
    pub fn is_marked(self) -> bool {
        self != Self::Run
    }
}
