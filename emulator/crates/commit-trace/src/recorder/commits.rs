//! From commits to records.

use super::{RecordError, Recorder};
use crate::{Commit, CommitRecord, CommitSink, Event, Stages, StaticInfo};

/// Cycles after which a hart that mostly sleeps ends a batch: a third of a second at 3.2 GHz.
pub(super) const BATCH_CYCLES: u64 = 1 << 30;

impl CommitSink for Recorder {
    #[inline(always)]
    fn commit(&mut self, commit: &Commit) {
        let delta = commit.commit.wrapping_sub(self.reached);
        let plain = (delta.wrapping_sub(u64::from(!self.group)) < u64::from(u32::MAX))
            & (self.batch.records.len() < self.limit);
        if !plain && !self.admit(commit) {
            return;
        }
        self.reached = commit.commit;
        // Nothing shares a cycle with a trap that comes after it.
        self.group = !commit.redirect.is_trap();
        self.batch.records.push(commit.record(delta as u32));
    }

    #[inline]
    fn commits(&mut self, from: u64, records: &[CommitRecord], to: u64) {
        let [first, .., last] = records else {
            return self.commit_each(from, records, to);
        };
        let plain = (from == self.reached)
            & (to - from <= u64::from(u32::MAX))
            & (self.group | (first.commit_delta != 0))
            & !last.redirect().is_trap();
        if !plain {
            return self.commit_each(from, records, to);
        }
        if self.batch.records.len() + records.len() > self.limit {
            self.fill(from, records, to);
        } else {
            self.append(records, to);
        }
    }

    fn stages(&mut self, stages: &[Stages]) {
        if self.to.is_some() {
            self.stages.extend_from_slice(stages);
        }
    }

    fn define(&mut self, static_info: &StaticInfo) {
        if self.to.is_some() {
            self.batch.static_info.push(*static_info);
        }
    }

    fn event(&mut self, _cycle: u64, event: Event) {
        if let Event::Idle { cycles } = event {
            if cycles == 0 {
                return;
            }
            self.remember();
            self.reached += cycles;
            self.group = false;
            if self.reached - self.batch.start_cycle >= BATCH_CYCLES {
                self.flush();
            }
        }
        if self.to.is_some() {
            self.push_event(event);
        }
    }
}

impl Recorder {
    /// Checks the rare cases of [`CommitSink::commit`]; returns true if the record may be taken.
    #[cold]
    #[inline(never)]
    fn admit(&mut self, commit: &Commit) -> bool {
        let (seq, reached) = (self.next_seq(), self.reached);
        let cycle = commit.commit;
        if cycle < reached || cycle == reached && !self.group {
            self.refuse(commit, RecordError::BackInTime { seq, commit: cycle, reached });
            return false;
        }
        if cycle - reached > u64::from(u32::MAX) {
            let cycles = cycle - reached;
            self.refuse(commit, RecordError::LongStall { seq, cycles });
            return false;
        }
        if self.batch.records.len() >= self.limit && cycle > reached {
            self.send();
        }
        true
    }

    fn append(&mut self, records: &[CommitRecord], to: u64) {
        self.batch.records.extend_from_slice(records);
        self.reached = to;
        self.group = true;
    }

    /// Takes the records of [`CommitSink::commits`] if they are more than the batch still takes.
    #[cold]
    fn fill(&mut self, from: u64, records: &[CommitRecord], to: u64) {
        if self.to.is_none() {
            // Nobody reads the batches: they may end anywhere, even within a group.
            self.send();
            return self.append(records, to);
        }
        let room = self.limit.saturating_sub(self.batch.records.len());
        let starts_group = |record: &CommitRecord| record.commit_delta != 0;
        let Some(after) = records[room..].iter().position(starts_group) else {
            return self.append(records, to);
        };
        let (these, others) = records.split_at(room + after);
        let cycles: u64 = these.iter().map(|r| u64::from(r.commit_delta)).sum();
        self.append(these, from + cycles);
        self.send();
        self.commits(from + cycles, others, to);
    }

    /// Takes the records of [`CommitSink::commits`] one by one.
    #[inline(never)]
    fn commit_each(&mut self, from: u64, records: &[CommitRecord], to: u64) {
        let mut cycle = from;
        for (n, record) in records.iter().enumerate() {
            cycle += u64::from(record.commit_delta);
            // A delta that 32 bits do not hold: the last commit carries the whole time, and is refused.
            let last = n + 1 == records.len();
            self.commit(&record.at(if last { to } else { cycle }));
        }
    }

    /// Stops recording at a commit that the stream cannot say. The run goes on, and its recent commits are kept up.
    fn refuse(&mut self, commit: &Commit, error: RecordError) {
        if self.error.is_none() && self.to.is_some() {
            self.stop(error);
        }
        self.remember();
        self.before.push_back(*commit);
        self.reached = commit.commit;
        self.group = !commit.redirect.is_trap();
    }
}
