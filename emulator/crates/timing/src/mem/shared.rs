//! What all harts share: last-level cache, memory, and who holds which line.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snapshot::{Archive, Snapshot};

use super::cache::Cache;
use super::counts::{LineOwners, UncoreCount, UncoreCounts};
use super::directory::{Directory, Grant};
use super::dram::Dram;
use super::lower::Peer;
use super::lower::{Counts, Level};
use super::mshr::Mshrs;
use super::origin::Origin;
use crate::Preset;

/// Last-level cache and memory, shared by the cores that were made with clones of it.
#[derive(Clone)]
pub struct SharedMemory(Arc<Mutex<Shared>>);

impl SharedMemory {
    /// Returns the memory of `harts` harts, at most 16, with an empty last-level cache.
    pub fn new(preset: &Preset, harts: usize) -> Self {
        Self::counting(preset, harts, UncoreCounts::default())
    }

    /// Returns the memory of `harts` harts, at most 16, with an empty last-level cache; it adds what it does to
    /// `counts`.
    pub fn counting(preset: &Preset, harts: usize, counts: UncoreCounts) -> Self {
        let llc = &preset.llc;
        let cache = (llc.kib != 0).then(|| Cache::new(llc.kib, llc.ways, 0xdef0));
        counts.clear_lines();
        Self(Arc::new(Mutex::new(Shared {
            owners: LineOwners::new(cache.as_ref().map_or(0, Cache::places)),
            llc: cache,
            counts,
            llc_mshrs: Mshrs::new(llc.mshrs),
            llc_latency: u64::from(llc.latency),
            l2_latency: u64::from(preset.l2.latency),
            dram: Dram::new(preset),
            directory: (harts > 1).then(|| Directory::new(preset, harts)),
            warm_cycle: 0,
        })))
    }

    /// Locks the memory: one core uses it at a time, for one request.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a cycle that is `apart` after the given one and after all that any core was given before, for functional warming.
    pub(crate) fn after_all(&self, cycle: u64, apart: u64) -> u64 {
        let mut shared = self.lock();
        shared.warm_cycle = shared.warm_cycle.max(cycle) + apart;
        shared.warm_cycle
    }

    /// Returns the number of lines read and written, and of those that found their row open.
    pub(crate) fn dram_counts(&self) -> (u64, u64) {
        self.lock().dram.counts()
    }

    /// Sets [`Self::dram_counts`].
    pub(crate) fn set_dram_counts(&self, counts: (u64, u64)) {
        self.lock().dram.set_counts(counts);
    }
}

/// What [`SharedMemory`] shares.
pub(super) struct Shared {
    llc: Option<Cache>,
    /// Who brought each line of the last-level cache.
    owners: LineOwners,
    counts: UncoreCounts,
    llc_mshrs: Mshrs,
    llc_latency: u64,
    /// Latency of a hart's L2, from here to the L1.
    l2_latency: u64,
    dram: Dram,
    /// Who holds which line; only with several harts.
    pub directory: Option<Directory>,
    /// Cycle of the last access for functional warming, in a time of its own that all cores share.
    warm_cycle: u64,
}

impl Snapshot for Shared {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            llc,
            owners,
            counts,
            llc_mshrs,
            llc_latency: _,
            l2_latency: _,
            dram,
            directory,
            warm_cycle: _,
        } = self;
        if let Some(llc) = llc {
            llc.snapshot(archive)?;
        }
        owners.snapshot(archive)?;
        if archive.is_loading() {
            owners.recount(counts);
        }
        llc_mshrs.snapshot(archive)?;
        dram.snapshot(archive)?;
        match directory {
            Some(directory) => directory.snapshot(archive),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// Reads a line for a hart's L2; returns when it is there and who had it, perhaps another hart.
    pub(super) fn read(
        &mut self,
        hart: usize,
        line: u64,
        cycle: u64,
        origin: Origin,
        counts: &mut Counts,
    ) -> (u64, Level, Option<Peer>) {
        let Some(directory) = &mut self.directory else {
            let (ready, level) = self.fetch((hart, origin), line, cycle, counts);
            return (ready, level, None);
        };
        let write = origin.writes();
        let grant = directory.request(hart, line, cycle, write);
        self.note(&grant, (hart, origin));
        let asked = grant.start + self.llc_latency + grant.asks;
        let (ready, level) = if grant.supplied {
            counts.transfers += 1;
            (asked, Level::Peer)
        } else {
            let (ready, level) = self.fetch((hart, origin), line, grant.start, counts);
            let last = if grant.asks == 0 { 0 } else { asked };
            (ready.max(last), level)
        };
        if grant.written_back {
            self.write(hart, line, asked);
        }
        // Readers of what the LLC has do not wait for each other.
        if let Some(directory) = &mut self.directory
            && (write || grant.asks != 0 || level == Level::Memory)
        {
            directory.answered(line, ready + self.l2_latency);
        }
        let peer = grant.supplied.then_some(match grant.modified {
            true => Peer::Modified,
            false => Peer::Clean,
        });
        (ready, level, peer)
    }

    /// Lets a hart write a line that it holds; returns when it may, or `None` if it need not ask.
    pub(super) fn upgrade(
        &mut self,
        hart: usize,
        line: u64,
        cycle: u64,
        counts: &mut Counts,
    ) -> Option<u64> {
        let directory = self.directory.as_mut()?;
        if directory.writes(hart, line) {
            return None;
        }
        counts.upgrades += 1;
        let grant = directory.request(hart, line, cycle, true);
        let ready = grant.start + self.llc_latency + grant.asks;
        directory.answered(line, ready + self.l2_latency);
        self.note(&grant, (hart, Origin::Store));
        self.counts.of(hart, Origin::Store).count(UncoreCount::Upgrades);
        Some(ready)
    }

    /// Forgets all that is on its way or busy.
    pub(super) fn settle(&mut self) {
        self.llc.iter_mut().for_each(Cache::settle);
        self.llc_mshrs.settle();
        self.dram.settle();
        self.directory.iter_mut().for_each(Directory::settle);
    }

    /// Counts what a request means for other harts.
    fn note(&self, grant: &Grant, (hart, origin): (usize, Origin)) {
        if grant.probes == 0 {
            return;
        }
        let account = self.counts.of(hart, origin);
        account.add(UncoreCount::Probes, grant.probes.into());
        if grant.supplied {
            account.count(UncoreCount::Transfers);
        }
        if grant.modified {
            account.count(UncoreCount::ModifiedTransfers);
        }
    }

    /// Reads a line from the LLC or memory.
    fn fetch(
        &mut self,
        (hart, origin): (usize, Origin),
        line: u64,
        cycle: u64,
        counts: &mut Counts,
    ) -> (u64, Level) {
        let account = self.counts.of(hart, origin);
        let Some(llc) = &mut self.llc else {
            return (self.dram.read(line, cycle, account), Level::Memory);
        };
        let of_load = u64::from(origin == Origin::Load);
        counts.llc_accesses += 1;
        counts.llc_loads.all += of_load;
        account.count(UncoreCount::Lookups);
        if let Some(filled) = llc.hit(line, cycle, false) {
            return ((cycle + self.llc_latency).max(filled), Level::Llc);
        }
        counts.llc_misses += 1;
        counts.llc_loads.misses += of_load;
        account.count(UncoreCount::Misses);
        let (register, start) = self.llc_mshrs.choose(cycle);
        let ready = self.dram.read(line, start + self.llc_latency, account);
        self.llc_mshrs.take(register, line, start, ready);
        counts.llc_mshr_full += start - cycle;
        counts.llc_mshr_busy += ready - start;
        self.fill((hart, origin), line, ready, false);
        (ready, Level::Memory)
    }

    /// Takes a line that is written back because of a request of a hart.
    pub(super) fn write(&mut self, hart: usize, line: u64, cycle: u64) {
        let account = self.counts.of(hart, Origin::WriteBack);
        let Some(llc) = &mut self.llc else {
            self.dram.write(line, cycle, account);
            return;
        };
        account.count(UncoreCount::Lookups);
        if llc.hit(line, cycle, true).is_none() {
            account.count(UncoreCount::Misses);
            self.fill((hart, Origin::WriteBack), line, cycle, true);
        }
    }

    /// Takes a line from a device. The L2 of `hart` does not hold it any more.
    pub(super) fn dma_write(&mut self, hart: usize, line: u64) {
        if let Some(directory) = &mut self.directory {
            directory.dma_write(hart, line);
        }
        let Some(llc) = &mut self.llc else { return };
        if llc.hit(line, 0, true).is_none() {
            llc.fill(line, 0, true, 0);
            self.owners.fill_by_device(llc.place(line), &self.counts);
        }
    }

    /// Puts a line that is not there into the LLC.
    fn fill(&mut self, (hart, origin): (usize, Origin), line: u64, cycle: u64, dirty: bool) {
        let Some(llc) = &mut self.llc else { return };
        let victim = llc.fill(line, cycle, dirty, 0);
        self.owners.fill(llc.place(line), hart, origin, &self.counts);
        let Some(victim) = victim else { return };
        let account = self.counts.of(hart, origin);
        account.count(UncoreCount::Evictions);
        if victim.dirty {
            account.count(UncoreCount::WriteBacks);
            self.dram.write(victim.line, cycle, account);
        }
    }
}
