//! What a trace says of its run: the metadata of `trace.tip`, in JSON. Its schema is `tipsim schema trace.tip`.

use std::collections::BTreeMap;

use commit_trace::CLOCK_HZ;
use profile::Sampler;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulation::Region;

/// Simulator, configuration, core, clock, samplers, and the files that booted. Nothing in it tells one host or hour from another, so that
/// equal runs give equal files. Traces of other writers may lack any of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "trace.tip")]
pub(crate) struct TraceMetadata {
    /// Version of the simulator.
    pub tipsim: Option<String>,
    /// Name of the run.
    pub name: Option<String>,
    /// Cycles per second of the guest's time.
    pub clock_hz: u64,
    /// The core, with all parameters (`tipsim core show --format json`).
    pub core: Value,
    /// The samplers of the run's profilers.
    #[schemars(with = "Vec<Value>")]
    pub samplers: Vec<Sampler>,
    /// What was profiled: `run`, `command` or `marked`.
    #[schemars(with = "String")]
    pub region: Region,
    /// The command that the guest ran.
    pub command: Option<String>,
    /// Whether records have all stages of an instruction.
    pub stages: bool,
    /// Whether calls were followed.
    pub call_stacks: bool,
    /// The kernel's command line.
    pub bootargs: Option<String>,
    /// The run spec, with names of files instead of their paths.
    pub spec: Value,
    /// The files that booted, by what they are: `firmware`, `kernel`, `initrd`, `program`, `drive0` and so on.
    pub guest: BTreeMap<String, BootFile>,
    /// Name, version and SHA-256 of each of Debian's packages in the guest.
    pub packages: Option<Vec<String>>,
}

impl Default for TraceMetadata {
    fn default() -> Self {
        Self {
            tipsim: None,
            name: None,
            clock_hz: CLOCK_HZ,
            core: Value::Null,
            samplers: Vec::new(),
            region: Region::Run,
            command: None,
            stages: false,
            call_stacks: false,
            bootargs: None,
            spec: Value::Null,
            guest: BTreeMap::new(),
            packages: None,
        }
    }
}

/// A file that booted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct BootFile {
    /// Size, in bytes.
    pub bytes: u64,
    /// SHA-256 of the content; none of a disk, which may be large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Build ID of the file with symbols, if it has one.
    pub build_id: Option<String>,
}
