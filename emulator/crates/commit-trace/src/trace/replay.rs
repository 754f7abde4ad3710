//! Reading ahead on a thread of its own, so that decoding and evaluating overlap.

use std::fmt;
use std::io::{Read, Seek};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{TraceError, TraceReader};
use crate::Batch;

/// The batches of a trace file, read ahead: what [`crate::BatchStream`] is to a live run. The iterator ends
/// after the first error.
#[derive(Debug)]
pub struct Replay(Source);

enum Source {
    Ahead {
        full: Receiver<Item>,
        empty: Sender<Batch>,
    },
    /// Reads each batch on the caller's thread, into the memory of `spare`.
    SameThread {
        read: Box<dyn FnMut(Batch) -> Option<Item> + Send>,
        spare: Batch,
        failed: bool,
    },
}

type Item = Result<Batch, TraceError>;

impl<R: Read + Seek + Send + 'static> TraceReader<R> {
    /// Moves the reader to a thread that stays up to `ahead` batches (at least 1) ahead. The thread
    /// ends with the trace, or when the [`Replay`] is dropped. On a single processor there is no thread:
    /// batches would leave its caches before they are used.
    pub fn replay(self, ahead: usize) -> Replay {
        match std::thread::available_parallelism() {
            Ok(processors) if processors.get() == 1 => self.here(),
            _ => self.ahead(ahead),
        }
    }

    pub(super) fn ahead(self, ahead: usize) -> Replay {
        let (full_sender, full) = bounded(ahead.max(1));
        let (empty, empty_receiver) = bounded::<Batch>(ahead.max(1) + 1);
        let mut read = self.into_read();
        std::thread::spawn(move || {
            while let Some(item) = read(empty_receiver.try_recv().unwrap_or_default()) {
                let more = item.is_ok();
                if full_sender.send(item).is_err() || !more {
                    return;
                }
            }
        });
        Replay(Source::Ahead { full, empty })
    }

    pub(super) fn here(self) -> Replay {
        Replay(Source::SameThread {
            read: Box::new(self.into_read()),
            spare: Batch::default(),
            failed: false,
        })
    }

    fn into_read(mut self) -> impl FnMut(Batch) -> Option<Item> + Send {
        move |mut batch| match self.next_batch(&mut batch) {
            Ok(true) => Some(Ok(batch)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl Replay {
    /// Gives a batch's memory back to the reader.
    pub fn recycle(&mut self, batch: Batch) {
        match &mut self.0 {
            Source::Ahead { empty, .. } => {
                let _ = empty.try_send(batch);
            }
            Source::SameThread { spare, .. } => *spare = batch,
        }
    }
}

impl Iterator for Replay {
    type Item = Item;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Ahead { full, .. } => full.recv().ok(),
            Source::SameThread { failed: true, .. } => None,
            Source::SameThread { read, spare, failed } => {
                let item = read(std::mem::take(spare));
                *failed = matches!(item, Some(Err(_)));
                item
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ahead { .. } => "Ahead",
            Self::SameThread { .. } => "SameThread",
        })
    }
}
