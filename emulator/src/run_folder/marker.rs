//! `tipsim.json`: what says that a folder is a run's, and which files of it belong together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::folder::Folder;
use crate::host::sha256::sha256;

/// The file's name.
pub(super) const MARKER: &str = "tipsim.json";
/// The layout that this simulator writes and reads.
const FORMAT: u32 = 1;
/// Bytes of the largest marker that is read; it names at most some hundred thousand files of a guest.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes of a trace's end that tell it from another of equal length.
const TRACE_END: u64 = 24;

/// What `tipsim.json` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// Version of the marker's layout.
    pub format: u32,
    /// Version of the simulator.
    pub tipsim: String,
    /// What the folder is.
    pub state: State,
    /// Process that made the folder.
    pub process: u32,
    /// Why the run is not whole, in words; none if it is.
    pub part: Option<String>,
    /// Files of results, by name in the folder, and what tells each from another run's.
    pub files: BTreeMap<String, String>,
    /// The trace, if there is one.
    pub trace: Option<TraceMark>,
    /// Stored units, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_units: Option<TraceMark>,
    /// What is being moved, while the results are put into a folder that has other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<Moving>,
    /// What the guest left in `files/`: paths of files, of links, and of folders (those end in `/`).
    pub guest_files: Vec<String>,
}

/// A journal of results on their way into their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moving {
    /// Name of the folder for the results of the run before, beside the folder of the results.
    pub old: String,
    /// Names of what is moved.
    pub entries: Vec<String>,
}

/// What a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// A run works in the folder, or did so when it was killed.
    Running,
    /// The run is over, and its results are being moved into their place.
    Moving,
    /// The run is over, and all results are there.
    Ended,
    /// The run was killed, and a report was made of what it had recorded.
    Killed,
}

/// What tells a trace, or stored units, from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TraceMark {
    /// Size in bytes.
    pub bytes: u64,
    /// The last bytes, in hexadecimal: they have a checksum.
    pub end: String,
}

impl State {
    /// Returns whether the run came to its end, and everything that it left is written.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Moving | Self::Ended)
    }
}

impl TraceMark {
    /// Reads size and last bytes of an open trace.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn of(trace: File) -> io::Result<Self> {
        let (bytes, end) = size_and_end(trace)?;
        let end = end.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, end })
    }
}

/// Reads what tells a trace from another one: its size, and its last bytes, which have the checksum of its index.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn size_and_end(mut trace: File) -> io::Result<(u64, Vec<u8>)> {
    let bytes = trace.metadata()?.len();
    trace.seek(SeekFrom::Start(bytes.saturating_sub(TRACE_END)))?;
    let mut end = Vec::new();
    trace.take(TRACE_END).read_to_end(&mut end)?;
    Ok((bytes, end))
}

impl Marker {
    /// Makes the marker of a run that begins in this process.
    pub(super) fn running() -> Self {
        Self {
            format: FORMAT,
            tipsim: env!("CARGO_PKG_VERSION").to_owned(),
            state: State::Running,
            process: std::process::id(),
            part: None,
            files: BTreeMap::new(),
            trace: None,
            stored_units: None,
            moving: None,
            guest_files: Vec::new(),
        }
    }

    /// Reads the marker of a folder; `None` if it has none.
    ///
    /// # Errors
    /// If `tipsim.json` is there but is no marker.
    pub(super) fn read(folder: &Folder) -> io::Result<Option<Self>> {
        let bytes = match folder.read(MARKER, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let value: Value = serde_json::from_slice(&bytes)?;
        match value["format"].as_u64() {
            Some(format) if format > u64::from(FORMAT) => {
                let error = format!("format: expected at most {FORMAT}, found {format}");
                Err(io::Error::other(error))
            }
            _ => Ok(Some(serde_json::from_value(value)?)),
        }
    }

    /// Writes the marker of a folder.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn write(&self, folder: &Folder) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        folder.write(MARKER, &text)
    }

    /// Notes what a file of results holds.
    ///
    /// # Errors
    /// None: the content is in memory.
    pub(super) fn note(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.files.insert(name.to_owned(), sha256(content)?);
        Ok(())
    }
}
