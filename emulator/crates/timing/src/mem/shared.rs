//! What all harts share: last-level cache, memory, and who holds which line.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snapshot::{Archive, Snapshot};

use super::cache::Cache;
use super::directory::Directory;
use super::dram::Dram;
use super::lower::{Counts, Level};
use super::mshr::Mshrs;
use super::origin::Origin;
use crate::Preset;

/// Last-level cache and memory, shared by the cores that were made with clones of it.
#[derive(Clone)]
pub struct SharedMemory(Arc<Mutex<Shared>>);

impl SharedMemory {
    /// That of so many harts, at most 8.
    pub fn new(preset: &Preset, harts: usize) -> Self {
        let llc = &preset.llc;
        Self(Arc::new(Mutex::new(Shared {
            llc: (llc.kib != 0).then(|| Cache::new(llc.kib, llc.ways, 0xdef0)),
            llc_mshrs: Mshrs::new(llc.mshrs),
            llc_latency: u64::from(llc.latency),
            l2_latency: u64::from(preset.l2.latency),
            dram: Dram::new(preset),
            directory: (harts > 1).then(|| Directory::new(preset, harts)),
        })))
    }

    /// One core uses it at a time, for one request.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines read and written, and those of them that found their row open.
    pub(crate) fn dram_counts(&self) -> (u64, u64) {
        self.lock().dram.counts()
    }
}

/// What [`SharedMemory`] shares.
pub(super) struct Shared {
    llc: Option<Cache>,
    llc_mshrs: Mshrs,
    llc_latency: u64,
    /// From here to the L1.
    l2_latency: u64,
    dram: Dram,
    /// With several harts.
    pub directory: Option<Directory>,
}

impl Snapshot for Shared {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            llc,
            llc_mshrs,
            llc_latency: _,
            l2_latency: _,
            dram,
            directory,
        } = self;
        if let Some(llc) = llc {
            llc.snapshot(archive)?;
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
    /// Reads a line for a hart's L2; when it is there and who had it.
    pub fn read(
        &mut self,
        hart: usize,
        line: u64,
        cycle: u64,
        origin: Origin,
        counts: &mut Counts,
    ) -> (u64, Level) {
        let Some(directory) = &mut self.directory else {
            return self.fetch(line, cycle, counts);
        };
        let write = origin.writes();
        let grant = directory.request(hart, line, cycle, write);
        let asked = grant.start + self.llc_latency + grant.asks;
        let (ready, level) = if grant.supplied {
            counts.transfers += 1;
            (asked, Level::Llc)
        } else {
            let (ready, level) = self.fetch(line, grant.start, counts);
            let last = if grant.asks == 0 { 0 } else { asked };
            (ready.max(last), level)
        };
        if grant.written_back {
            self.write(line, asked);
        }
        // Readers of what the LLC has do not wait for each other.
        if let Some(directory) = &mut self.directory
            && (write || grant.asks != 0 || level == Level::Memory)
        {
            directory.answered(line, ready + self.l2_latency);
        }
        (ready, level)
    }

    /// Lets a hart write a line that it holds; when it may, or `None` if it need not ask.
    pub fn upgrade(
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
        Some(ready)
    }

    /// A line from the LLC or memory.
    fn fetch(&mut self, line: u64, cycle: u64, counts: &mut Counts) -> (u64, Level) {
        let Some(llc) = &mut self.llc else {
            return (self.dram.access(line, cycle), Level::Memory);
        };
        counts.llc_accesses += 1;
        if let Some(filled) = llc.hit(line, cycle, false) {
            return ((cycle + self.llc_latency).max(filled), Level::Llc);
        }
        counts.llc_misses += 1;
        let (register, start) = self.llc_mshrs.choose(cycle);
        let ready = self.dram.access(line, start + self.llc_latency);
        self.llc_mshrs.take(register, line, start, ready);
        if let Some(victim) = llc.fill(line, ready, false, 0).filter(|v| v.dirty) {
            self.dram.access(victim.line, ready);
        }
        (ready, Level::Memory)
    }

    /// A line written back.
    pub fn write(&mut self, line: u64, cycle: u64) {
        let Some(llc) = &mut self.llc else {
            self.dram.access(line, cycle);
            return;
        };
        if llc.hit(line, cycle, true).is_none()
            && let Some(victim) = llc.fill(line, cycle, true, 0).filter(|v| v.dirty)
        {
            self.dram.access(victim.line, cycle);
        }
    }
}
