//! What lies below the L1 caches: L2, last-level cache, memory.
//!
//! The L2 is inclusive of the L1 data cache and writes back; the last-level cache is memory-side, as in
//! FireSim's memory model, and includes nothing. Instruction lines are read-only copies that the L2 does
//! not track, as in BOOM.

use snapshot::{Archive, Snapshot};

use super::cache::Cache;
use super::dram::Dram;
use super::mshr::Mshrs;
use super::slot::Slot;
use crate::Preset;

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    L2,
    Llc,
    Memory,
}

impl Level {
    /// The level that a number stands for: [`super::Cache`] keeps it.
    pub fn from_number(number: u8) -> Self {
        [Self::L2, Self::Llc, Self::Memory][usize::from(number) % 3]
    }
}

/// Hits and misses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub l2_accesses: u64,
    pub l2_misses: u64,
    pub llc_accesses: u64,
    pub llc_misses: u64,
    pub writebacks: u64,
}

snapshot::snapshot!(Counts {
    l2_accesses,
    l2_misses,
    llc_accesses,
    llc_misses,
    writebacks
});

/// L2, LLC and memory.
pub(crate) struct Lower {
    l2: Cache,
    l2_mshrs: Mshrs,
    l2_port: Slot,
    l2_latency: u64,
    l2_interval: u64,
    llc: Option<Cache>,
    llc_mshrs: Mshrs,
    llc_latency: u64,
    pub dram: Dram,
    pub counts: Counts,
}

impl Snapshot for Lower {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            l2,
            l2_mshrs,
            l2_port,
            l2_latency: _,
            l2_interval: _,
            llc,
            llc_mshrs,
            llc_latency: _,
            dram,
            counts,
        } = self;
        l2.snapshot(archive)?;
        l2_mshrs.snapshot(archive)?;
        l2_port.snapshot(archive)?;
        if let Some(llc) = llc {
            llc.snapshot(archive)?;
        }
        llc_mshrs.snapshot(archive)?;
        dram.snapshot(archive)?;
        counts.snapshot(archive)
    }
}

impl Lower {
    pub fn new(preset: &Preset) -> Self {
        let (l2, llc) = (&preset.l2, &preset.llc);
        Self {
            l2: Cache::new(l2.kib, l2.ways, 0x5678),
            l2_mshrs: Mshrs::new(l2.mshrs),
            l2_port: Slot::default(),
            l2_latency: u64::from(l2.latency),
            l2_interval: u64::from(l2.interval),
            llc: (llc.kib != 0).then(|| Cache::new(llc.kib, llc.ways, 0xdef0)),
            llc_mshrs: Mshrs::new(llc.mshrs),
            llc_latency: u64::from(llc.latency),
            dram: Dram::new(preset),
            counts: Counts::default(),
        }
    }

    /// Reads a line for an L1; returns when it is there and who had it. `evicted` is told of a line that
    /// the L2 no longer holds and returns whether the L1's copy was dirty.
    pub fn read(
        &mut self,
        line: u64,
        cycle: u64,
        evicted: impl FnOnce(u64) -> bool,
    ) -> (u64, Level) {
        self.counts.l2_accesses += 1;
        let start = self.l2_port.serve(cycle, self.l2_interval);
        if let Some(filled) = self.l2.hit(line, start, false) {
            return ((start + self.l2_latency).max(filled), Level::L2);
        }
        self.counts.l2_misses += 1;
        let (register, start) = self.l2_mshrs.choose(start);
        let (ready, level) = self.below(line, start);
        let ready = ready + self.l2_latency;
        self.l2_mshrs.take(register, line, start, ready);
        if let Some(victim) = self.l2.fill(line, ready, false, 0) {
            // Inclusive: the L1's copy goes too, and its data with it.
            let newer = evicted(victim.line);
            if victim.dirty || newer {
                self.write_below(victim.line, ready);
            }
        }
        (ready, level)
    }

    /// A line written back by the L1.
    pub fn write_back(&mut self, line: u64, cycle: u64) {
        self.counts.writebacks += 1;
        self.l2_port.serve(cycle, self.l2_interval);
        if self.l2.hit(line, cycle, true).is_none() {
            self.write_below(line, cycle);
        }
    }

    fn below(&mut self, line: u64, cycle: u64) -> (u64, Level) {
        let Some(llc) = &mut self.llc else {
            return (self.dram.access(line, cycle), Level::Memory);
        };
        self.counts.llc_accesses += 1;
        if let Some(filled) = llc.hit(line, cycle, false) {
            return ((cycle + self.llc_latency).max(filled), Level::Llc);
        }
        self.counts.llc_misses += 1;
        let (register, start) = self.llc_mshrs.choose(cycle);
        let ready = self.dram.access(line, start + self.llc_latency);
        self.llc_mshrs.take(register, line, start, ready);
        if let Some(victim) = llc.fill(line, ready, false, 0).filter(|v| v.dirty) {
            self.dram.access(victim.line, ready);
        }
        (ready, Level::Memory)
    }

    fn write_below(&mut self, line: u64, cycle: u64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_then_l2() {
        let mut lower = Lower::new(&Preset::load("rtl-mega").unwrap());
        let (first, level) = lower.read(5, 100, |_| false);
        assert_eq!((first, level), (100 + 80 + 12, Level::Memory));
        assert_eq!(
            lower.read(5, 150, |_| false),
            (first, Level::L2),
            "still on its way"
        );
        assert_eq!(lower.read(5, 500, |_| false), (512, Level::L2));
    }

    #[test]
    fn an_evicted_line_is_announced() {
        let mut preset = Preset::default();
        preset.l2.kib = 1;
        preset.l2.ways = 1;
        let mut lower = Lower::new(&preset);
        lower.read(0, 0, |_| false);
        let mut gone = None;
        lower.read(16, 1000, |line| {
            gone = Some(line);
            true
        });
        assert_eq!(gone, Some(0));
        assert_eq!(
            lower.read(0, 9000, |_| false).1,
            Level::Llc,
            "its data went down"
        );
    }
}
