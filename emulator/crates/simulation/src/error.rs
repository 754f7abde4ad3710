//! What can go wrong with a simulation, but for what guests do.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use devices::Overlap;
use machine::BoardError;
use snapshot::SnapshotError;

/// Why a machine cannot be built, loaded or recorded.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// An option or an image is not as it should be; the text names it, what was expected and what was found.
    #[error("{0}")]
    Options(String),
    /// A file is not as it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected, and found.
        reason: String,
    },
    /// A file cannot be written, for instance because the disk is full.
    #[error("{}: cannot write: {reason}", path.display())]
    CannotWrite {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The state of a machine cannot be saved.
    #[error(transparent)]
    State(#[from] SnapshotError),
    /// Two devices are at one address.
    #[error(transparent)]
    Overlap(#[from] Overlap),
    /// The board has no place for a device.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A thread of the recording ended before its time or cannot be started.
    #[error("recording: {0}")]
    Recording(String),
}

impl SimulationError {
    /// Returns the error of a file that is not as it should be.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Returns the error of a file that cannot be written.
    pub fn cannot_write(path: &Path, reason: impl Display) -> Self {
        Self::CannotWrite { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Returns whether what the user gave is at fault: an option or a file.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Options(_) | Self::File { .. })
    }
}
