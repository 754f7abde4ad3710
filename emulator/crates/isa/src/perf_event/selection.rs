//! What a counter is set to.

use super::{PerfEvent, Stage};

/// What `mhpmevent` says a counter counts: its low 42 bits.
///
/// | bits | field |
/// |---|---|
/// | 7:0 | the draft's code, or a set of the core's own events |
/// | 31:8 | mask of the set's events |
/// | 39:32 | threshold |
/// | 40 | invert |
/// | 41 | edge |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection(u64);

snapshot::snapshot!(Selection(0));

/// Instead of how often an event occurs, the cycles are counted in which it occurs at least so often; the cycles that end are those before
/// the last commit (of decode, before the last decode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// A cycle is counted if the event occurs in it at least so often.
    pub threshold: u8,
    /// Cycles are counted in which it does not.
    pub invert: bool,
    /// Only the first is counted of cycles that follow each other.
    pub edge: bool,
}

snapshot::snapshot!(Condition {
    threshold,
    invert,
    edge
});

const SELECTOR: u64 = 0xffff_ffff;
const CONDITION: u64 = 0x3ff << 32;
const THRESHOLD_SHIFT: u32 = 32;
const INVERT: u64 = 1 << 40;
const EDGE: u64 = 1 << 41;

impl Selection {
    /// The bits of `mhpmevent` that select. A condition is left out (reads as zero) if it is not known of every cycle how often
    /// the events occur, or if their cycles are told apart: by decode and by commit, or full and empty queues.
    pub fn new(mhpmevent: u64) -> Self {
        let selection = Self(mhpmevent & (SELECTOR | CONDITION));
        match selection.is_per_cycle() {
            true => selection,
            false => Self(selection.0 & SELECTOR),
        }
    }

    /// As `mhpmevent` holds it.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The events whose sum it is, or whose sum in a cycle the condition is of.
    pub fn events(self) -> impl Iterator<Item = PerfEvent> {
        PerfEvent::selected((self.0 & SELECTOR) as u32)
    }

    /// The condition, if there is one. Edge or invert alone mean a threshold of 1.
    pub fn condition(self) -> Option<Condition> {
        let threshold = (self.0 >> THRESHOLD_SHIFT) as u8;
        (self.0 & CONDITION != 0).then_some(Condition {
            threshold: threshold.max(1),
            invert: self.0 & INVERT != 0,
            edge: self.0 & EDGE != 0,
        })
    }

    /// The timing model has to be told of it, by [`select`](crate::TimingModel::select).
    pub fn is_followed(self) -> bool {
        self.condition().is_some() || self.events().any(PerfEvent::is_followed)
    }

    /// Nothing but cycles.
    pub fn is_cycles(self) -> bool {
        self.condition().is_none() && self.events().eq([PerfEvent::Cycles])
    }

    /// Each occurrence is due to an instruction: neither a slot of decode, nor an occupancy, nor a condition, nor told of many at
    /// once, as those of sampling.
    pub fn is_attributable(self) -> bool {
        let of_an_instruction = |event: PerfEvent| {
            let row = event.row();
            !matches!(row.set, 20..=24 | 38 | 48) && !row.name.starts_with("OCCUPANCY")
        };
        self.condition().is_none() && self.events().all(of_an_instruction)
    }

    /// The events do not occur more often by one instruction: once at commit, else as often as a walk reads, or of what is counted in
    /// cycles, as long as memory takes.
    pub fn most_per_instruction(self) -> u64 {
        let most = |event: PerfEvent| {
            let row = event.row();
            let in_cycles = ["STALL", "CYCLES", "BUSY"]
                .iter()
                .any(|word| row.name.contains(word));
            match row.stage {
                _ if in_cycles => 4096,
                Stage::Commit => 1,
                _ => 64,
            }
        };
        self.events().map(most).sum::<u64>().max(1)
    }

    fn is_per_cycle(self) -> bool {
        let mut rows = self.events().map(PerfEvent::row);
        let Some(first) = rows.next().filter(|row| row.per_cycle) else {
            return false;
        };
        // One clock for all: that of decode, or of commit.
        let decodes = |stage| stage == Stage::Decode;
        rows.all(|row| row.per_cycle && decodes(row.stage) == decodes(first.stage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_needs_an_event_that_is_known_of_each_cycle() {
        let retired = Selection::new(2 | 3 << 32 | INVERT);
        let condition = Condition {
            threshold: 3,
            invert: true,
            edge: false,
        };
        assert_eq!(retired.condition(), Some(condition));
        assert_eq!(retired.bits(), 2 | 3 << 32 | INVERT);
        assert_eq!(Selection::new(2).condition(), None);
        let edge = Selection::new(2 | EDGE).condition().map(|c| c.threshold);
        assert_eq!(edge, Some(1));
        for other in [PerfEvent::Cycles, PerfEvent::L1dReads] {
            let selection = Selection::new(u64::from(other.selector()) | 1 << 32);
            assert_eq!(selection.bits(), other.selector().into(), "{other:?}");
        }
        assert_eq!(Selection::new(7 | 1 << 32).bits(), 7, "of no event");
    }
}
