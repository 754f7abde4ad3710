//! What `perf record` wrote inside the guest: with the event `tip` the measured counterpart of the sampler of the same rule
//! ([`GuestProfile`]), and the samples of any event ([`SampleFile`]).
//!
//! A reader for the few records that a profile needs. `linux-perf-data` reads all of the format, but
//! it allocates what a file's length fields claim and asserts on a record's, and this file comes from
//! the guest: here every length is checked against the bytes that are there.
//!
//! ```
//! use guest_samples::{GuestProfile, PerfDataError};
//!
//! let error = GuestProfile::parse(b"something else", "tip").unwrap_err();
//! assert!(matches!(error, PerfDataError::NotPerfData));
//! ```

mod attr;
mod aux;
mod container;
mod cursor;
mod data_src;
mod event_sample;
mod fields;
mod pdis;
mod sample;
mod samples;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use container::{Container, MAGIC, RecordType};
pub use data_src::DataSrc;
pub use event_sample::Sample;
pub use samples::{MappingRecord, SampleFile, SampledEvent};

/// The samples of one event of a `perf.data` file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestProfile {
    /// The file's name.
    #[serde(default)]
    pub file: String,
    /// The event as it was asked for, such as `tip` or `tip/heuristic=nci/u`.
    pub event: String,
    /// The number of the rule that the unit sampled by (`CONTROL.HEURISTIC`; 0: TIP), of an event of the TIP unit.
    #[serde(default)]
    pub heuristic: u64,
    /// The samples, in the file's order.
    pub samples: Vec<GuestSample>,
    /// Samples that the kernel dropped (`PERF_RECORD_LOST` and `PERF_RECORD_LOST_SAMPLES`), of all events of the file.
    pub lost: u64,
    /// Sample records of the event that could not be read.
    pub malformed: u64,
    /// Cycles between samples, or samples per second if [`Self::is_frequency`].
    pub period: u64,
    /// True if `period` is a frequency in Hz.
    pub is_frequency: bool,
    /// User mode was not sampled.
    pub exclude_user: bool,
    /// The kernel was not sampled.
    pub exclude_kernel: bool,
    /// The firmware was not sampled (perf's `exclude_hv`).
    pub exclude_machine: bool,
    /// Last command name of each process id.
    pub commands: BTreeMap<u32, String>,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSample {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Cycles that it stands for.
    pub period: u64,
    /// The sampled cycle, if the event is TIP's.
    pub cycle: Option<u64>,
    /// Privilege in that cycle (0 U, 1 S, 3 M), if the event is TIP's.
    pub privilege: Option<u8>,
    /// The instructions that share it, oldest first: one, or up to the commit width for TIP.
    pub addresses: Vec<u64>,
}

/// Why a `perf.data` file was not read.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    /// The host could not read the file.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The host's error.
        source: std::io::Error,
    },
    /// The file is too large to hold in the host's memory: the guest decides how large it is, and can make a sparse one.
    #[error("perf.data of {0} bytes: expected at most {MAX_BYTES}")]
    TooLarge(u64),
    /// The file does not begin with the magic number.
    #[error("not a perf.data file (expected it to begin with PERFILE2)")]
    NotPerfData,
    /// The file is in the streamed form.
    #[error("perf.data in pipe format (written with `-o -`): record into a file")]
    Pipe,
    /// The file's records are compressed (`perf record -z`).
    #[error("perf.data with compressed records: record without `-z`")]
    Compressed,
    /// A section or record reaches beyond the file.
    #[error("perf.data is damaged: {0}")]
    Damaged(&'static str),
    /// The file has other events only.
    #[error("perf.data has no event {wanted:?}, only {found:?}")]
    NoEvent {
        /// The event asked for.
        wanted: String,
        /// The events of the file.
        found: Vec<String>,
    },
}

/// Size of the largest file that is read, in bytes: a file is read into memory as a whole.
const MAX_BYTES: u64 = 2 << 30;

/// Returns the bytes of a file that begins with perf's magic number.
fn read(path: &Path) -> Result<Vec<u8>, PerfDataError> {
    let failed = |source| PerfDataError::Io { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() && found.len() > MAX_BYTES {
        return Err(PerfDataError::TooLarge(found.len()));
    }
    // Other tools' files may be large.
    let mut bytes = Vec::new();
    let start = MAGIC.len() as u64;
    (&mut file).take(start).read_to_end(&mut bytes).map_err(failed)?;
    if bytes != MAGIC {
        return Err(PerfDataError::NotPerfData);
    }
    // The file may be a pipe, or grow while it is read.
    file.take(MAX_BYTES - start).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

impl GuestProfile {
    /// Reads the samples of each event of the PMU `event`, or of the event of that name (without modifiers).
    ///
    /// # Errors
    /// If the file cannot be read, is not a `perf.data` file, or has no such event.
    pub fn read(path: &Path, event: &str) -> Result<Vec<Self>, PerfDataError> {
        let mut profiles = Self::parse(&read(path)?, event)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        for profile in &mut profiles {
            profile.file = file.clone().into_owned();
        }
        Ok(profiles)
    }

    /// Reads the samples of each event of the PMU or name `event` from the bytes of a file; returns at least one profile.
    ///
    /// # Errors
    /// If the bytes are not a `perf.data` file, or the file has no such event.
    pub fn parse(bytes: &[u8], event: &str) -> Result<Vec<Self>, PerfDataError> {
        let container = Container::parse(bytes)?;
        let wanted = container.events(event)?;
        let profile = |index: &usize| {
            let attr = &container.attrs[*index];
            Self {
                event: attr.name.clone(),
                heuristic: attr.config >> 1 & 15,
                period: attr.period,
                is_frequency: attr.is_frequency,
                exclude_user: attr.exclude_user,
                exclude_kernel: attr.exclude_kernel,
                exclude_machine: attr.exclude_machine,
                ..Self::default()
            }
        };
        let mut profiles: Vec<Self> = wanted.iter().map(profile).collect();
        let mut commands = BTreeMap::new();
        let mut lost = 0u64;
        for record in container.records() {
            let record = record?;
            match record.kind {
                RecordType::Sample => {
                    let event = container.attr_of(record.body);
                    let at = wanted.iter().position(|index| event == Some(*index));
                    let Some(at) = at else { continue };
                    match sample::parse(record.body, &container.attrs[wanted[at]]) {
                        Some(sample) => profiles[at].samples.push(sample),
                        None => profiles[at].malformed += 1,
                    }
                }
                RecordType::Comm => commands.extend(sample::command(record.body)),
                _ => lost = lost.saturating_add(record.lost()),
            }
        }
        for profile in &mut profiles {
            profile.commands.clone_from(&commands);
            profile.lost = lost;
        }
        Ok(profiles)
    }

    /// Returns true if instructions of this privilege (0 U, 1 S, 3 M) could be sampled.
    pub fn covers(&self, privilege: u8) -> bool {
        !match privilege {
            0 => self.exclude_user,
            1 => self.exclude_kernel,
            _ => self.exclude_machine,
        }
    }

    /// Returns the cycles that all samples stand for.
    pub fn total_cycles(&self) -> u64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.period))
    }
}

#[cfg(test)]
mod tests;
