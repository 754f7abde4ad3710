//! Instructions that have the machine to themselves (`is_unique`): they are dispatched when the ROB is
//! empty and the load/store unit drained, nothing is dispatched until they commit, and they flush on
//! commit (`exu/core.scala:676-698`).

use commit_trace::{CommitSink, CycleClass, DataAccess, Redirect, TeaEvents};
use isa::{Executed, InstClass, MemKind};

use crate::lsu::{Access, S0};
use crate::micro_op::MicroOp;
use crate::pipeline::Pipeline;
use crate::records::Retired;
use crate::schedule::lane;
use crate::window::Restart;

/// Cycles from dispatch to commit of an instruction that goes through the CSR unit.
const CSR_DONE: u64 = 5;
/// Cycles from dispatch to commit of a fence, which does not execute: the ROB never holds it busy.
const FENCE_DONE: u64 = 1;
/// Cycles from dispatch to commit of `sfence.vma`, which goes down the memory pipeline like a store.
const SFENCE_DONE: u64 = 6;
/// Cycles from dispatch to S0 of a load-reserved, like any load.
const LOAD_S0: u64 = 1 + S0;
/// Cycles from dispatch to S0 of an atomic: its address and data go into the store queue first.
const ATOMIC_S0: u64 = 2 + S0;

impl<S: CommitSink> Pipeline<S> {
    /// Retires a serialising instruction, or any that raises an exception.
    #[cold]
    #[inline(never)]
    pub(crate) fn retire_alone(&mut self, executed: &Executed, access: &Access<'_>) {
        let micro_op = &self.micro_op(executed.id);
        if executed.trap.is_some() || micro_op.class == InstClass::Illegal {
            return self.raise(micro_op, executed);
        }
        let dispatch = self.dispatch_alone();
        let mut tea = TeaEvents::FL_EX;
        let mut class = CycleClass::Serialize;
        let (issue, done) = match micro_op.class {
            InstClass::Fence | InstClass::FenceI => (0, dispatch + FENCE_DONE),
            InstClass::SfenceVma => (dispatch + 1, dispatch + SFENCE_DONE),
            InstClass::LoadReserved | InstClass::Amo | InstClass::StoreConditional => {
                let load = micro_op.class == InstClass::LoadReserved;
                let s0 = dispatch + if load { LOAD_S0 } else { ATOMIC_S0 };
                let answer = match executed.mem.kind() {
                    // A store-conditional that failed: the cache answers as fast.
                    MemKind::None => {
                        self.stats.failed_store_conditionals += 1;
                        None
                    }
                    _ => Some(self.lsu.atomic(&executed.mem, s0, access.walk)),
                };
                if let Some(answer) = answer {
                    tea |= answer.tea;
                    class = answer.class;
                }
                (s0 - S0, answer.map_or(s0 + 3, |a| a.done))
            }
            _ => (dispatch + 1, dispatch + CSR_DONE),
        };
        if issue != 0 {
            self.issued_alone(micro_op);
        }
        if micro_op.class == InstClass::FenceI {
            self.front.clear_l1i();
        }
        let redirect = Redirect::Flush;
        let retired = Retired { dispatch, issue, done, redirect, class, tea };
        let cycle = self.commit(micro_op, executed.id, &retired);
        self.write_register(micro_op, cycle);
        self.stats.flushes += 1;
        self.stats.classes[micro_op.class as usize] += 1;
        self.window.redirected(Restart::Flush);
        self.front.redirect(cycle + 1);
        let data = match executed.mem.kind() {
            MemKind::None => DataAccess::default(),
            _ => {
                self.data_access(micro_op, access, CycleClass::Serialize, self.lsu.counts.forwards)
            }
        };
        // Nothing is dispatched behind the instruction, but decode goes on.
        self.observed(micro_op, &retired, data, 0);
    }

    /// Counts an instruction that issued, which has its ports to itself and needs no slot.
    pub(crate) fn issued_alone(&mut self, micro_op: &MicroOp) {
        if self.selections.issues {
            self.units.issued.count(micro_op.ports, lane::MEM, 0);
        }
    }

    /// Dispatches an instruction into an empty machine; returns the cycle.
    pub(crate) fn dispatch_alone(&mut self) -> u64 {
        let want = self.window.dispatched;
        let cycle = want.max(self.window.empty()).max(self.lsu.drained());
        self.stats.dispatch_stalls.serialize += cycle - want;
        self.window.dispatch_in(cycle);
        cycle
    }
}
