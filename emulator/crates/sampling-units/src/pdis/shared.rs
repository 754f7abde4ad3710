//! The units that look at every instruction, with two owners: the hart has their registers, the commit stage tells them what passes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{Archive, Snapshot};

use super::SamplingUnit;
use crate::precise::PreciseSamples;

/// The units of a hart.
#[derive(Clone, Debug, Default)]
pub struct SamplingUnits {
    /// Sampled instructions.
    pub instructions: SamplingUnit,
    /// To which instruction an overflow is due.
    pub precise: PreciseSamples,
}

snapshot::snapshot!(SamplingUnits {
    instructions,
    precise
});

impl SamplingUnits {
    /// One of them wants to know of every instruction.
    pub fn is_active(&self) -> bool {
        self.instructions.is_active() || self.precise.is_active()
    }
}

/// [`SamplingUnits`] of a hart and its commit stage.
#[derive(Clone, Debug, Default)]
pub struct SharedSamplingUnits {
    units: Arc<Mutex<SamplingUnits>>,
    /// [`SamplingUnits::is_active`], so that a commit costs next to nothing while they are not.
    active: Arc<AtomicBool>,
}

impl SharedSamplingUnits {
    /// They want to hear of every instruction. Only the hart changes that, while nothing commits.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// Reads or changes them.
    pub fn with<R>(&self, act: impl FnOnce(&mut SamplingUnits) -> R) -> R {
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut units);
        self.active.store(units.is_active(), Relaxed);
        result
    }
}

impl Snapshot for SharedSamplingUnits {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.with(|units| units.snapshot(archive))
    }
}
