//! The units that look at every instruction, with two owners: the hart has their registers, the commit stage tells them what
//! passes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{Archive, Snapshot};

use super::SamplingUnit;
use crate::precise::PreciseSamples;

/// The units of a hart that look at every instruction.
#[derive(Clone, Debug, Default)]
pub struct SamplingUnits {
    /// The unit that samples instructions.
    pub instructions: SamplingUnit,
    /// The unit that attributes overflows to instructions.
    pub precise: PreciseSamples,
}

snapshot::snapshot!(SamplingUnits { instructions, precise });

impl SamplingUnits {
    /// Returns whether one of the units has to be told every instruction.
    pub fn is_active(&self) -> bool {
        self.instructions.is_active() || self.precise.is_active()
    }
}

/// [`SamplingUnits`] that a hart and its commit stage share.
#[derive(Clone, Debug, Default)]
pub struct SharedSamplingUnits {
    units: Arc<Mutex<SamplingUnits>>,
    /// [`SamplingUnits::is_active`], so that a commit costs next to nothing while the units are not.
    active: Arc<AtomicBool>,
}

impl SharedSamplingUnits {
    /// Returns [`SamplingUnits::is_active`]. Only the hart changes it, while nothing commits.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// Reads or changes the units.
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
