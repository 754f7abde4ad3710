//! The window of instructions in flight: what dispatch takes and commit gives back.

use crate::Preset;
use crate::facts::{Fact, ring};
use crate::front::Decoded;
use crate::ring::Ring;
use crate::stats::{Stalls, Stats};
use crate::wheel::Wheel;

/// Commit to the reuse of a register that it freed: the free list, and the pre-selected register.
const FREE_LIST: u64 = 2;

/// ROB, registers, queues.
pub(crate) struct Window {
    rob: Ring,
    files: [Ring; 3],
    queues: [Ring; 3],
    pub wheel: Wheel,
    /// Cycle in which the last instruction was dispatched.
    pub dispatched: u64,
    /// Cycle in which the last instruction committed or trapped (or the hart woke up).
    pub committed: u64,
    /// Nothing is dispatched before: a rollback is going on.
    pub floor: u64,
    /// The last instruction redirected the front end: an empty ROB is its doing.
    pub flushed: bool,
    /// The instruction dispatched last was held up by a full store queue.
    pub store_queue_full: bool,
    /// Rows that are behind a blocked head at most: the ROB's, or as many as fill the integer issue queue
    /// if every other instruction waits in it.
    pub rows: u64,
}

impl Window {
    pub fn new(preset: &Preset) -> Self {
        let rows = preset.rob.entries / preset.decode.width;
        let file = |registers: u32| Ring::new(registers - 32);
        // One entry of each queue stays empty (`lsu/lsu.scala:300`).
        let queue = |entries: u32| Ring::new(entries - 1);
        let issue = &preset.issue;
        Self {
            rob: Ring::new(rows),
            files: [Ring::unlimited(), file(preset.rename.int_regs), file(preset.rename.fp_regs)],
            queues: [Ring::unlimited(), queue(preset.lsu.loads), queue(preset.lsu.stores)],
            wheel: Wheel::new([
                issue.mem_entries,
                issue.int_entries,
                issue.fp_entries,
                preset.rename.branches,
            ]),
            dispatched: 0,
            committed: 0,
            floor: 0,
            flushed: false,
            store_queue_full: false,
            rows: u64::from(rows.min(2 * issue.int_entries / preset.decode.width)),
        }
    }

    /// The cycle in which an instruction is dispatched; the ROB holds it from the next one on.
    #[inline(always)]
    pub fn dispatch(&mut self, fact: &Fact, decoded: &Decoded, stalls: &mut Stalls) -> u64 {
        let want = (decoded.cycle + 1).max(self.dispatched);
        let row = if decoded.new_row { self.rob.available() } else { 0 };
        let register = self.files[usize::from(fact.file) % 3].available();
        let entry = self.queues[usize::from(fact.queue) % 3].available();
        let free = want.max(row).max(register).max(entry).max(self.floor);
        let cycle = self.wheel.room(free, decoded.slot, fact.stops);
        self.wheel.take(fact.lanes);
        self.dispatched = cycle;
        self.store_queue_full = fact.queue == ring::STORE && entry > want;
        if cycle != want {
            stalls.note(want, [row, register, entry, self.floor], cycle, fact.queue);
        }
        if decoded.new_row {
            self.rob.take(u64::MAX);
        }
        cycle
    }

    /// The cycle in which an instruction that is `done` commits: rows one a cycle, in order.
    #[inline(always)]
    pub fn commit(&mut self, done: u64, fact: &Fact, decoded: &Decoded, stats: &mut Stats) -> u64 {
        let cycle = done.max(self.committed + u64::from(decoded.new_row));
        if cycle > self.committed {
            self.account(cycle, stats);
        }
        self.committed = cycle;
        self.flushed = false;
        self.rob.extend(cycle + 1);
        self.files[usize::from(fact.file) % 3].take(cycle + FREE_LIST);
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

    /// Gives back a queue entry: a load's at commit, a store's when it has been written.
    #[inline(always)]
    pub fn leave_queue(&mut self, queue: u8, cycle: u64) {
        self.queues[usize::from(queue) % 3].take(cycle);
    }

    /// A trap at the ROB's head: strictly after the commit before.
    pub fn trap(&mut self, ready: u64, stats: &mut Stats) -> u64 {
        let cycle = ready.max(self.committed + 1);
        self.account(cycle, stats);
        self.committed = cycle;
        self.flushed = true;
        self.rob.extend(cycle + 1);
        cycle
    }

    /// Dispatches an instruction into the empty ROB.
    pub fn dispatch_alone(&mut self, cycle: u64, decoded: &Decoded) {
        self.dispatched = cycle;
        if decoded.new_row {
            self.rob.take(u64::MAX);
        }
    }

    /// First cycle in which an instruction that needs an empty ROB can be dispatched.
    #[inline(always)]
    pub fn empty(&self) -> u64 {
        self.committed + 1
    }
}
