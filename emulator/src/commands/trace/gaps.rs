//! What lies between the units of a sampled run's trace: the functional hart executed there, and the core rested.

use commit_trace::Event;

/// Tells rests between units from sleep, in the stream of one hart. A rest comes where the stream or the region's part before it has ended, before anything
/// else commits.
#[derive(Debug)]
pub(super) struct UnitGaps {
    is_sampled: bool,
    /// Nothing has committed since the stream began or a unit ended.
    after_unit: bool,
    /// The last event was a rest: a gap may have several.
    in_gap: bool,
    /// Number of the gaps so far.
    pub count: u64,
    /// Cycles of the gaps so far.
    pub cycles: u64,
}

impl UnitGaps {
    /// Returns what takes a stream of a sampled run, or of another, which has no such gaps. `from_beginning`: it takes all of the stream.
    pub(super) fn new(is_sampled: bool, from_beginning: bool) -> Self {
        Self { is_sampled, after_unit: from_beginning, in_gap: false, count: 0, cycles: 0 }
    }

    /// Takes an event, and returns whether it is a rest between units.
    pub(super) fn event(&mut self, event: &Event) -> bool {
        match event {
            Event::Region(inside) => (self.after_unit, self.in_gap) = (!inside, false),
            Event::RegionAnew => self.works(),
            Event::Idle { cycles } => return self.idle(*cycles),
            _ => {}
        }
        false
    }

    /// Takes cycles in which nothing is in the core, and returns whether they are a rest between units.
    pub(super) fn idle(&mut self, cycles: u64) -> bool {
        let is_gap = self.is_sampled && self.after_unit;
        if is_gap {
            self.count += u64::from(!self.in_gap);
            self.cycles += cycles;
        }
        self.in_gap = is_gap;
        is_gap
    }

    /// Takes a record, or cycles in which the core works.
    pub(super) fn works(&mut self) {
        (self.after_unit, self.in_gap) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_are_told_from_sleep() {
        let idle = |cycles| Event::Idle { cycles };
        let mut gaps = UnitGaps::new(true, true);
        assert!(gaps.event(&idle(100)), "before the first unit");
        gaps.works();
        assert!(!gaps.event(&idle(7)), "sleep in a warm-up");
        gaps.event(&Event::Region(true));
        assert!(!gaps.event(&idle(7)), "sleep in a unit");
        gaps.works();
        gaps.event(&Event::Region(false));
        gaps.event(&Event::Privilege(3));
        assert!(gaps.event(&idle(20)) && gaps.event(&idle(30)), "a gap of two rests");
        assert_eq!((gaps.count, gaps.cycles), (2, 150));
        let mut part = UnitGaps::new(true, false);
        assert!(!part.event(&idle(50)), "what came before is not known");
        let mut whole = UnitGaps::new(false, true);
        whole.event(&Event::Region(false));
        assert!(!whole.event(&idle(50)) && whole.count == 0);
    }
}
