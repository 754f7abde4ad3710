//! Miss-status registers: how many lines can be in flight.

use super::bits;

/// Limit of registers in one file.
const MAX: usize = 16;
/// Least cycles of a gap before a register's last line for the gap to be used: about a miss.
const GAP: u64 = 64;

#[derive(Clone, Copy, Default)]
struct Register {
    line: u64,
    /// Cycle in which the line before the last one left. The last line is in flight from `start` to `free`.
    gap: u64,
    start: u64,
    free: u64,
}

snapshot::snapshot!(Register { line, gap, start, free });

/// One register file. A register also keeps a line that was prefetched until something needs it.
pub(crate) struct Mshrs {
    registers: [Register; MAX],
    prefetched: u32,
    count: usize,
    /// No register is busy from this cycle on.
    idle: u64,
    /// Cycles of registers in use, over all registers.
    pub busy: u64,
}

snapshot::snapshot!(Mshrs { registers, prefetched, idle, busy } keeps { count });

impl Mshrs {
    pub(super) fn new(count: u32) -> Self {
        Self {
            registers: [Register::default(); MAX],
            prefetched: 0,
            count: (count as usize).clamp(1, MAX),
            idle: 0,
            busy: 0,
        }
    }

    /// Returns the register for a miss at `cycle`, and the cycle in which it can take it: one that is free, or was so
    /// for long enough (requests come in program order, not in order of time), or else the first to become free.
    pub(super) fn choose(&self, cycle: u64) -> (usize, u64) {
        let registers = &self.registers[..self.count];
        if let Some(i) = registers.iter().position(|r| r.free <= cycle) {
            return (i, cycle);
        }
        if let Some(i) = registers.iter().position(|r| r.gap <= cycle && cycle + GAP <= r.start) {
            return (i, cycle);
        }
        let first = (0..self.count).min_by_key(|&i| registers[i].free).unwrap_or(0);
        (first, registers[first].free)
    }

    /// Marks a register taken.
    pub(super) fn take(&mut self, index: usize, line: u64, start: u64, free: u64) {
        let register = &mut self.registers[index];
        self.idle = self.idle.max(free);
        self.busy += free.saturating_sub(start);
        if start < register.start {
            register.gap = free;
            return;
        }
        *register = Register { line, gap: register.free, start, free };
        self.prefetched &= !(1 << index);
    }

    /// Marks the line of a register as prefetched.
    pub(super) fn keep(&mut self, index: usize, line: u64) {
        if self.registers[index].line == line {
            self.prefetched |= 1 << index;
        }
    }

    /// Returns the register that holds `line` as a prefetch, and from when.
    pub(super) fn prefetched(&self, line: u64) -> Option<(usize, u64)> {
        let held = |i: &usize| self.registers[i % MAX].line == line;
        bits(self.prefetched).find(held).map(|i| (i, self.registers[i % MAX].free))
    }

    /// Forgets a prefetched line that is taken away.
    pub(super) fn forget(&mut self, line: u64) {
        if let Some((register, _)) = self.prefetched(line) {
            self.prefetched &= !(1 << register);
        }
    }

    /// Frees all registers; prefetched lines stay.
    pub(super) fn settle(&mut self) {
        for register in &mut self.registers {
            *register = Register { line: register.line, ..Register::default() };
        }
        self.idle = 0;
    }

    /// Returns the cycle from which no register is busy.
    pub(super) fn idle(&self) -> u64 {
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_one_else_the_earliest() {
        let mut mshrs = Mshrs::new(2);
        assert_eq!(mshrs.choose(10), (0, 10));
        mshrs.take(0, 1, 10, 100);
        assert_eq!(mshrs.choose(11), (1, 11));
        mshrs.take(1, 2, 11, 60);
        assert_eq!(mshrs.choose(12), (1, 60));
        assert_eq!(mshrs.choose(70), (1, 70));
        assert_eq!(mshrs.idle(), 100);
    }

    #[test]
    fn a_register_was_free_before_its_line() {
        let mut mshrs = Mshrs::new(1);
        mshrs.take(0, 1, 500, 600);
        assert_eq!(mshrs.choose(400), (0, 400));
        mshrs.take(0, 2, 400, 480);
        assert_eq!(mshrs.choose(410), (0, 600), "the gap is used up");
    }
}
