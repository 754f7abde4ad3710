//! What ends a recording early.

use crate::Seq;

/// Why a recording stopped before the run did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The reader went away.
    #[error("nobody reads the recording any more; it ends before record {}", .seq.0)]
    ReaderGone {
        /// The first record that was lost.
        seq: Seq,
    },
    /// More cycles between two commits than 32 bits hold, which only a hung guest or a fault of the
    /// timing core can cause: a sleeping hart reports [`crate::Event::Idle`].
    #[error("record {} commits {cycles} cycles after the one before it", .seq.0)]
    LongStall {
        /// The record.
        seq: Seq,
        /// Cycles since the previous commit.
        cycles: u64,
    },
    /// The timing core committed in the past.
    #[error("record {} commits at cycle {commit}, before cycle {reached} that the stream had reached", .seq.0)]
    BackInTime {
        /// The record.
        seq: Seq,
        /// The record's commit cycle.
        commit: u64,
        /// The stream's last cycle.
        reached: u64,
    },
}
