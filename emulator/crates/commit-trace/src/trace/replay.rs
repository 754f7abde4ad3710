//! Reading ahead on a thread of its own, so that decoding and evaluating overlap.

use std::io::{Read, Seek};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{TraceError, TraceReader};
use crate::Batch;

/// The batches of a trace file, read ahead: what [`crate::BatchStream`] is to a live run. It ends
/// after the first error.
#[derive(Debug)]
pub struct Replay {
    full: Receiver<Result<Batch, TraceError>>,
    empty: Sender<Batch>,
}

impl<R: Read + Seek + Send + 'static> TraceReader<R> {
    /// Moves the reader to a thread that stays up to `ahead` batches (at least 1) ahead. The thread
    /// ends with the trace, or when the [`Replay`] is dropped.
    pub fn replay(mut self, ahead: usize) -> Replay {
        let (full_sender, full) = bounded(ahead.max(1));
        let (empty, empty_receiver) = bounded::<Batch>(ahead.max(1) + 1);
        std::thread::spawn(move || {
            loop {
                let mut batch = empty_receiver.try_recv().unwrap_or_default();
                let (item, more) = match self.next_batch(&mut batch) {
                    Ok(true) => (Ok(batch), true),
                    Ok(false) => return,
                    Err(error) => (Err(error), false),
                };
                if full_sender.send(item).is_err() || !more {
                    return;
                }
            }
        });
        Replay { full, empty }
    }
}

impl Replay {
    /// Gives a batch's memory back to the reader.
    pub fn recycle(&self, batch: Batch) {
        let _ = self.empty.try_send(batch);
    }
}

impl Iterator for Replay {
    type Item = Result<Batch, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.full.recv().ok()
    }
}
