//! Exceptions, interrupts, and loads whose order failed: all act when the instruction is the oldest, and
//! then the ROB rolls back one row per cycle (`exu/rob.scala:750-830`).

use commit_trace::{CommitSink, CycleClass, Redirect, TeaEvents};
use isa::{Executed, InstClass, PageWalker, StaticId};

use crate::commit::Retired;
use crate::core::Core;
use crate::facts::{Fact, Kind};

/// Dispatch to the exception of an instruction that was found bad in decode.
const DECODED_BAD: u64 = 1;
/// Dispatch to the trap of `ecall` and `ebreak`, which go through the CSR unit.
const ECALL_DONE: u64 = 5;
/// Exception to the first dispatch, if the rollback is short.
const FLUSH: u64 = 7;
/// Exception to the first dispatch, beside the rows that are rolled back.
const ROLLBACK: u64 = 5;

impl<S: CommitSink> Core<S> {
    /// The instruction decoded last raises an exception.
    pub(crate) fn raise(&mut self, fact: &Fact, executed: &Executed) {
        let (dispatch, ready) = match fact.kind {
            Kind::Unique => {
                let dispatch = self.dispatch_alone();
                let bad = match fact.class {
                    InstClass::Ecall => ECALL_DONE,
                    InstClass::Amo | InstClass::LoadReserved | InstClass::StoreConditional => {
                        let ready = self.lsu.fault(fact, dispatch + 1, &mut self.ports);
                        ready - dispatch
                    }
                    _ => DECODED_BAD,
                };
                (dispatch, dispatch + bad)
            }
            Kind::Load | Kind::Store => {
                // It takes its entries like any other; the window forgets them at the trap.
                let dispatch = self.dispatch(fact);
                let ready = self.sources(fact, dispatch);
                let fault = self.lsu.fault(fact, ready, &mut self.ports);
                self.window.wheel.release(ready + 1, fact.lanes);
                self.window.leave_queue(fact.queue, 0);
                (dispatch, fault)
            }
            _ => {
                let dispatch = self.dispatch(fact);
                self.window.wheel.release(dispatch + 1, fact.lanes);
                (dispatch, dispatch + DECODED_BAD)
            }
        };
        let retired = Retired {
            dispatch,
            done: ready,
            redirect: Redirect::Exception,
            class: fact.waits,
            tea: TeaEvents::FL_EX,
        };
        self.stats.exceptions += 1;
        let rows = if fact.kind == Kind::Unique { 1 } else { self.window.rows };
        self.trap(executed.id, &retired, rows);
    }

    /// The instruction decoded last was tagged with an interrupt.
    pub(crate) fn take_interrupt(&mut self, id: StaticId) {
        let fact = self.fact(id);
        let dispatch = self.dispatch(&fact);
        self.window.wheel.release(dispatch + 1, fact.lanes);
        if fact.queue != crate::facts::ring::NONE {
            self.window.leave_queue(fact.queue, 0);
        }
        let retired = Retired {
            dispatch,
            done: dispatch + DECODED_BAD,
            redirect: Redirect::Interrupt,
            class: CycleClass::Alu,
            tea: TeaEvents::FL_EX,
        };
        self.stats.interrupts += 1;
        self.trap(id, &retired, 1);
    }

    /// A load that read its bytes before an older store to them had its address: it is flushed when it
    /// is the oldest, fetched again, and then finds what it needs. `known`: cycle in which the ROB has
    /// the exception. The stream gets a record for each: a trap, and the commit.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_failure(
        &mut self,
        fact: &Fact,
        executed: &Executed,
        known: u64,
        walker: &impl PageWalker,
    ) {
        let retired = Retired {
            dispatch: self.window.dispatched,
            done: known,
            redirect: Redirect::Exception,
            class: CycleClass::Store,
            tea: TeaEvents::FL_MO,
        };
        self.stats.order_failures += 1;
        self.trap(executed.id, &retired, self.window.rows);
        self.window.leave_queue(fact.queue, 0);
        // Again, from fetch.
        let inst = &executed.inst;
        let (pc, pa) = (executed.pc, executed.fetch_pa);
        isa::TimingModel::fetch(self, executed.id, inst, pc, pa, executed.translated, walker);
        let dispatch = self.dispatch(fact);
        // The stores are all older than the head: their addresses are known.
        let answer = self.load(fact, executed, dispatch, walker);
        self.write_register(fact, answer.wake);
        let commit = self.commit(fact, executed.id, &Retired::of(&answer, dispatch));
        self.window.leave_queue(fact.queue, commit + 1);
    }

    fn dispatch(&mut self, fact: &Fact) -> u64 {
        self.window.dispatch(fact, &self.decoded, &mut self.stats.dispatch_stalls)
    }

    /// The trap itself. The rows behind the head are not known yet, since younger instructions pass later:
    /// taken is that one was dispatched in each cycle until the ROB had the exception and dispatch stopped,
    /// up to `rows`.
    fn trap(&mut self, id: StaticId, retired: &Retired, rows: u64) {
        let cycle = self.window.trap(retired.done, &mut self.stats);
        self.front.committed(&self.decoded, cycle);
        self.push(id, retired, cycle);
        let rows = (retired.done - retired.dispatch).min(rows);
        self.window.floor = cycle + FLUSH.max(rows + ROLLBACK);
        self.front.flush(cycle + 1);
    }
}
