//! Why an experiment ended.

use std::path::Path;

use devices::Exit;
use simulation::Standstill;

use super::command;
use crate::host::memory;

/// Why the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The guest ended it.
    Guest(Exit),
    /// The guest ended it before its command had ended.
    BeforeCommand(Exit),
    /// The guest does nothing any more.
    Standstill(Standstill),
    /// Ctrl-C or a signal.
    Interrupted,
    /// The trace or a profiler failed.
    RecordingFailed,
    /// More cycles than `run.max_cycles`.
    TooLong(u64),
    /// More instructions than `run.max_instructions`.
    TooManyInstructions(u64),
    /// Whoever drove the experiment in steps ended it before the guest did. `complete`: after a region of interest that was over.
    Session {
        /// All that was to be profiled is.
        complete: bool,
    },
    /// This process had more of the host's memory in use than these bytes (`run.host_memory`).
    HostMemory(u64),
}

impl End {
    /// Says more exactly why a guest ended, by what it left: whether it has `no_status` of its command, and the console's file in `work`.
    pub(crate) fn settled(self, no_status: bool, work: &Path) -> Self {
        let Self::Guest(exit) = self else { return self };
        match (exit, command::panic(work)) {
            (Exit::Reset, Some(reason)) => Self::Standstill(Standstill::Panicked(reason)),
            (Exit::Reset | Exit::PowerOff(0), _) if no_status => Self::BeforeCommand(exit),
            _ => self,
        }
    }

    /// Returns why a run that ended so is not whole, if it is not.
    pub(crate) fn part(&self) -> Option<String> {
        Some(match self {
            Self::Guest(Exit::PowerOff(0) | Exit::Host(_)) => return None,
            Self::BeforeCommand(_) => "the guest ended before its command did".to_owned(),
            Self::Standstill(standstill) => standstill.to_string(),
            Self::Guest(Exit::PowerOff(code)) => format!("the guest failed with status {code}"),
            Self::Guest(Exit::Reset) => "the guest asked for a reset".to_owned(),
            Self::Session { complete: true } => return None,
            Self::Session { complete: false } => {
                "its session ended it before the guest did".to_owned()
            }
            Self::Interrupted => "it was interrupted".to_owned(),
            Self::RecordingFailed => "recording failed".to_owned(),
            Self::TooLong(most) => format!("not done after {most} cycles (run.max_cycles)"),
            Self::TooManyInstructions(most) => {
                format!("not done after {most} instructions (run.max_instructions)")
            }
            Self::HostMemory(most) => format!(
                "tipsim had more than {} of the host's memory in use (run.host_memory)",
                memory::size(*most)
            ),
        })
    }

    /// The run ended before its time.
    pub(crate) fn is_part(&self) -> bool {
        self.part().is_some()
    }
}
