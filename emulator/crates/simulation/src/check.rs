//! What a fork of the core finds of a timed stretch beside its cycles. The fork is made at the begin of the stretch. While the core times the
//! stretch, all calls to it are logged ([`CallLog`]); afterwards they are replayed on the fork.
//!
//! - How often the stretch would have missed if nothing had been timed: the fork is only kept warm. Functional warming counts misses all over the region, so that units can be compared with
//!   the region by them ([`profile::Estimate::of_counted`]).
//! - How far off the functionally warmed state is in which units begin. The core times the unit after a long timed warm-up, as if everything had
//!   been timed, and these cycles go into the results. The fork is kept warm up to where other units begin to be timed, and times the unit again.

use std::cell::RefCell;
use std::rc::Rc;

use commit_trace::CommitSink;
use isa::{InstClass, MemAccess, Operand, Run, StaticId, Step, TimingModel};
use timing::{Ahead, CoreCall, CoreTap, Warming};

use crate::engine::KeptWarm;
use crate::sampling::Phase;

/// A log with two owners: the tap of a core, and who has the core.
pub(crate) type SharedLog = Rc<RefCell<CallLog>>;

/// Calls that a core got since a timed stretch began.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    is_open: bool,
    calls: Vec<LoggedCall>,
    steps: Vec<Step>,
    accesses: Vec<MemAccess>,
    operands: Vec<Operand>,
}

/// A call, whose variable parts are in the log's own vectors.
#[derive(Debug)]
enum LoggedCall {
    /// A run without its steps, accesses and operands, and the number of each.
    Run(Run<'static>, [usize; 3]),
    Call(CoreCall<'static>),
    /// A phase begins in this cycle.
    Mark(Phase, u64),
}

/// Passes each call to a core on to the log, if it is open, and to `store`, if units are stored.
pub(crate) struct Taps {
    pub store: Option<Box<dyn CoreTap>>,
    pub log: SharedLog,
}

impl CoreTap for Taps {
    fn call(&mut self, call: CoreCall<'_>) {
        let mut log = self.log.borrow_mut();
        if log.is_open {
            log.push(&call);
        }
        drop(log);
        if let Some(store) = &mut self.store {
            store.call(call);
        }
    }
}

/// Where a log is read.
#[derive(Clone, Copy, Default)]
pub(crate) struct LogCursor {
    call: usize,
    parts: [usize; 3],
    /// Instructions that have passed.
    instructions: u64,
    fetched: (StaticId, u64),
}

impl CallLog {
    /// Begins to log, and forgets what was logged before.
    pub(crate) fn open(&mut self) {
        *self = Self { is_open: true, ..Self::default() };
    }

    /// Notes that a phase begins in a cycle.
    pub(crate) fn mark(&mut self, phase: Phase, cycle: u64) {
        if self.is_open {
            self.calls.push(LoggedCall::Mark(phase, cycle));
        }
    }

    /// Returns the phase with which the log begins, and passes its mark; `None` if nothing was logged.
    pub(crate) fn begin(&self, cursor: &mut LogCursor) -> Option<Phase> {
        match self.next(cursor) {
            Err(Some((phase, _))) => Some(phase),
            _ => None,
        }
    }

    /// Returns how many instructions the first phase has.
    pub(crate) fn instructions_of_first(&self) -> u64 {
        let others = self.calls.iter().skip(1);
        let before = others.take_while(|call| !matches!(call, LoggedCall::Mark(..)));
        let of_call = |call: &LoggedCall| match call {
            LoggedCall::Run(_, [steps, ..]) => *steps as u64,
            LoggedCall::Call(call) => retired(call),
            LoggedCall::Mark(..) => 0,
        };
        before.map(of_call).sum()
    }

    fn push(&mut self, call: &CoreCall<'_>) {
        self.calls.push(match *call {
            CoreCall::Run(ref run) => {
                self.steps.extend_from_slice(run.steps);
                self.accesses.extend_from_slice(run.accesses);
                self.operands.extend_from_slice(run.operands);
                let parts = [run.steps.len(), run.accesses.len(), run.operands.len()];
                LoggedCall::Run(Run { steps: &[], accesses: &[], operands: &[], ..*run }, parts)
            }
            CoreCall::Define(inst) => LoggedCall::Call(CoreCall::Define(inst)),
            CoreCall::Translated { va, walk } => {
                LoggedCall::Call(CoreCall::Translated { va, walk })
            }
            CoreCall::Fetch { id, inst, pc, pa, translated } => {
                LoggedCall::Call(CoreCall::Fetch { id, inst, pc, pa, translated })
            }
            CoreCall::Retire(executed) => LoggedCall::Call(CoreCall::Retire(executed)),
            CoreCall::Interrupt => LoggedCall::Call(CoreCall::Interrupt),
            CoreCall::IdleUntil(cycle) => LoggedCall::Call(CoreCall::IdleUntil(cycle)),
            CoreCall::FlushTlb => LoggedCall::Call(CoreCall::FlushTlb),
            CoreCall::DmaWrite(lines) => LoggedCall::Call(CoreCall::DmaWrite(lines)),
            CoreCall::Privilege(privilege) => LoggedCall::Call(CoreCall::Privilege(privilege)),
            // All other calls either record events of the stream, which take no time, or let the core rest, which it does not do in a timed stretch.
            _ => return,
        });
    }

    /// Returns the next call. An error is a mark, which is passed, or none at the end.
    fn next<'l>(&'l self, cursor: &mut LogCursor) -> Result<CoreCall<'l>, Option<(Phase, u64)>> {
        let call = self.calls.get(cursor.call).ok_or(None)?;
        cursor.call += 1;
        match call {
            LoggedCall::Mark(phase, cycle) => Err(Some((*phase, *cycle))),
            LoggedCall::Call(call) => Ok(call.clone()),
            LoggedCall::Run(run, lens) => {
                let [step, access, operand] = cursor.parts;
                cursor.parts = std::array::from_fn(|n| cursor.parts[n] + lens[n]);
                Ok(CoreCall::Run(Run {
                    steps: &self.steps[step..cursor.parts[0]],
                    accesses: &self.accesses[access..cursor.parts[1]],
                    operands: &self.operands[operand..cursor.parts[2]],
                    ..*run
                }))
            }
        }
    }

    /// Replays calls on `warming` as a functional hart would make them, as far as `kept_warm` says. Ends at the next mark, at instruction number
    /// `until`, at an instruction that must be announced to the core itself, or at the log's end, and returns which of these it was.
    pub(crate) fn warm<S: CommitSink>(
        &self,
        cursor: &mut LogCursor,
        (until, kept_warm): (u64, KeptWarm),
        warming: &mut Warming<'_, S>,
    ) -> WarmEnd {
        let keeps = kept_warm != KeptWarm::Nothing;
        while cursor.instructions < until {
            let call = match self.next(cursor) {
                Ok(call) => call,
                Err(Some((phase, cycle))) => return WarmEnd::Mark(phase, cycle),
                Err(None) => return WarmEnd::Log,
            };
            cursor.instructions += retired(&call);
            match call {
                CoreCall::Run(run) if keeps => warming.execute(&run),
                CoreCall::Fetch { id, pc, .. } => cursor.fetched = (id, pc),
                CoreCall::Retire(executed) if keeps => warming.execute_one(&executed),
                CoreCall::Retire(executed) if executed.inst.class == InstClass::FenceI => {
                    warming.warm_fence_i();
                }
                CoreCall::Interrupt if keeps => warming.interrupted(cursor.fetched.1),
                CoreCall::Translated { va, walk } => warming.translated(va, &walk),
                CoreCall::FlushTlb => warming.flush_tlb(),
                CoreCall::DmaWrite(lines) => warming.dma_write(lines),
                CoreCall::Define(inst) => return WarmEnd::Define(inst),
                _ => {}
            }
        }
        WarmEnd::Instructions
    }

    /// Replays calls on a core that times them, up to the next mark. Cycle `since` of the logged core corresponds to cycle `now` of this one.
    pub(crate) fn time(
        &self,
        cursor: &mut LogCursor,
        (since, now): (u64, u64),
        ahead: &mut Ahead<'_>,
    ) {
        while let Ok(call) = self.next(cursor) {
            match call {
                CoreCall::IdleUntil(cycle) => {
                    ahead.idle_until(now.saturating_add(cycle.saturating_sub(since)));
                }
                call => _ = tell(ahead, call, &mut cursor.fetched),
            }
        }
    }
}

/// Returns how many instructions retire by a call.
pub(crate) fn retired(call: &CoreCall<'_>) -> u64 {
    match call {
        CoreCall::Run(run) => run.steps.len() as u64,
        CoreCall::Retire(executed) => u64::from(executed.trap.is_none()),
        _ => 0,
    }
}

/// Replays one call on a core that times it; `fetched`: number and address of the instruction that was fetched last. Returns false if a timing core
/// gets no such call.
pub(crate) fn tell(
    ahead: &mut Ahead<'_>,
    call: CoreCall<'_>,
    fetched: &mut (StaticId, u64),
) -> bool {
    // Nobody needs the cycles that the timing model returns: what the hart did is settled.
    match call {
        CoreCall::Run(run) => _ = ahead.run(&run, u64::MAX),
        CoreCall::Fetch { id, inst, pc, pa, translated } => {
            *fetched = (id, pc);
            ahead.fetch(id, &inst, pc, pa, translated, u64::MAX);
        }
        CoreCall::Retire(executed) => ahead.retire(&executed),
        CoreCall::Interrupt => ahead.interrupt(fetched.0, fetched.1, 0),
        CoreCall::Define(inst) => ahead.define(&inst),
        CoreCall::Translated { va, walk } => ahead.translated(va, &walk),
        CoreCall::IdleUntil(cycle) => ahead.idle_until(cycle),
        CoreCall::FlushTlb => ahead.flush_tlb(),
        CoreCall::DmaWrite(lines) => ahead.dma_write(lines),
        CoreCall::Note { kind, bytes } => ahead.note(kind, bytes.to_vec()),
        CoreCall::Privilege(privilege) => ahead.privilege(privilege),
        CoreCall::Wake { .. }
        | CoreCall::Rest { .. }
        | CoreCall::Region(_)
        | CoreCall::WarmAccess { .. }
        | CoreCall::WarmFetch { .. }
        | CoreCall::FenceI
        | CoreCall::Path(_) => return false,
    }
    true
}

/// Why a core is not kept warm any longer.
pub(crate) enum WarmEnd {
    /// The mark of a phase was passed, which began in this cycle.
    Mark(Phase, u64),
    /// The instructions that were asked for were executed.
    Instructions,
    /// The core has to know of an instruction first.
    Define(isa::StaticInst),
    /// There is no more.
    Log,
}
