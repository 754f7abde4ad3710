//! The stretches of time that count.

use std::ops::Range;

/// Intervals of cycles, ascending and apart, with the cycles before each.
pub(super) struct Region {
    stretches: Vec<(Range<u64>, u64)>,
}

impl Region {
    pub(super) fn new(stretches: &[Range<u64>]) -> Self {
        let mut before = 0;
        let mut end = 0;
        let mut own = Vec::new();
        for stretch in stretches {
            let range = stretch.start.max(end)..stretch.end;
            if range.is_empty() {
                continue;
            }
            end = range.end;
            own.push((range.clone(), before));
            before += range.end - range.start;
        }
        Self { stretches: own }
    }

    /// Returns the region's first cycle.
    pub(super) fn start(&self) -> u64 {
        self.stretches.first().map_or(0, |(range, _)| range.start)
    }

    /// Returns the first cycle after the region.
    pub(super) fn end(&self) -> u64 {
        self.stretches.last().map_or(0, |(range, _)| range.end)
    }

    /// True if a cycle is in the region.
    pub(super) fn contains(&self, cycle: u64) -> bool {
        self.cycles(cycle, cycle.saturating_add(1)) > 0
    }

    /// Returns the number of the region's cycles before `cycle`.
    fn until(&self, cycle: u64) -> u64 {
        let after = self.stretches.partition_point(|(range, _)| range.start < cycle);
        match self.stretches[..after].last() {
            Some((range, before)) => before + (cycle.min(range.end) - range.start),
            None => 0,
        }
    }

    /// Returns how many of the cycles from `from` to before `to` are in the region.
    pub(super) fn cycles(&self, from: u64, to: u64) -> u64 {
        self.until(to).saturating_sub(self.until(from))
    }
}
