//! What a counter is set to count.

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

/// A condition on cycles: instead of how often an event occurs, the cycles are counted in which it occurs at least so often.
/// The cycles whose count is complete are those before the last commit (for events of decode, before the last decode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Least occurrences of the event in a cycle that is counted.
    pub threshold: u8,
    /// True if the cycles are counted that do not meet the threshold.
    pub invert: bool,
    /// True if only the first is counted of cycles that follow each other.
    pub edge: bool,
}

snapshot::snapshot!(Condition { threshold, invert, edge });

const SELECTOR: u64 = 0xffff_ffff;
const CONDITION: u64 = 0x3ff << 32;
const THRESHOLD_SHIFT: u32 = 32;
const INVERT: u64 = 1 << 40;
const EDGE: u64 = 1 << 41;

impl Selection {
    /// Returns the selection of `mhpmevent`. A condition is left out (reads as zero) if it is not known of every cycle how
    /// often the events occur, or if their cycles are told separately: by decode and by commit, or full and empty queues.
    pub fn new(mhpmevent: u64) -> Self {
        let selection = Self(mhpmevent & (SELECTOR | CONDITION));
        match selection.is_per_cycle() {
            true => selection,
            false => Self(selection.0 & SELECTOR),
        }
    }

    /// Returns the selection as bits of `mhpmevent`.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the events whose sum is counted, or is compared with the condition's threshold in each cycle.
    pub fn events(self) -> impl Iterator<Item = PerfEvent> {
        PerfEvent::selected((self.0 & SELECTOR) as u32)
    }

    /// Returns the condition, if there is one. Edge or invert alone mean a threshold of 1.
    pub fn condition(self) -> Option<Condition> {
        let threshold = (self.0 >> THRESHOLD_SHIFT) as u8;
        (self.0 & CONDITION != 0).then_some(Condition {
            threshold: threshold.max(1),
            invert: self.0 & INVERT != 0,
            edge: self.0 & EDGE != 0,
        })
    }

    /// Returns whether the timing model has to be told of the selection, by [`select`](crate::TimingModel::select).
    pub fn is_followed(self) -> bool {
        self.condition().is_some() || self.events().any(PerfEvent::is_followed)
    }

    /// Returns whether the selection is cycles alone, of the core's clock or of the reference clock, which is the same.
    pub fn is_cycles(self) -> bool {
        let clock = |event| matches!(event, PerfEvent::Cycles | PerfEvent::ReferenceCycles);
        self.condition().is_none() && self.events().count() == 1 && self.events().all(clock)
    }

    /// Returns whether each occurrence is due to one instruction, which a sample can name. The selection is then one [precise](PerfEvent::is_precise)
    /// event without a condition, or several events that are all told as the instruction leaves to which they are due.
    pub fn is_attributable(self) -> bool {
        let alone = |event| {
            matches!(
                event,
                PerfEvent::Cycles | PerfEvent::ReferenceCycles | PerfEvent::CyclesFlushed
            )
        };
        let mut events = self.events();
        self.is_cycles()
            || self.is_flushed_cycles()
            || self.condition().is_none() && events.all(|e| e.is_precise() && !alone(e))
    }

    /// Returns whether the selection is nothing but cycles with an empty ROB after a misprediction, flush or trap. Such cycles are due to the
    /// instruction before the one that leaves next.
    pub fn is_flushed_cycles(self) -> bool {
        self.condition().is_none() && self.events().eq([PerfEvent::CyclesFlushed])
    }

    /// Returns a bound on how often one instruction makes the events occur. For an event at commit this is once; for an event that is counted in
    /// cycles, as long as memory takes; for any other, as often as a page walk reads.
    pub fn most_per_instruction(self) -> u64 {
        let most = |event: PerfEvent| {
            let row = event.row();
            let in_cycles = ["STALL", "CYCLES", "BUSY"].iter().any(|word| row.name.contains(word));
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
        // All events have to be counted by the same clock: that of decode, or that of commit.
        let decodes = |stage| stage == Stage::Decode;
        rows.all(|row| row.per_cycle && decodes(row.stage) == decodes(first.stage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_to_one_instruction_is_attributable() {
        use PerfEvent as E;
        let attributable = |events: &[E], above: u64| {
            let bits = events.iter().map(|event| event.selector());
            let bits = bits.fold(0, |all, bits| all | bits);
            Selection::new(u64::from(bits) | above << 32).is_attributable()
        };
        for &event in E::ALL {
            assert_eq!(attributable(&[event], 0), event.is_precise(), "{event:?}");
            let row = event.row();
            if row.per_cycle {
                assert!(!attributable(&[event], 1), "{event:?} with a condition");
            }
        }
        for precise in [E::Cycles, E::CyclesFlushed, E::BranchMisses, E::L1dReadMisses] {
            assert!(precise.is_precise(), "{precise:?}");
        }
        for not in [E::CyclesIdle, E::CyclesCommitting, E::Slots, E::RobOccupancy] {
            assert!(!not.is_precise(), "{not:?}");
        }
        assert!(attributable(&[E::CyclesStalled, E::CyclesDrained], 0));
        // Due to the one before, and due to the one that leaves.
        assert!(!attributable(&[E::CyclesFlushed, E::CyclesDrained], 0));
    }

    #[test]
    fn a_condition_needs_an_event_that_is_known_of_each_cycle() {
        let retired = Selection::new(2 | 3 << 32 | INVERT);
        let condition = Condition { threshold: 3, invert: true, edge: false };
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
