//! A sample as software reads it.

use commit_trace::{InstId, Redirect, Span, State};
use register_table::in_field;

use crate::flags;
use crate::unit::Origin;

/// Addresses per sample: the widest commit that the register file can hold.
pub(crate) const WIDTH: usize = 4;

/// Bytes of a sample in memory.
pub const SAMPLE_BYTES: u64 = 64;

/// The 64-bit words of a sample in memory, in order: register that has the same, or `TIME`, and what the word is.
pub const SAMPLE_WORDS: [(&str, &str); 8] = [
    ("CYCLE", "cycle of the trigger"),
    (
        "FLAGS",
        "flags, as in the register: which addresses are valid, the commit state, the privilege",
    ),
    ("ADDRESS0", "virtual address of the first sampled instruction"),
    ("ADDRESS1", "second"),
    ("ADDRESS2", "third"),
    ("ADDRESS3", "fourth"),
    ("WEIGHT", "core cycles that the sample stands for"),
    ("TIME", "the `time` CSR in the trigger's cycle"),
];

/// One sample as software reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Cycle of the trigger.
    pub cycle: u64,
    /// The FLAGS register.
    pub flags: u64,
    /// Virtual addresses; `flags` says which are valid.
    pub address: [u64; WIDTH],
    /// Core cycles that the sample stands for.
    pub weight: u64,
}

snapshot::snapshot!(Sample { cycle, flags, address, weight });

impl Sample {
    /// Returns the sample as the buffer has it, little-endian: cycle, flags, addresses, weight, and the machine's
    /// `time` in that cycle, which whoever has its clock knows.
    pub fn bytes(&self, time: u64) -> [u8; SAMPLE_BYTES as usize] {
        let [a, b, c, d] = self.address;
        let words = [self.cycle, self.flags, a, b, c, d, self.weight, time];
        let mut bytes = [0; SAMPLE_BYTES as usize];
        for (word, to) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the sample of a trigger in `cycle` that names these instructions, the oldest first. More than [`WIDTH`]
    /// are cut.
    pub(crate) fn new(
        cycle: u64,
        named: impl Iterator<Item = InstId>,
        origin: &dyn Fn(InstId) -> Origin,
    ) -> Self {
        let mut sample = Self { cycle, ..Self::default() };
        for (at, from) in named.take(WIDTH).map(origin).enumerate() {
            if at == 0 {
                sample.flags |= in_field(flags::PRIV, from.privilege.into());
            }
            sample.address[at] = from.pc;
            sample.flags |= in_field(flags::VALID, 1 << at);
        }
        sample
    }
}

/// Returns the flags of a cycle's commit state.
pub(crate) fn state_flags(span: &Span<'_>) -> u64 {
    match span.state {
        State::Computing | State::Idle => 0,
        State::Stalled => flags::STALLED,
        State::Drained => flags::FRONTEND,
        State::Flushed => match span.records.first().map(|offender| offender.redirect()) {
            Some(Redirect::Mispredict) => flags::MISPREDICTED,
            Some(Redirect::Flush) => flags::FLUSH,
            _ => flags::EXCEPTION,
        },
    }
}
