//! What can be wrong with a stream.

use crate::Seq;

/// A batch that no commit stage can have produced, or that does not continue the one before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Something is missing between two batches.
    #[error(
        "the stream has a gap: expected record {} after cycle {cycle}, found record {}",
        .expected.0, .found.0
    )]
    Gap {
        /// The next record's number.
        expected: Seq,
        /// The number found.
        found: Seq,
        /// Last cycle before the gap.
        cycle: u64,
    },
    /// A record without a cycle of its own where nothing commits that it could share one with: at a
    /// batch's start, after a trap, or after an idle period.
    #[error("record {} has no commit cycle", .seq.0)]
    NoCycle {
        /// The record.
        seq: Seq,
    },
    /// More instructions commit in one cycle than [`crate::MAX_COMMIT_WIDTH`].
    #[error("{width} instructions commit in the cycle of record {}", .seq.0)]
    WideGroup {
        /// The first record of the cycle.
        seq: Seq,
        /// Instructions that commit in the cycle.
        width: usize,
    },
    /// Cycle numbers, or a record number, of 2^50 or more.
    #[error("cycle numbers overflow in the batch that starts with record {}", .seq.0)]
    CycleOverflow {
        /// The batch's first record.
        seq: Seq,
    },
    /// Static info of instructions must come in the order of their numbers.
    #[error("expected the static info of instruction {expected}, found those of {found}")]
    StaticInfoOutOfOrder {
        /// The next number.
        expected: u32,
        /// The number found.
        found: u32,
    },
    /// A record names a static instruction whose static info never came.
    #[error("static instruction {inst} is undefined in the batch that starts with record {}", .seq.0)]
    UndefinedInst {
        /// The instruction's number.
        inst: u32,
        /// The batch's first record.
        seq: Seq,
    },
    /// An event out of order, or an idle period within a commit group.
    #[error("misplaced event before record {}", .seq.0)]
    BadEvent {
        /// The record.
        seq: Seq,
    },
}
