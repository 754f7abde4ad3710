//! Host code for hot guest code: when it is made, how it is entered, and what it may see of the hart.

mod fallback;

use std::mem::offset_of;

use devices::RAM_BASE;
use isa::{PathSegment, TimingModel};
use translator::{
    Call, CodeKind, DONE, Entry, Frame, Layout, Page, Region, TRAPPED, TlbLayout, Translator,
    TranslatorError,
};

use super::{Env, Hart, RunBuffer, RunLength};
use crate::code_cache::{IdPage, NEVER};
use crate::csr::status;
use crate::fp;
use crate::mmu_tlb::{self, FetchPage};

pub(crate) use fallback::FallbackContext;

/// Arrivals at a place that make it worth to be translated: translation takes about a millisecond, and saves some 20 ns for
/// each further arrival.
const HOT_AFTER: u16 = 10_000;
/// Arrivals at a place that make it worth to be translated in runs, where less is saved.
const HOT_IN_RUNS_AFTER: u16 = 60_000;
/// Arrivals in runs after which a place is translated under [`Translate::Everything`], together with what is decoded behind it by then.
const EVERYTHING_IN_RUNS_AFTER: u16 = 2;

/// Bits by which a key shifts a page's physical address to the left. The low 12 bits of that address are zero, so that a key has room for 2^36
/// generations below it, and the address has room for 64 GiB of RAM.
const PAGE_IN_KEY: u32 = 28;

/// Offsets in [`Hart`] of its frame and of all else that translated code reads and writes.
const LAYOUT: Layout = Layout {
    registers: offset_of!(Hart, arch.registers.0) as i32,
    pc: offset_of!(Hart, arch.pc) as i32,
    count: offset_of!(Hart, progress.count) as i32,
    frame: offset_of!(Hart, translations.frame) as i32,
    access_count: offset_of!(Hart, instruction.accesses.kept) as i32,
    accesses: offset_of!(Hart, instruction.accesses.accesses) as i32,
    host_to_pa: offset_of!(Hart, host.host_to_pa) as i32,
    tlb: TlbLayout {
        entries: mmu_tlb::TLB_ENTRIES,
        entry_size: size_of::<mmu_tlb::Entry>(),
        tag: offset_of!(mmu_tlb::Entry, tag) as i32,
        host: offset_of!(mmu_tlb::Entry, host) as i32,
    },
};
const _: () = assert!(mmu_tlb::TLB_ENTRIES.is_power_of_two());
const _: () = assert!(size_of::<mmu_tlb::Entry>().is_power_of_two());

/// Which code is translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Translate {
    /// None: everything is interpreted.
    #[default]
    Nothing,
    /// What is executed often.
    Hot,
    /// Everything, at once: slow, for tests.
    Everything,
}

/// A hart's translator, and what its code and the hart share.
pub(crate) struct TranslatedCode {
    /// State that the hart shares with translated code: TLB pointers, limits, FP state.
    pub frame: Frame,
    /// What functions that translated code calls work with.
    pub fallback_context: FallbackContext,
    /// Translates hot code; `None` if everything is interpreted.
    pub translator: Option<Box<Translator>>,
    /// Arrivals that make a slot hot in untimed runs.
    pub hot_after: u16,
    /// Arrivals that make a slot hot in timed runs.
    pub hot_in_runs_after: u16,
}

impl TranslatedCode {
    /// Returns the state without a translator.
    pub(crate) fn new() -> Self {
        Self {
            frame: Frame::default(),
            fallback_context: FallbackContext::default(),
            translator: None,
            hot_after: NEVER,
            hot_in_runs_after: NEVER,
        }
    }
}

impl Hart {
    /// Says which code is translated to host code; none, at reset. The guest cannot tell.
    ///
    /// # Errors
    /// There is no translator for this host; nothing is translated.
    pub fn set_translate(&mut self, what: Translate) -> Result<(), TranslatorError> {
        self.translations.translator = None;
        (self.translations.hot_after, self.translations.hot_in_runs_after) = (NEVER, NEVER);
        self.decoded.code.forget_heat();
        if what != Translate::Nothing {
            self.translations.translator = Some(Box::new(Translator::new(LAYOUT)?));
            (self.translations.hot_after, self.translations.hot_in_runs_after) = match what {
                Translate::Hot => (HOT_AFTER, HOT_IN_RUNS_AFTER),
                _ => (0, EVERYTHING_IN_RUNS_AFTER),
            };
        }
        Ok(())
    }

    /// Translates hot code on a thread of its own, and interprets the code until then. Does nothing unless the hart translates [hot](Translate::Hot)
    /// code: [everything](Translate::Everything) is still translated at once. The guest cannot tell.
    pub fn translate_apart(&mut self) {
        if self.translations.hot_after == HOT_AFTER
            && let Some(translator) = &mut self.translations.translator
        {
            translator.compile_apart();
        }
    }

    /// Decodes what follows a slot, so that it can be translated without having been executed.
    fn decode_ahead<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &FetchPage,
        index: usize,
        pc: u64,
    ) {
        let mut index = index;
        let mut pc = pc;
        while let Some(slot) = page.code.slots.get(index) {
            if slot.is_empty() && !matches!(self.decode_at(env, page, pc), Ok((_, true))) {
                return;
            }
            let slot = &page.code.slots[index];
            if slot.get().class.is_control_flow() {
                return;
            }
            index += slot.len() as usize / 2;
            pc = pc.wrapping_add(slot.len());
        }
    }

    /// Executes translated code from `pc`, at slot `index` of `page`; `arch.pc` and `progress.count` say where it stopped. Returns whether it stopped
    /// with a trap; `None` if there is no translated code for the slot.
    #[inline(never)]
    pub(crate) fn run_translated<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &FetchPage,
        index: usize,
        pc: u64,
        count: u64,
    ) -> Option<bool> {
        if self.translations.hot_after == 0 {
            self.decode_ahead(env, page, index, pc);
        }
        let kind = match (T::WARMS, T::LOGS) {
            (true, _) => CodeKind::Warming,
            (false, true) => CodeKind::Logged,
            (false, false) => CodeKind::Untimed,
        };
        let (call, code) = self.translated(page, index, pc, kind)?;
        self.translations.frame.execute = Some(fallback::execute::<T>);
        // A copy is enough: whatever changes `check_at` also makes the code leave its region.
        let mut limit = self.deadlines.check_at;
        if let Some(filters) = env.timing.line_filters() {
            let frame = &mut self.translations.frame;
            frame.warm_fetch = Some(fallback::warm_fetch::<T>);
            frame.load_filter = filters.loads.address();
            frame.store_filter = filters.stores.address();
            frame.fetch_filter = filters.fetches.address();
        }
        if let Some(log) = env.timing.path_log() {
            let frame = &mut self.translations.frame;
            frame.path = log.address();
            frame.path_bytes = (log.len() * size_of::<PathSegment>()) as u64;
            limit = limit.min(count + log.room() as u64);
        }
        self.translations.frame.limit = limit;
        let left = limit - count;
        self.translations.fallback_context.env = std::ptr::from_mut(env).cast();
        // SAFETY: `code` is a region of this hart's translator, compiled for [`LAYOUT`] and what `pc` holds now; the environment
        // is the one that `fallback::execute::<T>` takes. Regions access the hart, and RAM through its TLBs, as the
        // interpreter does, which waits meanwhile.
        let result = unsafe { call(std::ptr::from_mut(self).cast(), pc, left, code) };
        if T::LOGS {
            self.count_path(env);
            env.empty_full_log();
        }
        let trap = self.translations.fallback_context.trap.take().filter(|_| result == TRAPPED);
        if let Some(trap) = trap {
            let pc = self.arch.pc;
            self.arch.pc = self.trap(trap, pc);
            env.log_trap(pc, self.arch.pc);
            self.progress.count += 1;
        }
        Some(trap.is_some())
    }

    /// Tells the model's log of the path how much translated code has written.
    fn count_path<T: TimingModel>(&self, env: &mut Env<'_, T>) {
        if let Some(log) = env.timing.path_log() {
            log.set_len(self.translations.frame.path_bytes as usize / size_of::<PathSegment>());
        }
    }

    /// How many regions there are.
    #[cfg(test)]
    pub(crate) fn regions(&self) -> usize {
        self.translations.translator.as_ref().map_or(0, |translator| translator.regions())
    }

    /// Executes translated code for instructions of a run, from `pc`, at slot `index` of `page`. Returns the next pc, and whether there may be
    /// translated code for it; `None` if there is none for `pc`.
    #[inline(never)]
    pub(crate) fn run_in_run<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        (page, ids): (&FetchPage, &IdPage),
        (index, pc): (usize, u64),
        buffer: &mut RunBuffer,
        run: &mut RunLength,
        most: usize,
    ) -> Option<(u64, bool)> {
        let (call, code) = self.translated(page, index, pc, CodeKind::Runs)?;
        let count = self.progress.count;
        self.translations.frame.execute = Some(fallback::execute_in_run::<T>);
        self.translations.frame.limit = count + most as u64;
        self.translations.frame.ids = (&raw const *ids.ids).cast();
        self.translations.frame.steps_end = buffer.steps_up_to(most).cast();
        self.translations.fallback_context.run = buffer;
        self.translations.fallback_context.operands = run.operands;
        self.translations.fallback_context.env = std::ptr::from_mut(env).cast();
        let left = (most - run.steps) as u64;
        // SAFETY: as in `run_translated`, with `fallback::execute_in_run::<T>`. The region writes at most `left` steps, for which the run has
        // room, and at most as many accesses, for which it has as much room. It reads the numbers of instructions at slots of the page only.
        let result = unsafe { call(std::ptr::from_mut(self).cast(), pc, left, code) };
        let executed = std::mem::replace(&mut self.progress.count, count) - count;
        (run.steps, run.operands) =
            (executed as usize, self.translations.fallback_context.operands);
        Some((self.arch.pc, result == DONE))
    }

    /// Returns the function that enters translated code, and the code for a slot. Sets in the frame what all kinds of code need.
    #[inline(always)]
    fn translated(
        &mut self,
        page: &FetchPage,
        index: usize,
        pc: u64,
        kind: CodeKind,
    ) -> Option<(Call, *const u8)> {
        let translator = self.translations.translator.as_mut()?;
        if translator.make_room() {
            self.decoded.code.drop_translations();
        }
        let generation = self.decoded.code.generation() + self.host.fetch_tlb.generation();
        let key = (generation << 2 | kind as u64) << 2 | self.arch.privilege as u64;
        // Code of runs reads the numbers of instructions of the page that is fetched from. The key holds that page, in case a guest has mapped
        // another one at `pc` without a fence.
        let key = match kind {
            CodeKind::Untimed | CodeKind::Warming | CodeKind::Logged => key,
            CodeKind::Runs => key | (page.code.pa - RAM_BASE) << PAGE_IN_KEY,
        };
        let entry = self.translations.frame.entry(pc);
        if (entry.pc, entry.key) != (pc, key) {
            if !page.code.may_be_translated() {
                return None;
            }
            self.decoded.code.translates(&page.code);
            let source = Page {
                pa: page.code.pa,
                version: page.code.version(),
                slots: &page.code.slots,
                translated: page.code.translated(),
            };
            let code = match translator.region(source, index, kind) {
                Region::Code(code) => code,
                Region::Later => return None,
                Region::Nothing => {
                    page.code.set_never_hot(index);
                    return None;
                }
            };
            *entry = Entry { pc, key, code };
        }
        let code = entry.code;
        let call = translator.call();
        self.translations.frame.load_base = self.host.load_tlb.base(self.host.rights);
        self.translations.frame.store_base = self.host.store_tlb.base(self.host.rights);
        self.translations.frame.key = key;
        self.update_fp_state();
        Some((call, code))
    }

    /// Updates in the frame what translated code may do with FP registers.
    fn update_fp_state(&mut self) {
        let dirty = self.arch.csrs.mstatus & status::FS == status::FS;
        // Why that is enough is said by `fp::host`.
        let ready = dirty && self.arch.csrs.frm == 0 && self.arch.csrs.fflags & fp::NX != 0;
        self.translations.frame.fp_dirty = dirty.into();
        self.translations.frame.fp_ready = ready.into();
    }
}
