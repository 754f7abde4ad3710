//! Records as columns: each field is predicted from what the stream did here before.
//!
//! Per record one token byte says what most differ in:
//!
//! ```text
//! bits 2..0  commit delta; 7: it, and whether instruction and flags were predicted, is in the commits column
//! bits 5..3  dispatch delta, less 1 for the first of a row (rows enter the ROB in cycles of their own)
//! bit  6     the decode lead is the last record's; otherwise it follows from the dispatch delta
//! bit  7     first of its row
//! ```
//!
//! A decode group waits in the decode stage for the one before it to be dispatched: in most rows the decode lead is one more
//! than the dispatch delta. Others got to decode late, and have the lead of the row before.
//! Bit 6 without bit 7 would say nothing. It is for records that differ more in these two: bit 3 is then the row's,
//! bits 5..4 say where the decode lead is (`LEAD_IS_…`), and the dispatch delta is in a column of its own.
//!
//! Code that runs again leaves the same bytes again, which zstd finds; differences to the token that followed the same
//! instruction last time were up to half as large again, and took it up to twice as long. Encoder and decoder keep the
//! same [`Tables`], emptied at each chunk.

mod decode;
mod encode;

pub(super) use decode::{Progress, RecordDecoder};
pub(super) use encode::RecordEncoder;

use crate::CommitRecord;

/// Entries of each table; instructions whose numbers agree in the low bits share one. (Perl with Debian's libraries executes
/// some 140,000: with 2^14 entries a trace of it was 1.15 times as large.)
const ENTRIES: usize = 1 << 16;

const COMMIT_MASK: u32 = 7;
/// In a token's commit bits: the commits column says more.
const MORE: u32 = 7;
const DISPATCH_SHIFT: u32 = 3;
const DISPATCH_MASK: u32 = 7;
const LEAD_KEPT: u32 = 1 << 6;
const FIRST_OF_ROW: u32 = 1 << 7;
/// The bits of a token that tell whether its dispatch delta is in a column of its own.
const FAR_MASK: u32 = LEAD_KEPT | FIRST_OF_ROW;
/// The value of the bits [`FAR_MASK`] in a token whose dispatch delta is in a column of its own.
const FAR: u32 = LEAD_KEPT;
const FAR_FIRST_OF_ROW: u32 = 1 << 3;
const FAR_LEAD_SHIFT: u32 = 4;
/// Where the decode lead of a [`FAR`] token is: it follows from the dispatch delta, is the last record's, or is in a column
/// of its own.
const LEAD_IS_DERIVED: u32 = 0;
const LEAD_IS_KEPT: u32 = 1;
const LEAD_IS_OWN: u32 = 2;

/// Flag bits below the commit delta in its column: the instruction or the record's flags are as predicted.
const INST_PREDICTED: u64 = 1 << 0;
const FLAGS_PREDICTED: u64 = 1 << 1;
const MORE_SHIFT: u32 = 2;

const FIRST_OF_ROW_BIT: u32 = 3;
const FIRST_OF_ROW_FLAG: u32 = 1 << FIRST_OF_ROW_BIT;
const RESIDENCE_BITS: u32 = CommitRecord::MAX_RESIDENCE.trailing_ones();
const MAX_DECODE_LEAD: u32 = u32::MAX >> RESIDENCE_BITS;

/// What encoder and decoder know of each instruction. Each field has an array of its own: from one record to the next the
/// decoder mostly needs no more than `steps`, which should be near.
#[derive(Debug)]
struct Tables {
    /// Number of the instruction that followed, less that of the next in order.
    steps: [u32; ENTRIES],
    /// Flags of the instruction's last record, less the row bit.
    flags: [u32; ENTRIES],
}

impl Tables {
    const EMPTY: Self = Self { steps: [0; ENTRIES], flags: [0; ENTRIES] };
}

/// Returns the decode lead that follows from a dispatch delta: a row was decoded when the last one was dispatched, or, by its
/// pieces, all at once.
#[inline(always)]
fn derived_lead(row: u32, before: u32, dispatch: u32) -> u32 {
    let from = if row != 0 { 1 } else { before };
    from.wrapping_add(dispatch)
}
