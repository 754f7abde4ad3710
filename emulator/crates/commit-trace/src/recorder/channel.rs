//! The channel between a hart and its reader, and the batches that go round in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use super::{BATCH_RECORDS, Recorder, new_batch};
use crate::{Batch, HartId};

/// Time between two looks of the reader for batches. It is not woken for each: to wake a thread on another processor takes
/// the hart's thread some 10 µs, and the channel holds what comes meanwhile.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

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

/// Connects several harts, numbered from 0, to whoever reads their streams: their batches come in one stream, in the order
/// in which the harts fill them.
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
    let empty = Empty { batches: Arc::default(), most: in_flight + 1 };
    let to = To { full: full_sender, empty: empty.clone() };
    let stream = BatchStream { full: full_receiver, empty };
    (to, stream)
}

/// The hart's end of the channel: where full batches go, and where empty ones come from.
#[derive(Clone, Debug)]
pub(super) struct To {
    pub(super) full: Sender<Batch>,
    pub(super) empty: Empty,
}

/// Batches whose memory is used again. The last that was read is the next that is filled, since the host's caches hold that.
#[derive(Clone, Debug)]
pub(super) struct Empty {
    batches: Arc<Mutex<Vec<Batch>>>,
    most: usize,
}

impl Empty {
    pub(super) fn take(&self) -> Option<Batch> {
        self.batches().pop()
    }

    /// Keeps the memory of a batch that was read, unless there is enough already.
    fn give(&self, batch: Batch) {
        let mut batches = self.batches();
        if batches.len() < self.most {
            batches.push(batch);
        }
    }

    /// Locks the list of batches to be filled again.
    fn batches(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl To {
    fn recorder(&self, hart: HartId, start_cycle: u64) -> Recorder {
        let batch = Batch { hart, start_cycle, ..new_batch(BATCH_RECORDS) };
        Recorder::new(batch, Some(self.clone()))
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
    /// Returns the number of batches that wait.
    pub fn batches(&self) -> usize {
        self.0.len()
    }
}

/// The error that there will be no more batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEnded;

impl BatchStream {
    /// Returns the next batch, if there is one already.
    ///
    /// # Errors
    /// If there will be no more batches: the recorder is gone.
    pub fn look(&mut self) -> Result<Option<Batch>, StreamEnded> {
        match self.full.try_recv() {
            Ok(batch) => Ok(Some(batch)),
            Err(TryRecvError::Disconnected) => Err(StreamEnded),
            Err(TryRecvError::Empty) => Ok(None),
        }
    }

    /// Returns a [`Backlog`], which tells how many batches wait, whoever has the stream.
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
