//! What can go wrong with a trace file.

/// An error about a trace file; every one names the file.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The host could not open or read the file.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The host could not write the file, for instance because the disk is full.
    #[error(
        "{file}: cannot write at offset {offset}: {source} (the {offset} bytes before stay readable)"
    )]
    Write {
        /// The file.
        file: String,
        /// Bytes that were written whole.
        offset: u64,
        /// Why.
        source: std::io::Error,
    },
    /// A batch that cannot be stored; no [`crate::Recorder`] makes one.
    #[error("{file}: the batch that starts with record {seq} cannot be written: {what}")]
    Unwritable {
        /// The file.
        file: String,
        /// The batch's first record.
        seq: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file is not a trace.
    #[error("{file}: not a trace (a trace starts with the bytes \"TIPTRACE\")")]
    NotATrace {
        /// The file.
        file: String,
    },
    /// A version that this build does not read.
    #[error("{file}: trace version {found} at offset 8, this build reads version {expected}")]
    Version {
        /// The file.
        file: String,
        /// The file's version.
        found: u32,
        /// Trace version that this build reads.
        expected: u32,
    },
    /// Bytes that no writer wrote.
    #[error("{file}: damaged at offset {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Offset of the part that is damaged, in bytes.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A seek to a place that is not in the trace.
    #[error("{file}: hart {hart} has no {what} {target} in this trace")]
    OutOfRange {
        /// The file.
        file: String,
        /// The hart.
        hart: u32,
        /// "cycle" or "record".
        what: &'static str,
        /// Number of the cycle or record.
        target: u64,
    },
}
