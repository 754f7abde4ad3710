//! The window of instructions in flight: what dispatch takes and commit gives back.

use commit_trace::{CommitRecord, CycleClass};

use crate::Preset;
use crate::micro_op::{MicroOp, ring};
use crate::ring::{MAX, Ring};
use crate::schedule::Schedule;
use crate::stats::{Stalls, Stats};

/// Cycles from a commit to the reuse of a register that it freed: the free list, and the pre-selected register.
pub(crate) const FREE_LIST: u64 = 2;

/// Why the front end was redirected by an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Restart {
    /// The instruction was mispredicted.
    #[default]
    Mispredict,
    /// The instruction flushed at commit.
    Flush,
    /// The instruction was a load whose order failed.
    Order,
    /// The instruction trapped.
    Trap,
}

snapshot::snapshot_enum!(Restart: Mispredict, Flush, Order, Trap);

impl Restart {
    /// Returns true if the instruction left without committing.
    pub(crate) fn is_trap(self) -> bool {
        matches!(self, Self::Order | Self::Trap)
    }
}

/// Physical registers beyond those that hold architectural state, by the cycle from which each is free.
struct RegisterFiles {
    integer: Ring,
    fp: Ring,
}

snapshot::snapshot!(RegisterFiles { integer, fp });

/// The window of instructions in flight: ROB, registers, queues.
pub(crate) struct Window {
    /// By ROB row: the cycle from which it is free.
    rows: [u64; MAX],
    row: u32,
    row_count: u32,
    /// True if a register file can run out of registers before the ROB is full.
    scarce: bool,
    files: Box<RegisterFiles>,
    pub loads: Ring,
    pub stores: Ring,
    pub schedule: Schedule,
    /// Cycle in which the last instruction was dispatched, or before which none is.
    pub dispatched: u64,
    /// Cycles from the decode of the current row to the one from which on the ROB holds the last instruction dispatched, packed as in a commit
    /// record.
    pub lead: u32,
    /// Cycle in which this row was decoded.
    decoded: u64,
    /// Cycle in which the last instruction committed or trapped (or the hart woke up).
    pub committed: u64,
    /// State of the last redirect of the front end: 2 until the next row starts, 1 during that row, then 0. Cycles in which the ROB is empty are due
    /// to the redirect unless this is 0.
    flushed: u8,
    /// Why the front end was redirected last.
    restart: Restart,
    /// Most rows behind a blocked ROB head: all rows of the ROB, or as many as fill the integer issue queue if every other instruction waits in it.
    pub rows_behind: u64,
}

snapshot::snapshot!(Window {
    rows, row, files, loads, stores, schedule, dispatched, lead, decoded, committed, flushed,
    restart
} keeps {
    row_count, scarce, rows_behind
});

impl Window {
    pub(crate) fn new(preset: &Preset) -> Self {
        let rows = preset.rob.entries / preset.decode.width;
        let [renamed_integer, renamed_fp] = preset.renamed_registers();
        let issue = &preset.issue;
        Self {
            rows: [0; MAX],
            row: 0,
            row_count: rows,
            scarce: preset.registers_are_scarce(),
            files: Box::new(RegisterFiles {
                integer: Ring::new(renamed_integer),
                fp: Ring::new(renamed_fp),
            }),
            // One entry of each queue stays empty (`lsu/lsu.scala:300`).
            loads: Ring::new(preset.lsu.loads - 1),
            stores: Ring::new(preset.lsu.stores - 1),
            schedule: Schedule::new([
                issue.mem_entries,
                issue.int_entries,
                issue.fp_entries,
                preset.rename.branches,
            ]),
            dispatched: 0,
            lead: 0,
            decoded: 0,
            committed: 0,
            flushed: 0,
            restart: Restart::default(),
            rows_behind: u64::from(rows.min(2 * issue.int_entries / preset.decode.width)),
        }
    }

    /// Gives the next ROB row, as soon as that is free, to a group that was decoded in cycle `decoded`.
    #[inline(always)]
    pub(crate) fn new_row(&mut self, decoded: u64, stalls: &mut Stalls) {
        self.rows[self.row as usize % MAX] = self.committed + 1;
        let next = self.row + 1;
        self.row = if next == self.row_count { 0 } else { next };
        let want = (decoded + 1).max(self.dispatched);
        let free = self.rows[self.row as usize % MAX];
        stalls.rob += free.saturating_sub(want);
        self.decoded = decoded;
        self.dispatch_in(want.max(free));
        self.flushed >>= 1;
        self.schedule.pass(self.dispatched);
    }

    /// Returns the cycle in which an instruction of the current row is dispatched; the ROB holds it from the next one
    /// on. `after_slot`: see [`Schedule::full`]. `entry`: cycle from which its queue entry is free.
    #[inline(always)]
    pub(crate) fn dispatch(
        &mut self,
        micro_op: &MicroOp,
        after_slot: u32,
        entry: u64,
        stalls: &mut Stalls,
    ) -> u64 {
        if self.schedule.full(after_slot, micro_op.stops) | (entry > self.dispatched) {
            let MicroOp { file, queue, stops, .. } = *micro_op;
            self.stall(file, queue, stops, after_slot, entry, stalls);
        }
        self.schedule.take(micro_op.lanes);
        self.dispatched
    }

    /// Dispatches the slow way: waits, if it must, for a register, a queue entry, issue-queue slots and tags.
    #[inline(never)]
    fn stall(
        &mut self,
        file: u8,
        queue: u8,
        stops: u64,
        after_slot: u32,
        entry: u64,
        stalls: &mut Stalls,
    ) {
        let want = self.dispatched;
        let register = match file {
            ring::INT if self.scarce => self.files.integer.available(),
            ring::FP if self.scarce => self.files.fp.available(),
            _ => 0,
        };
        let free = want.max(register).max(entry);
        let waits = &mut stalls.by_lane;
        let cycle = self.schedule.room(free, after_slot, stops, waits);
        stalls.issue_queue += cycle - free;
        let reason = match (register < entry, queue) {
            (false, _) => &mut stalls.registers,
            (true, ring::LOAD) => &mut stalls.load_queue,
            (true, _) => &mut stalls.store_queue,
        };
        *reason += free - want;
        if register >= entry && file == ring::FP {
            stalls.fp_registers += free - want;
        }
        self.dispatch_in(cycle);
    }

    /// Has the instructions that come now be dispatched in `cycle`.
    #[inline(always)]
    pub(crate) fn dispatch_in(&mut self, cycle: u64) {
        self.dispatched = cycle;
        self.lead = CommitRecord::lead_of(cycle + 1 - self.decoded);
    }

    /// Commits an instruction that can commit from cycle `done` on; returns the cycle in which it does. Rows commit in order, one in a cycle.
    /// `class`: what the instruction waits for.
    #[inline(always)]
    pub(crate) fn commit(
        &mut self,
        done: u64,
        class: CycleClass,
        micro_op: &MicroOp,
        new_row: bool,
        stats: &mut Stats,
    ) -> u64 {
        let cycle = done.max(self.committed + u64::from(new_row));
        if cycle > self.committed + 1 {
            self.account(cycle, class, stats);
        }
        self.committed = cycle;
        if self.scarce {
            match micro_op.file {
                ring::INT => self.files.integer.take(cycle + FREE_LIST),
                ring::FP => self.files.fp.take(cycle + FREE_LIST),
                _ => {}
            }
        }
        cycle
    }

    /// Splits the cycles without a commit between an empty and a waiting ROB.
    #[inline(always)]
    fn account(&self, cycle: u64, class: CycleClass, stats: &mut Stats) {
        let next = self.committed + 1;
        let enters = (self.dispatched + 1).clamp(next, cycle);
        let empty = enters - next;
        if self.flushed != 0 {
            stats.cycles_flushed += empty;
        } else {
            stats.cycles_drained += empty;
        }
        stats.stalled[class as usize] += cycle - enters;
    }

    /// Gives back the queue entry of an instruction that leaves without committing.
    pub(crate) fn leave_queue(&mut self, queue: u8) {
        match queue {
            ring::LOAD => self.loads.take(0),
            ring::STORE => self.stores.take(0),
            _ => {}
        }
    }

    /// Traps at the ROB's head, strictly after the commit before, and returns the cycle; nothing is dispatched until
    /// the rollback is over, `refill` cycles later.
    pub(crate) fn trap(
        &mut self,
        ready: u64,
        class: CycleClass,
        refill: u64,
        restart: Restart,
        stats: &mut Stats,
    ) -> u64 {
        let cycle = ready.max(self.committed + 1);
        self.account(cycle, class, stats);
        self.committed = cycle;
        self.redirected(restart);
        self.dispatched = cycle + refill - 1;
        cycle
    }

    /// Notes that the last instruction redirected the front end.
    #[inline(always)]
    pub(crate) fn redirected(&mut self, restart: Restart) {
        self.flushed = 2;
        self.restart = restart;
    }

    /// Returns why the last instruction redirected the front end, if it did; `None` once a row has started since.
    pub(crate) fn restart(&self) -> Option<Restart> {
        (self.flushed == 2).then_some(self.restart)
    }

    /// Returns true if the last instruction of the row before this one redirected the front end.
    #[inline(always)]
    pub(crate) fn restarted(&self) -> bool {
        self.flushed == 1
    }

    /// Returns why the last instruction of the row before this one redirected the front end, if it did.
    pub(crate) fn restarted_by(&self) -> Option<Restart> {
        self.restarted().then_some(self.restart)
    }

    /// Returns the cycle in which the last instruction of an earlier row left the ROB. `before`: number of rows between that row and the current
    /// one, fewer than the ROB has. No instruction has left the current row yet.
    pub(crate) fn left(&self, before: u32) -> u64 {
        let age = before + 1;
        let row = match self.row.checked_sub(age) {
            Some(row) => row,
            None => self.row + self.row_count - age,
        };
        self.rows[row as usize % MAX].saturating_sub(1)
    }

    /// Returns how many rows before the current one hold an instruction in `cycle`: those that their last one leaves
    /// then or later.
    #[inline(always)]
    pub(crate) fn rows_inside(&self, cycle: u64) -> u32 {
        // Rows are left in order, one a cycle, the last one in the cycle of the last commit.
        let most = (self.committed + 1).saturating_sub(cycle);
        let (mut inside, mut end) = (0, u64::from(self.row_count).min(most) as u32);
        while inside < end {
            let middle = (inside + end) / 2;
            match self.left(middle) < cycle {
                true => end = middle,
                false => inside = middle + 1,
            }
        }
        inside
    }

    /// Returns the first cycle in which an instruction that needs an empty ROB can be dispatched.
    #[inline(always)]
    pub(crate) fn empty(&self) -> u64 {
        self.committed + 1
    }
}
