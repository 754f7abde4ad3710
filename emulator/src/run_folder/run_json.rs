//! `run.json`: how a run went, and with what. Its schema is `tipsim schema run.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use devices::Exit;
use profile::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use simulation::{RegionSummary, Sampled};

use super::{RUN, Results};
use crate::experiment::End;
use crate::failure::{BadInput, bad_input};

/// The version of the file. Within one, keys may be added; none changes its meaning, its unit or its type.
pub(crate) const RUN_FORMAT: u32 = 1;

/// How a run went, and with what. A run that has begun has `name`, `tipsim`, `end`, `part`, `core`, `spec` and `symbols`; the others come
/// when it has ended. Counts are of the first hart and of the part that matters, under the timing core if anything ran there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "run.json")]
pub(crate) struct RunJson {
    /// Version of this file. Files of tipsim 0.1.0 before this number have none, and `end` is a text there.
    pub format: u32,
    /// Name of the run.
    pub name: String,
    /// Version of the simulator.
    pub tipsim: String,
    /// Why the run ended.
    pub end: RunEnd,
    /// Why these are not the results of a whole run; null: they are.
    pub part: Option<String>,
    /// When the run ended, by the host's clock (RFC 3339).
    pub ended_at: Option<String>,
    /// Exit status of the guest's command.
    pub exit_status: Option<u32>,
    /// What is wrong with that exit status, in words.
    pub failure: Option<String>,
    /// Simulated cycles.
    pub cycles: Option<u64>,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// Time on the host, in seconds.
    pub host_seconds: Option<f64>,
    /// Million instructions per second of the host.
    pub mips: Option<f64>,
    /// Million cycles per second of the host.
    pub mcycles_per_second: Option<f64>,
    /// The most memory that the simulator had in use, in MiB.
    pub peak_memory_mb: Option<f64>,
    /// Where the host's time went by part of the simulator, in nanoseconds for each instruction (`--self-profile`).
    pub host_ns_per_instruction: Option<BTreeMap<String, f64>>,
    /// The part that ran functionally, if another part ran under the timing core.
    pub functional: Option<FunctionalPart>,
    /// Whether another run of the spec gives the same, to the cycle.
    pub deterministic: Option<bool>,
    /// What the guest's clock showed at reset (RFC 3339).
    pub clock: Option<String>,
    /// The core, with all parameters (`tipsim core show --format json`).
    pub core: Value,
    /// The run spec, with all keys and absolute paths.
    pub spec: Value,
    /// Where symbols of the guest's files are on the host.
    pub symbols: Value,
    /// What was profiled.
    pub regions: Option<RegionSummary>,
    /// What became of the sampling of the region, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampled>,
    /// What is known of the run whose stored units these results were made of, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retimed: Option<RetimedRun>,
    /// Cycles that each hart's TIP unit stood still, while its own interrupt was handled.
    pub tip_frozen_cycles: Option<Vec<u64>>,
    /// What last-level cache and memory controller counted in the region, by hart and origin, and the guest's counters of them.
    pub uncore: Value,
    /// Counters of the first hart's timing core.
    pub stats: Value,
    /// Each of several harts; null of a single one.
    pub harts: Option<Vec<HartOfRun>>,
    /// Counts of events on each hart: an object with `region` (whether they are of the region of interest) and `harts`, a list of
    /// objects with the names of `tipsim core events` as keys. Counts of a sampled region are those of its units, and `estimates` has by the same names how often
    /// an event occurs in all of the region, with intervals.
    pub counters: Value,
    /// The trace, if one was written.
    pub trace: Option<TraceOfRun>,
    /// Hashes of what the profilers found, by name.
    pub fingerprint: Value,
    /// Cycles that the Oracle accounted for, on the first hart.
    pub oracle_cycles: Option<u64>,
    /// Cycles that the first hart slept.
    pub idle_cycles: Option<u64>,
    /// What the guest was built of, as its manifest says.
    pub guest: Value,
    /// Name, version and SHA-256 of each of Debian's packages in the guest.
    pub packages: Option<Vec<String>>,
    /// What changes would gain, as `tipsim what-if` found: `program`, `cycles`, `harts` and `trials`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub what_if: Value,
    /// Entries like `what_if` that are about other programs of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub what_if_others: Vec<Value>,
    /// Keys of newer versions.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A run whose stored units were timed again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RetimedRun {
    /// Folder of the run.
    pub run: PathBuf,
    /// Name of the core on which the run was.
    pub core: String,
    /// Cycles relative to those on that core, by the same units; `None` without two units.
    pub cycles_ratio: Option<Estimate>,
    /// What was set of the core.
    pub set: Vec<String>,
    /// Parameters that are smaller than on the core of the run, so that more is there where units begin than would be.
    pub smaller: Vec<String>,
}

/// The functional part of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct FunctionalPart {
    /// Instructions retired.
    pub instructions: u64,
    /// Instructions of these that an earlier run with the same boot had executed.
    pub restored_instructions: u64,
    /// Time on the host, in seconds.
    pub host_seconds: f64,
    /// Million instructions per second of the host.
    pub mips: f64,
}

/// One of several harts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct HartOfRun {
    /// Cycles under the timing core.
    pub cycles: u64,
    /// Instructions retired under the timing core.
    pub instructions: u64,
    /// Counters of the timing core.
    pub stats: Value,
    /// Hashes of what the profilers found, by name.
    pub fingerprint: Value,
    /// Cycles that the hart slept.
    pub idle_cycles: Option<u64>,
}

/// A run's trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TraceOfRun {
    /// Size, in bytes.
    pub bytes: u64,
    /// Number of records.
    pub records: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Bytes of a record, in the mean.
    pub bytes_per_record: f64,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RunEnd {
    /// One of the reasons there are.
    Known(EndReason),
    /// What an older version wrote.
    Older(String),
}

/// The reasons for which a run ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub(crate) enum EndReason {
    /// The guest ended it.
    Guest {
        /// How.
        exit: GuestExit,
        /// The status that it gave; 0 of a reset.
        status: u64,
    },
    /// The guest ended it before its command had ended.
    BeforeCommand {
        /// How.
        exit: GuestExit,
        /// The status that it gave; 0 of a reset.
        status: u64,
    },
    /// The guest does nothing any more.
    Standstill {
        /// Why, in words.
        why: String,
    },
    /// Whoever drove the run in steps ended it before the guest did.
    Session,
    /// Ctrl-C or a signal.
    Interrupted,
    /// The trace or a profiler failed.
    RecordingFailed,
    /// More cycles than `run.max_cycles`.
    MaxCycles {
        /// The limit.
        limit: u64,
    },
    /// More instructions than `run.max_instructions`.
    MaxInstructions {
        /// The limit.
        limit: u64,
    },
    /// The simulator had more of the host's memory in use than `run.host_memory`.
    HostMemory {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The run was killed, or goes on.
    Killed,
}

/// How a guest ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuestExit {
    /// The guest switched the machine off.
    PowerOff,
    /// The guest asked for a reset.
    Reset,
    /// A bare-metal program ended, by HTIF or semihosting.
    Host,
}

impl Default for RunEnd {
    fn default() -> Self {
        Self::Known(EndReason::Killed)
    }
}

impl RunEnd {
    /// Returns whether the guest itself ended the run, before or after its command.
    pub(crate) fn is_by_guest(&self) -> bool {
        match self {
            Self::Known(reason) => matches!(reason, EndReason::Guest { .. }),
            Self::Older(text) => text.starts_with("Guest"),
        }
    }
}

fn exit(exit: Exit) -> (GuestExit, u64) {
    match exit {
        Exit::PowerOff(status) => (GuestExit::PowerOff, status.into()),
        Exit::Reset => (GuestExit::Reset, 0),
        Exit::Host(status) => (GuestExit::Host, status),
    }
}

impl From<&End> for RunEnd {
    fn from(end: &End) -> Self {
        Self::Known(match end {
            End::Guest(how) => {
                let (exit, status) = exit(*how);
                EndReason::Guest { exit, status }
            }
            End::BeforeCommand(how) => {
                let (exit, status) = exit(*how);
                EndReason::BeforeCommand { exit, status }
            }
            End::Standstill(standstill) => EndReason::Standstill { why: standstill.to_string() },
            End::Session { .. } => EndReason::Session,
            End::Interrupted => EndReason::Interrupted,
            End::RecordingFailed => EndReason::RecordingFailed,
            End::TooLong(limit) => EndReason::MaxCycles { limit: *limit },
            End::TooManyInstructions(limit) => EndReason::MaxInstructions { limit: *limit },
            End::HostMemory(limit) => EndReason::HostMemory { limit: *limit },
        })
    }
}

impl RunJson {
    /// Reads the file of a run.
    ///
    /// # Errors
    /// If there is none, or its content is not what [`Self::of`] takes.
    pub(crate) fn read(run: &Results) -> Result<Self, BadInput> {
        Self::of(run.json(RUN)?).map_err(|e| bad_input(&run.path().join(RUN), e))
    }

    /// Takes a file's content.
    ///
    /// # Errors
    /// If a key has another type than the schema says, or the file is of a newer version.
    pub(crate) fn of(content: Value) -> Result<Self, String> {
        let found: Self = serde_json::from_value(content).map_err(|e| e.to_string())?;
        if found.format > RUN_FORMAT {
            return Err(format!(
                "format: expected at most {RUN_FORMAT}, found {}: a newer tipsim wrote it",
                found.format
            ));
        }
        Ok(found)
    }

    /// Returns the file's content.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a run's description has names as keys")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let end = RunEnd::from(&End::Guest(Exit::PowerOff(0)));
        let run = RunJson { format: RUN_FORMAT, end, cycles: Some(7), ..RunJson::default() };
        let value = run.to_value();
        let expected = json!({"reason": "guest", "exit": "power-off", "status": 0});
        assert_eq!(value["end"], expected);
        assert_eq!(RunJson::of(value.clone()).unwrap().to_value(), value);
    }

    #[test]
    fn older_and_newer_files_are_known() {
        let older = RunJson::of(json!({"end": "Guest(PowerOff(0))", "cycles": 5})).unwrap();
        assert!(older.end.is_by_guest() && older.format == 0);
        assert!(!RunJson::of(json!({"end": "Interrupted"})).unwrap().end.is_by_guest());
        let newer = RunJson::of(json!({"format": 2})).unwrap_err();
        assert!(newer.contains("expected at most 1, found 2"), "{newer}");
        let added = RunJson::of(json!({"format": 1, "later": [1]})).unwrap();
        assert_eq!(added.to_value()["later"], json!([1]));
        let wrong = RunJson::of(json!({"cycles": "many"})).unwrap_err();
        assert!(wrong.contains("invalid type: string \"many\", expected u64"), "{wrong}");
    }
}
