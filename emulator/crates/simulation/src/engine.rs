//! What executes: the functional harts, or the timing cores.

use snapshot::SnapshotError;

use crate::commit_stage::StreamClosed;
use crate::cores::TimingCores;
use crate::survey::Surveyor;

/// What executes instructions: the timing cores, where there are any and they do not rest.
pub struct Engine {
    cores: Option<Box<dyn TimingCores>>,
    resting: Option<Rest>,
    /// What is kept warm for the timing cores before there are any.
    warming: Option<Box<dyn TimingCores>>,
    /// What surveys the region of interest, if something does, instead of timing cores.
    surveyor: Option<Box<Surveyor>>,
}

/// What becomes of the timing cores while the functional harts execute for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The cores' caches stay as they are.
    Cold,
    /// The harts go on between units of a sampled region.
    BetweenUnits(BetweenUnits),
}

/// The most harts that a machine has.
pub(crate) const MAX_HARTS: usize = crate::MAX_HARTS as usize;

/// How harts execute between units of a sampled region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BetweenUnits {
    /// Cycles per instruction of each hart as the guest's clock sees them, in multiples of 2^-16.
    pub rates: [u64; MAX_HARTS],
    /// What of the core learns from what is executed.
    pub kept_warm: KeptWarm,
}

impl BetweenUnits {
    /// How harts execute before and between the timed parts of a run that is not sampled. For the guest, an instruction takes one cycle, as it does
    /// without a core.
    pub(crate) const WARM_START: Self =
        Self { rates: [1 << 16; MAX_HARTS], kept_warm: KeptWarm::CachesAndPredictors };
}

/// What of a core is kept warm while its hart executes without timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptWarm {
    /// Nothing: all stays as it is.
    Nothing,
    /// Caches and TLBs.
    Caches,
    /// Caches, TLBs and predictors.
    CachesAndPredictors,
}

/// What executes the next slice.
pub(crate) enum Executor<'a> {
    /// The functional harts alone.
    Functional,
    /// The functional harts, between units that these cores time.
    BetweenUnits(&'a mut (dyn TimingCores + 'static), BetweenUnits),
    /// The functional hart, in a region that is surveyed.
    Surveying(&'a mut Surveyor),
    /// The timing cores.
    Timing(&'a mut (dyn TimingCores + 'static)),
}

impl Engine {
    /// The functional harts, until there are cores.
    pub const FUNCTIONAL: Self = Self { cores: None, resting: None, warming: None, surveyor: None };

    /// Returns an engine in which the timing cores execute.
    pub(crate) fn timing(cores: Box<dyn TimingCores>) -> Self {
        Self { cores: Some(cores), ..Self::FUNCTIONAL }
    }

    /// Returns an engine in which the functional hart executes, and a region is surveyed.
    pub(crate) fn surveying(surveyor: Surveyor) -> Self {
        Self { surveyor: Some(Box::new(surveyor)), ..Self::FUNCTIONAL }
    }

    /// Returns what surveys the region, if something does.
    pub(crate) fn surveyor_mut(&mut self) -> Option<&mut Surveyor> {
        self.surveyor.as_deref_mut()
    }

    /// Takes what surveys the region, if something does.
    pub(crate) fn take_surveyor(&mut self) -> Option<Surveyor> {
        self.surveyor.take().map(|surveyor| *surveyor)
    }

    /// Has the functional hart keep these cores warm while there are no others.
    pub(crate) fn keep_warm(&mut self, cores: Box<dyn TimingCores>) {
        self.warming = Some(cores);
    }

    /// Returns whether the functional hart keeps a core warm for the first timed part.
    pub(crate) fn is_warming(&self) -> bool {
        self.warming.is_some()
    }

    /// Returns the state that functional warming has built for the timing cores, if there is any. Warming then goes on as if this state had just been
    /// loaded.
    pub(crate) fn warmed_state(&mut self) -> Result<Option<Vec<u8>>, SnapshotError> {
        self.warming.as_mut().map(|cores| cores.warmed_state()).transpose()
    }

    /// Lets the timing cores rest while the functional harts execute in their place.
    pub(crate) fn rest(&mut self, rest: Rest) {
        self.resting = Some(rest);
    }

    /// Lets the timing cores execute again in place of the functional harts, each from its hart's cycle in `now`. Returns false if there are no
    /// timing cores.
    pub fn go_on(&mut self, now: &[u64]) -> bool {
        let Some(cores) = &mut self.cores else {
            return false;
        };
        if self.resting.take().is_some() {
            cores.go_on(now);
        }
        true
    }

    /// Returns whether the timing cores execute, not the functional harts.
    pub fn is_timing(&self) -> bool {
        self.cores.is_some() && self.resting.is_none()
    }

    /// Returns the timing cores, if there are any, whether or not they rest.
    pub fn cores(&self) -> Option<&dyn TimingCores> {
        self.cores.as_deref()
    }

    /// Returns the timing cores, if there are any, whether or not they rest.
    pub fn cores_mut(&mut self) -> Option<&mut (dyn TimingCores + 'static)> {
        self.cores.as_deref_mut()
    }

    /// Returns what executes the next slice.
    pub(crate) fn executor(&mut self) -> Executor<'_> {
        if let Some(surveyor) = self.surveyor.as_deref_mut().filter(|surveyor| surveyor.is_open()) {
            return Executor::Surveying(surveyor);
        }
        match (self.cores.as_deref_mut(), self.resting) {
            (None, _) => match self.warming.as_deref_mut() {
                Some(cores) => Executor::BetweenUnits(cores, BetweenUnits::WARM_START),
                None => Executor::Functional,
            },
            (_, Some(Rest::Cold)) => Executor::Functional,
            (Some(cores), Some(Rest::BetweenUnits(how))) => Executor::BetweenUnits(cores, how),
            (Some(cores), None) => Executor::Timing(cores),
        }
    }

    /// Ends what was recorded; `None` if there is no timing core.
    pub(crate) fn finish(self) -> Option<StreamClosed> {
        self.cores.map(TimingCores::finish)
    }
}
