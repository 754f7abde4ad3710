//! `[run]`: what is run, and by what.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use simulation::{HartOrder, Mode, Region, SamplingPlan, Threads, Translator};

use super::quantity::parse_duration;

/// What is run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Run {
    /// How the guest boots. After a functional boot the timing core takes over where the region begins; with the region
    /// `run` everything is functional.
    pub boot: Mode,
    /// What is translated to host code.
    pub translator: Translator,
    /// Threads of the host that simulate under the timing core. Not part of what a run is: results are the same.
    #[serde(skip_serializing)]
    pub threads: Threads,
    /// How close to the order of simulated time several harts execute under timing cores.
    #[serde(skip_serializing_if = "is_default_order")]
    pub hart_order: HartOrder,
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
    /// What is executed functionally keeps the timing core's caches, TLBs and predictors warm, with one hart: from where the guest mounts the shared folder, from
    /// where a bare-metal program begins, or from a checkpoint on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// How the region is sampled: units of it are timed and recorded, and the rest is executed functionally. None: all of it is timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingPlan>,
    /// The run fails after this many cycles (0: no limit).
    pub max_cycles: u64,
    /// The run fails after this many instructions of all harts (0: no limit).
    #[serde(skip_serializing_if = "is_zero")]
    pub max_instructions: u64,
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
    pub(crate) fn max_idle_seconds(&self) -> u64 {
        parse_duration(&self.max_idle).unwrap_or(0)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_default_order(order: &HartOrder) -> bool {
    *order == HartOrder::default()
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
            hart_order: HartOrder::default(),
            checkpoint: true,
            command: None,
            files: Vec::new(),
            input: None,
            region: Region::default(),
            warm: false,
            sampling: None,
            max_cycles: 0,
            max_instructions: 0,
            max_idle: MAX_IDLE.to_owned(),
            host_memory: None,
            env: BTreeMap::new(),
        }
    }
}
