//! Side-band records: guest context on its way to the host.

use register_table::field;

use crate::regs::sb_commit;

/// Longest record; a driver that writes more loses the rest.
const MAX_BYTES: usize = 4096;

/// A finished record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideBandRecord {
    /// Type (see [`crate::regs::SIDE_BAND`]).
    pub kind: u8,
    /// Payload.
    pub bytes: Vec<u8>,
}

/// Collects the words of one record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembler {
    bytes: Vec<u8>,
}

snapshot::snapshot!(SideBandRecord { kind, bytes });
snapshot::snapshot!(Assembler { bytes });

impl Assembler {
    pub(crate) fn push(&mut self, word: u64) {
        if self.bytes.len() < MAX_BYTES {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Ends the record. A length beyond what was written is cut to it.
    pub(crate) fn finish(&mut self, commit: u64) -> SideBandRecord {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(field(commit, sb_commit::LENGTH) as usize);
        SideBandRecord { kind: field(commit, sb_commit::TYPE) as u8, bytes }
    }
}
