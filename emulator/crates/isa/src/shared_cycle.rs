//! A cycle that two threads know: the one that executes, and the one that times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use snapshot::{Archive, Snapshot};

/// A number of a cycle with several owners. It orders nothing else between their threads.
#[derive(Clone, Debug, Default)]
pub struct SharedCycle(Arc<Cycle>);

/// In a line of the host's caches for itself: it is read often, and written rarely.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cycle(AtomicU64);

impl SharedCycle {
    /// One that is `cycle`.
    pub fn new(cycle: u64) -> Self {
        Self(Arc::new(Cycle(cycle.into())))
    }

    /// The cycle.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.0.load(Relaxed)
    }

    /// Changes it.
    #[inline(always)]
    pub fn set(&self, cycle: u64) {
        self.0.0.store(cycle, Relaxed);
    }
}

impl Snapshot for SharedCycle {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let mut cycle = self.get();
        cycle.snapshot(archive)?;
        self.set(cycle);
        Ok(())
    }
}
