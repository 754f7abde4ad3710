//! The machine as the protocol's target: what it is told to do, and why it stops.

use std::marker::PhantomData;
use std::net::TcpStream;
use std::num::NonZeroUsize;

use devices::{Bus, Exit};
use gdbstub::common::{Signal, Tid};
use gdbstub::conn::{Connection, ConnectionExt};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::target::Target;
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadResume, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps,
    MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{BreakpointsOps, WatchKind};
use gdbstub::target::ext::monitor_cmd::MonitorCmdOps;
use gdbstub::target::ext::target_description_xml_override::TargetDescriptionXmlOverrideOps;
use gdbstub_arch::riscv::Riscv64;
use machine::{DebugStop, Hart, Limit, RunExit};
use simulation::{Flow, Session, describe_stuck};

use super::description::description;
use super::{Beginning, End, POLL_INSTRUCTIONS, Watching};

/// What a hart does when the machine goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The debugger said nothing about the hart.
    None,
    Continue,
    Step,
}

pub(super) struct Debugged<'a> {
    pub session: &'a mut Session,
    pub watching: &'a mut Watching<'a>,
    pub beginning: Result<&'a Beginning, &'a str>,
    /// The connection to the debugger, to end it from this side.
    pub connection: TcpStream,
    /// Actions by hart.
    actions: Vec<Action>,
    /// Whether harts that the debugger said nothing about stand still.
    locked: bool,
    /// The hart that stopped last.
    stopped: usize,
    pub ended: Option<End>,
    pub failed: Option<anyhow::Error>,
    /// Description of the target for GDB, in XML.
    pub description: String,
}

type StopReason = MultiThreadStopReason<u64>;

/// The number of a hart as a thread.
pub(super) fn thread(hart: usize) -> Tid {
    NonZeroUsize::MIN.saturating_add(hart)
}

impl<'a> Debugged<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        watching: &'a mut Watching<'_>,
        beginning: Result<&'a Beginning, &'a str>,
        connection: TcpStream,
    ) -> Self {
        let (hart, bus) = session.system_mut().hart_and_bus(0);
        let csrs = (0..1 << 12).filter(|&csr| hart.debug_csr(bus, csr).is_some());
        let description = description(csrs);
        let actions = vec![Action::None; session.system().harts.len()];
        Self {
            description,
            actions,
            session,
            watching,
            beginning,
            connection,
            locked: false,
            stopped: 0,
            ended: None,
            failed: None,
        }
    }

    /// The debugger is gone: nothing of it stays, also if it did not say goodbye.
    pub(super) fn leave(self) -> (Option<End>, Option<anyhow::Error>) {
        for hart in &mut self.session.system_mut().harts {
            hart.clear_debug();
        }
        (self.ended, self.failed)
    }

    /// The hart of a thread. GDB has the numbers from the list of threads.
    pub(super) fn hart(&mut self, tid: Tid) -> (&mut Hart, &mut Bus) {
        let last = self.session.system().harts.len() - 1;
        self.session.system_mut().hart_and_bus((tid.get() - 1).min(last))
    }

    /// Runs a slice; `None` if nothing happened that GDB wants to know.
    fn run(&mut self) -> Option<StopReason> {
        let limit = Limit::instructions(POLL_INSTRUCTIONS);
        let reason = match self.session.advance(limit) {
            Ok(exit) => self.reason(exit)?,
            Err(error) => self.end_with(error.into()),
        };
        for hart in &mut self.session.system_mut().harts {
            hart.debug_step(false);
            hart.hold(false);
        }
        Some(reason)
    }

    fn reason(&mut self, exit: RunExit) -> Option<StopReason> {
        let trapped = |hart, signal| StopReason::SignalWithThread { tid: thread(hart), signal };
        match exit {
            RunExit::Debug(stop) => {
                let stopped =
                    self.session.system_mut().harts.iter_mut().position(Hart::take_debug_stopped);
                self.stopped = stopped.unwrap_or(0);
                let tid = thread(self.stopped);
                return Some(match stop {
                    DebugStop::Breakpoint => StopReason::SwBreak(tid),
                    DebugStop::Step => trapped(self.stopped, Signal::SIGTRAP),
                    DebugStop::Watchpoint { address, write } => StopReason::Watch {
                        tid,
                        kind: if write { WatchKind::Write } else { WatchKind::Read },
                        addr: address,
                    },
                });
            }
            RunExit::Stuck(stuck) => {
                eprintln!("tipsim: {}", describe_stuck(self.session.system_mut(), &stuck));
                self.stopped = stuck.hart;
                return Some(trapped(stuck.hart, Signal::SIGSEGV));
            }
            RunExit::Exit(exit) => {
                self.ended = Some(End::Guest(exit));
                let code = match exit {
                    Exit::PowerOff(code) => u8::try_from(code).unwrap_or(255),
                    Exit::Host(code) => u8::try_from(code).unwrap_or(255),
                    Exit::Reset => 0,
                };
                // The caller hears of it when it has the machine back.
                return Some(StopReason::Exited(code));
            }
            RunExit::Limit | RunExit::Paused | RunExit::Region(_) | RunExit::Idle => {}
        }
        match self.watching.after_slice(self.session, exit) {
            Ok(Flow::Default | Flow::GoOn) => {}
            Ok(Flow::End) => {
                self.ended = Some(End::Caller);
                return Some(StopReason::Exited(1));
            }
            Err(error) => return Some(self.end_with(error)),
        }
        if exit == RunExit::Idle {
            // Nothing can wake it but the console's input, or an interrupt from the debugger.
            std::thread::sleep(std::time::Duration::from_millis(2));
            let stepping = self.actions.iter().position(|&a| a == Action::Step);
            if let Some(hart) = stepping {
                self.stopped = hart;
                return Some(trapped(hart, Signal::SIGTRAP));
            }
        }
        None
    }

    /// Ends the run because of an error, which the caller gets.
    fn end_with(&mut self, error: anyhow::Error) -> StopReason {
        self.ended = Some(End::Caller);
        self.failed = Some(error);
        StopReason::Exited(1)
    }

    fn set_action(&mut self, tid: Tid, action: Action) {
        if let Some(place) = self.actions.get_mut(tid.get() - 1) {
            *place = action;
        }
    }
}

pub(super) struct EventLoop<'a>(PhantomData<&'a ()>);

impl<'a> BlockingEventLoop for EventLoop<'a> {
    type Target = Debugged<'a>;
    type Connection = TcpStream;
    type StopReason = StopReason;

    fn wait_for_stop_reason(
        target: &mut Debugged<'a>,
        connection: &mut TcpStream,
    ) -> Result<
        Event<StopReason>,
        WaitForStopReasonError<&'static str, <TcpStream as Connection>::Error>,
    > {
        loop {
            if let Some(reason) = target.run() {
                return Ok(Event::TargetStopped(reason));
            }
            let waiting = connection.peek();
            if waiting.map_err(WaitForStopReasonError::Connection)?.is_some() {
                let byte = ConnectionExt::read(connection);
                return Ok(Event::IncomingData(byte.map_err(WaitForStopReasonError::Connection)?));
            }
        }
    }

    fn on_interrupt(target: &mut Debugged<'a>) -> Result<Option<StopReason>, &'static str> {
        for hart in &mut target.session.system_mut().harts {
            hart.debug_step(false);
            hart.hold(false);
        }
        Ok(Some(StopReason::SignalWithThread {
            tid: thread(target.stopped),
            signal: Signal::SIGINT,
        }))
    }
}

impl Target for Debugged<'_> {
    type Arch = Riscv64;
    type Error = &'static str;

    fn base_ops(&mut self) -> BaseOps<'_, Riscv64, &'static str> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadResume for Debugged<'_> {
    fn resume(&mut self) -> Result<(), &'static str> {
        let (actions, locked, stopped) = (&self.actions, self.locked, self.stopped);
        for (number, hart) in self.session.system_mut().harts.iter_mut().enumerate() {
            let action = actions[number];
            hart.hold(locked && action == Action::None);
            hart.debug_step(action == Action::Step);
            if number == stopped || action == Action::Step {
                hart.pass_breakpoint();
            }
        }
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), &'static str> {
        self.actions.fill(Action::None);
        self.locked = false;
        Ok(())
    }

    fn set_resume_action_continue(
        &mut self,
        tid: Tid,
        _: Option<Signal>,
    ) -> Result<(), &'static str> {
        self.set_action(tid, Action::Continue);
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Debugged<'_> {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), &'static str> {
        self.set_action(tid, Action::Step);
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Debugged<'_> {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), &'static str> {
        self.locked = true;
        Ok(())
    }
}
