//! The L1 data cache with its MSHRs, line buffer and next-line prefetcher (`lsu/dcache.scala`, `mshrs.scala`).

use super::bits;
use super::cache::{Cache, ShownLines};
use super::lower::{Level, Lower};
use super::mshr::Mshrs;
use super::origin::Origin;
use super::replays::Replays;
use super::slot::Slot;
use super::store_data::{REPLAY, StoreData};
use crate::Preset;
use crate::observe::Demand;
use commit_trace::DataSource;

/// Miss in S2 to the request on the bus: the MSHR's allocation.
const ALLOCATE: u64 = 1;
/// A prefetched line moves from the line buffer into the array, then the load replays: meta read and
/// response 3, line 4, replay through S0 to S2 and write back 5.
const FROM_LINE_BUFFER: u64 = 12;
/// A load's answer to the prefetch of the next line: the prefetcher's register, S0 to S2 of the tag
/// check, less the three cycles between the line's arrival and the answer.
const PREFETCH: u64 = 2;
/// Cycles of the line buffer's port when a prefetched line is only written.
const LINE_WRITE: u64 = 4;
/// Prefetches that can be waiting for their time; more than there are MSHRs to cause them.
const WANTED: usize = 16;

/// Counts of the L1 data cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct L1dCounts {
    /// Misses of all accesses.
    pub misses: u64,
    /// Misses of loads and page-table reads.
    pub load_misses: u64,
    /// Misses of page-table reads.
    pub walk_misses: u64,
    /// Lines prefetched.
    pub prefetches: u64,
    /// Misses of lines that were prefetched.
    pub prefetch_hits: u64,
    /// Accesses that read lines on their way.
    pub pending_hits: u64,
    /// Cycles by which misses of anything but stores were late for want of a miss register.
    pub mshr_full: u64,
    /// Cycles by which stores that missed were late for want of a miss register.
    pub store_mshr_full: u64,
    /// Cycles by which stores that missed were late for want of an entry for their data.
    pub store_data_full: u64,
    /// Stores that were replayed.
    pub store_replays: u64,
}

snapshot::snapshot!(L1dCounts {
    misses,
    load_misses,
    walk_misses,
    prefetches,
    prefetch_hits,
    pending_hits,
    mshr_full,
    store_mshr_full,
    store_data_full,
    store_replays
});

/// L1 data cache.
pub(crate) struct L1d {
    tags: Cache,
    mshrs: Mshrs,
    /// The line buffer has one port: a refill writes four rows, reads four, and answers its loads.
    line_buffer: Slot,
    line_port: u64,
    refill: u64,
    release: u64,
    writeback: u64,
    prefetch: bool,
    /// Lines to prefetch, each with the cycle of its prefetch.
    wanted: [(u64, u64); WANTED],
    /// Slots of `wanted` in use, a bit each.
    waiting: u32,
    next_wanted: usize,
    /// There are several harts.
    coherent: bool,
    replays: Replays,
    store_data: StoreData,
    pub counts: L1dCounts,
    /// Outcome of the last load or store that was no plain hit.
    pub demand: Demand,
}

snapshot::snapshot!(L1d {
    tags, mshrs, line_buffer, wanted, waiting, next_wanted, replays, store_data, counts
} keeps {
    demand, line_port, refill, release, writeback, prefetch, coherent
});

impl L1d {
    pub(crate) fn new(preset: &Preset, coherent: bool) -> Self {
        let p = &preset.l1d;
        Self {
            tags: Cache::new(p.kib, p.ways, 1),
            mshrs: Mshrs::new(p.mshrs),
            line_buffer: Slot::default(),
            line_port: u64::from(p.line_port),
            refill: u64::from(p.refill),
            release: u64::from(p.release),
            writeback: u64::from(p.writeback),
            prefetch: p.prefetch,
            wanted: [(0, 0); WANTED],
            waiting: 0,
            next_wanted: 0,
            coherent,
            replays: Replays::default(),
            store_data: StoreData::new(),
            counts: L1dCounts::default(),
            demand: Demand::default(),
        }
    }

    /// Notes that a load or store finds its line elsewhere, or not yet here.
    #[inline(always)]
    fn demands(&mut self, origin: Origin, source: DataSource, ready: u64) {
        if origin != Origin::Walk {
            self.demand = Demand { source, ready };
        }
    }

    /// Accesses a line, with its tags compared in cycle `s2`. Returns `None` for a hit; otherwise the first cycle in
    /// which a dependent of the load can issue, and who had the line. An atomic is merged into the line when it
    /// arrives.
    #[inline(always)]
    pub(crate) fn access(
        &mut self,
        line: u64,
        s2: u64,
        origin: Origin,
        lower: &mut Lower,
    ) -> Option<(u64, Level)> {
        let write = origin.writes();
        match self.tags.hit(line, s2, write) {
            Some(filled) if write && self.coherent && self.tags.asks(line) => {
                self.own(line, s2.max(filled), lower)
            }
            // A tag hit on a line in flight is a secondary miss: it waits in the MSHR's replay queue.
            Some(filled) if filled > s2 => {
                self.counts.pending_hits += 1;
                self.demands(origin, DataSource::InFlight, filled);
                Some((filled + 1, Level::from_number(self.tags.source(line))))
            }
            Some(_) => None,
            None => Some(self.miss(line, s2, origin, lower)),
        }
    }

    /// Writes a committed store. The tags are compared in cycle `s2`, or later: when the data is there, and, on a miss
    /// that no MSHR has yet, when one is free. Returns that cycle. On a miss the data is merged into the line when the
    /// line arrives.
    #[inline(always)]
    pub(crate) fn store(&mut self, line: u64, s2: u64, lower: &mut Lower) -> u64 {
        if self.coherent {
            return self.store_to_shared(line, s2, lower);
        }
        let s2 = self.store_data.after_replays(s2);
        match self.tags.hit(line, s2 - REPLAY, true) {
            Some(filled) if filled + REPLAY <= s2 => s2,
            filled => self.store_late(line, s2, filled, lower),
        }
    }

    /// Writes a committed store whose line is not there, or not there before cycle `filled`.
    #[cold]
    #[inline(never)]
    fn store_late(&mut self, line: u64, s2: u64, filled: Option<u64>, lower: &mut Lower) -> u64 {
        let room = self.store_data.room(s2);
        self.counts.store_data_full += room - s2;
        let s2 = room;
        let (s2, ready) = match filled {
            Some(filled) => {
                self.demands(Origin::Store, DataSource::InFlight, filled);
                (s2, filled)
            }
            None => {
                let s2 = self.register_for_store(s2);
                (s2, self.miss(line, s2, Origin::Store, lower).0)
            }
        };
        if ready + REPLAY > s2 {
            self.counts.store_replays += 1;
            self.store_data.take(s2, ready);
        }
        s2
    }

    /// Returns the first cycle from `s2` on in which a store that misses has a miss register.
    fn register_for_store(&mut self, s2: u64) -> u64 {
        let (_, start) = self.mshrs.choose(s2);
        self.counts.store_mshr_full += start - s2;
        start
    }

    /// Returns true if a store is replayed in cycle `s2`, in which nothing else can be accessed.
    #[inline(always)]
    pub(crate) fn is_replaying(&self, s2: u64) -> bool {
        self.store_data.is_replaying(s2)
    }

    /// Writes a committed store with several harts: a line that is there may have to be asked for, and as many stores
    /// wait for a line as its replay queue holds.
    #[inline(never)]
    fn store_to_shared(&mut self, line: u64, s2: u64, lower: &mut Lower) -> u64 {
        let filled = self.tags.hit(line, s2, true);
        if let Some(cycle) = self.replays.join(line, s2) {
            self.demands(Origin::Store, DataSource::InFlight, cycle);
            self.counts.store_data_full += cycle - s2;
            self.counts.store_replays += u64::from(cycle == s2);
            return cycle;
        }
        let (s2, until) = match filled {
            Some(_) if !self.tags.asks(line) => return s2,
            // Write permission for a line that is on its way for reads is asked for when the line is there.
            Some(filled) => {
                let s2 = self.register_for_store(s2.max(filled));
                match self.own(line, s2, lower) {
                    Some((ready, _)) => (s2, ready),
                    None => return s2,
                }
            }
            None => {
                let s2 = self.register_for_store(s2);
                (s2, self.miss(line, s2, Origin::Store, lower).0)
            }
        };
        self.counts.store_replays += 1;
        self.replays.start(line, until);
        s2
    }

    /// Gets write permission for a line that is there for reads. Returns `None` if the hart has the permission at once, as no other hart holds the
    /// line; otherwise the first cycle in which an atomic is answered, and who answers.
    #[cold]
    #[inline(never)]
    fn own(&mut self, line: u64, s2: u64, lower: &mut Lower) -> Option<(u64, Level)> {
        self.tags.set_asks(line, false);
        if lower.writes(line) {
            return None;
        }
        let (register, start) = self.mshrs.choose(s2);
        self.counts.mshr_full += start - s2;
        let allowed = lower.upgrade(line, start + ALLOCATE)?;
        let ready = allowed + self.refill - ALLOCATE;
        self.demands(Origin::Store, DataSource::Upgrade, ready);
        self.mshrs.take(register, line, start, ready + self.release);
        Some((ready, Level::Peer))
    }

    /// Puts a line into the cache at once, as if it had been asked for in time. The levels below are accessed as for a
    /// miss, at the cost of others; here the line takes a place.
    #[cold]
    pub(crate) fn bring(&mut self, line: u64, cycle: u64, write: bool, lower: &mut Lower) {
        match self.tags.hit(line, cycle, write) {
            None => {
                let origin = if write { Origin::Store } else { Origin::Load };
                let tags = &mut self.tags;
                let (_, level) =
                    lower.read_data(line, cycle, origin, |evicted| tags.invalidate(evicted));
                self.install(line, cycle, write, level, lower);
            }
            Some(_) if write && self.coherent && self.tags.asks(line) => {
                self.tags.set_asks(line, false);
                if !lower.writes(line) {
                    lower.upgrade(line, cycle);
                }
            }
            Some(_) => {}
        }
        self.tags.arrived(line);
    }

    /// Drops a line that a device wrote.
    pub(crate) fn dma_write(&mut self, line: u64) {
        self.tags.invalidate(line);
        self.mshrs.forget(line);
        // Prefetches are done at the next miss, with their own earlier cycles: one of this line would bring back what was there before the write.
        for slot in bits(self.waiting).filter(|&slot| self.wanted[slot].0 == line) {
            self.waiting &= !(1 << slot);
        }
    }

    /// Does to the lines what other harts asked for, who take or read them.
    pub(crate) fn heed_probes(&mut self, lower: &mut Lower) {
        for probe in lower.heed_probes() {
            self.tags.probed(&probe);
            if probe.drop {
                self.mshrs.forget(probe.line);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn miss(&mut self, line: u64, s2: u64, origin: Origin, lower: &mut Lower) -> (u64, Level) {
        let write = origin.writes();
        self.counts.misses += 1;
        self.counts.load_misses += u64::from(!write);
        self.counts.walk_misses += u64::from(origin == Origin::Walk);
        self.prefetch_until(s2, lower);
        let s2 = match write {
            true => s2,
            false => self.store_data.accepts(s2),
        };
        if let Some((register, there)) = self.mshrs.prefetched(line) {
            self.counts.prefetch_hits += 1;
            let mut ready = s2.max(there) + FROM_LINE_BUFFER;
            if write && self.coherent && !lower.writes(line) {
                let allowed = lower.upgrade(line, s2.max(there));
                ready = ready.max(allowed.map_or(0, |cycle| cycle + self.refill));
            }
            let tail = self.install(line, ready, write, Level::L2, lower);
            self.mshrs.take(register, line, s2, ready + tail);
            self.demands(origin, DataSource::InFlight, ready);
            return (ready, Level::L2);
        }
        let (register, start) = self.mshrs.choose(s2);
        self.counts.mshr_full += start - s2;
        let (arrives, level) = self.fetch(line, start + ALLOCATE, self.line_port, origin, lower);
        // `refill` spans both ends; the allocation is the part before the request.
        let ready = arrives + self.refill - ALLOCATE;
        self.demands(origin, lower.source(level), ready);
        let tail = self.install(line, ready, write, level, lower);
        self.mshrs.take(register, line, start, ready + self.release + tail);
        if self.prefetch {
            let slot = self.next_wanted % WANTED;
            self.wanted[slot] = (line + 1, ready + PREFETCH);
            self.waiting |= 1 << slot;
            self.next_wanted += 1;
        }
        (ready, level)
    }

    /// Reads a line from below into the line buffer, whose port it needs for `port` cycles.
    fn fetch(
        &mut self,
        line: u64,
        cycle: u64,
        port: u64,
        origin: Origin,
        lower: &mut Lower,
    ) -> (u64, Level) {
        let tags = &mut self.tags;
        let (arrives, level) =
            lower.read_data(line, cycle, origin, |evicted| tags.invalidate(evicted));
        (self.line_buffer.serve(arrives, port), level)
    }

    /// Puts a line into the array; returns how much longer the MSHR is busy writing back its victim.
    fn install(
        &mut self,
        line: u64,
        ready: u64,
        dirty: bool,
        level: Level,
        lower: &mut Lower,
    ) -> u64 {
        let victim = self.tags.fill(line, ready, dirty, level as u8);
        if self.coherent {
            self.tags.set_asks(line, !dirty);
        }
        match victim.filter(|v| v.dirty) {
            Some(victim) => {
                lower.write_back(victim.line, ready);
                self.writeback
            }
            None => 0,
        }
    }

    /// Prefetches whatever the prefetcher asked for up to `cycle`: not at once, since misses that come later
    /// in program order may come earlier in time, and for the same line.
    fn prefetch_until(&mut self, cycle: u64, lower: &mut Lower) {
        for slot in bits(self.waiting) {
            let (line, at) = self.wanted[slot % WANTED];
            if at <= cycle {
                self.waiting &= !(1 << slot);
                self.prefetch_line(line, at, lower);
            }
        }
    }

    /// Prefetches the line after one that was just acquired, if an MSHR is free; the line stays in the MSHR's line
    /// buffer (`prefetcher.scala`).
    fn prefetch_line(&mut self, line: u64, cycle: u64, lower: &mut Lower) {
        let (register, start) = self.mshrs.choose(cycle);
        let refused = start > cycle || self.store_data.accepts(cycle) > cycle;
        if refused || self.tags.contains(line) || self.mshrs.prefetched(line).is_some() {
            return;
        }
        self.counts.prefetches += 1;
        let (arrives, _) = self.fetch(line, start + ALLOCATE, LINE_WRITE, Origin::Prefetch, lower);
        self.mshrs.take(register, line, start, arrives + 1);
        self.mshrs.keep(register, line);
    }

    /// Begins to show which lines need no access.
    pub(crate) fn begin_warming(&mut self) {
        self.tags.begin_warming();
    }

    /// Returns the lines that need no access while the cache is kept warm.
    #[inline(always)]
    pub(crate) fn shown(&self) -> Option<&ShownLines> {
        self.tags.shown()
    }

    /// Shows a line again, if it is there and another access to it changes nothing; returns whether that is so.
    pub(crate) fn show_again(&self, line: u64, origin: Origin) -> bool {
        self.tags.show_again(line, origin.writes())
    }

    /// Accesses a line for functional warming, and shows it from now on. In `cycle` nothing earlier is still on its way.
    pub(crate) fn warm(&mut self, line: u64, cycle: u64, origin: Origin, lower: &mut Lower) {
        self.access(line, cycle, origin, lower);
        self.tags.show(line, origin.writes());
    }

    /// Forgets all that is on its way or busy, after the prefetches that were asked for.
    pub(crate) fn settle(&mut self, lower: &mut Lower) {
        self.prefetch_until(u64::MAX, lower);
        self.tags.settle();
        self.mshrs.settle();
        self.line_buffer = Slot::default();
        lower.settle();
    }

    /// Returns the cycles of miss registers in use, over all registers.
    pub(crate) fn mshr_busy(&self) -> u64 {
        self.mshrs.busy
    }

    /// Returns the cycle from which no miss is outstanding: what a fence waits for.
    pub(crate) fn idle(&self) -> u64 {
        self.mshrs.idle()
    }
}
