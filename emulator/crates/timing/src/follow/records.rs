//! What is counted of the records of instructions that leave the ROB, a batch at a time.

use commit_trace::{CommitRecord, Redirect, TeaEvents};
use isa::{Condition, PerfEvent, Selection};

use super::at_commit::{CommitWatch, flushed_at};
use super::occupancy::OccupancyWatch;
use super::watch::Watch;
use crate::micro_op::{Kind, MicroOp};

/// Number of TEA's events.
const TEA: usize = TeaEvents::BITS as usize;

/// Returns TEA's event that an event counts, if it counts one.
fn tea_of(event: PerfEvent) -> Option<TeaEvents> {
    use PerfEvent as E;
    Some(match event {
        E::RetiredIcacheMiss => TeaEvents::DR_L1,
        E::RetiredItlbMiss => TeaEvents::DR_TLB,
        E::RetiredStoreQueueFull => TeaEvents::DR_SQ,
        E::RetiredL1dMiss => TeaEvents::ST_L1,
        E::RetiredDtlbMiss => TeaEvents::ST_TLB,
        E::RetiredLlcMiss => TeaEvents::ST_LLC,
        _ => return None,
    })
}

/// Returns true if a [`Follower`] counts the event.
pub(super) fn is_counted(event: PerfEvent) -> bool {
    let occupancy = matches!(event, PerfEvent::RobOccupancy | PerfEvent::LoadQueueOccupancy);
    occupancy || tea_of(event).is_some()
}

/// Follows the commits of a core.
#[derive(Default)]
pub(crate) struct Follower {
    /// Somebody asks for TEA's events.
    asked_tea: bool,
    /// Somebody asks for the occupancy of the ROB.
    asked_rob: bool,
    /// Somebody asks for the occupancy of the load queue.
    asked_loads: bool,
    /// Instructions that retired with each of TEA's events.
    events: [u64; TEA],
    /// Cycles that instructions were in the ROB, over all instructions.
    rob_occupancy: u64,
    /// Cycles that loads were in the load queue, over all loads.
    load_queue_occupancy: u64,
    /// Cycle of the last commit.
    cycle: u64,
    /// Value of `flushed` in [`crate::window::Window`] at the last commit; known while there are conditions.
    flushed: u8,
    at_commit: Vec<CommitWatch>,
    occupancies: Vec<OccupancyWatch>,
}

snapshot::snapshot!(Follower {
    asked_tea,
    asked_rob,
    asked_loads,
    events,
    rob_occupancy,
    load_queue_occupancy,
    cycle,
    flushed,
    at_commit,
    occupancies
});

impl Follower {
    /// Returns a follower of a core whose last commit was in cycle `committed`.
    pub(crate) fn new(committed: u64) -> Self {
        Self { cycle: committed, ..Self::default() }
    }

    /// Counts `events` from now on, and no others; or all.
    pub(crate) fn ask_for(&mut self, all: bool, events: impl Iterator<Item = PerfEvent>) {
        self.asked_tea = all;
        self.asked_rob = all;
        self.asked_loads = all;
        for event in events {
            self.asked_tea |= tea_of(event).is_some();
            self.asked_rob |= event == PerfEvent::RobOccupancy;
            self.asked_loads |= event == PerfEvent::LoadQueueOccupancy;
        }
    }

    /// Returns the running total of an event; `None` if it is not counted here.
    pub(crate) fn count(&self, event: PerfEvent) -> Option<u64> {
        match event {
            PerfEvent::RobOccupancy => Some(self.rob_occupancy),
            PerfEvent::LoadQueueOccupancy => Some(self.load_queue_occupancy),
            _ => {
                let bit = tea_of(event)?.0.trailing_zeros();
                self.events.get(bit as usize).copied()
            }
        }
    }

    /// Returns the cycles in which a counter's condition held.
    pub(crate) fn watched(&self, counter: usize) -> Option<u64> {
        let commit = self.at_commit.iter().map(|w| (w.counter, &w.watch));
        let occupancy = self.occupancies.iter().map(|w| (w.counter, &w.watch));
        commit.chain(occupancy).find(|&(of, _)| of == counter).map(|(_, watch)| watch.total)
    }

    /// Counts no condition for a counter any more.
    pub(crate) fn forget(&mut self, counter: usize) {
        self.at_commit.retain(|w| w.counter != counter);
        self.occupancies.retain(|w| w.counter != counter);
    }

    /// Counts cycles for a counter by a condition.
    pub(crate) fn watch(&mut self, counter: usize, selection: Selection, condition: Condition) {
        if let Some(queues) = OccupancyWatch::of(counter, selection, condition, self.cycle) {
            self.occupancies.push(queues);
        } else {
            let watch = Watch::new(condition, self.cycle + 1);
            self.at_commit.push(CommitWatch::new(counter, selection, watch));
        }
    }

    /// Counts instructions that left the ROB: the cycles of `records` count from `cycle`, and the last one left in
    /// cycle `last`.
    pub(crate) fn take(
        &mut self,
        (cycle, last): (u64, u64),
        records: &[CommitRecord],
        micro_ops: &[MicroOp],
    ) {
        if self.asked_tea {
            self.take_events(records);
        }
        let residence = |record: &CommitRecord| u64::from(record.residence()) + 1;
        if self.asked_rob {
            self.rob_occupancy += records.iter().map(residence).sum::<u64>();
        }
        let micro_op = |record: &CommitRecord| {
            let micro_op = micro_ops.get(record.inst.0 as usize);
            micro_op.unwrap_or(&MicroOp::UNKNOWN)
        };
        let is_load = |record: &CommitRecord| micro_op(record).kind == Kind::Load;
        if self.asked_loads {
            let loads = records.iter().filter(|record| is_load(record));
            self.load_queue_occupancy += loads.map(residence).sum::<u64>();
        }
        for watch in &mut self.occupancies {
            let mut commit = cycle;
            for record in records {
                commit += u64::from(record.commit_delta);
                watch.enter(record.dispatch(commit), commit, is_load(record));
            }
        }
        for watch in &mut self.at_commit {
            watch.take_all((cycle, self.flushed), records, micro_op);
        }
        if let Some(last) = records.last()
            && !self.at_commit.is_empty()
        {
            self.flushed = match last.redirect() {
                Redirect::None => flushed_at(records, self.flushed),
                _ => 2,
            };
        }
        self.cycle = last;
    }

    fn take_events(&mut self, records: &[CommitRecord]) {
        let counted = TeaEvents::DR_L1
            | TeaEvents::DR_TLB
            | TeaEvents::DR_SQ
            | TeaEvents::ST_L1
            | TeaEvents::ST_TLB
            | TeaEvents::ST_LLC;
        for record in records {
            let mut tea = record.tea().0 & counted.0;
            if tea == 0 || record.is_trap() {
                continue;
            }
            while tea != 0 {
                self.events[tea.trailing_zeros() as usize % TEA] += 1;
                tea &= tea - 1;
            }
        }
    }

    /// Closes the cycles up to that of the last commit, in which nothing more occurs.
    pub(crate) fn close_cycles(&mut self, committed: u64) {
        for watch in &mut self.occupancies {
            watch.close(committed + 1);
        }
        for CommitWatch { watch, .. } in &mut self.at_commit {
            watch.close(committed + 1);
        }
    }

    /// Leaves out the cycles from after `from` to `to`, in which the core sleeps.
    pub(crate) fn sleep(&mut self, from: u64, to: u64) {
        for watch in &mut self.occupancies {
            watch.sleep(from, to);
        }
        for CommitWatch { watch, .. } in &mut self.at_commit {
            watch.close(from + 1);
            watch.skip(to + 1);
        }
        self.cycle = to;
    }
}
