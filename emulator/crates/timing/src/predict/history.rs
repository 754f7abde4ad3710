//! Global history (`ifu/frontend.scala:40-120`): one bit per bank of a packet that held a branch, not
//! one per branch.

/// The history that the next packet starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    old: u64,
    /// What the previous packet's last bank adds; its own bank does not see it yet.
    pending: Outcome,
}

/// What a bank of a packet did to the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No branch.
    #[default]
    None = 0b00,
    /// Only branches that were not taken.
    NotTaken = 0b10,
    /// A taken branch.
    Taken = 0b11,
}

snapshot::snapshot!(History { old, pending });

snapshot::snapshot_enum!(Outcome: None, NotTaken, Taken);
impl History {
    #[inline(always)]
    fn push(old: u64, outcome: Outcome) -> u64 {
        // The high bit: how many bits it adds; the low bit: which.
        let outcome = outcome as u64;
        old << (outcome >> 1) | outcome & 1
    }

    /// Returns what the packet's first (0) or second (1) bank sees.
    #[inline(always)]
    pub(crate) fn seen(self, bank: usize) -> u64 {
        let after = Self::push(self.old, self.pending);
        if bank == 0 { self.old } else { after }
    }

    /// The history after a packet without a branch.
    #[inline(always)]
    pub(crate) fn pass(&mut self) {
        *self = self.after(Outcome::None, Outcome::None, true);
    }

    /// Returns the history after a packet. `single`: it ended in, or had only, its first bank.
    #[inline]
    pub(crate) fn after(self, first: Outcome, second: Outcome, single: bool) -> Self {
        let old = Self::push(self.old, self.pending);
        if single {
            Self { old, pending: first }
        } else {
            Self { old: Self::push(old, first), pending: second }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_adds_a_bit_per_bank_with_a_branch() {
        let h = History::default().after(Outcome::NotTaken, Outcome::Taken, false);
        assert_eq!((h.seen(0), h.seen(1)), (0b0, 0b01));
        let h = h.after(Outcome::Taken, Outcome::None, true);
        assert_eq!((h.seen(0), h.seen(1)), (0b01, 0b011));
        let h = h.after(Outcome::None, Outcome::None, false);
        assert_eq!((h.seen(0), h.seen(1)), (0b011, 0b011));
    }
}
