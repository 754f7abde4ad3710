//! Issue and execution of all instructions but the serialising ones; the LSU times loads and stores.

use commit_trace::{CommitSink, CycleClass, Redirect, TeaEvents};
use isa::{InstClass, Operand, StaticId};

use crate::facts::{ALU_BEHIND_MUL, ALU_DONE, Fact, Kind};
use crate::lsu::Access;
use crate::pipeline::Pipeline;
use crate::predict::Forecast;
use crate::records::Retired;
use crate::schedule::lane;

/// Issue of a branch to the redirect of the front end: register read, execute, two cycles more.
const RESOLVE: u64 = 4;
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
    pub(crate) fn dispatch(&mut self, fact: &Fact, entry: u64) -> u64 {
        let after_slot = self.front.buffer.after_slot();
        self.window
            .dispatch(fact, after_slot, entry, &mut self.stats.dispatch_stalls)
    }

    /// Executes an integer operation of one cycle on any integer port.
    #[inline(always)]
    pub(crate) fn alu(&mut self, fact: &Fact, id: StaticId) {
        let dispatch = self.dispatch(fact, 0);
        let [a, b, _] = fact.src.map(|r| self.registers[usize::from(r)]);
        let ready = (dispatch + 1).max(a).max(b);
        let (issue, port) = self.window.schedule.book(ready, fact.ports, lane::INT);
        self.write_register(fact, issue + 1);
        let behind = u64::from(port == self.units.mul_port) * ALU_BEHIND_MUL;
        let done = issue + u64::from(ALU_DONE) + behind;
        let (redirect, tea) = (Redirect::None, TeaEvents::default());
        self.commit(
            fact,
            id,
            &Retired {
                dispatch,
                issue,
                done,
                redirect,
                class: CycleClass::Alu,
                tea,
            },
        );
    }

    /// Executes an instruction of fixed latency.
    #[inline(never)]
    pub(crate) fn simple(&mut self, fact: &Fact, id: StaticId) {
        let dispatch = self.dispatch(fact, 0);
        let ready = self.sources(fact, dispatch);
        let (issue, _) = self.window.schedule.book(ready, fact.ports, fact.lanes);
        let done = issue + u64::from(fact.done);
        self.write_register(fact, issue + u64::from(fact.wake));
        let (redirect, tea) = (Redirect::None, TeaEvents::default());
        self.commit(
            fact,
            id,
            &Retired {
                dispatch,
                issue,
                done,
                redirect,
                class: fact.waits,
                tea,
            },
        );
    }

    /// Executes an integer or FP division or a square root.
    #[inline(never)]
    pub(crate) fn divide(&mut self, fact: &Fact, id: StaticId, operand: &Operand) {
        let dispatch = self.dispatch(fact, 0);
        let ready = self.sources(fact, dispatch);
        let (free, cycles, overlap) = if fact.kind == Kind::Divide {
            let cycles = divide_cycles(operand.dividend_bits, operand.divisor_bits);
            (&mut self.units.divider_free, cycles, 0)
        } else {
            (
                &mut self.units.fp_divider_free,
                u64::from(fact.done),
                FDIV_OVERLAP,
            )
        };
        let schedule = &mut self.window.schedule;
        let (issue, _) = schedule.book(ready.max(*free), fact.ports, fact.lanes);
        *free = issue + cycles - overlap;
        let done = issue + cycles;
        self.write_register(fact, done);
        let (redirect, tea) = (Redirect::None, TeaEvents::default());
        self.commit(
            fact,
            id,
            &Retired {
                dispatch,
                issue,
                done,
                redirect,
                class: fact.waits,
                tea,
            },
        );
    }

    /// Dispatches and issues a branch or jump; returns the cycles of its dispatch, its issue, and its earliest commit.
    #[inline(always)]
    fn issue_control(&mut self, fact: &Fact) -> (u64, u64, u64) {
        let dispatch = self.dispatch(fact, 0);
        let [a, b, _] = fact.src.map(|r| self.registers[usize::from(r)]);
        let ready = (dispatch + 1).max(a).max(b);
        let schedule = &mut self.window.schedule;
        let (issue, port) = schedule.book(ready, fact.ports, lane::INT);
        schedule.release(issue + RESOLVE + 1, fact.lanes & lane::TAG);
        self.write_register(fact, issue + 1);
        let behind = u64::from(port == self.units.mul_port) * ALU_BEHIND_MUL;
        (dispatch, issue, issue + u64::from(ALU_DONE) + behind)
    }

    /// Executes a conditional branch, up to its commit.
    #[inline(never)]
    pub(crate) fn branch(&mut self, fact: &Fact, id: StaticId, forecast: &Forecast) {
        let (dispatch, issue, done) = self.issue_control(fact);
        let commits = done.max(self.window.committed);
        let missed = self.front.branch(forecast, issue + RESOLVE, commits);
        self.stats.branches += 1;
        self.stats.branch_misses += u64::from(missed);
        self.commit_control(fact, id, (dispatch, issue, done), missed);
    }

    /// Executes a jump, up to its commit.
    #[inline(never)]
    pub(crate) fn jump(&mut self, fact: &Fact, id: StaticId, forecast: &Forecast) {
        let (dispatch, issue, done) = self.issue_control(fact);
        let commits = done.max(self.window.committed);
        let missed = self.front.jump(forecast, issue + RESOLVE, commits);
        self.stats.jumps += 1;
        self.stats.jump_misses += u64::from(missed);
        self.commit_control(fact, id, (dispatch, issue, done), missed);
    }

    #[inline(always)]
    fn commit_control(
        &mut self,
        fact: &Fact,
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
        self.commit(
            fact,
            id,
            &Retired {
                dispatch,
                issue,
                done,
                redirect,
                class,
                tea,
            },
        );
        if missed {
            self.window.redirected();
        }
    }

    /// Executes a load, up to its commit.
    #[inline(never)]
    pub(crate) fn load(&mut self, fact: &Fact, load: &Access<'_>) {
        let dispatch = self.dispatch(fact, self.window.loads.available());
        let ready = self.sources(fact, dispatch);
        let head = self.window.empty();
        let issued = self.lsu.issue_load(fact, ready, &mut self.window.schedule);
        let issue = issued.cycle;
        let schedule = &mut self.window.schedule;
        let answer = self.lsu.load(fact, load, issued, head, schedule);
        if let Some(known) = answer.failed {
            return self.order_failure(fact, load, (issue, known));
        }
        self.write_register(fact, answer.wake);
        let commit = self.commit(fact, load.id, &Retired::of(&answer, dispatch, issue));
        self.window.loads.take(commit + 1);
    }

    /// Executes a store, up to its write to the cache.
    #[inline(never)]
    pub(crate) fn store(&mut self, fact: &Fact, store: &Access<'_>) {
        let entry = self.window.stores.available();
        let full = entry > self.window.dispatched;
        let dispatch = self.dispatch(fact, entry);
        let enters = dispatch + 1;
        let [base, data, _] = fact.src.map(|r| enters.max(self.registers[usize::from(r)]));
        let fp = (fact.class == InstClass::FpStore).then_some(self.units.fp_data);
        let schedule = &mut self.window.schedule;
        let times = self.lsu.store(fact, store, (base, data), fp, schedule);
        let mut retired = Retired::of(&times.answer, dispatch, times.issue);
        if full {
            retired.tea |= TeaEvents::DR_SQ;
        }
        let commit = self.commit(fact, store.id, &retired);
        let free = self
            .lsu
            .write(store, &times, commit, &mut self.window.schedule);
        self.window.stores.take(free);
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
