//! Profilers that tag instructions as they enter the ROB.

use commit_trace::{CommitRecord, CycleClass, InstId, MAX_COMMIT_WIDTH, Redirect};

use super::{Outcome, Policy, Trigger, first_outcome};

/// Cycles between the redirect of a mispredicted branch and the first dispatch from the right path
/// (BOOM v3: b2 + 6 when the fetch hits). Longer refills only make wrong-path time look shorter.
const REFILL: u64 = 6;

/// Finds the first instruction that is dispatched at or after the trigger.
///
/// Wrong paths are not in the stream, but a tag can land there: where the instruction before the one
/// found redirected the front end after the trigger, what was dispatched at the trigger was squashed
/// with it. That a wrong path dispatches in every cycle until its redirect is an assumption.
#[derive(Debug, Default)]
struct Tail {
    trigger: u64,
    /// The youngest instruction known to be older, if it passed since the trigger.
    older: Option<Older>,
}

#[derive(Debug)]
struct Older {
    commit: u64,
    redirect: Redirect,
    /// Nothing is dispatched behind a serialising instruction.
    serialising: bool,
}

/// Where an instruction stands relative to the trigger.
enum Place {
    Older,
    /// The first of the right path; the tag is on it.
    Tagged,
    /// The tag was on a wrong path.
    Squashed,
}

/// The cycle that dispatches an instruction: the ROB holds it from the next one on.
fn dispatch_cycle(commit: u64, record: &CommitRecord) -> u64 {
    record.dispatch(commit).saturating_sub(1)
}

impl Tail {
    fn start(&mut self, trigger: u64) {
        *self = Self {
            trigger,
            older: None,
        };
    }

    /// Passes the first of these records that are older than the trigger. Returns how many they are, and the cycle in which
    /// the last of them commits; `before` is that of the record before.
    fn pass(&mut self, before: u64, records: &[CommitRecord]) -> (usize, u64) {
        let (mut count, mut commit) = (0, before);
        for record in records {
            let next = commit + u64::from(record.commit_delta);
            if dispatch_cycle(next, record) >= self.trigger {
                break;
            }
            (count, commit) = (count + 1, next);
        }
        if let Some(last) = records[..count].last() {
            self.set_older(commit, last);
        }
        (count, commit)
    }

    fn set_older(&mut self, commit: u64, record: &CommitRecord) {
        self.older = Some(Older {
            commit,
            redirect: record.redirect(),
            serialising: record.class() == CycleClass::Serialize,
        });
    }

    fn place(&mut self, commit: u64, record: &CommitRecord) -> Place {
        let dispatch = dispatch_cycle(commit, record);
        if dispatch < self.trigger {
            self.set_older(commit, record);
            return Place::Older;
        }
        let squashed = self
            .older
            .as_ref()
            .is_some_and(|older| match older.redirect {
                Redirect::None => false,
                Redirect::Mispredict => self.trigger + REFILL <= dispatch,
                _ => self.trigger <= older.commit && !older.serialising,
            });
        // A tagged row that traps does not commit either.
        if squashed || record.redirect().is_trap() {
            Place::Squashed
        } else {
            Place::Tagged
        }
    }
}

/// Tags the entry at the ROB's tail in the first dispatching cycle at or after the trigger; the
/// sample is taken when its row commits and names the first committing instruction of the row. One
/// row holds what is dispatched in one cycle, so that is the first instruction dispatched.
#[derive(Debug, Default)]
pub(crate) struct Dispatch {
    tail: Tail,
}

impl Policy for Dispatch {
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        self.tail.start(at.cycle);
        Outcome::Pending
    }

    fn waits_for_records(&self) -> bool {
        true
    }

    fn record(&mut self, commit: u64, record: &CommitRecord) -> Outcome {
        match self.tail.place(commit, record) {
            Place::Older => Outcome::Pending,
            Place::Tagged => Outcome::One(record.inst),
            Place::Squashed => Outcome::Dropped,
        }
    }

    fn groups(&mut self, before: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        let (older, before) = self.tail.pass(before, records);
        first_outcome(self, before, records, older)
    }
}

/// Tags one micro-op of those dispatched in that cycle, each in its turn: the n-th sample takes the
/// n-th slot, modulo how many there are. (IBS and SPE count micro-ops instead of cycles, so that the
/// slot is as good as random.) The sample is taken when the group has committed.
#[derive(Debug, Default)]
pub(crate) struct DispatchOp {
    tail: Tail,
    turn: usize,
    /// Cycle in which the tagged group was dispatched, and its micro-ops (`None`: it trapped).
    group: Option<u64>,
    ops: [Option<InstId>; MAX_COMMIT_WIDTH],
    len: usize,
}

impl DispatchOp {
    fn push(&mut self, record: &CommitRecord) {
        if let Some(op) = self.ops.get_mut(self.len) {
            *op = (!record.redirect().is_trap()).then_some(record.inst);
            self.len += 1;
        }
    }
}

impl Policy for DispatchOp {
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        self.tail.start(at.cycle);
        self.group = None;
        Outcome::Pending
    }

    fn waits_for_records(&self) -> bool {
        true
    }

    fn record(&mut self, commit: u64, record: &CommitRecord) -> Outcome {
        let Some(group) = self.group else {
            match self.tail.place(commit, record) {
                Place::Older => {}
                Place::Squashed => return Outcome::Dropped,
                Place::Tagged => {
                    self.group = Some(dispatch_cycle(commit, record));
                    self.len = 0;
                    self.push(record);
                }
            }
            return Outcome::Pending;
        };
        if dispatch_cycle(commit, record) == group {
            self.push(record);
            return Outcome::Pending;
        }
        let op = self.ops[self.turn % self.len.max(1)];
        self.turn = self.turn.wrapping_add(1);
        op.map_or(Outcome::Dropped, Outcome::One)
    }

    fn groups(&mut self, before: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        let (older, before) = match self.group {
            None => self.tail.pass(before, records),
            Some(_) => (0, before),
        };
        first_outcome(self, before, records, older)
    }
}
