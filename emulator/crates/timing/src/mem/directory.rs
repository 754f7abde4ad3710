//! Who holds a line, and how: MESI, kept where all harts' requests meet, at the last-level cache.
//!
//! A full map of the private L2 caches and what they include. Not modelled: a directory of limited size, whose
//! evictions would take lines from caches that still use them.

use std::collections::HashMap;

use super::bits;
use crate::Preset;

/// A line that private caches hold.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Harts whose caches hold the line; a bit each.
    holders: u16,
    /// The one holder may write without asking (MESI: exclusive, or modified).
    alone: bool,
    /// The one holder has written (MESI: modified).
    modified: bool,
    /// Cycle from which the next hart's request is served, as the last one has its answer then.
    free: u64,
}

snapshot::snapshot!(Line { holders, alone, modified, free });

/// What a hart's caches have to do with a line because of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    pub line: u64,
    /// The line is to be dropped; otherwise it is to be written back, and kept to be read only.
    pub drop: bool,
}

snapshot::snapshot!(Probe { line, drop });

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Cycle from which the request is served.
    pub start: u64,
    /// Cycles that asking other harts adds to the latency of the LLC.
    pub asks: u64,
    /// Another hart's cache gives the data.
    pub supplied: bool,
    /// The other hart's cache gives the data by writing it back.
    pub written_back: bool,
    /// The other hart had modified the line.
    pub modified: bool,
    /// Number of other harts that are asked.
    pub probes: u32,
}

/// The directory of several harts.
pub(crate) struct Directory {
    lines: HashMap<u64, Line>,
    /// By hart: what happened to its lines since its last turn.
    probes: Vec<Vec<Probe>>,
    probe: u64,
    transfer: u64,
    /// No line is answered after this cycle.
    last_answer: u64,
}

snapshot::snapshot!(Directory { lines, probes } keeps { probe, transfer, last_answer });

impl Directory {
    pub(super) fn new(preset: &Preset, harts: usize) -> Self {
        Self {
            lines: HashMap::new(),
            probes: vec![Vec::new(); harts],
            probe: u64::from(preset.coherence.probe),
            transfer: u64::from(preset.coherence.transfer),
            last_answer: 0,
        }
    }

    /// Forgets when requests were answered: all answers are there.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.last_answer) != 0 {
            self.lines.values_mut().for_each(|line| line.free = 0);
        }
    }

    /// Grants a line to a hart that asks for it in `cycle`, as its caches do not hold the line, or must not write to it. The other harts find what
    /// that means for them in their [probes](Self::take_probes).
    pub(super) fn request(&mut self, hart: usize, line: u64, cycle: u64, write: bool) -> Grant {
        let me = 1 << hart;
        let entry = self.lines.entry(line).or_default();
        let others = entry.holders & !me;
        let mut grant = Grant {
            start: cycle,
            asks: 0,
            supplied: false,
            written_back: false,
            modified: false,
            probes: 0,
        };
        // What was asked of this hart before is overtaken by the answer.
        self.probes[hart].retain(|probe| probe.line != line);
        if others == 0 {
            // The hart may have lost the line and be the one that is known to have it.
            *entry = Line { holders: me, alone: true, modified: write, free: entry.free };
            return grant;
        }
        grant.start = cycle.max(entry.free);
        if entry.alone || write {
            grant.asks = if entry.modified { self.transfer } else { self.probe };
            grant.supplied = entry.alone;
            grant.written_back = entry.modified && !write;
            grant.modified = entry.modified;
            grant.probes = others.count_ones();
            let probe = Probe { line, drop: write };
            for (other, probes) in self.probes.iter_mut().enumerate() {
                if others >> other & 1 != 0 {
                    probes.push(probe);
                }
            }
        }
        *entry = Line {
            holders: if write { me } else { others | me },
            alone: write,
            modified: write,
            free: entry.free,
        };
        grant
    }

    /// Notes that the answer to a request is in the hart's L1 in `cycle`.
    pub(super) fn answered(&mut self, line: u64, cycle: u64) {
        if let Some(entry) = self.lines.get_mut(&line) {
            entry.free = entry.free.max(cycle);
            self.last_answer = self.last_answer.max(cycle);
        }
    }

    /// Notes that a hart writes to a line that it holds, if it need not ask; returns true if so.
    pub(super) fn writes(&mut self, hart: usize, line: u64) -> bool {
        let entry = self.lines.get_mut(&line);
        let Some(entry) = entry.filter(|entry| entry.alone && entry.holders == 1 << hart) else {
            return false;
        };
        entry.modified = true;
        true
    }

    /// Notes that a hart's caches dropped the line by themselves.
    pub(super) fn evicted(&mut self, hart: usize, line: u64) {
        if let Some(entry) = self.lines.get_mut(&line) {
            entry.holders &= !(1 << hart);
            if entry.holders == 0 {
                self.lines.remove(&line);
            }
        }
    }

    /// Notes that a device wrote a line, which `hart` has dropped: the other harts have to.
    pub(super) fn dma_write(&mut self, hart: usize, line: u64) {
        // What was asked of the harts before is overtaken.
        self.probes[hart].retain(|probe| probe.line != line);
        let Some(entry) = self.lines.remove(&line) else { return };
        for other in bits(entry.holders & !(1 << hart)) {
            self.probes[other].push(Probe { line, drop: true });
        }
    }

    /// Adds a probe for the L1 of a hart, whose L2 dropped the line on an instruction's behalf: the L1 has to do the
    /// same.
    pub(super) fn push_probe(&mut self, hart: usize, probe: Probe) {
        self.probes[hart].push(probe);
    }

    /// Takes what other harts asked of a hart's caches since the last call.
    pub(super) fn take_probes(&mut self, hart: usize) -> Vec<Probe> {
        std::mem::take(&mut self.probes[hart])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 7;

    fn directory() -> (Directory, u64, u64) {
        let preset = Preset::default();
        let (probe, transfer) = (preset.coherence.probe, preset.coherence.transfer);
        let directory = Directory::new(&preset, 3);
        (directory, probe.into(), transfer.into())
    }

    #[test]
    fn a_line_of_one_hart_costs_nothing() {
        let (mut directory, ..) = directory();
        assert_eq!(directory.request(0, LINE, 10, false).asks, 0);
        assert!(directory.writes(0, LINE), "exclusive becomes modified");
        directory.evicted(0, LINE);
        assert!(!directory.writes(0, LINE));
        assert_eq!(directory.request(1, LINE, 20, true).asks, 0);
        assert!(directory.take_probes(0).is_empty());
    }

    #[test]
    fn readers_share_and_a_writer_asks_them_all() {
        let (mut directory, probe, _) = directory();
        directory.request(0, LINE, 0, false);
        let second = directory.request(1, LINE, 0, false);
        assert_eq!((second.asks, second.supplied), (probe, true), "exclusive");
        let third = directory.request(2, LINE, 0, false);
        assert_eq!((third.asks, third.supplied), (0, false), "shared");
        assert!(!directory.writes(2, LINE));
        let keep = Probe { line: LINE, drop: false };
        assert_eq!(directory.take_probes(0), [keep]);
        assert_eq!(directory.request(2, LINE, 0, true).asks, probe);
        for hart in [0, 1] {
            let gone = Probe { line: LINE, drop: true };
            assert_eq!(directory.take_probes(hart), [gone]);
        }
        assert!(directory.writes(2, LINE));
    }

    #[test]
    fn a_modified_line_is_transferred_one_request_at_a_time() {
        let (mut directory, _, transfer) = directory();
        directory.request(0, LINE, 0, true);
        directory.answered(LINE, 50);
        let grant = directory.request(1, LINE, 20, false);
        let expected = Grant {
            start: 50,
            asks: transfer,
            supplied: true,
            written_back: true,
            modified: true,
            probes: 1,
        };
        assert_eq!(grant, expected);
    }

    #[test]
    fn the_last_of_several_readers_still_asks() {
        let (mut directory, ..) = directory();
        directory.request(0, LINE, 0, false);
        directory.request(1, LINE, 0, false);
        directory.evicted(0, LINE);
        assert!(!directory.writes(1, LINE));
        assert_eq!(directory.request(1, LINE, 0, true).asks, 0, "nobody else");
        assert!(directory.writes(1, LINE));
    }
}
