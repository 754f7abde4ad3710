//! A cycle number shared by two threads: one executes instructions, the other times them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use snapshot::{Archive, Snapshot};

/// A cycle number with several owners. Accesses are relaxed: they order no other memory accesses between threads.
#[derive(Clone, Debug, Default)]
pub struct SharedCycle(Arc<Cycle>);

/// The number, aligned so that it has a cache line of the host to itself, since it is read often and written rarely; 128 bytes also suffice for hosts
/// that fetch lines of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cycle(AtomicU64);

impl SharedCycle {
    /// A new shared number with the value `cycle`.
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
