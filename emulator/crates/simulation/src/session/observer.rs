//! Who looks at a session between its slices.

use machine::RunExit;

use super::Session;
use crate::error::SimulationError;

/// Instructions between two looks at the outside world, some tenths of a second: a core's thread begins anew after each.
/// Part of what makes runs equal: where the hart pauses must not depend on the host (but with a network).
pub const SLICE: u64 = 1 << 22;

/// What an observer wants after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The step ends where the goal is reached, where the guest ends, and where nothing happens any more.
    Default,
    /// The step goes on, whatever the slice came back for.
    GoOn,
    /// The step ends.
    End,
}

/// Looks at a session between its slices, and may end the step: for signals, progress, limits on the host's resources, debuggers.
pub trait Observer {
    /// What can go wrong.
    type Error: From<SimulationError>;

    /// Returns the instructions of the next slice.
    fn slice(&mut self, _session: &Session) -> u64 {
        SLICE
    }

    /// Called before each slice; may run the machine itself. The step ends with [`Flow::End`].
    ///
    /// # Errors
    /// The observer's own, which end the step.
    fn before_slice(&mut self, _session: &mut Session) -> Result<Flow, Self::Error> {
        Ok(Flow::Default)
    }

    /// Called after each slice with what it came back for.
    ///
    /// # Errors
    /// The observer's own, which end the step.
    fn after_slice(&mut self, _session: &mut Session, _exit: RunExit) -> Result<Flow, Self::Error> {
        Ok(Flow::Default)
    }
}

/// Nobody looks.
pub struct NoObserver;

impl Observer for NoObserver {
    type Error = SimulationError;
}
