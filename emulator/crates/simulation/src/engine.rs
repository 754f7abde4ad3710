//! What executes: the functional harts, or the timing cores.

use crate::commit_stage::StreamClosed;
use crate::cores::TimingCores;

/// What executes instructions: the timing cores, where there are any and they do not rest.
pub struct Engine {
    cores: Option<Box<dyn TimingCores>>,
    resting: Option<Rest>,
}

/// What becomes of the timing cores while the functional harts execute for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The cores' caches stay as they are.
    Cold,
    /// The cores' caches are kept warm, with a single hart, and each instruction takes as many cycles, in units of 2^-16.
    Warm {
        /// Cycles for each instruction.
        rate: u64,
        /// The cores' predictors are kept warm, too.
        learns: bool,
    },
}

/// What executes the next slice.
pub(crate) enum Executor<'a> {
    /// The functional harts alone.
    Functional,
    /// The functional harts, which keep the caches of these cores warm.
    Warming {
        /// The cores.
        cores: &'a mut (dyn TimingCores + 'static),
        /// Cycles for each instruction, in units of 2^-16.
        rate: u64,
        /// The cores' predictors are kept warm, too.
        learns: bool,
    },
    /// The timing cores.
    Timing(&'a mut (dyn TimingCores + 'static)),
}

impl Engine {
    /// The functional harts, until there are cores.
    pub const FUNCTIONAL: Self = Self { cores: None, resting: None };

    /// Returns an engine in which the timing cores execute.
    pub(crate) fn timing(cores: Box<dyn TimingCores>) -> Self {
        Self { cores: Some(cores), resting: None }
    }

    /// Lets the functional harts go on for the timing cores.
    pub(crate) fn rest(&mut self, rest: Rest) {
        self.resting = Some(rest);
    }

    /// Lets the timing cores go on, from cycle `now`, for the functional harts. Returns false if there are none.
    pub fn go_on(&mut self, now: u64) -> bool {
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
        match (self.cores.as_deref_mut(), self.resting) {
            (None, _) | (_, Some(Rest::Cold)) => Executor::Functional,
            (Some(cores), Some(Rest::Warm { rate, learns })) => {
                Executor::Warming { cores, rate, learns }
            }
            (Some(cores), None) => Executor::Timing(cores),
        }
    }

    /// Ends what was recorded; `None` if there is no timing core.
    pub(crate) fn finish(self) -> Option<StreamClosed> {
        self.cores.map(TimingCores::finish)
    }
}
