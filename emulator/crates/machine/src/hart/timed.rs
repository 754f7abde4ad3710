//! The timed loop: the timing model says when an instruction decodes, and gets what it did.

use std::rc::Rc;

use isa::{
    DecodedInst, Executed, Interrupt, MemAccess, MemKind, Operand, StaticId, StaticInst,
    TimingModel, Trap,
};

use super::run::trigger;
use super::{At, Env, Hart, RunExit};
use crate::code_cache::{NO_ID, Slot};
use crate::mmu::Walker;
use crate::mmu_tlb::FetchPage;

/// What the fetch of an instruction gave.
struct Fetched {
    inst: DecodedInst,
    id: StaticId,
    /// It could not be fetched.
    fault: Option<Trap>,
}

impl Hart {
    pub(super) fn run_timed<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> RunExit {
        let irq_at = Rc::clone(&env.bus.irq_at);
        let mut pc = self.pc;
        let mut page = FetchPage::elsewhere(pc);
        let mut decode = 0;
        let mut executed = Executed {
            id: StaticId(0),
            inst: isa::decode(0),
            pc,
            fetch_pa: 0,
            next_pc: pc,
            mem: MemAccess::default(),
            operand: Operand::default(),
            privilege: self.privilege,
            trap: None,
            translated: false,
        };
        loop {
            if self.after != 0 {
                self.pc = pc;
                if let Some(exit) = self.settle(env) {
                    return exit;
                }
                self.arm();
                page.forget(pc);
            }
            if self.count >= self.stop_count || decode >= self.stop_cycle {
                self.pc = pc;
                return RunExit::Limit;
            }

            let fetched = match Self::fetch_quick(&page, pc) {
                Some(fetched) => fetched,
                None => self.fetch_slowly(env, &mut page, pc),
            };
            let (inst, id) = (fetched.inst, fetched.id);
            let pa = page.code.pa | pc & 0xfff;
            let walker = Walker {
                ram: &env.bus.ram,
                satp: self.csrs.satp,
            };
            decode = env
                .timing
                .fetch(id, &inst, pc, pa, page.translated, &walker);
            if decode >= self.check_at.min(irq_at.get())
                && let Some(interrupt) = self.check_timed(env, decode)
            {
                let handler = self.interrupt(interrupt, pc);
                env.timing.interrupt(id, pc, handler);
                pc = handler;
                page.forget(pc);
                continue;
            }

            executed.id = id;
            executed.inst = inst;
            executed.pc = pc;
            executed.fetch_pa = pa;
            executed.privilege = self.privilege;
            executed.translated = page.translated;
            executed.trap = None;
            self.mem.kind = MemKind::None;
            let result = match fetched.fault {
                None => self.execute(
                    env,
                    &Slot::new(inst),
                    At {
                        pc,
                        count: self.count,
                    },
                ),
                Some(trap) => Err(trap),
            };
            let mut region = None;
            match result {
                Ok(next) => pc = next,
                Err(trap) => {
                    region = trigger(&inst);
                    pc = if region.is_some() {
                        pc.wrapping_add(4)
                    } else {
                        executed.trap = Some(trap);
                        self.trap(trap, pc)
                    };
                    page.forget(pc);
                }
            }
            executed.next_pc = pc;
            executed.mem = self.mem;
            executed.operand = self.operand;
            let walker = Walker {
                ram: &env.bus.ram,
                satp: self.csrs.satp,
            };
            env.timing.retire(&executed, &walker);
            self.count += 1;
            if let Some(start) = region {
                env.timing.region(start);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn check_timed<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        decode: u64,
    ) -> Option<Interrupt> {
        let interrupt = self.check(env, decode);
        self.arm();
        interrupt
    }

    #[inline(always)]
    fn fetch_quick(page: &FetchPage, pc: u64) -> Option<Fetched> {
        let slot = page.slot(pc);
        let inst = page.code.slots.get(slot)?.get();
        let id = page.ids.as_ref()?.ids[slot].get();
        let known = inst.len != 0 && id != NO_ID;
        known.then_some(Fetched {
            inst,
            id: StaticId(id),
            fault: None,
        })
    }

    /// Looks the page up, decodes and numbers the instruction, as far as needed.
    #[cold]
    #[inline(never)]
    fn fetch_slowly<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &mut FetchPage,
        pc: u64,
    ) -> Fetched {
        if page.slot(pc) >= page.code.slots.len() {
            match self.fetch_page(env, pc) {
                Ok(found) => *page = found,
                Err(trap) => return self.fetch_fault(env, page, pc, trap),
            }
        }
        let slot = page.slot(pc);
        let mut inst = page.code.slots[slot].get();
        let mut cached = true;
        if inst.len == 0 {
            match self.decode_at(env, page, pc) {
                Ok(decoded) => (inst, cached) = decoded,
                Err(trap) => return self.fetch_fault(env, page, pc, trap),
            }
        }
        let known = page.ids.as_ref().map_or(NO_ID, |page| page.ids[slot].get());
        // The id of an instruction that is not cached may be that of an earlier one in its place.
        let same = cached || self.code.encodings.get(known as usize) == Some(&inst.raw);
        let id = if known != NO_ID && same {
            StaticId(known)
        } else {
            let id = self.define(env, page.space, pc, inst);
            if let Some(page) = &page.ids {
                page.ids[slot].set(id.0);
            }
            id
        };
        if !cached {
            page.forget(pc);
        }
        Fetched {
            inst,
            id,
            fault: None,
        }
    }

    /// An instruction that cannot be fetched is timed like an illegal one, and has an id of its own.
    fn fetch_fault<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &mut FetchPage,
        pc: u64,
        trap: Trap,
    ) -> Fetched {
        page.forget(pc);
        let inst = isa::decode(0);
        let space = self.space_of_privilege();
        let id = match self.spaces.fault(space, pc) {
            Some(id) => id,
            None => {
                let id = self.define(env, space, pc, inst);
                self.spaces.set_fault(space, pc, id);
                id
            }
        };
        Fetched {
            inst,
            id,
            fault: Some(trap),
        }
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
        let inst = isa::decode(inst.raw);
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
