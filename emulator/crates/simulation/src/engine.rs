//! What executes: the functional harts, or the timing cores.

use crate::commit_stage::StreamClosed;
use crate::cores::TimingCores;

/// What executes instructions: the timing cores, where there are any and they do not rest.
pub struct Engine {
    cores: Option<Box<dyn TimingCores>>,
    rests: bool,
}

impl Engine {
    /// The functional harts, until there are cores.
    pub const FUNCTIONAL: Self = Self { cores: None, rests: false };

    /// Returns an engine in which the timing cores execute.
    pub(crate) fn timing(cores: Box<dyn TimingCores>) -> Self {
        Self { cores: Some(cores), rests: false }
    }

    /// Lets the functional harts go on for the timing cores.
    pub fn rest(&mut self) {
        self.rests = true;
    }

    /// Lets the timing cores go on, from cycle `now`, for the functional harts. Returns false if there are none.
    pub fn go_on(&mut self, now: u64) -> bool {
        let Some(cores) = &mut self.cores else {
            return false;
        };
        if std::mem::take(&mut self.rests) {
            cores.go_on(now);
        }
        true
    }

    /// Returns whether the timing cores execute, not the functional harts.
    pub fn is_timing(&self) -> bool {
        self.cores.is_some() && !self.rests
    }

    /// Returns the timing cores, if there are any, whether or not they rest.
    pub fn cores(&self) -> Option<&dyn TimingCores> {
        self.cores.as_deref()
    }

    /// Returns the timing cores, if there are any, whether or not they rest.
    pub fn cores_mut(&mut self) -> Option<&mut (dyn TimingCores + 'static)> {
        self.cores.as_deref_mut()
    }

    /// Returns the timing cores if they execute.
    pub(crate) fn running_cores(&mut self) -> Option<&mut (dyn TimingCores + 'static)> {
        let rests = self.rests;
        self.cores.as_deref_mut().filter(|_| !rests)
    }

    /// Ends what was recorded; `None` if there is no timing core.
    pub(crate) fn finish(self) -> Option<StreamClosed> {
        self.cores.map(TimingCores::finish)
    }
}
