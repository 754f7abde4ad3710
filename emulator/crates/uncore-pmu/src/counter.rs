//! A counter.

use crate::{Event, Unit};

/// On whose behalf: masks of which no bit or at least one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// A bit per hart; 0: all.
    pub harts: u8,
    /// A bit for each of [`crate::ORIGINS`]; 0: all.
    pub origins: u8,
}

/// Who knows what has happened.
pub trait Totals {
    /// What was counted of an event until now, modulo 2^64; of a level, how much there is. In `cycle`, which never goes back.
    fn total(&self, event: Event, of: RequestFilter, cycle: u64) -> u64;
}

/// A counter of events: its value goes with the total while it counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    /// `SELECT`.
    pub select: u32,
    /// When the total was [`Self::at`].
    pub value: u64,
    /// The total when it was last looked at.
    at: u64,
    /// The total when it began to count.
    began: u64,
    pub counts: bool,
}

snapshot::snapshot!(Counter {
    select,
    value,
    at,
    began,
    counts
});

impl Counter {
    pub fn event(&self, unit: Unit) -> Option<Event> {
        Event::of(unit, self.select as u8)
    }

    pub fn selection(&self) -> RequestFilter {
        let [_, harts, origins, _] = self.select.to_le_bytes();
        RequestFilter { harts, origins }
    }

    pub fn start(&mut self, total: u64) {
        (self.at, self.began, self.counts) = (total, total, true);
    }

    /// Stops; what it counted since it started.
    pub fn stop(&mut self, total: u64) -> u64 {
        self.counts = false;
        total.wrapping_sub(self.began)
    }

    /// Catches up with the total; true if it overflowed.
    pub fn follow(&mut self, total: u64) -> bool {
        let more = total.wrapping_sub(self.at);
        self.at = total;
        let overflowed;
        (self.value, overflowed) = self.value.overflowing_add(more);
        overflowed
    }
}
