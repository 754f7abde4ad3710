//! From the hart's thread to the host's: owned batches through a bounded channel.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use crate::{
    Batch, Commit, CommitRecord, CommitSink, Event, HartId, InstFacts, MAX_COMMIT_WIDTH, Seq,
    Stages,
};

/// Records per batch: 32 KiB, which a second-level cache still holds when the reader gets it, and which keep that busy for no
/// more than some 50 µs.
pub const BATCH_RECORDS: usize = 2 * 1024;

/// Commits that [`Recorder::recent`] gives: a group of the widest commit stage.
pub const RECENT: usize = MAX_COMMIT_WIDTH;

/// Records that a recorder without a reader holds: few enough to stay in the first-level cache.
const DISCARDED: usize = 512;

/// The reader looks for batches, instead of being woken for each: to wake a thread on another processor takes the hart's
/// some 10 µs, and the channel holds what comes meanwhile.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A hart that mostly sleeps ends its batches by time: a third of a second at 3.2 GHz, in cycles.
const BATCH_CYCLES: u64 = 1 << 30;

/// Why a recording stopped before the run did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The reader went away.
    #[error("nobody reads the recording any more; it ends before record {}", .seq.0)]
    ReaderGone {
        /// The first record that was lost.
        seq: Seq,
    },
    /// More cycles between two commits than 32 bits hold, which only a hung guest or a fault of the
    /// timing core can cause: a sleeping hart reports [`Event::Idle`].
    #[error("record {} commits {cycles} cycles after the one before it", .seq.0)]
    LongStall {
        /// The record.
        seq: Seq,
        /// Cycles since the previous commit.
        cycles: u64,
    },
    /// The timing core committed in the past.
    #[error("record {} commits at cycle {commit}, before cycle {reached} that the stream had reached", .seq.0)]
    BackInTime {
        /// The record.
        seq: Seq,
        /// Its commit cycle.
        commit: u64,
        /// The stream's last cycle.
        reached: u64,
    },
}

/// Connects a hart to whoever reads its stream. The stream's first cycle is the one after
/// `start_cycle`; at most `in_flight` batches (at least 1) wait to be read, then the hart waits.
///
/// ```
/// use commit_trace::{Event, CommitSink, HartId, recording};
///
/// let (mut recorder, mut stream) = recording(HartId(0), 0, 4);
/// recorder.event(0, Event::Privilege(3));
/// recorder.finish().unwrap();
/// let batch = stream.next().unwrap();
/// assert_eq!(batch.events, [(0, Event::Privilege(3)), (0, Event::End)]);
/// ```
pub fn recording(hart: HartId, start_cycle: u64, in_flight: usize) -> (Recorder, BatchStream) {
    let (to, stream) = channel(in_flight);
    (to.recorder(hart, start_cycle), stream)
}

/// The same for several harts, numbered from 0, whose batches come in one stream in the order in which the harts fill
/// them.
pub fn recordings(start_cycles: &[u64], in_flight: usize) -> (Vec<Recorder>, BatchStream) {
    let (to, stream) = channel(in_flight);
    let recorders = (0..).zip(start_cycles);
    let recorders = recorders.map(|(hart, &start)| to.recorder(HartId(hart), start));
    (recorders.collect(), stream)
}

fn channel(in_flight: usize) -> (To, BatchStream) {
    let in_flight = in_flight.max(1);
    let (full_sender, full_receiver) = bounded(in_flight);
    // One more than can wait: the one that the reader holds.
    let empty = Empty {
        batches: Arc::default(),
        most: in_flight + 1,
    };
    let to = To {
        full: full_sender,
        empty: empty.clone(),
    };
    let stream = BatchStream {
        full: full_receiver,
        empty,
    };
    (to, stream)
}

fn new_batch(records: usize) -> Batch {
    // A batch ends with the group that fills it.
    Batch {
        records: Vec::with_capacity(records + MAX_COMMIT_WIDTH),
        ..Batch::default()
    }
}

/// The hart's end: packs commits into records. Nothing that happens at the other end changes what
/// the guest sees; a slow reader costs host time only.
#[derive(Debug)]
pub struct Recorder {
    batch: Batch,
    /// Last cycle of the stream so far.
    reached: u64,
    /// Something committed in cycle `reached`, so the next commit may share it.
    group: bool,
    /// Records at which the batch ends with the commit group; 0 sends every commit the slow way.
    limit: usize,
    /// `None`: what is recorded is dropped.
    to: Option<To>,
    /// Set when recording has stopped; the stream is whole up to there.
    error: Option<RecordError>,
    /// Stages of the batch's records, and of those that come next.
    stages: Vec<Stages>,
    /// The last commits before record `since` of the batch, youngest last.
    before: VecDeque<Commit>,
    /// The records from here on follow each other without sleep.
    since: usize,
}

/// The channel's end, and the one that gives batches back.
#[derive(Clone, Debug)]
struct To {
    full: Sender<Batch>,
    empty: Empty,
}

/// Batches whose memory is used again. The last that was read is the next that is filled, since the host's caches hold that.
#[derive(Clone, Debug)]
struct Empty {
    batches: Arc<Mutex<Vec<Batch>>>,
    most: usize,
}

impl Empty {
    fn take(&self) -> Option<Batch> {
        self.batches().pop()
    }

    /// Keeps it, if there are not enough already.
    fn give(&self, batch: Batch) {
        let mut batches = self.batches();
        if batches.len() < self.most {
            batches.push(batch);
        }
    }

    fn batches(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl To {
    fn recorder(&self, hart: HartId, start_cycle: u64) -> Recorder {
        let batch = Batch {
            hart,
            start_cycle,
            ..new_batch(BATCH_RECORDS)
        };
        Recorder::new(batch, Some(self.clone()))
    }
}

impl Recorder {
    fn new(batch: Batch, to: Option<To>) -> Self {
        Self {
            reached: batch.start_cycle,
            batch,
            group: false,
            limit: if to.is_some() {
                BATCH_RECORDS
            } else {
                DISCARDED
            },
            to,
            error: None,
            stages: Vec::new(),
            before: VecDeque::with_capacity(RECENT),
            since: 0,
        }
    }

    /// A recorder that nobody reads: it only knows what was [recent](Self::recent).
    pub fn discarding(start_cycle: u64) -> Self {
        let batch = Batch {
            start_cycle,
            ..new_batch(DISCARDED)
        };
        Self::new(batch, None)
    }

    /// The same after others left the ROB, given as [`Self::recent`] gives them.
    pub fn going_on(cycle: u64, recent: &[Commit]) -> Self {
        let mut recorder = Self::discarding(cycle);
        recorder.before.extend(recent.iter().rev());
        recorder.group = recent
            .first()
            .is_some_and(|last| last.commit == cycle && !last.redirect.is_trap());
        recorder
    }

    /// The last instructions that left the ROB, youngest first, at most [`RECENT`]. `dispatch` and `decode`
    /// are as exact as a record says them.
    pub fn recent(&self) -> impl Iterator<Item = Commit> {
        let mut cycle = self.reached;
        let since = self.batch.records[self.since..].iter().rev();
        let since = since.map(move |record| {
            let commit = record.at(cycle);
            cycle -= u64::from(record.commit_delta);
            commit
        });
        since.chain(self.before.iter().rev().copied()).take(RECENT)
    }

    /// Notes what is recent before records go, or the cycles between them are lost.
    #[cold]
    fn remember(&mut self) {
        let recent: VecDeque<Commit> = self.recent().collect();
        self.before.clear();
        self.before.extend(recent.into_iter().rev());
        self.since = self.batch.records.len();
    }

    /// Why recording has stopped, if it has.
    pub fn error(&self) -> Option<&RecordError> {
        self.error.as_ref()
    }

    /// Number of the next record.
    pub fn next_seq(&self) -> Seq {
        Seq(self.batch.first_seq.0 + self.batch.records.len() as u64)
    }

    /// Ends the batch with the current commit group. Where batches end is part of the trace file:
    /// call this only at points that the simulation decides, or equal runs give unequal files.
    pub fn flush(&mut self) {
        self.limit = 0;
    }

    /// Ends the stream with [`Event::End`] and returns how many records it had.
    ///
    /// # Errors
    /// If recording had stopped earlier.
    pub fn finish(mut self) -> Result<Seq, RecordError> {
        self.end();
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.next_seq()),
        }
    }

    fn end(&mut self) {
        if self.to.is_some() {
            self.push_event(Event::End);
            self.send();
        }
    }

    /// Sends what is whole, and nothing from here on.
    #[cold]
    fn stop(&mut self, error: RecordError) {
        if !matches!(error, RecordError::ReaderGone { .. }) {
            self.end();
        }
        tracing::error!("recording stops: {error}");
        self.error = Some(error);
        self.to = None;
    }

    fn send(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.remember();
        let seq = self.batch.first_seq;
        let first_seq = self.next_seq();
        let sent = match &self.to {
            Some(to) => {
                // There are never more batches than the channel holds, so this allocates at the start only.
                let empty = { to.empty.take() }.unwrap_or_else(|| new_batch(BATCH_RECORDS));
                let mut full = std::mem::replace(&mut self.batch, empty);
                let count = full.records.len();
                if count <= self.stages.len() {
                    full.stages.extend(self.stages.drain(..count));
                }
                self.batch.hart = full.hart;
                self.limit = BATCH_RECORDS;
                to.full.send(full).is_ok()
            }
            None => {
                self.limit = DISCARDED;
                true
            }
        };
        self.batch.clear();
        self.batch.first_seq = first_seq;
        self.batch.start_cycle = self.reached;
        self.since = 0;
        self.group = false;
        if !sent {
            self.stop(RecordError::ReaderGone { seq });
        }
    }

    fn push_event(&mut self, event: Event) {
        self.batch
            .events
            .push((self.batch.records.len() as u32, event));
    }

    /// The rare cases of [`CommitSink::commit`]; true if the record may be taken.
    #[cold]
    #[inline(never)]
    fn admit(&mut self, commit: &Commit) -> bool {
        let (seq, reached) = (self.next_seq(), self.reached);
        let cycle = commit.commit;
        if cycle < reached || cycle == reached && !self.group {
            self.refuse(
                commit,
                RecordError::BackInTime {
                    seq,
                    commit: cycle,
                    reached,
                },
            );
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

    /// [`CommitSink::commits`] of more than the batch still takes.
    #[cold]
    fn fill(&mut self, from: u64, records: &[CommitRecord], to: u64) {
        if self.to.is_none() {
            // Where batches end that nobody reads does not matter, not even within a group.
            self.send();
            return self.append(records, to);
        }
        let room = self.limit.saturating_sub(self.batch.records.len());
        let starts_group = |record: &CommitRecord| record.commit_delta != 0;
        let Some(after) = records[room..].iter().position(starts_group) else {
            return self.append(records, to);
        };
        let (these, others) = records.split_at(room + after);
        let cycles: u64 = { these.iter() }.map(|r| u64::from(r.commit_delta)).sum();
        self.append(these, from + cycles);
        self.send();
        self.commits(from + cycles, others, to);
    }

    /// [`CommitSink::commits`] one by one.
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

    /// The stream cannot say this commit. The run goes on, and with it what is recent.
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
        self.batch.records.push(CommitRecord::new(
            commit.inst,
            delta as u32,
            commit.commit.wrapping_sub(commit.dispatch),
            commit.dispatch.wrapping_sub(commit.decode),
            commit.redirect,
            commit.first_of_row,
            commit.class,
            commit.tea,
        ));
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

    fn define(&mut self, facts: &InstFacts) {
        if self.to.is_some() {
            self.batch.facts.push(*facts);
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

/// A recorder that is dropped without [`Recorder::finish`] still delivers what it has.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.to.is_some() {
            self.send();
        }
    }
}

/// The reader's end: an iterator of batches, in order. Give each back with
/// [`BatchStream::recycle`] to spare the hart an allocation.
#[derive(Debug)]
pub struct BatchStream {
    full: Receiver<Batch>,
    empty: Empty,
}

/// The batches that wait to be read.
#[derive(Clone, Debug)]
pub struct Backlog(Receiver<Batch>);

impl Backlog {
    /// How many they are.
    pub fn batches(&self) -> usize {
        self.0.len()
    }
}

/// There will be no more batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEnded;

impl BatchStream {
    /// The next batch, if there is one already.
    ///
    /// # Errors
    /// If there never will be: the recorder is gone.
    pub fn look(&mut self) -> Result<Option<Batch>, StreamEnded> {
        match self.full.try_recv() {
            Ok(batch) => Ok(Some(batch)),
            Err(TryRecvError::Disconnected) => Err(StreamEnded),
            Err(TryRecvError::Empty) => Ok(None),
        }
    }

    /// Tells how many batches wait, whoever has the stream.
    pub fn backlog(&self) -> Backlog {
        Backlog(self.full.clone())
    }

    /// Gives a batch's memory back to the hart.
    pub fn recycle(&self, batch: Batch) {
        self.empty.give(batch);
    }
}

impl Iterator for BatchStream {
    type Item = Batch;

    /// Waits for the next batch; `None` when the recorder is gone.
    fn next(&mut self) -> Option<Batch> {
        loop {
            match self.look() {
                Ok(Some(batch)) => return Some(batch),
                Ok(None) => thread::sleep(BETWEEN_LOOKS),
                Err(StreamEnded) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
