//! What lies below the L1 caches: the hart's L2, then what harts share: last-level cache and memory.
//!
//! The L2 is inclusive of the L1 data cache and writes back; the last-level cache is memory-side, as in
//! FireSim's memory model, and includes nothing. Instruction lines are read-only copies that the L2 does
//! not track, as in BOOM. What a device writes goes into the last-level cache, and leaves the caches above it.

use snapshot::{Archive, Snapshot};

use super::cache::Cache;
use super::directory::Probe;
use super::mshr::Mshrs;
use super::origin::Origin;
use super::shared::SharedMemory;
use super::slot::Slot;
use crate::Preset;
use commit_trace::DataSource;

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    L2,
    Llc,
    Memory,
    /// Another hart's cache, which gave the line or had to give it up.
    Peer,
}

impl Level {
    /// Returns the level that a number stands for: [`super::Cache`] keeps it.
    #[inline(always)]
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            0 => Self::L2,
            1 => Self::Llc,
            2 => Self::Memory,
            _ => Self::Peer,
        }
    }
}

/// Lines that were looked up in a cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lookups {
    /// Lookups, hits and misses.
    pub all: u64,
    /// Lookups that missed.
    pub misses: u64,
}

snapshot::snapshot!(Lookups { all, misses });

/// Hits and misses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Lookups of the L2, by [`Origin`].
    pub l2: [Lookups; Origin::COUNT],
    /// Hits of the L2 in lines that were still on their way.
    pub l2_pending: u64,
    pub l2_evictions: u64,
    pub l2_writebacks: u64,
    pub llc_accesses: u64,
    pub llc_misses: u64,
    /// Lookups of the LLC by loads.
    pub llc_loads: Lookups,
    pub writebacks: u64,
    pub upgrades: u64,
    pub transfers: u64,
    /// Cycles by which misses were late for want of a miss register of the L2.
    pub l2_mshr_full: u64,
    /// Cycles by which misses were late for want of a miss register of the LLC.
    pub llc_mshr_full: u64,
    /// Cycles of the LLC's miss registers in use for this hart, over all registers.
    pub llc_mshr_busy: u64,
}

snapshot::snapshot!(Counts {
    l2,
    l2_pending,
    l2_evictions,
    l2_writebacks,
    llc_accesses,
    llc_misses,
    llc_loads,
    writebacks,
    upgrades,
    transfers,
    l2_mshr_full,
    llc_mshr_full,
    llc_mshr_busy
});

impl Counts {
    /// Returns the accesses of the L2.
    pub(crate) fn l2_accesses(&self) -> u64 {
        self.l2.iter().map(|lookups| lookups.all).sum()
    }

    /// Returns the misses of the L2.
    pub(crate) fn l2_misses(&self) -> u64 {
        self.l2.iter().map(|lookups| lookups.misses).sum()
    }
}

/// L2, LLC and memory, as a hart sees them.
pub(crate) struct Lower {
    l2: Cache,
    l2_mshrs: Mshrs,
    l2_port: Slot,
    l2_latency: u64,
    l2_interval: u64,
    pub shared: SharedMemory,
    /// Number of the hart.
    hart: usize,
    /// There are other harts.
    pub coherent: bool,
    pub counts: Counts,
    /// The cache of another hart that answered the last miss of the L2.
    peer: Option<Peer>,
}

/// The cache of another hart, which supplies a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Clean,
    Modified,
}

impl Snapshot for Lower {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            l2,
            l2_mshrs,
            l2_port,
            l2_latency: _,
            l2_interval: _,
            shared,
            hart,
            coherent: _,
            counts,
            peer: _,
        } = self;
        l2.snapshot(archive)?;
        l2_mshrs.snapshot(archive)?;
        l2_port.snapshot(archive)?;
        // What the harts share is saved once.
        if *hart == 0 {
            shared.lock().snapshot(archive)?;
        }
        counts.snapshot(archive)
    }
}

impl Lower {
    /// Returns the L2 of hart `hart`, connected to `memory`.
    pub(crate) fn new(preset: &Preset, memory: &SharedMemory, hart: usize) -> Self {
        let l2 = &preset.l2;
        Self {
            l2: Cache::new(l2.kib, l2.ways, 0x5678),
            l2_mshrs: Mshrs::new(l2.mshrs),
            l2_port: Slot::default(),
            l2_latency: u64::from(l2.latency),
            l2_interval: u64::from(l2.interval),
            coherent: memory.lock().directory.is_some(),
            shared: memory.clone(),
            hart,
            counts: Counts::default(),
            peer: None,
        }
    }

    /// Reads a line for the L1 instruction cache; returns when it is there and who had it. `evicted` is told of a
    /// line that the L2 no longer holds and returns whether the L1 data cache's copy was dirty.
    pub(crate) fn read(
        &mut self,
        line: u64,
        cycle: u64,
        origin: Origin,
        evicted: impl FnOnce(u64) -> bool,
    ) -> (u64, Level) {
        let (ready, level, gone) = self.read_for(line, cycle, origin, evicted);
        if let Some(line) = gone
            && let Some(directory) = &mut self.shared.lock().directory
        {
            // Nobody has told the L1 data cache, which the directory takes to be without the line.
            directory.push_probe(self.hart, Probe { line, drop: true });
        }
        (ready, level)
    }

    /// Reads a line for the L1 data cache, as [`Self::read`] does for the instruction cache.
    pub(crate) fn read_data(
        &mut self,
        line: u64,
        cycle: u64,
        origin: Origin,
        evicted: impl FnOnce(u64) -> bool,
    ) -> (u64, Level) {
        let (ready, level, _) = self.read_for(line, cycle, origin, evicted);
        (ready, level)
    }

    /// Returns who answered the last read, which was by that level.
    pub(crate) fn source(&self, level: Level) -> DataSource {
        match (level, self.peer) {
            (Level::L2, _) => DataSource::L2,
            (_, Some(Peer::Modified)) => DataSource::PeerModified,
            (_, Some(Peer::Clean)) => DataSource::PeerClean,
            (Level::Llc, None) => DataSource::Llc,
            (Level::Memory, None) => DataSource::Memory,
            (Level::Peer, None) => DataSource::Unknown,
        }
    }

    /// Reads a line for an L1 cache. The third value is the line that the L2 no longer holds, if there is one.
    #[inline]
    fn read_for(
        &mut self,
        line: u64,
        cycle: u64,
        origin: Origin,
        evicted: impl FnOnce(u64) -> bool,
    ) -> (u64, Level, Option<u64>) {
        self.counts.l2[origin as usize].all += 1;
        let start = self.l2_port.serve(cycle, self.l2_interval);
        if let Some(filled) = self.l2.hit(line, start, false) {
            let ready = (start + self.l2_latency).max(filled);
            self.counts.l2_pending += u64::from(filled > start + self.l2_latency);
            if origin.writes()
                && self.coherent
                && let Some(allowed) = self.permission(line, start)
            {
                self.peer = Some(Peer::Clean);
                return (allowed.max(ready), Level::Peer, None);
            }
            return (ready, Level::L2, None);
        }
        self.counts.l2[origin as usize].misses += 1;
        let asked = start;
        let (register, start) = self.l2_mshrs.choose(asked);
        self.counts.l2_mshr_full += start - asked;
        let mut shared = self.shared.lock();
        let (ready, level, peer) = shared.read(self.hart, line, start, origin, &mut self.counts);
        self.peer = peer;
        let ready = ready + self.l2_latency;
        self.l2_mshrs.take(register, line, start, ready);
        let victim = self.l2.fill(line, ready, false, 0);
        if let Some(victim) = victim {
            // Inclusive: the L1's copy goes too, and its data with it.
            let newer = evicted(victim.line);
            self.counts.l2_evictions += 1;
            if victim.dirty || newer {
                self.counts.l2_writebacks += 1;
                shared.write(self.hart, victim.line, ready);
            }
            if let Some(directory) = &mut shared.directory {
                directory.evicted(self.hart, victim.line);
            }
        }
        (ready, level, victim.map(|victim| victim.line))
    }

    /// Asks for leave to write to a line that the L1 data cache holds to read; returns when it may, or `None` if no
    /// other hart holds the line.
    pub(crate) fn upgrade(&mut self, line: u64, cycle: u64) -> Option<u64> {
        let start = self.l2_port.serve(cycle, self.l2_interval);
        self.permission(line, start)
    }

    /// Notes that the hart writes to a line that it holds, if it need not ask; returns true if so.
    pub(crate) fn writes(&mut self, line: u64) -> bool {
        let directory = &mut self.shared.lock().directory;
        directory.as_mut().is_none_or(|directory| directory.writes(self.hart, line))
    }

    fn permission(&mut self, line: u64, start: u64) -> Option<u64> {
        let mut shared = self.shared.lock();
        let allowed = shared.upgrade(self.hart, line, start, &mut self.counts)?;
        Some(allowed + self.l2_latency)
    }

    /// Does to the L2 what other harts asked for, and says what is to be done to the L1 data cache.
    pub(crate) fn heed_probes(&mut self) -> Vec<Probe> {
        let probes = match &mut self.shared.lock().directory {
            Some(directory) => directory.take_probes(self.hart),
            None => return Vec::new(),
        };
        for probe in &probes {
            self.l2.probed(probe);
        }
        probes
    }

    /// Drops a line that a device wrote from the L2s of all harts, and has their L1 data caches drop it, but for this hart's; the last-level cache has
    /// it from now on. No time passes, and nothing is counted.
    pub(crate) fn dma_write(&mut self, line: u64) {
        self.l2.invalidate(line);
        self.shared.lock().dma_write(self.hart, line);
    }

    /// Forgets all that is on its way or busy, down to memory.
    pub(crate) fn settle(&mut self) {
        self.l2.settle();
        self.l2_mshrs.settle();
        self.l2_port = Slot::default();
        self.shared.lock().settle();
    }

    /// Returns the cycles of the L2's miss registers in use, over all registers.
    pub(crate) fn l2_mshr_busy(&self) -> u64 {
        self.l2_mshrs.busy
    }

    /// Takes a line that the L1 writes back.
    pub(crate) fn write_back(&mut self, line: u64, cycle: u64) {
        self.counts.writebacks += 1;
        self.l2_port.serve(cycle, self.l2_interval);
        if self.l2.hit(line, cycle, true).is_none() {
            self.shared.lock().write(self.hart, line, cycle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(preset: &Preset) -> Lower {
        Lower::new(preset, &SharedMemory::new(preset, 1), 0)
    }

    #[test]
    fn memory_then_l2() {
        let mut lower = alone(&Preset::load("rtl-mega").unwrap());
        let (first, level) = lower.read(5, 100, Origin::Fetch, |_| false);
        assert_eq!((first, level), (100 + 80 + 12, Level::Memory));
        assert_eq!(
            lower.read(5, 150, Origin::Fetch, |_| false),
            (first, Level::L2),
            "still on its way"
        );
        assert_eq!(lower.read(5, 500, Origin::Fetch, |_| false), (512, Level::L2));
    }

    #[test]
    fn an_evicted_line_is_announced() {
        let mut preset = Preset::default();
        preset.l2.kib = 1;
        preset.l2.ways = 1;
        let mut lower = alone(&preset);
        lower.read(0, 0, Origin::Fetch, |_| false);
        let mut gone = None;
        lower.read(16, 1000, Origin::Fetch, |line| {
            gone = Some(line);
            true
        });
        assert_eq!(gone, Some(0));
        assert_eq!(
            lower.read(0, 9000, Origin::Fetch, |_| false).1,
            Level::Llc,
            "its data went down"
        );
    }
}
