//! Profilers that tag instructions as they enter the ROB.

use commit_trace::{CommitRecord, CycleClass, MAX_COMMIT_WIDTH, Redirect};

use crate::{Outcome, RecordPolicy};

/// Cycles between the redirect of a mispredicted branch and the first dispatch from the right path
/// (BOOM v3: b2 + 6 when the fetch hits). Longer refills only make wrong-path time look shorter.
const REFILL: u64 = 6;

/// Finds the first instruction that is dispatched at or after the trigger.
///
/// Wrong paths are not in the stream, but a tag can land there: where the instruction before the one
/// found redirected the front end after the trigger, what was dispatched at the trigger was squashed
/// with it. That a wrong path dispatches in every cycle until its redirect is an assumption.
#[derive(Clone, Debug, Default)]
struct Tail {
    trigger: u64,
    /// The youngest record that was dispatched before the trigger's cycle; `None` if none has passed since the trigger.
    older: Option<Older>,
}

#[derive(Clone, Debug, Default)]
struct Older {
    commit: u64,
    redirect: Redirect,
    /// True if the instruction is serialising: nothing is dispatched behind it.
    serialising: bool,
}

snapshot::snapshot!(Tail { trigger, older });
snapshot::snapshot!(Older { commit, redirect, serialising });
snapshot::snapshot!(Dispatch { tail });

/// The first instruction of the right path that is dispatched at or after the trigger.
struct Found<'a> {
    record: &'a CommitRecord,
    commit: u64,
    dispatch: u64,
    /// The tag was on a wrong path, or on what trapped, so that its row does not commit either.
    squashed: bool,
    /// The records after this instruction.
    after: &'a [CommitRecord],
}

/// Returns the cycle in which an instruction is dispatched: the ROB holds it from the next cycle on.
fn dispatch_cycle(commit: u64, record: &CommitRecord) -> u64 {
    record.dispatch(commit).saturating_sub(1)
}

impl Tail {
    #[inline]
    fn start(&mut self, trigger: u64) {
        *self = Self { trigger, older: None };
    }

    /// Skips the records that were dispatched before the trigger's cycle, and returns the first one after them.
    #[inline(always)]
    fn find<'a>(&mut self, before: u64, records: &'a [CommitRecord]) -> Option<Found<'a>> {
        let mut commit = before;
        for (at, record) in records.iter().enumerate() {
            let last = commit;
            commit += u64::from(record.commit_delta);
            let dispatch = dispatch_cycle(commit, record);
            if dispatch < self.trigger {
                continue;
            }
            if at > 0 {
                self.set_older(last, &records[at - 1]);
            }
            return Some(Found {
                squashed: self.is_squashed(dispatch) || record.redirect().is_trap(),
                record,
                commit,
                dispatch,
                after: &records[at + 1..],
            });
        }
        if let Some(last) = records.last() {
            self.set_older(commit, last);
        }
        None
    }

    #[inline]
    fn set_older(&mut self, commit: u64, record: &CommitRecord) {
        self.older = Some(Older {
            commit,
            redirect: record.redirect(),
            serialising: record.class() == CycleClass::Serialize,
        });
    }

    /// True if the tag was on a wrong path, when the right one is dispatched in this cycle.
    #[inline]
    fn is_squashed(&self, dispatch: u64) -> bool {
        let Some(older) = &self.older else {
            return false;
        };
        match older.redirect {
            Redirect::None => false,
            Redirect::Mispredict => self.trigger + REFILL <= dispatch,
            _ => self.trigger <= older.commit && !older.serialising,
        }
    }
}

/// Tags the entry at the ROB's tail in the first dispatching cycle at or after the trigger; the
/// sample is taken when its row commits and names the first committing instruction of the row. One
/// row holds what is dispatched in one cycle, so that is the first instruction dispatched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch {
    tail: Tail,
}

impl RecordPolicy for Dispatch {
    #[inline]
    fn trigger(&mut self, cycle: u64) {
        self.tail.start(cycle);
    }

    #[inline]
    fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome {
        match self.tail.find(before, records) {
            None => Outcome::Pending,
            Some(found) if found.squashed => Outcome::Dropped,
            Some(found) => Outcome::One(*found.record),
        }
    }
}

/// Tags one of the micro-ops dispatched in the first dispatching cycle at or after the trigger, each in its turn: the n-th
/// sample takes the n-th slot, modulo how many there are. (IBS and SPE count micro-ops instead of cycles, so that the
/// slot is as good as random.) The sample is taken when the group has committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DispatchOp {
    tail: Tail,
    turn: usize,
    /// Cycle in which the tagged group was dispatched, and its micro-ops (`None`: it trapped).
    group: Option<u64>,
    ops: [Option<CommitRecord>; MAX_COMMIT_WIDTH],
    len: usize,
}

impl DispatchOp {
    #[inline]
    fn push(&mut self, record: &CommitRecord) {
        if let Some(op) = self.ops.get_mut(self.len) {
            *op = (!record.redirect().is_trap()).then_some(*record);
            self.len += 1;
        }
    }
}

impl RecordPolicy for DispatchOp {
    #[inline]
    fn trigger(&mut self, cycle: u64) {
        self.tail.start(cycle);
        self.group = None;
    }

    #[inline]
    fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome {
        let (group, mut commit, records) = match self.group {
            Some(group) => (group, before, records),
            None => match self.tail.find(before, records) {
                None => return Outcome::Pending,
                Some(found) if found.squashed => return Outcome::Dropped,
                Some(found) => {
                    self.group = Some(found.dispatch);
                    self.len = 0;
                    self.push(found.record);
                    (found.dispatch, found.commit, found.after)
                }
            },
        };
        for record in records {
            commit += u64::from(record.commit_delta);
            if dispatch_cycle(commit, record) != group {
                let op = self.ops[self.turn % self.len.max(1)];
                self.turn = self.turn.wrapping_add(1);
                return op.map_or(Outcome::Dropped, Outcome::One);
            }
            self.push(record);
        }
        Outcome::Pending
    }
}
