//! Instruction fetch: pages, and decoding into their slots. Also the numbers of address spaces.

use std::collections::HashMap;
use std::rc::Rc;

use isa::{DecodedInst, Exception, Extension, NOWHERE, Privilege, StaticId, TimingModel, Trap};

use super::run::decode_mark;
use super::{Env, Hart};
use crate::code_cache::CodePage;
use crate::mmu::{Access, pte};
use crate::mmu_tlb::FetchPage;

/// Address space of code that is not translated.
const BARE: u32 = 0;
/// Address space of the kernel: supervisor pages and global ones.
const GLOBAL: u32 = 1;
/// The first user address space.
const FIRST_USER: u32 = 2;

/// Number of user address spaces that get a number of their own. Further spaces share a number if they begin at the same instruction: they run the
/// same program, and an instruction at the same virtual and physical address has the same static id in all of them. The numbers of spaces and
/// ids, and whatever is kept for each, therefore do not grow with every process that runs a program.
const OWN_SPACES: usize = if cfg!(test) { 8 } else { 64 };

/// Numbers of address spaces, and the static ids of addresses that could not be fetched.
pub(crate) struct Spaces {
    /// Numbers of user spaces, by root page table and the guest's tag.
    users: HashMap<(u64, u64), u32>,
    /// Numbers that several user spaces share, by the address at which these spaces begin.
    together: HashMap<u64, u32>,
    faults: HashMap<(u32, u64), StaticId>,
    /// The guest's tag that user code runs under.
    tag: u64,
}

impl Spaces {
    pub(crate) fn new() -> Self {
        Self { users: HashMap::new(), together: HashMap::new(), faults: HashMap::new(), tag: 0 }
    }

    /// Returns the number of the user space of a root page table under the current tag. `pc`: address of the fetch, at which a new space begins.
    fn user(&mut self, root: u64, pc: u64) -> u32 {
        let key = (root, self.tag);
        if let Some(&known) = self.users.get(&key) {
            return known;
        }
        let own = self.users.len().min(OWN_SPACES);
        let next = FIRST_USER + (own + self.together.len()) as u32;
        let space = match own < OWN_SPACES {
            true => next,
            false => *self.together.entry(pc).or_insert(next),
        };
        self.users.insert(key, space);
        space
    }

    pub(crate) fn fault(&self, space: u32, pc: u64) -> Option<StaticId> {
        self.faults.get(&(space, pc)).copied()
    }

    pub(crate) fn set_fault(&mut self, space: u32, pc: u64, id: StaticId) {
        self.faults.insert((space, pc), id);
    }
}

impl Hart {
    /// Returns the page of `pc` if the fetch TLB has it as this kind of run needs it: with static ids in a timed run, without them in an untimed one.
    #[inline(always)]
    pub(super) fn known_page<T: TimingModel>(&self, pc: u64) -> Option<&FetchPage> {
        let page = self.host.fetch_tlb.lookup(pc, self.arch.privilege);
        page.filter(|page| page.ids.is_some() == T::TIMED)
    }

    /// Finds the page of `pc`, translating and allocating it as needed.
    #[inline(never)]
    pub(super) fn fetch_page<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        pc: u64,
    ) -> Result<FetchPage, Trap> {
        if let Some(page) = self.known_page::<T>(pc) {
            return Ok(page.clone());
        }
        let fault = |cause| Trap { cause, tval: pc };
        let (leaf, translated) =
            self.translate(env, pc, Access::Fetch, self.arch.privilege).map_err(fault)?;
        let pa = leaf.pa & !0xfff;
        let allowed = self.arch.pmp.allows_page(pa, Access::Fetch, self.arch.privilege);
        // Instructions come from RAM only: nothing maps a ROM that is fetched from.
        if allowed == Some(false) || !env.bus.ram.contains(pa, 4096) {
            return Err(fault(Exception::InstAccessFault));
        }
        if self.decoded.code.is_full() {
            self.host.fetch_tlb.flush();
            self.decoded.code.make_room(&mut env.bus.ram);
        }
        // Only timed runs number spaces, so that the numbers do not depend on untimed runs before.
        let space = match (translated, leaf.pte & (pte::U | pte::G)) {
            _ if !T::TIMED => BARE,
            (false, _) => BARE,
            (true, pte::U) => self.decoded.spaces.user(self.arch.csrs.satp.root(), pc),
            (true, _) => GLOBAL,
        };
        // If protection differs within the page, or the page has a breakpoint, each instruction is checked every time that it executes. An empty slot
        // makes the loops do so: the page gets decoded slots of its own that are never filled.
        let vpage = pc & !0xfff;
        let strict = allowed.is_none() || self.has_breakpoint(vpage);
        let code = if strict {
            if self.decoded.strict_page.pa != pa {
                self.decoded.strict_page = CodePage::uncached(pa);
            }
            Rc::clone(&self.decoded.strict_page)
        } else {
            self.code_page(env, pa)
        };
        let ids = T::TIMED.then(|| self.decoded.code.ids(space, vpage, &code));
        let page = FetchPage { vpage, code, ids, space, translated, strict };
        if !strict {
            self.host.superpages.note(pc, leaf.page_bits);
            self.host.fetch_tlb.insert(self.arch.privilege, page.clone());
        }
        Ok(page)
    }

    /// The decoded page at `pa`; from now on, stores to it take the slow path.
    fn code_page<T>(&mut self, env: &mut Env<'_, T>, pa: u64) -> std::rc::Rc<CodePage> {
        let (code, unmarked) = self.decoded.code.page(pa, &mut env.bus.ram);
        if unmarked {
            self.host.flush_stores_to(pa);
        }
        code
    }

    /// Decodes the instruction at `pc` in `page` and fills its slot. The second value is false if
    /// it cannot be kept there: it reaches into the next page, or the page is under strict protection.
    pub(crate) fn decode_at<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &FetchPage,
        pc: u64,
    ) -> Result<(DecodedInst, bool), Trap> {
        let pa = page.code.pa | pc & 0xfff;
        let low = self.fetch_half(env, page, pa, pc)?;
        let mut cached = !page.strict;
        let mut raw = low;
        if low & 3 == 3 {
            let next = pc.wrapping_add(2);
            let high = if pc & 0xfff == 0xffe {
                cached = false;
                let page = self.fetch_page(env, next)?;
                self.fetch_half(env, &page, page.code.pa, next)?
            } else {
                self.fetch_half(env, page, pa + 2, next)?
            };
            raw |= high << 16;
        }
        let mut inst = self.decode(raw);
        decode_mark(&mut inst);
        // Compare-and-swap reads the register too.
        if inst.rd == 0 && !inst.extensions().contains(&Extension::Zacas) {
            inst.rd = NOWHERE;
        }
        if cached {
            // The page may have become data since it was looked up.
            self.code_page(env, pa);
            page.code.fill((pc & 0xfff) as usize >> 1, inst, &self.decoded.code.encodings);
        }
        Ok((inst, cached))
    }

    /// Decodes an encoding; one of an extension that is off is illegal.
    pub(super) fn decode(&self, raw: u32) -> DecodedInst {
        let inst = isa::decode(raw);
        if self.extensions.has_all(inst.extensions()) { inst } else { DecodedInst::illegal(raw) }
    }

    fn fetch_half<T>(
        &self,
        env: &Env<'_, T>,
        page: &FetchPage,
        pa: u64,
        pc: u64,
    ) -> Result<u32, Trap> {
        let allowed =
            !page.strict || self.arch.pmp.allows(pa, 2, Access::Fetch, self.arch.privilege);
        let half = env.bus.ram.load(pa, 2).filter(|_| allowed);
        half.map(|half| half as u32).ok_or(Trap { cause: Exception::InstAccessFault, tval: pc })
    }

    /// The address space that a fetch from `pc` at the current privilege would be in, if it worked.
    pub(super) fn space_of_privilege(&mut self, pc: u64) -> u32 {
        match self.arch.privilege {
            _ if self.arch.csrs.satp.levels() == 0 => BARE,
            Privilege::Machine => BARE,
            Privilege::Supervisor => GLOBAL,
            Privilege::User => self.decoded.spaces.user(self.arch.csrs.satp.root(), pc),
        }
    }

    /// Takes the tag over that the guest's driver may have changed.
    pub(super) fn adopt_guest_tag(&mut self) {
        let tag = self.attachments.guest_tag.get();
        if self.decoded.spaces.tag != tag {
            self.decoded.spaces.tag = tag;
            self.host.fetch_tlb.flush_user();
        }
    }
}
