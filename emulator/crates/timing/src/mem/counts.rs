//! What is counted of last-level cache and memory, by the hart and the origin of the request that it is done for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use snapshot::{Archive, Snapshot};

use super::origin::Origin;

/// Harts that share a memory, at most.
const HARTS: usize = 16;

/// What is counted of the last-level cache and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncoreCount {
    /// Lines looked up in the last-level cache: read, but for those that another hart's caches give, or written back.
    Lookups,
    /// Lookups that did not find the line.
    Misses,
    /// Lines that another one took the place of in the last-level cache.
    Evictions,
    /// Evicted lines that were modified, and so written to memory.
    WriteBacks,
    /// Other harts' caches that were asked to give or drop a line.
    Probes,
    /// Requests for a line that another hart's caches gave.
    Transfers,
    /// Transfers of lines that the other hart had modified.
    ModifiedTransfers,
    /// Requests to write to a line that was held to be read.
    Upgrades,
    /// Lines that the last-level cache holds, by who brought each. This is no count, but goes up and down.
    Lines,
    /// Lines read from memory.
    Reads,
    /// Lines written to memory.
    Writes,
    /// Rows of memory opened.
    Activations,
    /// Accesses to memory that found their row open.
    RowHits,
    /// Accesses to memory that found another row open.
    RowConflicts,
    /// Cycles that accesses to memory waited for a refresh, their bank or the bus.
    Waited,
}

/// Number of kinds of counts.
const KINDS: usize = UncoreCount::Waited as usize + 1;

/// Counts since reset, or of some time, with several owners. One of them counts at a time; what the others see is what it had
/// counted when they last heard of it.
#[derive(Clone, Debug)]
pub struct UncoreCounts(Arc<[AtomicU64]>);

impl Default for UncoreCounts {
    fn default() -> Self {
        let cells = HARTS * Origin::COUNT * KINDS;
        Self((0..cells).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Snapshot for UncoreCounts {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        for cell in self.0.iter() {
            let mut value = cell.load(Relaxed);
            value.snapshot(archive)?;
            cell.store(value, Relaxed);
        }
        Ok(())
    }
}

impl UncoreCounts {
    /// Returns the sum over harts and origins, a bit each; no bit: all.
    pub fn sum(&self, kind: UncoreCount, harts: u16, origins: u8) -> u64 {
        let wanted = |mask: u16, bit: usize| mask == 0 || mask >> bit & 1 != 0;
        let mut sum = 0u64;
        for hart in (0..HARTS).filter(|&hart| wanted(harts, hart)) {
            for origin in Origin::ALL {
                if wanted(origins.into(), origin as usize) {
                    sum = sum.wrapping_add(self.of(hart, origin).get(kind));
                }
            }
        }
        sum
    }

    /// Returns a copy of the counts as they are now, which does not change with them.
    pub fn copy(&self) -> Self {
        let values = self.0.iter().map(|cell| cell.load(Relaxed).into());
        Self(values.collect())
    }

    /// Adds what was counted from `before` to `now`. [`UncoreCount::Lines`] becomes what it is in `now`.
    pub fn add_since(&self, before: &Self, now: &Self) {
        for (n, cell) in self.0.iter().enumerate() {
            let [before, now] = [before, now].map(|counts| counts.0[n].load(Relaxed));
            let value = match n % KINDS == UncoreCount::Lines as usize {
                true => now,
                false => cell.load(Relaxed) + (now - before),
            };
            cell.store(value, Relaxed);
        }
    }

    /// Sets [`UncoreCount::Lines`] to 0: the last-level cache is empty.
    pub fn clear_lines(&self) {
        let lines = self.0.iter().skip(UncoreCount::Lines as usize);
        for cell in lines.step_by(KINDS) {
            cell.store(0, Relaxed);
        }
    }

    /// Returns the counts of requests of a hart and an origin.
    pub(super) fn of(&self, hart: usize, origin: Origin) -> RequestCounts<'_> {
        let first = (hart % HARTS * Origin::COUNT + origin as usize) * KINDS;
        RequestCounts(&self.0[first..first + KINDS])
    }
}

/// The counts of one hart and origin.
#[derive(Clone, Copy)]
pub(super) struct RequestCounts<'a>(&'a [AtomicU64]);

impl RequestCounts<'_> {
    fn get(self, kind: UncoreCount) -> u64 {
        self.0[kind as usize].load(Relaxed)
    }

    pub(super) fn add(self, kind: UncoreCount, more: u64) {
        let value = self.get(kind).wrapping_add(more);
        self.0[kind as usize].store(value, Relaxed);
    }

    /// Adds one.
    pub(super) fn count(self, kind: UncoreCount) {
        self.add(kind, 1);
    }

    /// Subtracts one.
    pub(super) fn uncount(self, kind: UncoreCount) {
        self.add(kind, u64::MAX);
    }
}

/// Who brought each line of a cache: hart and origin in a number, 0 where there is no line or a device brought it.
pub(super) struct LineOwners(Box<[u8]>);

snapshot::snapshot!(LineOwners(0));

impl LineOwners {
    /// Returns the owners in an empty cache with room for `lines` lines.
    pub(super) fn new(lines: usize) -> Self {
        Self(vec![0; lines].into())
    }

    /// Notes that a line comes to a place, and that the one that was there goes.
    pub(super) fn fill(
        &mut self,
        place: usize,
        hart: usize,
        origin: Origin,
        counts: &UncoreCounts,
    ) {
        let owner = 1 + (hart % HARTS * Origin::COUNT + origin as usize) as u8;
        let before = std::mem::replace(&mut self.0[place], owner);
        if let Some((hart, origin)) = owner_of(before) {
            counts.of(hart, origin).uncount(UncoreCount::Lines);
        }
        counts.of(hart, origin).count(UncoreCount::Lines);
    }

    /// Notes that a line of a device comes to a place, and that the one that was there goes.
    pub(super) fn fill_by_device(&mut self, place: usize, counts: &UncoreCounts) {
        if let Some((hart, origin)) = owner_of(std::mem::take(&mut self.0[place])) {
            counts.of(hart, origin).uncount(UncoreCount::Lines);
        }
    }

    /// Counts all lines anew.
    pub(super) fn recount(&self, counts: &UncoreCounts) {
        counts.clear_lines();
        for (hart, origin) in self.0.iter().filter_map(|&owner| owner_of(owner)) {
            counts.of(hart, origin).count(UncoreCount::Lines);
        }
    }
}

fn owner_of(owner: u8) -> Option<(usize, Origin)> {
    let number = usize::from(owner).checked_sub(1)?;
    Some((number / Origin::COUNT, Origin::ALL[number % Origin::COUNT]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_the_harts_and_origins_asked_for() {
        let counts = UncoreCounts::default();
        counts.of(0, Origin::Load).add(UncoreCount::Reads, 1);
        counts.of(1, Origin::Load).add(UncoreCount::Reads, 10);
        counts.of(1, Origin::Walk).add(UncoreCount::Reads, 100);
        counts.of(1, Origin::Walk).add(UncoreCount::Writes, 1000);
        let reads = |harts, origins| counts.sum(UncoreCount::Reads, harts, origins);
        assert_eq!([reads(0, 0), reads(2, 0), reads(0, 2), reads(4, 0)], [111, 110, 11, 0]);
        let sum = UncoreCounts::default();
        let before = counts.copy();
        counts.of(1, Origin::Walk).count(UncoreCount::Reads);
        for _ in 0..2 {
            sum.add_since(&before, &counts);
        }
        assert_eq!(sum.sum(UncoreCount::Reads, 0, 0), 2);
    }

    #[test]
    fn a_line_belongs_to_who_brought_it() {
        let counts = UncoreCounts::default();
        let mut owners = LineOwners::new(4);
        owners.fill(3, 15, Origin::WriteBack, &counts);
        owners.fill(2, 0, Origin::Fetch, &counts);
        owners.fill(3, 0, Origin::Fetch, &counts);
        let lines = |harts| counts.sum(UncoreCount::Lines, harts, 0);
        assert_eq!((lines(1), lines(1 << 15)), (2, 0));
        counts.clear_lines();
        assert_eq!(lines(0), 0);
        owners.recount(&counts);
        assert_eq!((lines(1), lines(0)), (2, 2));
    }
}
