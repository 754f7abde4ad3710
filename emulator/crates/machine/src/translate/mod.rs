//! The translator: host code for hot guest code, made by Cranelift.
//!
//! What is translated together is a region ([`discover`]): blocks of one physical page that reach each other. Within it
//! registers live in host registers; at the end of each block all of them are in their places in the hart, too, but
//! for small loops ([`loops`]). A region goes on with another one through a cache of entries that is keyed by virtual address, without coming back.
//! Whatever is rare, or not worth host code of its own, calls the interpreter's method for that one instruction
//! ([`runtime::execute`]): TLB misses, devices, most flags of floating point, atomics.
//!
//! The guest cannot tell: instructions are counted, and interrupts taken, where the interpreter would. Under a timing model
//! code for [runs](isa::Run) writes down what it executes, and leaves to the interpreter whatever ends one ([`record`]).

mod convert;
mod discover;
mod emit;
mod exact;
mod float;
mod integer;
mod interpret;
mod leave;
mod loops;
mod memory;
mod record;
mod runtime;

use std::collections::HashMap;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use devices::RAM_BASE;
use isa::TimingModel;

use crate::code_cache::{CodePage, IdPage, NEVER};
use crate::hart::{Env, Hart, RunBuffer, RunLength};
use crate::mmu_tlb::FetchPage;
use runtime::Asked;

pub(crate) use runtime::Frame;

/// Bytes of host code that are kept; when they are full, all of it is dropped.
const ARENA: usize = 64 << 20;

/// Calls translated code: hart, pc, instructions that may be executed, code. Gives [`runtime::DONE`] or [`runtime::TRAPPED`].
type Call = unsafe extern "C" fn(*mut Hart, u64, u64, *const u8) -> u64;

/// Arrivals at a place that make it worth to be translated: that takes about a millisecond, and saves some 20 ns for
/// each further arrival.
const HOT_AFTER: u16 = 10_000;
/// The same in runs, where less is saved.
const HOT_IN_RUNS_AFTER: u16 = 60_000;
/// The same where everything is to be translated: what is decoded then is.
const EVERYTHING_IN_RUNS_AFTER: u16 = 2;

/// How far a page's address is shifted in a key: below it is room for 2^38 generations, and it has room for 64 GiB.
const PAGE_IN_KEY: u32 = 28;

/// What code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Untimed = 0,
    /// [`isa::Run`].
    Runs = 1,
}

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

/// Why there is no translator.
#[derive(Debug, thiserror::Error)]
pub enum TranslatorError {
    /// The calling convention of the code is x86-64's.
    #[error("hosts of this architecture have no translator")]
    Host,
    /// Cranelift does not know the host.
    #[error("no code for this host: {0}")]
    Isa(String),
    /// The host refused memory that can be executed.
    #[error("no memory for host code: {0}")]
    Memory(String),
}

/// Translated code and what makes it.
pub(crate) struct Translator {
    /// What compiles code of each [`Use`].
    targets: [OwnedTargetIsa; 2],
    context: Context,
    builder: FunctionBuilderContext,
    arena: ::region::Allocation,
    used: usize,
    call: Call,
    /// See [`interpret::way_aside`].
    way_aside: *const u8,
    /// Bytes of these two at the start of the arena.
    reserved: usize,
    /// What regions are for: all of them.
    of: Use,
    /// By physical address of the first instruction, with the page's version.
    regions: HashMap<u64, (u64, *const u8)>,
    /// Instructions that regions give to the interpreter.
    asked: Vec<Box<[Asked]>>,
    has_fma: bool,
}

impl Translator {
    pub fn new() -> Result<Self, TranslatorError> {
        if cfg!(not(all(target_arch = "x86_64", unix))) {
            return Err(TranslatorError::Host);
        }
        // Runs write much that has nothing in common: the optimiser takes a third of the time for code that is no faster.
        let targets = [target("speed")?, target("none")?];
        let has_fma = targets[0]
            .isa_flags()
            .iter()
            .any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true));
        let memory = |e: ::region::Error| TranslatorError::Memory(e.to_string());
        let arena =
            ::region::alloc(ARENA, ::region::Protection::READ_WRITE_EXECUTE).map_err(memory)?;
        let mut translator = Self {
            targets,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
            arena,
            used: 0,
            call: no_call,
            way_aside: std::ptr::null(),
            reserved: 0,
            of: Use::Untimed,
            regions: HashMap::new(),
            asked: Vec::new(),
            has_fma,
        };
        let failed = || TranslatorError::Isa("the ways in and aside could not be compiled".into());
        emit::trampoline(&mut translator.context.func, &mut translator.builder);
        let call = translator.compile().ok_or_else(failed)?;
        translator.context.clear();
        interpret::way_aside(&mut translator.context.func, &mut translator.builder);
        translator.way_aside = translator.compile().ok_or_else(failed)?;
        // SAFETY: the code was compiled with this signature in the host's C convention.
        translator.call = unsafe { std::mem::transmute::<*const u8, Call>(call) };
        translator.reserved = translator.used;
        Ok(translator)
    }

    /// Compiles the function in the context into the arena; `None` if it does not fit or cannot be compiled.
    fn compile(&mut self) -> Option<*const u8> {
        const ALIGN: usize = 16;
        let compiled = self.context.compile(
            &*self.targets[self.of as usize],
            &mut ControlPlane::default(),
        );
        let code = match &compiled {
            Ok(code) if code.buffer.relocs().is_empty() => code.code_buffer(),
            Ok(_) => return None,
            Err(e) => {
                tracing::debug!("translator: {}", e.inner);
                return None;
            }
        };
        let at = self.used.next_multiple_of(ALIGN);
        let end = at
            .checked_add(code.len())
            .filter(|&end| end <= self.arena.len())?;
        let place = self.arena.as_mut_ptr::<u8>().wrapping_add(at);
        // SAFETY: the bytes from `at` to `end` lie in the arena, and no region there is in use.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
        self.used = end;
        Some(place)
    }

    /// The region that starts at a slot of a page, translated now if it was not. `None` if there is nothing to
    /// translate.
    fn region(&mut self, page: &CodePage, index: usize) -> Option<*const u8> {
        let pa = page.pa + 2 * index as u64;
        let version = page.version();
        if let Some(&(of, code)) = self.regions.get(&pa)
            && of == version
        {
            return Some(code);
        }
        let blocks = discover::discover(&page.slots, index, self.of);
        if blocks.is_empty() {
            return None;
        }
        self.context.clear();
        let function = &mut self.context.func;
        let builder = &mut self.builder;
        let asked = emit::region(
            function,
            builder,
            &blocks,
            self.of,
            self.way_aside,
            self.has_fma,
        );
        let code = self.compile()?;
        self.asked.push(asked);
        self.regions.insert(pa, (version, code));
        Some(code)
    }

    /// Drops all regions.
    fn clear(&mut self) {
        self.regions.clear();
        self.asked.clear();
        self.used = self.reserved;
    }

    fn is_full(&self) -> bool {
        const LARGEST: usize = 1 << 20;
        self.used + LARGEST > self.arena.len()
    }
}

/// The host, for code that is optimised so.
fn target(opt_level: &str) -> Result<OwnedTargetIsa, TranslatorError> {
    let error = |e: &dyn std::fmt::Display| TranslatorError::Isa(e.to_string());
    let verifies = cfg!(debug_assertions).to_string();
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", opt_level),
        ("preserve_frame_pointers", "true"),
        ("enable_probestack", "false"),
        ("enable_verifier", &verifies),
    ] {
        flags.set(name, value).map_err(|e| error(&e))?;
    }
    cranelift_native::builder()
        .map_err(|e| error(&e))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| error(&e))
}

unsafe extern "C" fn no_call(_: *mut Hart, _: u64, _: u64, _: *const u8) -> u64 {
    unreachable!("replaced before the translator is there")
}

impl Hart {
    /// Says which code is translated to host code; none, at reset. The guest cannot tell.
    ///
    /// # Errors
    /// There is no translator for this host; nothing is translated.
    pub fn set_translate(&mut self, what: Translate) -> Result<(), TranslatorError> {
        self.translator = None;
        (self.hot_after, self.hot_in_runs_after) = (NEVER, NEVER);
        self.code.forget_heat();
        if what != Translate::Nothing {
            self.translator = Some(Box::new(Translator::new()?));
            (self.hot_after, self.hot_in_runs_after) = match what {
                Translate::Hot => (HOT_AFTER, HOT_IN_RUNS_AFTER),
                _ => (0, EVERYTHING_IN_RUNS_AFTER),
            };
        }
        Ok(())
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
            if slot.len() == 0 && !matches!(self.decode_at(env, page, pc), Ok((_, true))) {
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

    /// Executes translated code from `pc`, at slot `index` of `page`, up to where `self.pc` and `self.count` say;
    /// the value is true if it ended with a trap. `None` if there is no code.
    #[inline(never)]
    pub(crate) fn run_translated<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        page: &FetchPage,
        index: usize,
        pc: u64,
        count: u64,
    ) -> Option<bool> {
        if self.hot_after == 0 {
            self.decode_ahead(env, page, index, pc);
        }
        let (call, code) = self.translated(page, index, pc, Use::Untimed)?;
        self.frame.execute = runtime::execute::<T> as *const u8;
        // Nothing changes it without that the region is left.
        self.frame.limit = self.check_at;
        let left = self.check_at - count;
        self.frame.env = std::ptr::from_mut(env).cast();
        // SAFETY: `code` is a region of this hart's translator, compiled for what `pc` holds now; the environment
        // is the one that `runtime::execute::<T>` takes. Regions access the hart, and RAM through its TLBs, as the
        // interpreter does, which waits meanwhile.
        let result = unsafe { call(self, pc, left, code) };
        let trap = self
            .frame
            .trap
            .take()
            .filter(|_| result == runtime::TRAPPED);
        if let Some(trap) = trap {
            self.pc = self.trap(trap, self.pc);
            self.count += 1;
        }
        Some(trap.is_some())
    }

    /// How many regions there are.
    #[cfg(test)]
    pub(crate) fn regions(&self) -> usize {
        { self.translator.as_ref() }.map_or(0, |translator| translator.regions.len())
    }

    /// Executes what of a run is translated, from `pc`, at slot `index` of `page`; the next pc, and whether there may be code
    /// for that. `None` if there is none for this one.
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
        let (call, code) = self.translated(page, index, pc, Use::Runs)?;
        let count = self.count;
        self.frame.execute = runtime::execute_in_run::<T> as *const u8;
        self.frame.limit = count + most as u64;
        self.frame.ids = (&raw const *ids.ids).cast();
        self.frame.steps_end = buffer.steps_up_to(most).cast();
        self.frame.run = buffer;
        self.frame.operands = run.operands;
        self.frame.env = std::ptr::from_mut(env).cast();
        let left = (most - run.steps) as u64;
        // SAFETY: as in `run_translated`, with `runtime::execute_in_run::<T>`. The region writes as many steps as are left,
        // which the run has room for, and no more accesses, of which there is as much room; numbers of instructions it reads at the
        // slots of the page.
        let result = unsafe { call(self, pc, left, code) };
        let executed = std::mem::replace(&mut self.count, count) - count;
        (run.steps, run.operands) = (executed as usize, self.frame.operands);
        Some((self.pc, result == runtime::DONE))
    }

    /// The code for a slot, and what calls it, with all in the frame that both kinds of code need.
    #[inline(always)]
    fn translated(
        &mut self,
        page: &FetchPage,
        index: usize,
        pc: u64,
        of: Use,
    ) -> Option<(Call, *const u8)> {
        let translator = self.translator.as_mut()?;
        if translator.of != of || translator.is_full() {
            translator.of = of;
            translator.clear();
            self.code.drop_translations();
        }
        let generation = self.code.generation() + self.fetch_tlb.generation();
        let key = generation << 2 | self.privilege as u64;
        // Numbers of instructions are those of the page that is fetched from, even if a guest has mapped another one there
        // without saying so.
        let key = match of {
            Use::Untimed => key,
            Use::Runs => key | (page.code.pa - RAM_BASE) << PAGE_IN_KEY,
        };
        let entry = self.frame.entry(pc);
        if (entry.pc, entry.key) != (pc, key) {
            self.code.translates(&page.code);
            let Some(code) = translator.region(&page.code, index) else {
                page.code.never(index);
                return None;
            };
            *entry = runtime::Entry { pc, key, code };
        }
        let code = entry.code;
        let call = translator.call;
        self.frame.load_base = self.load_tlb.base(self.rights);
        self.frame.store_base = self.store_tlb.base(self.rights);
        self.frame.key = key;
        self.update_fp_state();
        Some((call, code))
    }
}
