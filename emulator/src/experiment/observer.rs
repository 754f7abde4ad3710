//! Looks at an experiment between the slices of its run: for its end, signals, limits on the host's resources, and what its console prints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use machine::{Mark, RunExit};
use simulation::{Flow, InputWatch, Observer, SLICE, Session, Standstill, Watch, describe_stuck};

use super::boot_cache::Boot;
use super::progress::Progress;
use super::{Console, End, ExperimentOptions, Plan};
use crate::host::memory;
use crate::session::SharedPosition;

/// What is known of an experiment from step to step.
pub(super) struct ExperimentState {
    /// The guest's console.
    pub console: Console,
    /// The line that shows how far the run is.
    pub progress: Progress,
    /// Where other threads see how far the run is, if it is not shown on the terminal.
    position: Option<Arc<SharedPosition>>,
    /// Ends the step that goes on, from another thread.
    pub stop: Arc<AtomicBool>,
    /// The guest has mounted the shared folder, where its command waits for it.
    pub mounted: bool,
    /// Bytes that the console had printed when the command started, if it did.
    pub command_at: Option<u64>,
    /// Why the experiment ended, if it did.
    pub end: Option<End>,
    /// The machine has paused only where a plain run does, so that its state is that of every run with such a boot.
    pub boot_is_cacheable: bool,
    boot: Option<Boot>,
    standstill: Watch,
    input: InputWatch,
    has_debugger: bool,
    /// Text may be typed on the console between two steps: a guest that waits has not ended.
    is_interactive: bool,
    /// The console printed what the last step waited for.
    found_text: bool,
    /// The last step ended as the guest of an interactive session waits for what is typed.
    waits: bool,
}

/// Instructions of a slice while the console is looked at: less than a millisecond of simulated time.
const SLICE_FOR_TEXT: u64 = 1 << 16;

/// Simulated seconds after which a guest that waits for what is typed ends a step.
const MAX_IDLE_OF_INTERACTIVE: u64 = 5;

impl ExperimentState {
    /// Begins to watch a session that has not run, or goes on from a checkpoint.
    pub(super) fn new(
        plan: &Plan,
        session: &Session,
        console: Console,
        (boot, from_checkpoint): (Option<Boot>, bool),
        options: &ExperimentOptions<'_>,
    ) -> Self {
        let restored = from_checkpoint || boot.as_ref().is_some_and(Boot::is_restored);
        let system = session.system();
        let is_interactive = options.input.is_some();
        let max_idle = match is_interactive {
            true => MAX_IDLE_OF_INTERACTIVE,
            false => plan.spec.run.max_idle_seconds(),
        };
        Self {
            console,
            progress: Progress::new(Instant::now(), system.harts.instructions()),
            position: options.position.clone(),
            stop: Arc::clone(&options.stop),
            mounted: restored,
            command_at: None,
            end: None,
            boot_is_cacheable: true,
            boot,
            standstill: Watch::new(system, max_idle, restored),
            input: InputWatch::default(),
            has_debugger: options.has_debugger,
            is_interactive,
            found_text: false,
            waits: false,
        }
    }

    /// Returns whether the console printed what the last step waited for.
    pub(super) fn has_found_text(&self) -> bool {
        self.found_text
    }

    /// Returns whether the last step ended as the guest waits for what is typed.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }
}

/// Watches one step.
pub(super) struct ExperimentObserver<'a> {
    plan: &'a Plan,
    state: &'a mut ExperimentState,
    /// What the console is to print, and where it is looked for: a place in the console's file, in bytes.
    text: Option<(&'a str, u64)>,
}

impl<'a> ExperimentObserver<'a> {
    /// Watches a step that also ends when the console prints `text`.
    pub(super) fn new(
        plan: &'a Plan,
        state: &'a mut ExperimentState,
        text: Option<&'a str>,
    ) -> Self {
        (state.found_text, state.waits) = (false, false);
        // The first part of the text may have been printed before.
        let before = text.map_or(0, |text| (text.len() as u64).saturating_sub(1));
        let from = state.console.size().saturating_sub(before);
        Self { plan, state, text: text.map(|text| (text, from)) }
    }

    /// Returns why the run must end though the guest goes on, if it must.
    fn limit(&mut self, session: &mut Session) -> Option<End> {
        let state = &mut *self.state;
        let most = self.plan.host_memory;
        if state.console.failure().is_some() || session.recording_failed() {
            return Some(End::RecordingFailed);
        }
        if memory::in_use().is_some_and(|used| used > most) {
            return Some(End::HostMemory(most));
        }
        if state.has_debugger {
            return None;
        }
        if state.input.look(session.system()) {
            return Some(End::Standstill(Standstill::NoInput));
        }
        let found = state.standstill.look(session.system_mut(), || state.console.tail());
        found.map(End::Standstill)
    }

    /// Returns whether the console has printed what is waited for.
    fn has_text(&mut self) -> bool {
        let Some((text, from)) = &mut self.text else {
            return false;
        };
        let printed = self.state.console.printed_from(*from);
        if printed.windows(text.len().max(1)).any(|part| part == text.as_bytes()) {
            return true;
        }
        // The text may be printed in two parts.
        *from += printed.len().saturating_sub(text.len()) as u64;
        false
    }
}

impl Observer for ExperimentObserver<'_> {
    type Error = anyhow::Error;

    fn slice(&mut self, _: &Session) -> u64 {
        if self.text.is_some() { SLICE_FOR_TEXT } else { SLICE }
    }

    fn after_slice(&mut self, session: &mut Session, exit: RunExit) -> anyhow::Result<Flow> {
        let harts = &session.system().harts;
        let cycle = harts.first().cycle();
        let instructions = harts.instructions();
        match &self.state.position {
            Some(position) => position.set(cycle, instructions),
            None => self.state.progress.show(cycle, instructions),
        }
        let mut flow = Flow::Default;
        let end = match exit {
            RunExit::Exit(exit) => Some(End::Guest(exit)),
            // What is typed next may wake the guest.
            RunExit::Idle if self.state.is_interactive => {
                (flow, self.state.waits) = (Flow::End, true);
                None
            }
            RunExit::Idle => Some(End::Standstill(Standstill::Asleep)),
            RunExit::Limit => match self.limit(session) {
                Some(End::Standstill(Standstill::Waits(_) | Standstill::NoInput))
                    if self.state.is_interactive =>
                {
                    (flow, self.state.waits) = (Flow::End, true);
                    None
                }
                end => end,
            },
            RunExit::Paused => {
                self.state.mounted = true;
                if let Some(boot) = &self.state.boot
                    && self.state.boot_is_cacheable
                    && session.counts().is_empty()
                {
                    boot.save(session, &self.state.console);
                }
                // A run that goes on from the boot of another one begins here.
                session.settle_warmed_state()?;
                None
            }
            RunExit::Debug(_) => None,
            RunExit::Stuck(stuck) => {
                let text = describe_stuck(session.system_mut(), &stuck);
                match !self.state.has_debugger && session.system().harts.len() == 1 {
                    true => Some(End::Standstill(Standstill::Stuck(text))),
                    // Another hart, or the debugger, may change memory.
                    false => {
                        tracing::warn!("the guest goes on, but gets nowhere: {text}");
                        flow = Flow::GoOn;
                        None
                    }
                }
            }
            RunExit::Region(mark) => {
                if mark == Mark::CommandStart {
                    let size = self.state.console.size();
                    self.state.command_at.get_or_insert(size);
                }
                None
            }
        };
        // A program that marks all the time ends no slice by its limit.
        let stopped = self.state.stop.load(Ordering::Relaxed).then_some(End::Interrupted);
        let end = end.or_else(|| self.plan.exceeded(session.position()));
        self.state.end = end.or(stopped);
        self.state.found_text = self.has_text();
        Ok(match self.state.end.is_some() || self.state.found_text {
            true => Flow::End,
            false => flow,
        })
    }
}
