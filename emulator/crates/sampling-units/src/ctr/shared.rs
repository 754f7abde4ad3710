//! The records with two owners: the hart has their registers, the commit stage tells them what passes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{Archive, Snapshot};

use super::TransferRecords;

/// [`TransferRecords`] of a hart and its commit stage.
#[derive(Clone, Debug, Default)]
pub struct SharedTransferRecords {
    records: Arc<Mutex<TransferRecords>>,
    /// [`TransferRecords::is_active`], so that a commit costs next to nothing while they are not.
    active: Arc<AtomicBool>,
}

impl SharedTransferRecords {
    /// They want to hear of every instruction. Only the hart changes that, while nothing commits.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// Reads or changes them.
    pub fn with<R>(&self, act: impl FnOnce(&mut TransferRecords) -> R) -> R {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut records);
        self.active.store(records.is_active(), Relaxed);
        result
    }
}

impl Snapshot for SharedTransferRecords {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.with(|records| records.snapshot(archive))
    }
}
