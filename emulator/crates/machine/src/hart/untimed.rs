//! The loop of untimed runs: cycles follow from the count of instructions, by default one cycle from each.

use std::rc::Rc;

use isa::{FILTER_LINE_BITS, InstClass, Op, SLOTS, Slot, TimingModel, Trap};

use super::run::mark_of;
use super::{Env, Hart, InstPosition, RunExit};
use crate::mmu_tlb::FetchPage;

/// Slots of a line of code.
const SLOTS_PER_LINE: usize = 1 << (FILTER_LINE_BITS - 1);

/// Expands to the execution of one instruction. The match is written out in the loop, so that each operation has a jump of its own to the next
/// instruction: to the following slot, or to `$checked` after an operation that can go elsewhere or leave something to do.
macro_rules! step {
    ($hart:ident, $env:ident, $slot:ident, $at:ident, $pc:ident, $count:ident, $index:ident, $end:ident,
        $checked:lifetime, $straight:lifetime, $exec:lifetime;
        $($variant:ident $method:ident,)*) => {
        match $slot.op() {
            $(Op::$variant => match $hart.$method($env, $slot, $at) {
                Ok(next) => {
                    const CLASS: InstClass = Op::$variant.class();
                    $count += 1;
                    let checks = const { CLASS.is_control_flow() || CLASS.serialises() };
                    if T::LOGS {
                        $env.log_instruction(&$slot.get(), $at.pc, next);
                    }
                    let deferred = const { CLASS.accesses_memory() } && $hart.deadlines.after != 0;
                    $index += $slot.len() as usize / 2;
                    if checks || deferred || $index >= $end {
                        $pc = next;
                        continue $checked;
                    }
                    continue $straight;
                }
                Err(trap) => break $exec (trap, $at),
            },)*
        }
    };
}

impl Hart {
    pub(super) fn run_untimed<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> RunExit {
        let hart = self;
        let mut pc = hart.arch.pc;
        let mut count = hart.progress.count;
        let mut page = FetchPage::elsewhere(pc, Rc::clone(&hart.decoded.strict_page));
        loop {
            let (trap, at) = 'exec: {
                'checked: loop {
                    if count >= hart.deadlines.check_at {
                        hart.arch.pc = pc;
                        hart.progress.count = count;
                        if let Some(exit) = hart.pause(env) {
                            return exit;
                        }
                        pc = hart.arch.pc;
                        count = hart.progress.count;
                        page.forget(pc);
                    }
                    let mut index = page.slot(pc);
                    if index >= SLOTS {
                        match hart.fetch_page(env, pc) {
                            Ok(found) => page = found,
                            Err(trap) => {
                                count += 1;
                                let handler = hart.trap(trap, pc);
                                env.log_trap(pc, handler);
                                pc = handler;
                                page.forget(pc);
                            }
                        }
                        continue;
                    }
                    if T::WARMS {
                        hart.warm_fetch(env, &page, pc);
                    }
                    // Up to the end of the page, or of the line for a model that warms, instructions that follow each other need no check between
                    // them. If something may be due before, a check follows each instruction.
                    let end = if hart.deadlines.check_at - count > SLOTS as u64 {
                        if page.code.is_hot(index, hart.translations.hot_after)
                            && let Some(trapped) = hart.run_translated(env, &page, index, pc, count)
                        {
                            (pc, count) = (hart.arch.pc, hart.progress.count);
                            if trapped {
                                page.forget(pc);
                            }
                            continue;
                        }
                        match T::WARMS {
                            true => (index | (SLOTS_PER_LINE - 1)) + 1,
                            false => SLOTS,
                        }
                    } else {
                        index + 1
                    };
                    let vpage = page.vpage;
                    let slots: &[Slot; SLOTS] = &page.code.slots;
                    'straight: loop {
                        let slot = &slots[index % SLOTS];
                        let at = InstPosition { pc: vpage.wrapping_add(2 * index as u64), count };
                        isa::for_each_op!(
                            step, hart, env, slot, at, pc, count, index, end, 'checked, 'straight, 'exec
                        )
                    }
                }
            };
            if let Some(next) = hart.execute_slowly(env, &mut page, trap, at) {
                pc = next;
                count = at.count + 1;
            } else {
                pc = at.pc;
            }
        }
    }

    /// Tells a model that keeps caches warm that code at `pc` in `page` is executed, unless the line is shown.
    #[inline(always)]
    fn warm_fetch<T: TimingModel>(&self, env: &mut Env<'_, T>, page: &FetchPage, pc: u64) {
        let pa = page.code.pa | pc & 0xfff;
        let filters = env.timing.line_filters();
        if !filters.is_some_and(|filters| filters.fetches.shows(pa >> FILTER_LINE_BITS)) {
            env.timing.warm_fetch(pc, pa, page.translated);
        }
    }

    /// Does what the last instruction left to do, and what is due. An interrupt changes `arch.pc`. Returns why the run ends, if it does.
    #[cold]
    #[inline(never)]
    fn pause<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> Option<RunExit> {
        if self.deadlines.after != 0
            && let Some(exit) = self.settle(env)
        {
            return Some(exit);
        }
        let now = self.now(env, self.progress.count);
        if self.progress.count >= self.deadlines.stop_count || now >= self.deadlines.stop_cycle {
            return Some(RunExit::Limit);
        }
        if now >= self.deadlines.due
            && let Some(interrupt) = self.check(env, now)
        {
            let pc = self.arch.pc;
            self.arch.pc = self.interrupt(interrupt, pc);
            env.log_trap(pc, self.arch.pc);
            self.interrupted_step();
        }
        self.deadlines.arm(self.progress.timed);
        None
    }

    /// Handles an instruction that the loop could not execute: its slot was empty, it is a region trigger, or it trapped. Returns the next pc;
    /// `None`: the loop goes on at the same pc, as the slot is filled now or a breakpoint was met.
    #[cold]
    #[inline(never)]
    fn execute_slowly<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &mut FetchPage,
        trap: Trap,
        at: InstPosition,
    ) -> Option<u64> {
        self.progress.count = at.count;
        if self.at_breakpoint(at.pc) {
            self.stop_at_breakpoint();
            return None;
        }
        let inst = page.code.slots[page.slot(at.pc)].get();
        let (inst, result) = if inst.len != 0 {
            (inst, Err(trap))
        } else {
            match self.decode_at(env, page, at.pc) {
                Ok((_, true)) => return None,
                Ok((uncached, false)) => (uncached, self.execute(env, &Slot::new(uncached), at)),
                Err(trap) => (inst, Err(trap)),
            }
        };
        let next = match (result, mark_of(&inst)) {
            (Ok(next), _) => {
                env.log_instruction(&inst, at.pc, next);
                next
            }
            (Err(_), Some(mark)) => {
                self.region(mark);
                at.pc.wrapping_add(4)
            }
            (Err(trap), None) => {
                let handler = self.trap(trap, at.pc);
                env.log_trap(at.pc, handler);
                handler
            }
        };
        page.forget(next);
        Some(next)
    }
}
