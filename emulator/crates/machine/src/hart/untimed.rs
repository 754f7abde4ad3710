//! The untimed loop: an instruction is a cycle.

use isa::{DecodedInst, TimingModel, Trap};

use super::run::trigger;
use super::{At, Env, Hart, RunExit};
use crate::mmu_tlb::FetchPage;

impl Hart {
    pub(super) fn run_untimed<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> RunExit {
        let mut pc = self.pc;
        let mut count = self.count;
        let mut page = FetchPage::elsewhere(pc);
        loop {
            if count >= self.check_at {
                self.pc = pc;
                self.count = count;
                if let Some(exit) = self.pause(env) {
                    return exit;
                }
                pc = self.pc;
                count = self.count;
                page.forget(pc);
            }
            let Some(slot) = page.code.slots.get(page.slot(pc)) else {
                match self.fetch_page(env, pc) {
                    Ok(found) => page = found,
                    Err(trap) => {
                        count += 1;
                        pc = self.trap(trap, pc);
                        page.forget(pc);
                    }
                }
                continue;
            };
            let inst = slot.get();
            match self.execute(env, inst, At { pc, count }) {
                Ok(next) => pc = next,
                Err(trap) => match self.stumble(env, &mut page, inst, trap, At { pc, count }) {
                    Some(next) => pc = next,
                    None => continue,
                },
            }
            count += 1;
        }
    }

    /// Does what the last instruction left to do, and what is due. Interrupts divert `self.pc`.
    #[cold]
    #[inline(never)]
    fn pause<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> Option<RunExit> {
        if self.after != 0
            && let Some(exit) = self.settle(env)
        {
            return Some(exit);
        }
        if self.count >= self.stop_count.min(self.stop_cycle) {
            return Some(RunExit::Limit);
        }
        if self.count >= self.due
            && let Some(interrupt) = self.check(env, self.count)
        {
            self.pc = self.interrupt(interrupt, self.pc);
        }
        self.arm();
        None
    }

    /// Execution did not go through: the slot was empty, the instruction is a region trigger, or
    /// it trapped. Gives the next pc, or `None` to execute the slot again, now that it is filled.
    #[cold]
    #[inline(never)]
    fn stumble<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &mut FetchPage,
        inst: DecodedInst,
        trap: Trap,
        at: At,
    ) -> Option<u64> {
        let (inst, result) = if inst.len != 0 {
            (inst, Err(trap))
        } else {
            match self.decode_at(env, page, at.pc) {
                Ok((_, true)) => return None,
                Ok((uncached, false)) => (uncached, self.execute(env, uncached, at)),
                Err(trap) => (inst, Err(trap)),
            }
        };
        let next = match (result, trigger(&inst)) {
            (Ok(next), _) => next,
            (Err(_), Some(start)) => {
                env.timing.region(start);
                at.pc.wrapping_add(4)
            }
            (Err(trap), None) => self.trap(trap, at.pc),
        };
        page.forget(next);
        Some(next)
    }
}
