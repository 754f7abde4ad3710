//! Memory: DDR with open pages, or the fixed latency that the RTL simulations had.
//!
//! Not modelled: the controller's queue depths and write draining (writes go to their bank when they
//! arrive); FR-FCFS is approximated by serving each bank in program order with row hits on the open row.

use super::counts::{RequestCounts, UncoreCount};
use super::slot::Slot;
use crate::preset::{Dram as Params, DramModel, Preset};

#[derive(Clone, Copy)]
struct Bank {
    row: u64,
    slot: Slot,
}

snapshot::snapshot!(Bank { row, slot });

/// A memory channel.
pub(crate) struct Dram {
    model: DramModel,
    banks: Box<[Bank]>,
    bank_mask: u64,
    column_bits: u32,
    row_bits: u32,
    bus: Slot,
    cas: u64,
    rcd: u64,
    rp: u64,
    burst: u64,
    controller: u64,
    refresh_every: u64,
    refresh_takes: u64,
    fixed: u64,
    row_hits: u64,
    accesses: u64,
}

snapshot::snapshot!(Dram {
    banks, bus, row_hits, accesses
} keeps {
    model, bank_mask, column_bits, row_bits, cas, rcd, rp, burst, controller, refresh_every,
    refresh_takes, fixed
});

impl Dram {
    pub(super) fn new(preset: &Preset) -> Self {
        let p: &Params = &preset.dram;
        let core = u64::from(preset.clock.mhz);
        // Memory cycles in core cycles, rounded up; nanoseconds likewise.
        let memory = |cycles: u32| (u64::from(cycles) * core).div_ceil(u64::from(p.mhz));
        let banks = (p.ranks * p.banks) as usize;
        let fixed = p.model == DramModel::Fixed;
        Self {
            model: p.model,
            banks: vec![Bank { row: u64::MAX, slot: Slot::default() }; banks].into(),
            bank_mask: banks as u64 - 1,
            column_bits: (p.row_bytes >> super::LINE_BITS).trailing_zeros(),
            row_bits: banks.trailing_zeros(),
            bus: Slot::default(),
            cas: memory(p.cas),
            rcd: memory(p.rcd),
            rp: memory(p.rp),
            burst: if fixed { 64 / u64::from(p.bytes_per_cycle) } else { memory(p.burst) },
            controller: u64::from(p.controller),
            refresh_every: refresh_period(preset).unwrap_or(u64::MAX),
            refresh_takes: nanoseconds(260, preset),
            fixed: u64::from(p.latency),
            row_hits: 0,
            accesses: 0,
        }
    }

    /// Reads a line for `cause` from `cycle` on; returns when its first beat is there.
    pub(super) fn read(&mut self, line: u64, cycle: u64, cause: RequestCounts<'_>) -> u64 {
        cause.count(UncoreCount::Reads);
        self.access(line, cycle, cause)
    }

    /// Writes a line for `cause` from `cycle` on.
    pub(super) fn write(&mut self, line: u64, cycle: u64, cause: RequestCounts<'_>) {
        cause.count(UncoreCount::Writes);
        self.access(line, cycle, cause);
    }

    fn access(&mut self, line: u64, cycle: u64, cause: RequestCounts<'_>) -> u64 {
        self.accesses += 1;
        match self.model {
            // The memory port takes a request whenever its data bus can carry the answer.
            DramModel::Fixed => {
                let earliest = cycle + self.fixed;
                let start = self.bus.serve(earliest, self.burst);
                cause.add(UncoreCount::Waited, start - earliest);
                start
            }
            DramModel::Ddr => self.ddr(line, cycle + self.controller, cause),
        }
    }

    fn ddr(&mut self, line: u64, asked: u64, cause: RequestCounts<'_>) -> u64 {
        let cycle = asked;
        let into_refresh = cycle % self.refresh_every;
        let cycle = if into_refresh < self.refresh_takes && self.refresh_every != u64::MAX {
            cycle + self.refresh_takes - into_refresh
        } else {
            cycle
        };
        let bank = &mut self.banks[((line >> self.column_bits) & self.bank_mask) as usize];
        let row = line >> (self.column_bits + self.row_bits);
        let open = match bank.row {
            r if r == row => {
                self.row_hits += 1;
                cause.count(UncoreCount::RowHits);
                0
            }
            u64::MAX => self.rcd,
            _ => {
                cause.count(UncoreCount::RowConflicts);
                self.rp + self.rcd
            }
        };
        if open != 0 {
            cause.count(UncoreCount::Activations);
        }
        bank.row = row;
        // The bank is busy until its column command; the transfer itself overlaps the next one.
        let start = bank.slot.serve(cycle, open + self.burst);
        let ready = start + open + self.cas;
        let first_beat = self.bus.serve(ready, self.burst);
        cause.add(UncoreCount::Waited, start - asked + first_beat - ready);
        first_beat
    }

    /// Frees banks and bus; rows stay open.
    pub(super) fn settle(&mut self) {
        self.banks.iter_mut().for_each(|bank| bank.slot = Slot::default());
        self.bus = Slot::default();
    }

    /// Returns the number of accesses, and of those that found their row open.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.accesses, self.row_hits)
    }

    /// Sets [`Self::counts`].
    pub(super) fn set_counts(&mut self, counts: (u64, u64)) {
        (self.accesses, self.row_hits) = counts;
    }
}

/// Returns nanoseconds in core cycles.
fn nanoseconds(ns: u64, preset: &Preset) -> u64 {
    ns * u64::from(preset.clock.mhz) / 1000
}

/// Returns the core cycles from one refresh to the next, the first of which begins in cycle 0; `None` if there is none.
pub fn refresh_period(preset: &Preset) -> Option<u64> {
    let refreshes = preset.dram.refresh && preset.dram.model == DramModel::Ddr;
    refreshes.then(|| nanoseconds(7800, preset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::{Origin, UncoreCounts};

    #[test]
    fn row_hit_miss_and_conflict() {
        let mut preset = Preset::default();
        preset.dram.refresh = false;
        preset.dram.controller = 0;
        preset.clock.mhz = 1000;
        let (mut dram, counts) = (Dram::new(&preset), UncoreCounts::default());
        let cause = counts.of(0, Origin::Load);
        assert_eq!(dram.read(0, 1000, cause), 1000 + 14 + 14);
        assert_eq!(dram.read(1, 2000, cause), 2000 + 14);
        let other_row = 1 << (7 + 5);
        assert_eq!(dram.read(other_row, 3000, cause), 3000 + 14 + 14 + 14);
        assert_eq!(dram.counts(), (3, 1));
        let kinds = [
            UncoreCount::Reads,
            UncoreCount::Activations,
            UncoreCount::RowHits,
            UncoreCount::RowConflicts,
            UncoreCount::Waited,
        ];
        assert_eq!(kinds.map(|kind| counts.sum(kind, 0, 0)), [3, 2, 1, 1, 0]);
    }

    #[test]
    fn what_waits_is_counted() {
        let mut preset = Preset::default();
        (preset.dram.controller, preset.clock.mhz) = (0, 1000);
        let (mut dram, counts) = (Dram::new(&preset), UncoreCounts::default());
        let cause = counts.of(0, Origin::Load);
        // The refresh of 260 ns that begins in cycle 7800.
        dram.read(0, 7810, cause);
        assert_eq!(counts.sum(UncoreCount::Waited, 0, 0), 250);
        // The bank is busy for as long as its row takes to open, and for a burst.
        let busy = dram.rcd + dram.burst;
        dram.read(1, 7810, cause);
        assert_eq!(counts.sum(UncoreCount::Waited, 0, 0), 250 + 250 + busy);
        assert_eq!(refresh_period(&preset), Some(7800));
    }

    #[test]
    fn the_bus_carries_one_line_at_a_time() {
        let mut preset = Preset::load("rtl-mega").unwrap();
        preset.dram.latency = 80;
        let (mut dram, counts) = (Dram::new(&preset), UncoreCounts::default());
        let cause = counts.of(0, Origin::Load);
        assert_eq!(dram.read(0, 0, cause), 80);
        assert_eq!(dram.read(1, 0, cause), 88);
        assert_eq!(dram.read(2, 50, cause), 130);
        dram.write(3, 50, cause);
        assert_eq!(counts.sum(UncoreCount::Waited, 0, 0), 8 + 8);
        assert_eq!(counts.sum(UncoreCount::Writes, 0, 0), 1);
    }
}
