//! From the hart's thread to the host's: owned batches through a bounded channel.

mod channel;
mod commits;
mod error;

use std::collections::VecDeque;

use crate::{Batch, Commit, Event, MAX_COMMIT_WIDTH, Seq, Stages};

use channel::To;
pub use channel::{Backlog, BatchStream, StreamEnded, recording, recordings};
pub use error::RecordError;

/// Records per batch: 32 KiB, which a second-level cache still holds when the reader gets it, and which keep that busy for no
/// more than some 50 µs.
pub const BATCH_RECORDS: usize = 2 * 1024;

/// Commits that [`Recorder::recent`] gives: a group of the widest commit stage with a trap, and what committed before it, after
/// which there may be traps.
pub const RECENT: usize = MAX_COMMIT_WIDTH + 4;

/// Records that a recorder without a reader holds: few enough to stay in the first-level cache.
const DISCARDED: usize = 512;

fn new_batch(records: usize) -> Batch {
    // A batch ends with the group that fills it.
    Batch { records: Vec::with_capacity(records + MAX_COMMIT_WIDTH), ..Batch::default() }
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
    /// Stages of the batch's records, and of the records that come next.
    stages: Vec<Stages>,
    /// The last commits before record `since` of the batch, youngest last.
    before: VecDeque<Commit>,
    /// The records from here on follow each other without sleep.
    since: usize,
}

impl Recorder {
    fn new(batch: Batch, to: Option<To>) -> Self {
        Self {
            reached: batch.start_cycle,
            batch,
            group: false,
            limit: if to.is_some() { BATCH_RECORDS } else { DISCARDED },
            to,
            error: None,
            stages: Vec::new(),
            before: VecDeque::with_capacity(RECENT),
            since: 0,
        }
    }

    /// A recorder that nobody reads: it only knows what was [recent](Self::recent).
    pub fn discarding(start_cycle: u64) -> Self {
        let batch = Batch { start_cycle, ..new_batch(DISCARDED) };
        Self::new(batch, None)
    }

    /// A [discarding](Self::discarding) recorder that goes on after `cycle`, with the commits before given as [`Self::recent`]
    /// gives them.
    pub fn going_on(cycle: u64, recent: &[Commit]) -> Self {
        let mut recorder = Self::discarding(cycle);
        recorder.before.extend(recent.iter().rev());
        recorder.group =
            recent.first().is_some_and(|last| last.commit == cycle && !last.redirect.is_trap());
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

    /// Keeps the recent commits before the batch's records go, as the cycles between them would be lost.
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

    /// Sends the batch up to here, and nothing from here on.
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
                let empty = to.empty.take().unwrap_or_else(|| new_batch(BATCH_RECORDS));
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
        self.batch.events.push((self.batch.records.len() as u32, event));
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

#[cfg(test)]
mod tests;
