//! Issue and execution of all instructions but the serialising ones; the LSU times loads and stores.

use commit_trace::{CommitSink, CycleClass, DataAccess, Redirect, TeaEvents};
use isa::{InstClass, Operand, StaticId};

use crate::lsu::Access;
use crate::micro_op::{ALU_BEHIND_MUL, ALU_DONE, Kind, MicroOp, jump};
use crate::path::{Reader, Steps};
use crate::pipeline::Pipeline;
use crate::predict::Forecast;
use crate::records::Retired;
use crate::schedule::lane;
use crate::window::Restart;

/// Issue of a branch to the redirect of the front end: register read, execute, two cycles more.
const RESOLVE: u64 = 4;
/// Issue of a branch to the dispatch that can have its tag.
pub(crate) const TAG_FREE: u64 = RESOLVE + 1;
/// Cycles of a division beside one per quotient bit: to the unit 2, early-out 1, result and wake-up 4.
const DIVIDE_FIXED: u64 = 7;
/// Cycles of a division that finds no leading zeros to skip.
const DIVIDE_LONGEST: u64 = 69;
/// Cycles by which an FP division overlaps the one before: its operands wait in the unit's input buffer while that result
/// is made (`exu/execution-units/fdiv.scala`).
const FDIV_OVERLAP: u64 = 3;

/// Cycles from a division's issue to its dependent's: one per quotient bit, found from the leading zeros of
/// both magnitudes (Rocket's `MulDiv` with `divEarlyOut`, one bit a cycle). A dividend shorter than the
/// divisor wraps around and finds nothing to skip. Not modelled: a cycle each to negate inputs and result.
fn divide_cycles(dividend_bits: u8, divisor_bits: u8) -> u64 {
    if divisor_bits == 0 {
        return DIVIDE_LONGEST;
    }
    let top = |bits: u8| u64::from(bits.min(64).saturating_sub(1));
    let skipped_from = top(dividend_bits).wrapping_sub(top(divisor_bits)) % 64;
    (DIVIDE_FIXED + skipped_from).min(DIVIDE_LONGEST)
}

impl<S: CommitSink> Pipeline<S> {
    /// Dispatches the instruction decoded last; returns the cycle. Its load- or store-queue entry, if it needs one, is free
    /// from cycle `entry` on.
    #[inline(always)]
    pub(crate) fn dispatch(&mut self, micro_op: &MicroOp, entry: u64) -> u64 {
        let after_slot = self.front.buffer.after_slot();
        self.window.dispatch(micro_op, after_slot, entry, &mut self.stats.dispatch_stalls)
    }

    /// Counts a micro-op that issued to `port` in cycle `issue`, and gave back its slot in `queue`; it was dispatched
    /// in cycle `dispatch`.
    #[inline(always)]
    fn issued<const COUNTED: bool>(&mut self, port: u32, queue: u32, dispatch: u64, issue: u64) {
        if COUNTED {
            self.units.issued.count(port, queue, issue - dispatch);
        }
    }

    /// Commits an instruction that redirects nothing and accesses no memory, by the cycles of its dispatch, its
    /// issue, and its earliest commit.
    #[inline(always)]
    fn commit_plain<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        (dispatch, issue, done): (u64, u64, u64),
        class: CycleClass,
    ) {
        let retired = Retired {
            dispatch,
            issue,
            done,
            redirect: Redirect::None,
            class,
            tea: TeaEvents::default(),
        };
        self.commit(micro_op, id, &retired);
        if COUNTED {
            self.observed(micro_op, &retired, DataAccess::default(), 0);
        }
    }

    /// Executes an integer operation of one cycle on any integer port. `COUNTED`, here and below: somebody asks for
    /// what issues.
    #[inline(always)]
    pub(crate) fn alu<const COUNTED: bool>(&mut self, micro_op: &MicroOp, id: StaticId) {
        let dispatch = self.dispatch(micro_op, 0);
        let [a, b, _] = micro_op.src.map(|r| self.registers[usize::from(r)]);
        let ready = (dispatch + 1).max(a).max(b);
        let (issue, port) = self.window.schedule.book(ready, micro_op.ports, lane::INT);
        self.issued::<COUNTED>(port, lane::INT, dispatch, issue);
        self.write_register(micro_op, issue + 1);
        let behind = u64::from(port == self.units.mul_port) * ALU_BEHIND_MUL;
        let done = issue + u64::from(ALU_DONE) + behind;
        self.commit_plain::<COUNTED>(micro_op, id, (dispatch, issue, done), CycleClass::Alu);
    }

    /// Executes an instruction of fixed latency.
    #[inline(never)]
    pub(crate) fn simple<const COUNTED: bool>(&mut self, micro_op: &MicroOp, id: StaticId) {
        self.stats.classes[micro_op.class as usize] += 1;
        let dispatch = self.dispatch(micro_op, 0);
        let ready = self.sources(micro_op, dispatch);
        let schedule = &mut self.window.schedule;
        let (issue, port) = schedule.book(ready, micro_op.ports, micro_op.lanes);
        self.issued::<COUNTED>(port, micro_op.lanes, dispatch, issue);
        let done = issue + u64::from(micro_op.done);
        self.write_register(micro_op, issue + u64::from(micro_op.wake));
        self.commit_plain::<COUNTED>(micro_op, id, (dispatch, issue, done), micro_op.waits);
    }

    /// Executes an integer or FP division or a square root.
    #[inline(never)]
    pub(crate) fn divide<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        operand: &Operand,
    ) {
        self.stats.classes[micro_op.class as usize] += 1;
        let dispatch = self.dispatch(micro_op, 0);
        let ready = self.sources(micro_op, dispatch);
        let (int_busy, fp_busy) = (&mut self.stats.divider_busy, &mut self.stats.fp_divider_busy);
        let (free, busy, cycles, overlap) = if micro_op.kind == Kind::Divide {
            let cycles = divide_cycles(operand.dividend_bits, operand.divisor_bits);
            (&mut self.units.divider_free, int_busy, cycles, 0)
        } else {
            let cycles = u64::from(micro_op.done);
            (&mut self.units.fp_divider_free, fp_busy, cycles, FDIV_OVERLAP)
        };
        *busy += cycles - overlap;
        let schedule = &mut self.window.schedule;
        let (issue, port) = schedule.book(ready.max(*free), micro_op.ports, micro_op.lanes);
        *free = issue + cycles - overlap;
        self.issued::<COUNTED>(port, micro_op.lanes, dispatch, issue);
        let done = issue + cycles;
        self.write_register(micro_op, done);
        self.commit_plain::<COUNTED>(micro_op, id, (dispatch, issue, done), micro_op.waits);
    }

    /// Dispatches and issues a branch or jump; returns the cycles of its dispatch, its issue, and its earliest commit.
    #[inline(always)]
    fn issue_control<const COUNTED: bool>(&mut self, micro_op: &MicroOp) -> (u64, u64, u64) {
        let dispatch = self.dispatch(micro_op, 0);
        let [a, b, _] = micro_op.src.map(|r| self.registers[usize::from(r)]);
        let ready = (dispatch + 1).max(a).max(b);
        let schedule = &mut self.window.schedule;
        let (issue, port) = schedule.book(ready, micro_op.ports, lane::INT);
        schedule.release(issue + TAG_FREE, micro_op.lanes & lane::TAG);
        self.issued::<COUNTED>(port, lane::INT, dispatch, issue);
        self.write_register(micro_op, issue + u64::from(micro_op.wake));
        let behind = u64::from(port == self.units.mul_port) * ALU_BEHIND_MUL;
        (dispatch, issue, issue + u64::from(ALU_DONE) + behind)
    }

    /// Executes a conditional branch, up to its commit.
    #[inline(never)]
    pub(crate) fn branch<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        forecast: &Forecast,
    ) {
        let (dispatch, issue, done) = self.issue_control::<COUNTED>(micro_op);
        let commits = done.max(self.window.committed);
        let missed = self.front.branch(forecast, issue + RESOLVE, commits);
        let outcome = usize::from(missed) * 2 + usize::from(forecast.taken());
        self.stats.branches_by_outcome[outcome] += 1;
        self.commit_control::<COUNTED>(micro_op, id, (dispatch, issue, done), missed);
    }

    /// Executes a jump, up to its commit.
    #[inline(never)]
    pub(crate) fn jump<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        forecast: &Forecast,
    ) {
        let (dispatch, issue, done) = self.issue_control::<COUNTED>(micro_op);
        let commits = done.max(self.window.committed);
        let missed = self.front.jump(forecast, issue + RESOLVE, commits);
        let totals = &mut self.stats.jumps_by_kind[usize::from(micro_op.jump % jump::BOUND)];
        totals.all += 1;
        totals.mispredicted += u64::from(missed);
        self.commit_control::<COUNTED>(micro_op, id, (dispatch, issue, done), missed);
    }

    #[inline(always)]
    fn commit_control<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        (dispatch, issue, done): (u64, u64, u64),
        missed: bool,
    ) {
        let (redirect, tea) = if missed {
            (Redirect::Mispredict, TeaEvents::FL_MB)
        } else {
            (Redirect::None, TeaEvents::default())
        };
        let class = CycleClass::Alu;
        let retired = Retired { dispatch, issue, done, redirect, class, tea };
        self.commit(micro_op, id, &retired);
        let flushed = self.wrong_path(redirect, issue + RESOLVE);
        self.stats.wrong_path += flushed;
        if COUNTED {
            self.observed(micro_op, &retired, DataAccess::default(), flushed);
        }
        if missed {
            self.trainings.missed = Some((self.front.fetched(), issue + RESOLVE));
            self.window.redirected(Restart::Mispredict);
        }
    }

    /// Executes an instruction that loses no cycles in some way, as a what-if has it ([`crate::without`]).
    #[cold]
    #[inline(never)]
    pub(crate) fn ideal<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        access: &Access<'_>,
        forecast: &Forecast,
    ) {
        // About when it is executed.
        let cycle = self.front.buffer.cycle();
        let there = Access { walk: None, ..*access };
        match micro_op.class {
            InstClass::Branch | InstClass::Jal | InstClass::Jalr => {
                let cycles = self.issue_control::<COUNTED>(micro_op);
                if let Some(dependences) = &mut self.dependences {
                    dependences.decided(access.id, cycles.1 + 1);
                }
                let taken = micro_op.class != InstClass::Branch || forecast.taken();
                self.front.foreseen(taken);
                self.commit_control::<COUNTED>(micro_op, access.id, cycles, false);
            }
            InstClass::IntDiv => self.simple::<COUNTED>(micro_op, access.id),
            InstClass::Load | InstClass::FpLoad if !access.mmio => {
                self.lsu.bring(access.pa, cycle, false);
                self.load::<COUNTED>(micro_op, &there);
            }
            InstClass::Store | InstClass::FpStore if !access.mmio => {
                self.lsu.bring(access.pa, cycle, true);
                self.store::<COUNTED>(micro_op, &there);
            }
            InstClass::Store | InstClass::FpStore => self.store::<COUNTED>(micro_op, access),
            _ => self.load::<COUNTED>(micro_op, access),
        }
    }

    /// Executes an instruction of a run as [`Self::ideal`] does; reads what belongs to it from `steps` and `output`.
    #[cold]
    #[inline(never)]
    pub(crate) fn ideal_in_run<const COUNTED: bool>(
        &mut self,
        micro_op: &MicroOp,
        id: StaticId,
        steps: &mut Steps<'_>,
        output: &mut Reader<'_>,
    ) {
        let mut access = Access::none(id);
        let mut forecast = Forecast::default();
        match micro_op.class {
            InstClass::Branch | InstClass::Jal | InstClass::Jalr => forecast = steps.forecast(),
            InstClass::IntDiv => {
                output.operand();
            }
            _ => {
                let found = steps.found();
                if COUNTED {
                    self.begin_access(output.observed());
                }
                access = Access {
                    pa: found.pa(),
                    store: found.store(),
                    walk: output.data_walk(found),
                    ..access
                };
            }
        }
        self.ideal::<COUNTED>(micro_op, &access, &forecast);
    }

    /// Executes a load, up to its commit.
    #[inline(never)]
    pub(crate) fn load<const COUNTED: bool>(&mut self, micro_op: &MicroOp, load: &Access<'_>) {
        let forwards = self.lsu.counts.forwards;
        let dispatch = self.dispatch(micro_op, self.window.loads.available());
        let ready = self.sources(micro_op, dispatch);
        let head = self.window.empty();
        let issued = self.lsu.issue_load(micro_op, ready, &mut self.window.schedule);
        let issue = issued.cycle;
        self.issued::<COUNTED>(issued.port, lane::MEM, dispatch, issue);
        let schedule = &mut self.window.schedule;
        let answer = self.lsu.load(micro_op, load, issued, head, schedule);
        if let Some(known) = answer.failed {
            self.lsu.counts.take_back(micro_op, &answer);
            return self.order_failure::<COUNTED>(micro_op, load, (issue, known));
        }
        self.write_register(micro_op, answer.wake);
        let retired = Retired::of(&answer, dispatch, issue);
        let commit = self.commit(micro_op, load.id, &retired);
        self.window.loads.take(commit + 1);
        if COUNTED {
            let access = self.data_access(micro_op, load, answer.class, forwards);
            self.observed(micro_op, &retired, access, 0);
        }
    }

    /// Executes a store, up to its write to the cache.
    #[inline(never)]
    pub(crate) fn store<const COUNTED: bool>(&mut self, micro_op: &MicroOp, store: &Access<'_>) {
        let entry = self.window.stores.available();
        let full = entry > self.window.dispatched;
        let dispatch = self.dispatch(micro_op, entry);
        let enters = dispatch + 1;
        let [base, data, _] = micro_op.src.map(|r| enters.max(self.registers[usize::from(r)]));
        let fp = (micro_op.class == InstClass::FpStore).then_some(self.units.fp_data);
        let schedule = &mut self.window.schedule;
        let times = self.lsu.store(micro_op, store, (base, data), fp, schedule);
        if COUNTED {
            times.count(dispatch, &mut self.units.issued);
        }
        let mut retired = Retired::of(&times.answer, dispatch, times.issue);
        if full {
            retired.tea |= TeaEvents::DR_SQ;
        }
        let commit = self.commit(micro_op, store.id, &retired);
        let free = self.lsu.write(store, &times, commit, &mut self.window.schedule);
        self.stats.store_queue_occupancy += free - dispatch;
        self.window.stores.take(free);
        if COUNTED {
            let forwards = self.lsu.counts.forwards;
            let mut access = self.data_access(micro_op, store, CycleClass::Store, forwards);
            access.written = self.lsu.l1d.demand.ready.max(free);
            self.observed(micro_op, &retired, access, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::divide_cycles;

    #[test]
    fn division_takes_a_cycle_per_quotient_bit() {
        // Measured on the RTL: 100 / 1, 1,000,000 / 1, (2^63 - 1) / 1.
        assert_eq!(divide_cycles(7, 1), 13);
        assert_eq!(divide_cycles(20, 1), 26);
        assert_eq!(divide_cycles(63, 1), 69);
        assert_eq!(divide_cycles(63, 0), 69, "by zero");
        assert!(divide_cycles(3, 5) > 60, "nothing to skip");
        assert!(divide_cycles(255, 255) <= 69);
    }
}
