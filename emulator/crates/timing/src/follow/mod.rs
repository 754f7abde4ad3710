//! What is counted by following what commits: events that need the cycles of every instruction, and cycles by condition.
//! Only while a counter or the host asks for it: it costs time with every instruction.

mod at_commit;
mod occupancy;
mod slots;
mod watch;

use commit_trace::{CommitRecord, CycleClass, Redirect, TeaEvents};
use isa::{Condition, InstClass, PerfEvent, Selection};

use crate::micro_op::{Kind, MicroOp, jump};
use at_commit::{CommitWatch, class_of};
use occupancy::OccupancyWatch;
use slots::{DecodeWatch, Slots, Weights};
use watch::Watch;

/// Programmable counters of a hart.
const COUNTERS: usize = 29;
const CLASSES: usize = CycleClass::ALL.len();
/// TEA's events.
const TEA: usize = 9;

/// What the counters are set to, and who follows for them.
#[derive(Default)]
pub(crate) struct Selections {
    selections: [Selection; COUNTERS],
    /// The host asks for all totals.
    always: bool,
    /// Somebody asks for what issues.
    pub issues: bool,
    pub follower: Option<Box<Follower>>,
}

snapshot::snapshot!(Selections {
    selections,
    always,
    issues,
    follower
});

impl Selections {
    /// Follows from now on, whatever the counters are set to.
    pub fn always(&mut self, follower: Follower) {
        self.always = true;
        self.issues = true;
        self.follower.get_or_insert_with(|| Box::new(follower));
    }

    /// Sets a counter. `start` makes a follower of what comes from here.
    pub fn select(
        &mut self,
        counter: usize,
        selection: Selection,
        start: impl FnOnce() -> Follower,
    ) {
        let Some(place) = self.selections.get_mut(counter) else {
            return;
        };
        *place = selection;
        let issues = |s: &Selection| s.events().any(PerfEvent::is_of_issue);
        self.issues = self.always || self.selections.iter().any(issues);
        if !self.always && !self.selections.iter().any(|s| s.is_followed()) {
            self.follower = None;
            return;
        }
        let follower = self.follower.get_or_insert_with(|| Box::new(start()));
        follower.forget(counter);
        if let Some(condition) = selection.condition() {
            follower.watch(counter, selection, condition);
        }
    }

    /// Total of what a counter is set to; `count` gives that of an event.
    pub fn count(&self, counter: usize, count: impl Fn(PerfEvent) -> u64) -> u64 {
        let Some(selection) = self.selections.get(counter) else {
            return 0;
        };
        match (selection.condition(), &self.follower) {
            (Some(_), Some(follower)) => follower.watched(counter),
            (Some(_), None) => 0,
            (None, _) => selection.events().map(count).fold(0, u64::wrapping_add),
        }
    }
}

/// Follows the commits of a core.
#[derive(Default)]
pub(crate) struct Follower {
    slots: Slots,
    /// Instructions that retired, by class,
    classes: [u64; InstClass::COUNT],
    /// and jumps by kind: how many, and how many were mispredicted.
    jumps: [[u64; 2]; jump::COUNT],
    stalled: [u64; CLASSES],
    /// Instructions that retired with each of TEA's events,
    events: [u64; TEA],
    /// and loads by who answered.
    loads: [u64; CLASSES],
    rob_occupancy: u64,
    load_queue_occupancy: u64,
    /// Cycle of the last commit.
    cycle: u64,
    /// As in [`crate::window::Window`].
    flushed: u8,
    at_commit: Vec<CommitWatch>,
    at_decode: Vec<DecodeWatch>,
    occupancies: Vec<OccupancyWatch>,
}

snapshot::snapshot!(Follower {
    slots,
    classes,
    jumps,
    stalled,
    events,
    loads,
    rob_occupancy,
    load_queue_occupancy,
    cycle,
    flushed,
    at_commit,
    at_decode,
    occupancies
});

impl Follower {
    /// Follows a core so wide and with so many rows in its ROB, which has committed and decoded in these cycles.
    pub fn new(width: u32, rows: u32, committed: u64, decoded: u64) -> Self {
        Self {
            slots: Slots::new(width, rows, decoded),
            cycle: committed,
            ..Self::default()
        }
    }

    /// Running total of an event; `None` if it is not followed.
    pub fn count(&self, event: PerfEvent) -> Option<u64> {
        use {CycleClass as C, PerfEvent as E};
        let stalled = |class: C| self.stalled[class as usize];
        let events = |events: TeaEvents| self.events[events.0.trailing_zeros() as usize % TEA];
        let loads = |class: C| self.loads[class as usize];
        let jumps = |kind: u8| self.jumps[usize::from(kind)];
        if let Some(class) = class_of(event) {
            return Some(self.classes[class as usize]);
        }
        Some(match event {
            E::DirectJumps => jumps(jump::DIRECT)[0],
            E::DirectCalls => jumps(jump::DIRECT_CALL)[0],
            E::IndirectJumps => jumps(jump::INDIRECT)[0],
            E::IndirectCalls => jumps(jump::INDIRECT_CALL)[0],
            E::Returns => jumps(jump::RETURN)[0],
            E::IndirectMisses => jumps(jump::INDIRECT)[1],
            E::IndirectCallMisses => jumps(jump::INDIRECT_CALL)[1],
            E::ReturnMisses => jumps(jump::RETURN)[1],
            E::StalledAlu => stalled(C::Alu),
            E::StalledL1 => stalled(C::LoadL1),
            E::StalledL2 => stalled(C::LoadL2),
            E::StalledLlc => stalled(C::LoadLlc),
            E::StalledDram => stalled(C::LoadDram),
            E::StalledStore => stalled(C::Store),
            E::StalledDivider => stalled(C::Divider),
            E::StalledSerialize => stalled(C::Serialize),
            E::StalledDevice => stalled(C::Device),
            E::RetiredIcacheMiss => events(TeaEvents::DR_L1),
            E::RetiredItlbMiss => events(TeaEvents::DR_TLB),
            E::RetiredStoreQueueFull => events(TeaEvents::DR_SQ),
            E::RetiredL1dMiss => events(TeaEvents::ST_L1),
            E::RetiredDtlbMiss => events(TeaEvents::ST_TLB),
            E::RetiredLlcMiss => events(TeaEvents::ST_LLC),
            E::RetiredLoadL1 => loads(C::LoadL1) + loads(C::Store),
            E::RetiredLoadL2 => loads(C::LoadL2),
            E::RetiredLoadLlc => loads(C::LoadLlc),
            E::RetiredLoadDram => loads(C::LoadDram),
            E::RetiredLoadDevice => loads(C::Device),
            E::RobOccupancy => self.rob_occupancy,
            E::LoadQueueOccupancy => self.load_queue_occupancy,
            _ => return self.slots.count(event),
        })
    }

    /// Cycles that a counter's condition holds.
    fn watched(&self, counter: usize) -> u64 {
        let commit = self.at_commit.iter().map(|w| (w.counter, &w.watch));
        let decode = self.at_decode.iter().map(|w| (w.counter, &w.watch));
        let occupancy = self.occupancies.iter().map(|w| (w.counter, &w.watch));
        let mut all = commit.chain(decode).chain(occupancy);
        all.find(|&(of, _)| of == counter)
            .map_or(0, |(_, watch)| watch.total)
    }

    fn forget(&mut self, counter: usize) {
        self.at_commit.retain(|w| w.counter != counter);
        self.at_decode.retain(|w| w.counter != counter);
        self.occupancies.retain(|w| w.counter != counter);
    }

    fn watch(&mut self, counter: usize, selection: Selection, condition: Condition) {
        if let Some(weights) = Weights::of(selection.events()) {
            self.at_decode.push(DecodeWatch {
                counter,
                weights,
                watch: Watch::new(condition, self.slots.decoded_in() + 1),
            });
        } else if let Some(queues) = OccupancyWatch::of(counter, selection, condition, self.cycle) {
            self.occupancies.push(queues);
        } else {
            let watch = Watch::new(condition, self.cycle + 1);
            self.at_commit
                .push(CommitWatch::new(counter, selection, watch));
        }
    }

    /// Instructions left the ROB, the first of them so many cycles after `cycle`.
    pub fn take(&mut self, cycle: u64, records: &[CommitRecord], micro_ops: &[MicroOp]) {
        let mut commit = cycle;
        for record in records {
            let before = commit;
            commit += u64::from(record.commit_delta);
            let micro_op = micro_ops.get(record.inst.0 as usize);
            self.one(
                record,
                before,
                commit,
                micro_op.unwrap_or(&MicroOp::UNKNOWN),
            );
        }
        for CommitWatch { watch, .. } in &mut self.at_commit {
            watch.close(commit);
        }
        self.cycle = commit;
    }

    /// An instruction that left in cycle `commit`, after one that left in cycle `before`.
    #[inline]
    fn one(&mut self, record: &CommitRecord, before: u64, commit: u64, micro_op: &MicroOp) {
        let entered = record.dispatch(commit);
        if record.first_of_row() {
            self.flushed >>= 1;
        }
        if record.commit_delta != 0 {
            let enters = entered.clamp(before + 1, commit);
            self.stalled[record.class() as usize] += commit - enters;
        }
        let load = micro_op.kind == Kind::Load;
        if !record.is_trap() {
            self.classes[micro_op.class as usize] += 1;
            if micro_op.kind == Kind::Jump {
                let [count, misses] = &mut self.jumps[usize::from(micro_op.jump) % jump::COUNT];
                *count += 1;
                *misses += u64::from(record.redirect() == Redirect::Mispredict);
            }
            self.loads[record.class() as usize] += u64::from(load);
            let mut tea = record.tea().0;
            while tea != 0 {
                self.events[tea.trailing_zeros() as usize % TEA] += 1;
                tea &= tea - 1;
            }
        }
        let cycles = commit + 1 - entered;
        self.rob_occupancy += cycles;
        self.load_queue_occupancy += if load { cycles } else { 0 };
        self.slots.take(record, commit, &mut self.at_decode);
        for watch in &mut self.occupancies {
            watch.enter(entered, commit, load);
        }
        for watch in &mut self.at_commit {
            watch.take(record, before, commit, micro_op, self.flushed != 0);
        }
        if record.redirect() != Redirect::None {
            self.flushed = 2;
        }
    }

    /// The core sleeps from after cycle `from` to `to`.
    pub fn sleep(&mut self, from: u64, to: u64) {
        self.slots.sleep(from, to, &mut self.at_decode);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_to_be_followed_is() {
        let follower = Follower::default();
        for &event in PerfEvent::ALL {
            let counted = follower.count(event).is_some() || event.is_of_issue();
            assert_eq!(counted, event.is_followed(), "{event:?}");
        }
    }
}
