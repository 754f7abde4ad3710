//! What a debugger needs: breakpoints, watchpoints, and memory as the hart sees it. Pages with a breakpoint
//! are fetched from one instruction at a time, pages with a watchpoint are not in the TLBs; nothing else
//! is slower.

use std::ops::Range;

use devices::Bus;
use isa::{Exception, Privilege, Trap, Untimed};

use super::{Env, Hart, after};
use crate::RunExit;
use crate::csr::number;
use crate::mmu::{self, Access};

/// Why a run ended for the debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugStop {
    /// The next instruction has a breakpoint.
    Breakpoint,
    /// The one instruction that [`Hart::debug_step`] asked for is executed, or a trap was taken in its place.
    Step,
    /// The last instruction accessed watched memory at this virtual address.
    Watchpoint {
        /// First byte of the access.
        address: u64,
        /// True if the access was a write.
        write: bool,
    },
}

/// Virtual addresses whose access ends a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watchpoint {
    /// The addresses.
    pub range: Range<u64>,
    /// True if reads end a run.
    pub read: bool,
    /// True if writes end a run.
    pub write: bool,
}

/// A hart's breakpoints and watchpoints.
#[derive(Default)]
pub(crate) struct Debug {
    breakpoints: Vec<u64>,
    watchpoints: Vec<Watchpoint>,
    stop: Option<DebugStop>,
    /// Value of [`Progress::count`](super::arch::Progress::count) at which a breakpoint does not end the run: the run ended there before, or the
    /// debugger goes on from there.
    passes: Option<u64>,
    step: Option<Step>,
    held: bool,
    stopped: bool,
}

/// How far the single step is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Wanted,
    /// An interrupt was taken: nothing of its handler is executed.
    Interrupted,
}

impl Debug {
    /// Follows a change of [`Progress::count`](super::arch::Progress::count) from one number to another.
    pub(super) fn rebase(&mut self, from: u64, to: u64) {
        if self.passes == Some(from) {
            self.passes = Some(to);
        }
    }

    /// How many of so many instructions the next run can have.
    pub(super) fn most(&self, instructions: u64) -> u64 {
        match self.step {
            Some(_) => instructions.min(1),
            None => instructions,
        }
    }
}

impl Hart {
    /// Adds or removes a breakpoint at a virtual address. Between runs.
    pub fn set_breakpoint(&mut self, pc: u64, on: bool) {
        self.attachments.debug.breakpoints.retain(|&other| other != pc);
        if on {
            self.attachments.debug.breakpoints.push(pc);
        }
    }

    /// Adds or removes a watchpoint. Between runs.
    pub fn set_watchpoint(&mut self, watchpoint: Watchpoint, on: bool) {
        self.attachments.debug.watchpoints.retain(|other| *other != watchpoint);
        if on {
            self.attachments.debug.watchpoints.push(watchpoint);
        }
    }

    /// Ends the next run with [`DebugStop::Step`] after one instruction of this hart, or where an exception or interrupt leads;
    /// false takes the request back. Between runs.
    pub fn debug_step(&mut self, step: bool) {
        self.attachments.debug.step = step.then_some(Step::Wanted);
    }

    /// Passes the breakpoint of the next instruction: the debugger goes on from there. Between runs.
    pub fn pass_breakpoint(&mut self) {
        self.attachments.debug.passes = Some(self.progress.count);
    }

    /// Keeps this hart still while others go on, or lets it go on. Between runs.
    pub fn hold(&mut self, held: bool) {
        self.attachments.debug.held = held;
    }

    /// Returns whether the hart is kept still.
    pub(super) fn is_held(&self) -> bool {
        self.attachments.debug.held
    }

    /// Ends a single step where an interrupt was taken in place of the next instruction.
    #[inline(always)]
    pub(super) fn interrupted_step(&mut self) {
        if self.attachments.debug.step.is_some() {
            self.attachments.debug.step = Some(Step::Interrupted);
            self.deadlines.stop_count = self.progress.count;
        }
    }

    /// Returns the exit of a run, which may be that of a single step; `slept`: the hart did nothing else.
    pub(super) fn debug_stepped(&mut self, begins: u64, slept: bool, exit: RunExit) -> RunExit {
        let done = match self.attachments.debug.step {
            None => return exit,
            Some(Step::Interrupted) => true,
            Some(Step::Wanted) => self.progress.count != begins && !slept,
        };
        if !done {
            return exit;
        }
        self.attachments.debug.step = None;
        match exit {
            RunExit::Limit | RunExit::Idle => {
                self.attachments.debug.stopped = true;
                RunExit::Debug(DebugStop::Step)
            }
            other => other,
        }
    }

    /// True once if it was this hart that ended the last run for the debugger.
    pub fn take_debug_stopped(&mut self) -> bool {
        std::mem::take(&mut self.attachments.debug.stopped)
    }

    /// Removes all breakpoints and watchpoints: the debugger is gone.
    pub fn clear_debug(&mut self) {
        self.attachments.debug = Debug::default();
    }

    /// Reads memory at a virtual address as far as it is mapped to RAM, whatever its permissions; how many bytes.
    pub fn debug_read(&mut self, bus: &mut Bus, va: u64, bytes: &mut [u8]) -> usize {
        for (n, byte) in bytes.iter_mut().enumerate() {
            let at = va.wrapping_add(n as u64);
            let value = self.debug_place(bus, at).and_then(|pa| bus.ram.load(pa, 1));
            match value {
                Some(value) => *byte = value as u8,
                None => return n,
            }
        }
        bytes.len()
    }

    /// Writes memory at a virtual address; false if not all of it is mapped to RAM.
    pub fn debug_write(&mut self, bus: &mut Bus, va: u64, bytes: &[u8]) -> bool {
        bytes.iter().enumerate().all(|(n, &byte)| {
            let pa = self.debug_place(bus, va.wrapping_add(n as u64));
            pa.is_some_and(|pa| bus.ram.store(pa, 1, byte.into()).is_some())
        })
    }

    /// Reads a CSR, whatever the privilege. `None` if there is none, or if it counts or tells the time: such values
    /// are the timing model's.
    pub fn debug_csr(&mut self, bus: &mut Bus, number: u16) -> Option<u64> {
        if counts(number) {
            return None;
        }
        self.arch.lines = bus.mip(self.id());
        let pending = self.pending(bus.now);
        match number {
            number::MIP => Some(pending),
            number::SIP => Some(pending & self.arch.csrs.mideleg),
            _ => {
                let timing = &mut Untimed;
                self.instruction.executed.pc = self.arch.pc;
                self.csr(&mut Env { bus, timing }, number, self.progress.count)
            }
        }
    }

    /// Writes a CSR that [`Self::debug_csr`] reads; false if that cannot be done.
    pub fn set_debug_csr(&mut self, bus: &mut Bus, number: u16, value: u64) -> bool {
        let timing = &mut Untimed;
        self.instruction.executed.pc = self.arch.pc;
        !counts(number)
            && self
                .write_csr(&mut Env { bus, timing }, number, value, self.progress.count)
                .is_some()
    }

    fn debug_place(&self, bus: &mut Bus, va: u64) -> Option<u64> {
        self.physical(bus, va, self.arch.privilege)
    }

    /// Where a privilege's virtual address is in physical memory.
    pub(super) fn physical(&self, bus: &mut Bus, va: u64, privilege: Privilege) -> Option<u64> {
        if privilege == Privilege::Machine || self.arch.csrs.satp.levels() == 0 {
            return Some(va);
        }
        let env = Env { bus, timing: &mut Untimed };
        let read = |pa| env.bus.ram.load(pa, 8);
        let leaf = mmu::walk(self.arch.csrs.satp, self.page_features(), va, read);
        leaf.ok().map(|leaf| leaf.pa)
    }

    /// True if the instruction at `pc` must not execute now.
    #[inline(always)]
    pub(super) fn at_breakpoint(&self, pc: u64) -> bool {
        !self.attachments.debug.breakpoints.is_empty()
            && self.attachments.debug.breakpoints.contains(&pc)
            && self.attachments.debug.passes != Some(self.progress.count)
    }

    /// Ends the run before the instruction that [`Self::at_breakpoint`] found.
    pub(super) fn stop_at_breakpoint(&mut self) {
        self.attachments.debug.stop = Some(DebugStop::Breakpoint);
        self.attachments.debug.passes = Some(self.progress.count);
        self.deadlines.afterwards(after::DEBUG);
    }

    pub(super) fn has_breakpoint(&self, vpage: u64) -> bool {
        self.attachments.debug.breakpoints.iter().any(|pc| pc & !0xfff == vpage)
    }

    /// True if the page of `va` must stay out of the TLBs.
    pub(super) fn watches_page(&self, va: u64) -> bool {
        let page = va & !0xfff..(va | 0xfff).wrapping_add(1);
        self.attachments.debug.watchpoints.iter().any(|w| overlap(&w.range, &page))
    }

    /// Notes an access that is about to happen: if it is watched, `Hart::run` ends after the instruction. Within a run of several instructions the
    /// access fails, so that the instruction is executed again by itself.
    pub(super) fn watch(&mut self, va: u64, size: u8, access: Access) -> Result<(), Trap> {
        if self.attachments.debug.watchpoints.is_empty() {
            return Ok(());
        }
        let (range, write) = (va..va.wrapping_add(size.into()), access == Access::Store);
        let watched = |w: &Watchpoint| {
            let kind = if write { w.write } else { w.read };
            kind && overlap(&w.range, &range)
        };
        if !self.attachments.debug.watchpoints.iter().any(watched) {
            return Ok(());
        }
        if self.instruction.run.is_none() {
            return Err(Trap { cause: Exception::LoadAccessFault, tval: va });
        }
        self.attachments.debug.stop = Some(DebugStop::Watchpoint { address: va, write });
        self.deadlines.afterwards(after::DEBUG);
        Ok(())
    }

    /// Takes the reason why the run ends.
    pub(super) fn debug_exit(&mut self) -> Option<RunExit> {
        let stop = self.attachments.debug.stop.take()?;
        self.attachments.debug.stopped = true;
        Some(RunExit::Debug(stop))
    }
}

fn counts(csr: u16) -> bool {
    use number::*;
    matches!(
        csr,
        SCOUNTINHIBIT
            | SIREG..=SIREG6
            | MCOUNTINHIBIT..=MHPMEVENT31
            | MCYCLE..=MHPMCOUNTER31
            | CYCLE..=HPMCOUNTER31
            | SCOUNTOVF
            | SPDISCTL..=SHPMSAMBADDR
            | MPDISCTL
    )
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}
