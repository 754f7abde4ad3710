//! The timed loop: the timing model says when an instruction decodes, and gets what it did.

use std::cell::Cell;
use std::rc::Rc;

use isa::{
    DecodedInst, InstClass, Interrupt, MemAccess, Op, Operand, RUN_STEPS, Run, SharedCycle,
    StaticId, StaticInst, Step, TimingModel, Trap,
};

use super::run::trigger;
use super::{Env, Hart, InstPosition, RunExit};
use crate::code_cache::{IdPage, NO_ID, SLOTS, Slot};
use crate::mmu_tlb::FetchPage;

/// Expands to a match that breaks out with the next pc, or with the trap.
macro_rules! dispatch {
    ($hart:ident, $env:ident, $slot:ident, $at:ident, $done:lifetime, $trapped:lifetime;
        $($variant:ident $method:ident,)*) => {
        match $slot.op() {
            $(Op::$variant => match $hart.$method($env, $slot, $at) {
                Ok(next) => break $done next,
                Err(trap) => break $trapped trap,
            },)*
        }
    };
}

/// The same for a run, which ends before an instruction that cannot be part of it. That executes again
/// by itself: a trap, or a device register that was not accessed, has changed nothing.
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
                            $hart.accesses.keep();
                        }
                        if const { matches!(Op::$variant.class(), InstClass::IntDiv) } {
                            $buffer.set_operand($length.operands, $hart.executed.operand);
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

/// Runs are short when something is due in so many cycles, so that it happens in time, unless a long one takes more cycles
/// than that: about as many instructions as a core's front end holds.
const SOON: u64 = 4096;
const STEPS_BEFORE_DUE: usize = 32;

/// Room for a [`Run`], but for its data accesses.
pub(crate) struct RunBuffer {
    steps: [Step; RUN_STEPS],
    operands: [Operand; RUN_STEPS],
}

impl Default for RunBuffer {
    fn default() -> Self {
        Self {
            steps: [Step::default(); RUN_STEPS],
            operands: [Operand::default(); RUN_STEPS],
        }
    }
}

impl RunBuffer {
    /// The end of so many steps.
    pub fn steps_up_to(&mut self, count: usize) -> *mut Step {
        self.steps[..count].as_mut_ptr_range().end
    }

    #[inline(always)]
    pub fn set_operand(&mut self, number: usize, operand: Operand) {
        self.operands[number] = operand;
    }
}

/// How much of a [`RunBuffer`] is used.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunLength {
    pub steps: usize,
    pub operands: usize,
}

/// The data accesses of a run, or of one instruction. They are written where the timing model reads them: a copy right
/// after they were written in pieces has the host wait until the pieces have left its store queue.
pub(crate) struct Accesses {
    pub accesses: [MemAccess; RUN_STEPS],
    pub kept: usize,
}

impl Default for Accesses {
    fn default() -> Self {
        Self {
            accesses: [MemAccess::default(); RUN_STEPS],
            kept: 0,
        }
    }
}

impl Accesses {
    /// The access of the instruction that is executing.
    #[inline(always)]
    pub fn current(&mut self) -> &mut MemAccess {
        &mut self.accesses[self.kept % RUN_STEPS]
    }

    /// The next access is another instruction's.
    #[inline(always)]
    pub fn keep(&mut self) {
        self.kept += 1;
    }

    /// Forgets all of them: the next instruction has not accessed anything yet.
    #[inline(always)]
    fn begin(&mut self) {
        self.kept = 0;
        *self.current() = MemAccess::default();
    }
}

/// An instruction as the fetch delivers it.
struct Fetched<'a> {
    slot: &'a Slot,
    id: StaticId,
    pa: u64,
    translated: bool,
    /// It could not be fetched.
    fault: Option<Trap>,
}

impl Hart {
    pub(super) fn run_timed<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> RunExit {
        let irq_at = env.bus.irq_at.clone();
        let mut pc = self.pc;
        let mut page = FetchPage::elsewhere(pc, Rc::clone(&self.strict_page));
        self.decoded_at = 0;
        self.exact_from = 0;
        loop {
            // Every change of privilege or translation comes by here, so that the page stays right.
            if self.after != 0 {
                self.pc = pc;
                if let Some(exit) = self.settle(env) {
                    return exit;
                }
                self.arm();
                page.forget(pc);
            }
            if self.count >= self.stop_count || self.is_over() {
                self.pc = pc;
                return RunExit::Limit;
            }
            if self.at_breakpoint(pc) {
                self.stop_at_breakpoint();
                continue;
            }
            if page.slot(pc) >= SLOTS
                && let Some(known) = self.known_page::<T>(pc)
            {
                page = known.clone();
            }
            if T::RUNS
                && self.decodes_before(env, self.check_at.min(irq_at.get()))
                && let Some(next) = self.run_on(env, &irq_at, &page, pc)
            {
                pc = next;
                continue;
            }
            pc = match Self::fetch_quickly(&page, pc) {
                Some(fetched) => self.step(env, &irq_at, fetched, pc),
                None => self.step_slowly(env, &irq_at, &mut page, pc),
            };
        }
    }

    /// From this cycle on, it matters in which one an instruction is decoded.
    #[inline(always)]
    fn deadline(&self, irq_at: &SharedCycle) -> u64 {
        self.check_at.min(irq_at.get()).min(self.stop_cycle)
    }

    /// The last instruction was decoded before `cycle`.
    #[inline(always)]
    fn decodes_before<T: TimingModel>(&mut self, env: &mut Env<'_, T>, cycle: u64) -> bool {
        self.decoded_at < cycle || {
            self.decode_exactly(env);
            self.decoded_at < cycle
        }
    }

    /// Has the model say exactly when the last instruction was decoded, if it need not have.
    #[inline(always)]
    pub(super) fn decode_exactly<T: TimingModel>(&mut self, env: &mut Env<'_, T>) {
        if self.decoded_at < self.exact_from {
            self.decoded_at = env.timing.exactly(self.decoded_at);
            self.exact_from = 0;
        }
    }

    /// The run's last cycle is reached. It was a deadline, so that the answer is exact.
    #[inline(always)]
    fn is_over(&self) -> bool {
        self.decoded_at.max(self.alone_until) >= self.stop_cycle
    }

    /// Executes and then times a run; gives the next pc, or `None` if nothing was executed.
    #[inline(always)]
    fn run_on<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        irq_at: &SharedCycle,
        page: &FetchPage,
        pc: u64,
    ) -> Option<u64> {
        let hart = self;
        let ids = page.ids.as_ref()?;
        let mut buffer = hart.run.take()?;
        let left = hart.stop_count - hart.count;
        let due = hart.check_at.min(irq_at.get()).min(hart.stop_cycle);
        let most = if hart.decoded_at.saturating_add(SOON) < due {
            RUN_STEPS
        } else {
            STEPS_BEFORE_DUE
        };
        let most = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut length = RunLength::default();
        hart.accesses.begin();
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
            accesses: &hart.accesses.accesses[..hart.accesses.kept],
            operands: &buffer.operands[..length.operands],
            next_pc: pc,
            vpage: page.vpage,
            page: page.code.pa,
            privilege: hart.privilege,
            translated: page.translated,
        };
        if length.steps != 0 {
            hart.exact_from = hart.deadline(irq_at);
            hart.decoded_at = env.timing.run(&run, hart.exact_from);
        }
        hart.run = Some(buffer);
        hart.count += length.steps as u64;
        (length.steps != 0).then_some(pc)
    }

    /// Code for what is executed at `pc` is there, or worth to be made.
    #[inline(always)]
    fn is_hot_in_run(&self, page: &FetchPage, pc: u64) -> bool {
        let index = page.slot(pc);
        index < SLOTS && page.code.is_hot(index, self.hot_in_runs_after)
    }

    /// Executes what of a run is decoded, until it is as long as it may be, or goes on where [`Self::is_hot_in_run`]; the next
    /// pc, and whether that is.
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
        let (vpage, count) = (page.vpage, hart.count);
        // Spares a check for each.
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
            let at = InstPosition {
                pc,
                count: count + length.steps as u64,
            };
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

    /// Times and executes one instruction. Gives the next pc.
    #[inline(always)]
    fn step<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        irq_at: &SharedCycle,
        fetched: Fetched<'_>,
        pc: u64,
    ) -> u64 {
        let Fetched {
            slot,
            id,
            pa,
            translated,
            fault,
        } = fetched;
        let hart = self;
        hart.executed.inst = slot.get();
        let inst = &hart.executed.inst;
        hart.exact_from = hart.deadline(irq_at);
        hart.decoded_at = env
            .timing
            .fetch(id, inst, pc, pa, translated, hart.exact_from);
        let fetched;
        let mut slot = slot;
        if !hart.decodes_before(env, hart.check_at.min(irq_at.get())) {
            if let Some(interrupt) = hart.check_timed(env) {
                let handler = hart.interrupt(interrupt, pc);
                env.timing.interrupt(id, pc, handler);
                hart.interrupted_step();
                return handler;
            }
            // A device may have overwritten the page just now, and emptied the slot: this one was fetched before.
            fetched = Slot::new(hart.executed.inst);
            slot = &fetched;
        }

        hart.executed.id = id;
        hart.executed.pc = pc;
        hart.executed.fetch_pa = pa;
        hart.executed.privilege = hart.privilege;
        hart.executed.translated = translated;
        hart.executed.trap = None;
        hart.accesses.begin();
        hart.executed.operand = Operand::default();
        let mut region = None;
        let next = 'done: {
            let trap = 'trapped: {
                if let Some(trap) = fault {
                    break 'trapped trap;
                }
                let at = InstPosition {
                    pc,
                    count: hart.count,
                };
                isa::for_each_op!(dispatch, hart, env, slot, at, 'done, 'trapped)
            };
            region = trigger(&hart.executed.inst);
            if region.is_some() {
                break 'done pc.wrapping_add(4);
            }
            hart.executed.trap = Some(trap);
            hart.trap(trap, pc)
        };
        hart.executed.next_pc = next;
        hart.executed.mem = *hart.accesses.current();
        env.timing.retire(&hart.executed);
        hart.count += 1;
        if hart.in_turns && hart.executed.inst.class.serialises() {
            hart.alone_until = env.timing.now();
        }
        if let Some(mark) = region {
            hart.region(mark);
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn check_timed<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> Option<Interrupt> {
        let interrupt = self.check(env, self.decoded_at);
        self.arm();
        interrupt
    }

    #[inline(always)]
    fn fetch_quickly(page: &FetchPage, pc: u64) -> Option<Fetched<'_>> {
        let index = page.slot(pc);
        let slot = page.code.slots.get(index)?;
        let id = page.ids.as_ref()?.ids[index].get();
        let known = slot.len() != 0 && id != NO_ID;
        known.then_some(Fetched {
            slot,
            id: StaticId(id),
            pa: page.code.pa | pc & 0xfff,
            translated: page.translated,
            fault: None,
        })
    }

    /// Looks the page up, decodes and numbers the instruction, as far as needed. Executes it only
    /// if it cannot stay in the page.
    #[cold]
    #[inline(never)]
    fn step_slowly<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        irq_at: &SharedCycle,
        page: &mut FetchPage,
        pc: u64,
    ) -> u64 {
        let (inst, id, fault) = match self.fetch_slowly(env, page, pc) {
            Ok((_, _, true)) => return pc,
            Ok((inst, id, false)) => (inst, id, None),
            Err(trap) => {
                let (inst, id) = self.fault_id(env, pc);
                (inst, id, Some(trap))
            }
        };
        let slot = &Slot::new(inst);
        let pa = page.code.pa | pc & 0xfff;
        let translated = page.translated;
        page.forget(pc);
        self.step(
            env,
            irq_at,
            Fetched {
                slot,
                id,
                pa,
                translated,
                fault,
            },
            pc,
        )
    }

    /// Decodes and numbers the next instruction of a run; false if it cannot be part of one.
    /// Runs, and with them the turns of several harts, so end in the same place whatever was executed before.
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
            // What reaches into the next page is kept nowhere.
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

    /// The third value is false if the instruction is not kept in its slot.
    fn fetch_slowly<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &mut FetchPage,
        pc: u64,
    ) -> Result<(DecodedInst, StaticId, bool), Trap> {
        if page.slot(pc) >= page.code.slots.len() {
            *page = self.fetch_page(env, pc)?;
        }
        let index = page.slot(pc);
        let mut inst = page.code.slots[index].get();
        let mut cached = true;
        if inst.len == 0 {
            (inst, cached) = self.decode_at(env, page, pc)?;
        }
        let known = page
            .ids
            .as_ref()
            .map_or(NO_ID, |page| page.ids[index].get());
        // The id of an instruction that is not cached may be that of an earlier one in its place.
        let same = cached || self.code.encodings.get(known as usize) == Some(&inst.raw);
        if known != NO_ID && same {
            return Ok((inst, StaticId(known), cached));
        }
        let id = self.define(env, page.space, pc, inst);
        if let Some(page) = &page.ids {
            page.ids[index].set(id.0);
        }
        Ok((inst, id, cached))
    }

    /// An instruction that cannot be fetched is timed like an illegal one, and has an id of its own.
    fn fault_id<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        pc: u64,
    ) -> (DecodedInst, StaticId) {
        let inst = isa::decode(0);
        let space = self.space_of_privilege();
        let known = self.spaces.fault(space, pc);
        let id = known.unwrap_or_else(|| self.define(env, space, pc, inst));
        self.spaces.set_fault(space, pc, id);
        (inst, id)
    }

    /// Gives an instruction the next number and announces it.
    fn define<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        space: u32,
        pc: u64,
        inst: DecodedInst,
    ) -> StaticId {
        let id = StaticId(self.code.encodings.len() as u32);
        self.code.encodings.push(inst.raw);
        // A trigger's slot holds another operation than the instruction has.
        let inst = self.decode(inst.raw);
        env.timing.define(&StaticInst {
            id,
            space,
            pc,
            inst,
            privilege: self.privilege,
        });
        id
    }
}
