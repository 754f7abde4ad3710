//! Exceptions, interrupts, and loads whose order failed: all act when the instruction is the oldest, and
//! then the ROB rolls back one row per cycle (`exu/rob.scala:750-830`).

use commit_trace::{CommitSink, CycleClass, DataAccess, Redirect, TeaEvents};
use isa::{Exception, Executed, InstClass, StaticId};

use crate::lsu::Access;
use crate::micro_op::{Kind, MicroOp};
use crate::observe::access_kind;
use crate::path::Packet;
use crate::pipeline::Pipeline;
use crate::records::Retired;
use crate::schedule::lane;
use crate::window::Restart;

/// Cycles from dispatch to the exception of an instruction that was found bad in decode.
const DECODED_BAD: u64 = 1;
/// Cycles from dispatch to the trap of `ecall` and `ebreak`, which go through the CSR unit.
const ECALL_DONE: u64 = 5;
/// Cycles from the exception to the first dispatch, if the rollback is short.
const FLUSH: u64 = 7;
/// Cycles from the exception to the first dispatch, beside those for rows that are rolled back.
const ROLLBACK: u64 = 5;

/// Returns what an instruction that raised an exception tried to access: the address that could not be
/// accessed, without a source, as nobody answered.
fn faulting(micro_op: &MicroOp, executed: &Executed) -> DataAccess {
    use Exception as X;
    let Some(trap) = executed.trap else {
        return DataAccess::default();
    };
    match trap.cause {
        X::LoadMisaligned
        | X::LoadAccessFault
        | X::LoadPageFault
        | X::StoreMisaligned
        | X::StoreAccessFault
        | X::StorePageFault => {
            DataAccess { kind: access_kind(micro_op), va: trap.tval, ..DataAccess::default() }
        }
        _ => DataAccess::default(),
    }
}

impl<S: CommitSink> Pipeline<S> {
    /// Raises the exception of the instruction decoded last.
    pub(crate) fn raise(&mut self, micro_op: &MicroOp, executed: &Executed) {
        let (dispatch, issue, ready) = match micro_op.kind {
            Kind::Unique => {
                let dispatch = self.dispatch_alone();
                let (issue, ready) = match micro_op.class {
                    InstClass::Ecall => {
                        self.issued_alone(micro_op);
                        (dispatch + 1, dispatch + ECALL_DONE)
                    }
                    InstClass::Amo | InstClass::LoadReserved | InstClass::StoreConditional => {
                        self.fault(micro_op, dispatch, dispatch + 1)
                    }
                    _ => (0, dispatch + DECODED_BAD),
                };
                (dispatch, issue, ready)
            }
            Kind::Load | Kind::Store => {
                // A load or store that faults takes its entries like any other; the window forgets them at the trap.
                let dispatch = self.dispatch(micro_op, 0);
                let ready = self.sources(micro_op, dispatch);
                let (issue, fault) = self.fault(micro_op, dispatch, ready);
                self.window.leave_queue(micro_op.queue);
                (dispatch, issue, fault)
            }
            _ => {
                let dispatch = self.dispatch(micro_op, 0);
                self.window.schedule.release(dispatch + 1, micro_op.lanes);
                (dispatch, 0, dispatch + DECODED_BAD)
            }
        };
        let retired = Retired {
            dispatch,
            issue,
            done: ready,
            redirect: Redirect::Exception,
            class: micro_op.waits,
            tea: TeaEvents::FL_EX,
        };
        self.stats.exceptions += 1;
        // An illegal instruction need not name its exception.
        let code = executed.trap.map_or(Exception::IllegalInst, |trap| trap.cause);
        self.stats.exceptions_by_code[code as usize % 16] += 1;
        self.stats.instructions -= 1;
        let rows = if micro_op.kind == Kind::Unique { 1 } else { self.window.rows_behind };
        self.trap(micro_op, executed.id, (&retired, faulting(micro_op, executed)), rows);
    }

    /// Issues a load or store that faults, dispatched in cycle `dispatch`; returns the cycles of its issue and of the
    /// exception.
    fn fault(&mut self, micro_op: &MicroOp, dispatch: u64, ready: u64) -> (u64, u64) {
        let schedule = &mut self.window.schedule;
        let (issue, port, known) = self.lsu.fault(micro_op, ready, schedule);
        match micro_op.lanes {
            0 => self.issued_alone(micro_op),
            _ if self.selections.issues => {
                self.units.issued.count(port, lane::MEM, issue - dispatch);
            }
            _ => {}
        }
        (issue, known)
    }

    /// Takes the interrupt that the instruction decoded last was tagged with.
    pub(crate) fn take_interrupt(&mut self, id: StaticId) {
        let micro_op = self.micro_op(id);
        let dispatch = self.dispatch(&micro_op, 0);
        self.window.schedule.release(dispatch + 1, micro_op.lanes);
        self.window.leave_queue(micro_op.queue);
        let retired = Retired {
            dispatch,
            issue: 0,
            done: dispatch + DECODED_BAD,
            redirect: Redirect::Interrupt,
            class: CycleClass::Alu,
            tea: TeaEvents::FL_EX,
        };
        self.stats.interrupts += 1;
        self.trap(&micro_op, id, (&retired, DataAccess::default()), 1);
    }

    /// Flushes a load that read its bytes before an older store to them had its address: when it is the oldest, it is
    /// fetched again, and then finds what it needs. It issued in cycle `issue`, and the ROB has the exception in cycle
    /// `known`. The stream gets a record for each: a trap, and the commit.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_failure<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        load: &Access<'_>,
        (issue, known): (u64, u64),
    ) {
        let retired = Retired {
            dispatch: self.window.dispatched,
            issue,
            done: known,
            redirect: Redirect::Exception,
            class: CycleClass::Store,
            tea: TeaEvents::FL_MO,
        };
        self.stats.order_failures += 1;
        let access = DataAccess::default();
        self.trap(micro_op, load.id, (&retired, access), self.window.rows_behind);
        self.window.leave_queue(micro_op.queue);
        // Again, from fetch. Not modelled: that this clears the predictor's history, and moves the ends of packets
        // up to the next jump.
        let again = Packet::redirected(self.front.line());
        self.decode(Some(again), None);
        // The stores are all older than the head, and the second try finds their addresses known, and the page in
        // the TLB.
        self.load::<COUNTED>(micro_op, &Access { walk: None, ..*load });
    }

    /// Traps. The rows behind the head are not known yet, since younger instructions pass later: one is taken to have
    /// been dispatched in each cycle until the ROB had the exception and dispatch stopped, up to `rows`.
    fn trap(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        (retired, access): (&Retired, DataAccess),
        rows: u64,
    ) {
        let rows = (retired.done - retired.dispatch).min(rows);
        let refill = FLUSH.max(rows + ROLLBACK);
        let before = self.window.committed;
        let restart = match retired.tea.contains(TeaEvents::FL_MO) {
            true => Restart::Order,
            false => Restart::Trap,
        };
        let cycle = self.window.trap(retired.done, retired.class, refill, restart, &mut self.stats);
        self.push(id, retired, before, cycle);
        let flushed = rows * u64::from(self.preset().decode.width);
        self.stats.wrong_path += flushed;
        // Before the details are noted: the restart of fetch is due to this instruction.
        self.front.redirect(cycle + 1);
        self.observed(micro_op, retired, access, flushed);
    }
}
