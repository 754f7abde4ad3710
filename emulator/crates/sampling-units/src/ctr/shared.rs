//! Control transfer records with two owners: the hart has their registers, the commit stage tells them what passes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{Archive, Snapshot};

use super::TransferRecords;

/// [`TransferRecords`] that a hart and its commit stage share.
#[derive(Clone, Debug, Default)]
pub struct SharedTransferRecords {
    records: Arc<Mutex<TransferRecords>>,
    /// [`TransferRecords::is_active`], so that a commit costs next to nothing while the records are not.
    active: Arc<AtomicBool>,
}

impl SharedTransferRecords {
    /// Returns [`TransferRecords::is_active`]. Only the hart changes it, while nothing commits.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// Reads or changes the records.
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
