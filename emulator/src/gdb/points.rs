//! Breakpoints and watchpoints: those of every hart.

use gdbstub::target::TargetResult;
use gdbstub::target::ext::breakpoints::{
    Breakpoints, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use machine::Watchpoint;

use super::target::Debugged;

impl Breakpoints for Debugged<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debugged<'_> {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        for hart in &mut self.session.system_mut().harts {
            hart.set_breakpoint(address, true);
        }
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        for hart in &mut self.session.system_mut().harts {
            hart.set_breakpoint(address, false);
        }
        Ok(true)
    }
}

impl HwBreakpoint for Debugged<'_> {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl Debugged<'_> {
    fn watch(&mut self, address: u64, length: u64, kind: WatchKind, on: bool) {
        let watchpoint = Watchpoint {
            range: address..address.saturating_add(length),
            read: kind != WatchKind::Write,
            write: kind != WatchKind::Read,
        };
        for hart in &mut self.session.system_mut().harts {
            hart.set_watchpoint(watchpoint.clone(), on);
        }
    }
}

impl HwWatchpoint for Debugged<'_> {
    fn add_hw_watchpoint(
        &mut self,
        address: u64,
        length: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.watch(address, length, kind, true);
        Ok(true)
    }

    fn remove_hw_watchpoint(
        &mut self,
        address: u64,
        length: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.watch(address, length, kind, false);
        Ok(true)
    }
}
