//! A counter.

use crate::{Event, Unit};

/// Whose requests are counted: masks of which no bit or at least one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// A bit for each of 16 harts; 0: all.
    pub harts: u16,
    /// A bit for each of [`crate::ORIGINS`]; 0: all.
    pub origins: u8,
}

/// The owner of a unit, who knows what has happened.
pub trait Totals {
    /// Returns what was counted of an event until `cycle`, modulo 2^64; of a level, how much there is. `cycle` never
    /// goes back.
    fn total(&self, event: Event, of: RequestFilter, cycle: u64) -> u64;
}

/// A counter of events: its value goes with the total while it counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    /// Value of the register `SELECT`.
    pub select: u32,
    /// Value of the counter when the total was [`Self::at`].
    pub value: u64,
    /// Total when it was last looked at.
    at: u64,
    /// Total when the counter started.
    began: u64,
    pub counts: bool,
}

snapshot::snapshot!(Counter { select, value, at, began, counts });

impl Counter {
    pub(crate) fn event(&self, unit: Unit) -> Option<Event> {
        Event::of(unit, self.select as u8)
    }

    pub(crate) fn selection(&self) -> RequestFilter {
        let [_, low, origins, high] = self.select.to_le_bytes();
        RequestFilter { harts: u16::from_le_bytes([low, high]), origins }
    }

    pub(crate) fn start(&mut self, total: u64) {
        (self.at, self.began, self.counts) = (total, total, true);
    }

    /// Stops the counter; returns what it counted since it started.
    pub(crate) fn stop(&mut self, total: u64) -> u64 {
        self.counts = false;
        total.wrapping_sub(self.began)
    }

    /// Catches up with the total; returns true if the counter overflowed.
    pub(crate) fn follow(&mut self, total: u64) -> bool {
        let more = total.wrapping_sub(self.at);
        self.at = total;
        let overflowed;
        (self.value, overflowed) = self.value.overflowing_add(more);
        overflowed
    }
}
