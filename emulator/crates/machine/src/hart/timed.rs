//! The timed loop: the timing model says when an instruction decodes, and gets what it did.

use std::rc::Rc;

use isa::{
    DecodedInst, InstClass, Interrupt, Op, Operand, SLOTS, SharedCycle, Slot, StaticId, StaticInst,
    TimingModel, Trap,
};

use super::host_translations::HostTranslations;
use super::run::mark_of;
use super::{Env, Hart, InstPosition, RunExit};
use crate::code_cache::NO_ID;
use crate::mmu::Access;
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

/// An instruction as the fetch delivers it.
struct Fetched<'a> {
    slot: &'a Slot,
    id: StaticId,
    pa: u64,
    translated: bool,
    /// Trap of the fetch, if the instruction could not be fetched.
    fault: Option<Trap>,
}

impl Hart {
    pub(super) fn run_timed<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> RunExit {
        let irq_at = env.bus.irq_at.clone();
        let mut pc = self.arch.pc;
        let mut page = FetchPage::elsewhere(pc, Rc::clone(&self.decoded.strict_page));
        self.instruction.decoded_at = 0;
        self.instruction.exact_from = 0;
        loop {
            // Every change of privilege or translation comes by here, so that the page stays right.
            if self.deadlines.after != 0 {
                self.arch.pc = pc;
                if let Some(exit) = self.settle(env) {
                    return exit;
                }
                self.deadlines.arm(self.progress.timed);
                page.forget(pc);
            }
            if self.progress.count >= self.deadlines.stop_count || self.is_over() {
                self.arch.pc = pc;
                return RunExit::Limit;
            }
            if self.progress.count >= self.attachments.look_at {
                self.look(env);
            }
            if self.at_breakpoint(pc) {
                self.stop_at_breakpoint();
                continue;
            }
            if self.progress.count >= self.sampling.overflows_at {
                self.look_for_overflow(env);
                if self.deadlines.after != 0 {
                    continue;
                }
            }
            if page.slot(pc) >= SLOTS
                && let Some(known) = self.known_page::<T>(pc)
            {
                page = known.clone();
            }
            if T::RUNS
                && self.decodes_before(env, self.deadlines.check_at.min(irq_at.get()))
                && let Some(next) = self.run_on(env, &irq_at, &page, pc)
            {
                pc = next;
                if self.turns.awaits_turn && self.waits_for_turn(env, &page, pc) {
                    self.arch.pc = pc;
                    return RunExit::Limit;
                }
                continue;
            }
            if self.turns.in_turns && self.waits_for_turn(env, &page, pc) {
                self.arch.pc = pc;
                return RunExit::Limit;
            }
            pc = match Self::fetch_quickly(&page, pc) {
                Some(fetched) => self.step(env, &irq_at, fetched, pc),
                None => self.step_slowly(env, &irq_at, &mut page, pc),
            };
        }
    }

    /// Returns the cycle from which on it matters in exactly which cycle an instruction is decoded.
    #[inline(always)]
    pub(super) fn deadline(&self, irq_at: &SharedCycle) -> u64 {
        self.deadlines.check_at.min(irq_at.get()).min(self.deadlines.stop_cycle)
    }

    /// Returns whether the next instruction, which ended a run or can be in none, has to wait until no other hart is behind this one.
    #[inline(always)]
    fn waits_for_turn<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &FetchPage,
        pc: u64,
    ) -> bool {
        let Some(slot) = page.code.slots.get(page.slot(pc)) else { return false };
        let needs_turn = match slot.op().class() {
            InstClass::LoadReserved => self.atomic_needs_turn(env, slot, Access::Load),
            InstClass::Amo | InstClass::StoreConditional => {
                self.atomic_needs_turn(env, slot, Access::Store)
            }
            _ => self.turns.awaits_turn,
        };
        let until = self.turns.in_order_until;
        self.turns.next_is_in_order =
            needs_turn && self.turns.alone_until < until && self.decodes_before(env, until);
        let waits = needs_turn && !self.turns.next_is_in_order;
        if waits && let Some((pa, is_store)) = self.turns.awaited_line {
            env.bus.ram.waits(self.id, pa, is_store);
        }
        waits
    }

    /// Returns whether an atomic instruction accesses a line that harts contend for.
    fn atomic_needs_turn<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        slot: &Slot,
        access: Access,
    ) -> bool {
        let va = self.get(slot.rs1());
        let is_store = access == Access::Store;
        let HostTranslations {
            load_tlb, store_tlb, contended_loads, contended_stores, rights, ..
        } = &self.host;
        let (quiet, contended) = match is_store {
            true => (store_tlb, contended_stores),
            false => (load_tlb, contended_loads),
        };
        if quiet.lookup(va, 1, *rights).is_some() {
            return false;
        }
        let pa = match contended.lookup(va, 1, *rights) {
            Some(host) => Some(self.host.physical(host)),
            // An instruction that cannot access its place traps, whoever is behind.
            None => self.place(env, va, 1, access).ok().filter(|place| place.ram).map(|at| at.pa),
        };
        self.turns.awaited_line = pa.map(|pa| (pa, is_store));
        pa.is_some_and(|pa| env.bus.ram.must_wait(self.id, pa, is_store))
    }

    /// Returns whether the last instruction was decoded before `cycle`.
    #[inline(always)]
    fn decodes_before<T: TimingModel>(&mut self, env: &mut Env<'_, T>, cycle: u64) -> bool {
        self.instruction.decoded_at < cycle || {
            self.decode_exactly(env);
            self.instruction.decoded_at < cycle
        }
    }

    /// Asks the model for the exact cycle in which the last instruction was decoded, if the cycle known so far may be inexact.
    #[inline(always)]
    pub(super) fn decode_exactly<T: TimingModel>(&mut self, env: &mut Env<'_, T>) {
        if self.instruction.decoded_at < self.instruction.exact_from {
            self.instruction.decoded_at = env.timing.exactly(self.instruction.decoded_at);
            self.instruction.exact_from = 0;
        }
    }

    /// Returns whether the run's last cycle is reached. The answer is exact, since that cycle is one of the deadlines ([`Self::deadline`]).
    #[inline(always)]
    fn is_over(&self) -> bool {
        self.instruction.decoded_at.max(self.turns.alone_until) >= self.deadlines.stop_cycle
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
        let Fetched { slot, id, pa, translated, fault } = fetched;
        let hart = self;
        hart.instruction.executed.inst = slot.get();
        let inst = &hart.instruction.executed.inst;
        hart.instruction.exact_from = hart.deadline(irq_at);
        hart.instruction.decoded_at =
            env.timing.fetch(id, inst, pc, pa, translated, hart.instruction.exact_from);
        let fetched;
        let mut slot = slot;
        if !hart.decodes_before(env, hart.deadlines.check_at.min(irq_at.get())) {
            if let Some(interrupt) = hart.check_timed(env, pc) {
                let handler = hart.interrupt(interrupt, pc);
                env.timing.interrupt(id, pc, handler);
                hart.interrupted_step();
                return handler;
            }
            // A device may have overwritten the page just now, and emptied the slot: this one was fetched before.
            fetched = Slot::new(hart.instruction.executed.inst);
            slot = &fetched;
        }

        hart.instruction.executed.id = id;
        hart.instruction.executed.pc = pc;
        hart.instruction.executed.fetch_pa = pa;
        hart.instruction.executed.privilege = hart.arch.privilege;
        hart.instruction.executed.translated = translated;
        hart.instruction.executed.trap = None;
        hart.instruction.accesses.begin();
        hart.instruction.executed.operand = Operand::default();
        let mut region = None;
        let next = 'done: {
            let trap = 'trapped: {
                if let Some(trap) = fault {
                    break 'trapped trap;
                }
                let at = InstPosition { pc, count: hart.progress.count };
                isa::for_each_op!(dispatch, hart, env, slot, at, 'done, 'trapped)
            };
            region = mark_of(&hart.instruction.executed.inst);
            if region.is_some() {
                break 'done pc.wrapping_add(4);
            }
            hart.instruction.executed.trap = Some(trap);
            hart.trap(trap, pc)
        };
        hart.instruction.executed.next_pc = next;
        hart.instruction.executed.mem = *hart.instruction.accesses.current();
        env.timing.retire(&hart.instruction.executed);
        hart.progress.count += 1;
        if hart.turns.in_turns {
            let class = hart.instruction.executed.inst.class;
            hart.note_lines(env.bus, 1, class.is_atomic());
            if class.serialises() {
                // An instruction that serialises may have taken long.
                hart.turns.next_is_in_order = false;
                hart.turns.alone_until = env.timing.now();
            }
        }
        if let Some(mark) = region {
            hart.region(mark);
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn check_timed<T: TimingModel>(&mut self, env: &mut Env<'_, T>, pc: u64) -> Option<Interrupt> {
        self.arch.pc = pc;
        self.sampling.fetched = true;
        let interrupt = self.check(env, self.instruction.decoded_at);
        self.sampling.fetched = false;
        self.deadlines.arm(self.progress.timed);
        interrupt
    }

    #[inline(always)]
    fn fetch_quickly(page: &FetchPage, pc: u64) -> Option<Fetched<'_>> {
        let index = page.slot(pc);
        let slot = page.code.slots.get(index)?;
        let id = page.ids.as_ref()?.ids[index].get();
        let known = !slot.is_empty() && id != NO_ID;
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
        self.step(env, irq_at, Fetched { slot, id, pa, translated, fault }, pc)
    }

    /// Returns the instruction at `pc`, its static id, and whether the instruction is kept in its slot.
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
        let known = page.ids.as_ref().map_or(NO_ID, |page| page.ids[index].get());
        // The id of an instruction that is not cached may be that of an earlier one in its place.
        let same = cached || self.decoded.code.encodings.get(known as usize) == Some(&inst.raw);
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
        let space = self.space_of_privilege(pc);
        let known = self.decoded.spaces.fault(space, pc);
        let id = known.unwrap_or_else(|| self.define(env, space, pc, inst));
        self.decoded.spaces.set_fault(space, pc, id);
        (inst, id)
    }

    /// Gives an instruction the next number and announces it.
    pub(super) fn define<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        space: u32,
        pc: u64,
        inst: DecodedInst,
    ) -> StaticId {
        let id = StaticId(self.decoded.code.encodings.len() as u32);
        self.decoded.code.encodings.push(inst.raw);
        // A trigger's slot holds another operation than the instruction has.
        let inst = self.decode(inst.raw);
        env.timing.define(&StaticInst { id, space, pc, inst, privilege: self.arch.privilege });
        id
    }
}
