//! When the region of marked cycles is open.

use std::ops::Range;

/// The stretches of marked cycles so far; the last one may be open.
#[derive(Default)]
pub(super) struct MarkedIntervals(Vec<Range<u64>>);

impl MarkedIntervals {
    /// Begins or ends a stretch at a mark.
    pub(super) fn mark(&mut self, cycle: u64, begins: bool) {
        match self.0.last_mut().filter(|last| last.end == u64::MAX) {
            // A stream that was refused within a batch may end before its last mark.
            Some(open) if !begins => open.end = cycle.max(open.start),
            None if begins => self.0.push(cycle..u64::MAX),
            _ => {}
        }
    }

    /// Restarts the region at `cycle`: no stretch before is part of it.
    pub(super) fn restart_region(&mut self, cycle: u64) {
        self.0.clear();
        self.mark(cycle, true);
    }

    /// Returns all stretches, given the cycle at which the stream ends.
    pub(super) fn until(mut self, end: u64) -> Vec<Range<u64>> {
        self.mark(end, false);
        self.0
    }
}
