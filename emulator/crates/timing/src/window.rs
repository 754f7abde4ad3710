//! The window of instructions in flight: what dispatch takes and commit gives back.

use crate::Preset;
use crate::facts::{Fact, ring};
use crate::front::Decoded;
use crate::ring::{MAX, Ring};
use crate::stats::{Stalls, Stats};
use crate::wheel::Wheel;

/// Commit to the reuse of a register that it freed: the free list, and the pre-selected register.
const FREE_LIST: u64 = 2;

/// ROB, registers, queues.
pub(crate) struct Window {
    /// By ROB row: the cycle from which it is free.
    rows: [u64; MAX],
    row: u32,
    row_count: u32,
    /// A register file can run out before the ROB is full.
    scarce: bool,
    files: [Ring; 2],
    pub loads: Ring,
    pub stores: Ring,
    pub wheel: Wheel,
    /// Cycle in which the last instruction was dispatched, or before which none is.
    pub dispatched: u64,
    /// Cycle in which the last instruction committed or trapped (or the hart woke up).
    pub committed: u64,
    /// The last instruction redirected the front end: an empty ROB is its doing.
    pub flushed: bool,
    /// Rows that are behind a blocked head at most: the ROB's, or as many as fill the integer issue queue
    /// if every other instruction waits in it.
    pub rows_behind: u64,
}

impl Window {
    pub fn new(preset: &Preset) -> Self {
        let rows = preset.rob.entries / preset.decode.width;
        let renamed = [preset.rename.int_regs - 32, preset.rename.fp_regs - 32];
        let issue = &preset.issue;
        Self {
            rows: [0; MAX],
            row: 0,
            row_count: rows,
            scarce: renamed.iter().any(|&n| n < preset.rob.entries),
            files: renamed.map(Ring::new),
            // One entry of each queue stays empty (`lsu/lsu.scala:300`).
            loads: Ring::new(preset.lsu.loads - 1),
            stores: Ring::new(preset.lsu.stores - 1),
            wheel: Wheel::new([
                issue.mem_entries,
                issue.int_entries,
                issue.fp_entries,
                preset.rename.branches,
            ]),
            dispatched: 0,
            committed: 0,
            flushed: false,
            rows_behind: u64::from(rows.min(2 * issue.int_entries / preset.decode.width)),
        }
    }

    /// The cycle in which an instruction is dispatched; the ROB holds it from the next one on.
    #[inline(always)]
    pub fn dispatch(
        &mut self,
        fact: &Fact,
        decoded: &Decoded,
        entry: u64,
        stalls: &mut Stalls,
    ) -> u64 {
        let want = (decoded.cycle + 1).max(self.dispatched);
        let row = self.next_row(decoded);
        let register = match self.scarce {
            false => 0,
            true => match fact.file {
                ring::INT => self.files[0].available(),
                ring::FP => self.files[1].available(),
                _ => 0,
            },
        };
        let free = want.max(row).max(register).max(entry);
        let cycle = self.wheel.room(free, decoded.slot, fact.stops);
        self.wheel.take(fact.lanes);
        self.dispatched = cycle;
        if cycle != want {
            stalls.note(want, [row, register, entry], cycle, fact.queue);
        }
        cycle
    }

    /// The cycle from which the instruction's ROB row is free: it may start one.
    #[inline(always)]
    fn next_row(&mut self, decoded: &Decoded) -> u64 {
        let new = u32::from(decoded.new_row);
        let row = self.row + new;
        self.row = if row == self.row_count { 0 } else { row };
        self.rows[self.row as usize % MAX] & u64::from(new).wrapping_neg()
    }

    /// The cycle in which an instruction that is `done` commits: rows one a cycle, in order.
    #[inline(always)]
    pub fn commit(&mut self, done: u64, fact: &Fact, decoded: &Decoded, stats: &mut Stats) -> u64 {
        let cycle = done.max(self.committed + u64::from(decoded.new_row));
        if cycle > self.committed + 1 {
            self.account(cycle, stats);
        }
        self.committed = cycle;
        self.flushed = false;
        self.rows[self.row as usize % MAX] = cycle + 1;
        if self.scarce {
            match fact.file {
                ring::INT => self.files[0].take(cycle + FREE_LIST),
                ring::FP => self.files[1].take(cycle + FREE_LIST),
                _ => {}
            }
        }
        cycle
    }

    /// Splits the cycles without a commit between an empty and a waiting ROB.
    #[inline(always)]
    fn account(&self, cycle: u64, stats: &mut Stats) {
        let next = self.committed + 1;
        let enters = (self.dispatched + 1).clamp(next, cycle);
        let empty = enters - next;
        if self.flushed {
            stats.cycles_flushed += empty;
        } else {
            stats.cycles_drained += empty;
        }
        stats.cycles_stalled += cycle - enters;
    }

    /// Gives back the queue entry of an instruction that leaves without committing.
    pub fn leave_queue(&mut self, queue: u8) {
        match queue {
            ring::LOAD => self.loads.take(0),
            ring::STORE => self.stores.take(0),
            _ => {}
        }
    }

    /// A trap at the ROB's head, strictly after the commit before; nothing is dispatched until the rollback
    /// is over, `refill` cycles later.
    pub fn trap(&mut self, ready: u64, refill: u64, stats: &mut Stats) -> u64 {
        let cycle = ready.max(self.committed + 1);
        self.account(cycle, stats);
        self.committed = cycle;
        self.flushed = true;
        self.rows[self.row as usize % MAX] = cycle + 1;
        self.dispatched = cycle + refill - 1;
        cycle
    }

    /// Dispatches an instruction into the empty ROB.
    pub fn dispatch_alone(&mut self, cycle: u64, decoded: &Decoded) {
        self.next_row(decoded);
        self.dispatched = cycle;
    }

    /// First cycle in which an instruction that needs an empty ROB can be dispatched.
    #[inline(always)]
    pub fn empty(&self) -> u64 {
        self.committed + 1
    }
}
