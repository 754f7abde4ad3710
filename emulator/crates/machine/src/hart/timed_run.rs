//! Runs in the timed loop: instructions that are executed one after the other, and then timed in one go.

use std::cell::Cell;

use isa::{InstClass, Op, RUN_STEPS, Run, SLOTS, SharedCycle, Slot, StaticId, TimingModel};

use super::{Env, Hart, InstPosition, RunBuffer, RunLength};
use crate::code_cache::{IdPage, NO_ID};
use crate::mmu_tlb::FetchPage;

/// Expands to a match that executes one instruction of a run. The run ends before an instruction that cannot be part of it. That instruction is then
/// executed again outside the run, which is safe: neither a trap nor a device access that was refused has changed anything.
macro_rules! dispatch_in_run {
    ($hart:ident, $env:ident, $page:ident, $slot:ident, $at:ident, $buffer:ident, $length:ident, $done:lifetime, $hot:lifetime,
        $ends:lifetime; $($variant:ident $method:ident,)*) => {
        match $slot.op() {
            $(Op::$variant => {
                if const { Op::$variant.class().serialises() } {
                    break $ends;
                }
                match $hart.$method($env, $slot, $at) {
                    Ok(next) => {
                        if const { Op::$variant.class().accesses_memory() } {
                            $hart.instruction.accesses.keep();
                        }
                        if const { matches!(Op::$variant.class(), InstClass::IntDiv) } {
                            $buffer.set_operand($length.operands, $hart.instruction.executed.operand);
                            $length.operands += 1;
                        }
                        if const { Op::$variant.class().is_control_flow() } && $hart.is_hot_in_run($page, next) {
                            break $hot next;
                        }
                        break $done next;
                    }
                    Err(_) => break $ends,
                }
            })*
        }
    };
}

/// Cycles before a deadline from which on runs are short, so that what is due happens in time. It happens late only if a long run takes more cycles
/// than that. A short run has about as many instructions as a core's front end holds.
const SOON: u64 = 4096;
const STEPS_BEFORE_DUE: usize = 32;

impl Hart {
    /// Executes and then times a run; gives the next pc, or `None` if nothing was executed.
    #[inline(always)]
    pub(super) fn run_on<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        irq_at: &SharedCycle,
        page: &FetchPage,
        pc: u64,
    ) -> Option<u64> {
        let hart = self;
        let ids = page.ids.as_ref()?;
        let mut buffer = hart.instruction.run.take()?;
        let left = hart.deadlines.stop_count.min(hart.sampling.overflows_at) - hart.progress.count;
        let due = hart.deadlines.check_at.min(irq_at.get());
        // Nobody sees where among others the turn of a hart ends that has gone ahead.
        let due = if hart.turns.in_turns { due } else { due.min(hart.deadlines.stop_cycle) };
        hart.turns.run_is_in_order = std::mem::take(&mut hart.turns.next_is_in_order);
        (hart.turns.awaits_turn, hart.turns.awaited_line) = (false, None);
        let is_long =
            !hart.turns.run_is_in_order && hart.instruction.decoded_at.saturating_add(SOON) < due;
        let most = match (hart.turns.order_each, is_long) {
            (true, _) => 1,
            (false, true) => RUN_STEPS,
            (false, false) => STEPS_BEFORE_DUE,
        };
        let most = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut length = RunLength::default();
        hart.instruction.accesses.begin();
        let mut pc = pc;
        let mut is_hot = hart.is_hot_in_run(page, pc);
        loop {
            while is_hot && length.steps < most {
                let place = (page.slot(pc), pc);
                let run = hart.run_in_run(env, (page, ids), place, &mut buffer, &mut length, most);
                (pc, is_hot) = run.unwrap_or((pc, false));
                is_hot = is_hot && hart.is_hot_in_run(page, pc);
            }
            (pc, is_hot) = hart.execute_run(env, (page, ids), pc, &mut buffer, &mut length, most);
            if length.steps == most || !is_hot && !hart.decode_in_run(env, page, pc) {
                break;
            }
        }
        let run = Run {
            steps: &buffer.steps[..length.steps],
            accesses: &hart.instruction.accesses.accesses[..hart.instruction.accesses.kept],
            operands: &buffer.operands[..length.operands],
            next_pc: pc,
            vpage: page.vpage,
            page: page.code.pa,
            privilege: hart.arch.privilege,
            translated: page.translated,
        };
        if length.steps != 0 {
            hart.instruction.exact_from = hart.deadline(irq_at);
            hart.instruction.decoded_at = env.timing.run(&run, hart.instruction.exact_from);
        }
        hart.instruction.run = Some(buffer);
        if hart.turns.in_turns {
            hart.note_lines(env.bus, hart.instruction.accesses.kept, false);
        }
        hart.progress.count += length.steps as u64;
        (length.steps != 0).then_some(pc)
    }

    /// True if code at `pc` is translated already or has been reached often enough to translate it.
    #[inline(always)]
    fn is_hot_in_run(&self, page: &FetchPage, pc: u64) -> bool {
        let index = page.slot(pc);
        index < SLOTS && page.code.is_hot(index, self.translations.hot_in_runs_after)
    }

    /// Executes decoded instructions of a run until it has `most` steps, goes on at hot code ([`Self::is_hot_in_run`]), or comes to an instruction
    /// that is not decoded or cannot be part of it. Returns the next pc, and whether the code there is hot.
    #[inline(never)]
    fn execute_run<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        (page, ids): (&FetchPage, &IdPage),
        pc: u64,
        buffer: &mut RunBuffer,
        run: &mut RunLength,
        most: usize,
    ) -> (u64, bool) {
        let hart = self;
        let ids: &[Cell<u32>; SLOTS] = &ids.ids;
        let slots: &[Slot; SLOTS] = &page.code.slots;
        let (vpage, count) = (page.vpage, hart.progress.count);
        // Spares a bounds check for each step.
        let most = most.min(RUN_STEPS);
        let mut pc = pc;
        let mut length = *run;
        let mut is_hot = false;
        'ends: while length.steps < most {
            let index = (pc.wrapping_sub(vpage) >> 1) as usize;
            if index >= SLOTS {
                break;
            }
            let id = ids[index].get();
            if id == NO_ID {
                break;
            }
            let (slot, id) = (&slots[index], StaticId(id));
            buffer.steps[length.steps] = slot.step(id, 2 * index as u16);
            let at = InstPosition { pc, count: count + length.steps as u64 };
            pc = 'done: {
                let next = 'hot: {
                    isa::for_each_op!(
                        dispatch_in_run,
                        hart,
                        env,
                        page,
                        slot,
                        at,
                        buffer,
                        length,
                        'done,
                        'hot,
                        'ends
                    )
                };
                is_hot = true;
                length.steps += 1;
                pc = next;
                break 'ends;
            };
            length.steps += 1;
        }
        *run = length;
        (pc, is_hot)
    }

    /// Decodes and numbers the next instruction of a run; returns false if the instruction cannot be part of it. Runs, and with them the turns of
    /// several harts, therefore end in the same place whether or not their code was decoded before.
    #[cold]
    #[inline(never)]
    fn decode_in_run<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &FetchPage,
        pc: u64,
    ) -> bool {
        let index = page.slot(pc);
        let (Some(slot), Some(ids)) = (page.code.slots.get(index), &page.ids) else {
            return false;
        };
        let id = &ids.ids[index];
        let mut inst = slot.get();
        if page.strict || inst.len != 0 && id.get() != NO_ID {
            return false;
        }
        if inst.len == 0 {
            let low = env.bus.ram.load(page.code.pa | pc & 0xfff, 2);
            // An instruction that reaches into the next page is kept in no slot.
            if pc & 0xfff == 0xffe && low.is_none_or(|low| low & 3 == 3) {
                return false;
            }
            match self.decode_at(env, page, pc) {
                Ok((decoded, true)) => inst = decoded,
                _ => return false,
            }
        }
        if id.get() == NO_ID {
            id.set(self.define(env, page.space, pc, inst).0);
        }
        true
    }
}
