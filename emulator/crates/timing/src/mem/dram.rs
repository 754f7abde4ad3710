//! Memory: DDR with open pages, or the fixed latency that the RTL simulations had.
//!
//! Not modelled: the controller's queue depths and write draining (writes go to their bank when they
//! arrive); FR-FCFS is approximated by serving each bank in program order with row hits on the open row.

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
    pub fn new(preset: &Preset) -> Self {
        let p: &Params = &preset.dram;
        let core = u64::from(preset.clock.mhz);
        // Memory cycles in core cycles, rounded up; nanoseconds likewise.
        let memory = |cycles: u32| (u64::from(cycles) * core).div_ceil(u64::from(p.mhz));
        let nanoseconds = |ns: u64| ns * core / 1000;
        let banks = (p.ranks * p.banks) as usize;
        let fixed = p.model == DramModel::Fixed;
        Self {
            model: p.model,
            banks: vec![
                Bank {
                    row: u64::MAX,
                    slot: Slot::default()
                };
                banks
            ]
            .into(),
            bank_mask: banks as u64 - 1,
            column_bits: (p.row_bytes >> super::LINE_BITS).trailing_zeros(),
            row_bits: banks.trailing_zeros(),
            bus: Slot::default(),
            cas: memory(p.cas),
            rcd: memory(p.rcd),
            rp: memory(p.rp),
            burst: if fixed {
                64 / u64::from(p.bytes_per_cycle)
            } else {
                memory(p.burst)
            },
            controller: u64::from(p.controller),
            refresh_every: if p.refresh && !fixed {
                nanoseconds(7800)
            } else {
                u64::MAX
            },
            refresh_takes: nanoseconds(260),
            fixed: u64::from(p.latency),
            row_hits: 0,
            accesses: 0,
        }
    }

    /// A line's transfer that is asked for at `cycle`; returns when its first beat is there.
    pub fn access(&mut self, line: u64, cycle: u64) -> u64 {
        self.accesses += 1;
        match self.model {
            // The memory port takes a request whenever its data bus can carry the answer.
            DramModel::Fixed => self.bus.serve(cycle + self.fixed, self.burst),
            DramModel::Ddr => self.ddr(line, cycle + self.controller),
        }
    }

    fn ddr(&mut self, line: u64, cycle: u64) -> u64 {
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
                0
            }
            u64::MAX => self.rcd,
            _ => self.rp + self.rcd,
        };
        bank.row = row;
        // The bank is busy until its column command; the transfer itself overlaps the next one.
        let start = bank.slot.serve(cycle, open + self.burst);
        self.bus.serve(start + open + self.cas, self.burst)
    }

    /// Accesses, and those of them that found their row open.
    pub fn counts(&self) -> (u64, u64) {
        (self.accesses, self.row_hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_hit_miss_and_conflict() {
        let mut preset = Preset::default();
        preset.dram.refresh = false;
        preset.dram.controller = 0;
        preset.clock.mhz = 1000;
        let mut dram = Dram::new(&preset);
        assert_eq!(dram.access(0, 1000), 1000 + 14 + 14);
        assert_eq!(dram.access(1, 2000), 2000 + 14);
        let other_row = 1 << (7 + 5);
        assert_eq!(dram.access(other_row, 3000), 3000 + 14 + 14 + 14);
        assert_eq!(dram.counts(), (3, 1));
    }

    #[test]
    fn the_bus_carries_one_line_at_a_time() {
        let mut preset = Preset::load("rtl-mega").unwrap();
        preset.dram.latency = 80;
        let mut dram = Dram::new(&preset);
        assert_eq!(dram.access(0, 0), 80);
        assert_eq!(dram.access(1, 0), 88);
        assert_eq!(dram.access(2, 50), 130);
    }
}
