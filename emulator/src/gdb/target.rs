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

use super::description::description;
use super::{After, Beginning, End, POLL_INSTRUCTIONS};
use crate::stuck;
use crate::system::{Engine, System};

/// What a hart does when the machine goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The debugger said nothing about the hart.
    None,
    Continue,
    Step,
}

pub struct Debugged<'a> {
    pub system: &'a mut System,
    pub engine: &'a mut Engine,
    pub after: &'a mut After<'a>,
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
pub fn thread(hart: usize) -> Tid {
    NonZeroUsize::MIN.saturating_add(hart)
}

impl<'a> Debugged<'a> {
    pub fn new(
        system: &'a mut System,
        engine: &'a mut Engine,
        after: &'a mut After<'_>,
        beginning: Result<&'a Beginning, &'a str>,
        connection: TcpStream,
    ) -> Self {
        let (hart, bus) = system.hart_and_bus(0);
        let csrs = (0..1 << 12).filter(|&csr| hart.debug_csr(bus, csr).is_some());
        let description = description(csrs);
        let actions = vec![Action::None; system.harts()];
        Self {
            description,
            actions,
            system,
            engine,
            after,
            beginning,
            connection,
            locked: false,
            stopped: 0,
            ended: None,
            failed: None,
        }
    }

    /// The debugger is gone: nothing of it stays, also if it did not say goodbye.
    pub fn leave(self) -> (Option<End>, Option<anyhow::Error>) {
        for hart in self.system.each_hart() {
            hart.clear_debug();
        }
        (self.ended, self.failed)
    }

    /// The hart of a thread. GDB has the numbers from the list of threads.
    pub fn hart(&mut self, tid: Tid) -> (&mut Hart, &mut Bus) {
        let last = self.system.harts() - 1;
        self.system.hart_and_bus((tid.get() - 1).min(last))
    }

    /// Runs a slice; `None` if nothing happened that GDB wants to know.
    fn run(&mut self) -> Option<StopReason> {
        let limit = Limit::instructions(POLL_INSTRUCTIONS);
        let exit = self.system.run(self.engine, limit);
        let reason = self.reason(exit)?;
        for hart in self.system.each_hart() {
            hart.debug_step(false);
            hart.hold(false);
        }
        Some(reason)
    }

    fn reason(&mut self, exit: RunExit) -> Option<StopReason> {
        let trapped = |hart, signal| StopReason::SignalWithThread { tid: thread(hart), signal };
        match exit {
            RunExit::Debug(stop) => {
                let stopped = self.system.each_hart().position(Hart::take_debug_stopped);
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
                eprintln!("tipsim: {}", stuck::describe(self.system, &stuck));
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
        match (self.after)(self.system, self.engine, exit) {
            Ok(false) => {}
            Ok(true) => {
                self.ended = Some(End::Caller);
                return Some(StopReason::Exited(1));
            }
            Err(error) => {
                self.ended = Some(End::Caller);
                self.failed = Some(error);
                return Some(StopReason::Exited(1));
            }
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

    fn set_action(&mut self, tid: Tid, action: Action) {
        if let Some(place) = self.actions.get_mut(tid.get() - 1) {
            *place = action;
        }
    }
}

pub struct EventLoop<'a>(PhantomData<&'a ()>);

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
        for hart in target.system.each_hart() {
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
        for (number, hart) in self.system.each_hart().enumerate() {
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
