//! Code of regions: what compiles it, and where it is kept.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use isa::{SLOTS, Slot};

use crate::discover::Block;
use crate::frame::{Call, Fallback, Frame};
use crate::{Layout, discover, emit, interpret};

/// Bytes of host code that are kept; when they are full, all of it is dropped.
const ARENA: usize = 64 << 20;

/// What code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// Execution without a timing model.
    Untimed = 0,
    /// [`isa::Run`]: it writes down what it executes.
    Runs = 1,
    /// Execution without timing that keeps the caches of a model warm: accesses and code whose lines the model's filters do not show are
    /// left to the hart.
    Warming = 2,
}

impl CodeKind {
    const COUNT: usize = 3;
}

/// A page of guest code.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// Physical address of the page.
    pub pa: u64,
    /// Version of the page's content: another number each time that it has changed.
    pub version: u64,
    /// Instructions of the page, as far as they were decoded.
    pub slots: &'a [Slot; SLOTS],
    /// Slots whose instruction is part of a region of this version; [`Translator::region`] adds to it.
    pub translated: &'a SlotSet,
}

/// A set of slots of a page.
#[derive(Debug, Default)]
pub struct SlotSet([Cell<u64>; SLOTS / 64]);

impl SlotSet {
    /// Adds a slot.
    pub fn add(&self, slot: usize) {
        let word = &self.0[slot / 64];
        word.set(word.get() | 1 << (slot % 64));
    }

    /// Returns whether the set has any of these slots.
    pub fn has_any(&self, slots: Range<usize>) -> bool {
        // Most ranges lie in one word.
        let words = { slots.start / 64..slots.end.div_ceil(64) }.map(|word| {
            let first = slots.start.saturating_sub(64 * word);
            let after = (slots.end - 64 * word).min(64);
            let mask = u64::MAX >> (64 - (after - first)) << first;
            self.0[word].get() & mask
        });
        !slots.is_empty() && words.fold(0, |any, word| any | word) != 0
    }

    /// Empties the set.
    pub fn clear(&self) {
        self.0.iter().for_each(|word| word.set(0));
    }
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

/// Code by which regions call functions of the hart so that every register is preserved.
#[derive(Clone, Copy)]
pub(crate) struct PreservingCalls {
    /// Calls [`Frame::execute`].
    pub execute: *const u8,
    /// Calls [`Frame::warm_fetch`].
    pub warm_fetch: *const u8,
}

/// Translated code and what makes it.
pub struct Translator {
    layout: Layout,
    /// What compiles code of each [`CodeKind`].
    targets: [OwnedTargetIsa; CodeKind::COUNT],
    context: Context,
    builder: FunctionBuilderContext,
    arena: ::region::Allocation,
    used: usize,
    call: Call,
    /// See [`interpret::preserving_call`].
    preserving_calls: PreservingCalls,
    /// Bytes at the start of the arena that hold the code of `call` and `preserving_calls`.
    reserved: usize,
    /// By physical address of the first instruction and kind, with the page's version.
    regions: HashMap<(u64, CodeKind), (u64, *const u8)>,
    /// Instructions that regions give to the interpreter: their code has the addresses.
    fallbacks: Vec<Box<[Fallback]>>,
    has_fma: bool,
}

impl Translator {
    /// One without code, for harts of this layout.
    ///
    /// # Errors
    /// There is no translator for this host.
    pub fn new(layout: Layout) -> Result<Self, TranslatorError> {
        if cfg!(not(all(target_arch = "x86_64", unix))) {
            return Err(TranslatorError::Host);
        }
        // Runs and warming write much that has nothing in common: the optimiser takes a third of the time for code that is no faster.
        let targets = [target("speed")?, target("none")?, target("none")?];
        let has_fma = targets[0]
            .isa_flags()
            .iter()
            .any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true));
        let memory = |e: ::region::Error| TranslatorError::Memory(e.to_string());
        let arena =
            ::region::alloc(ARENA, ::region::Protection::READ_WRITE_EXECUTE).map_err(memory)?;
        let mut translator = Self {
            layout,
            targets,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
            arena,
            used: 0,
            call: no_call,
            preserving_calls: PreservingCalls {
                execute: std::ptr::null(),
                warm_fetch: std::ptr::null(),
            },
            reserved: 0,
            regions: HashMap::new(),
            fallbacks: Vec::new(),
            has_fma,
        };
        let failed = || {
            TranslatorError::Isa(
                "the entry and the call of the interpreter could not be compiled".into(),
            )
        };
        emit::trampoline(&mut translator.context.func, &mut translator.builder);
        let call = translator.compile(CodeKind::Untimed).ok_or_else(failed)?;
        let mut preserving_call = |function: usize| {
            translator.context.clear();
            let Self { context, builder, .. } = &mut translator;
            interpret::preserving_call(&layout, function, &mut context.func, builder);
            translator.compile(CodeKind::Untimed).ok_or_else(failed)
        };
        translator.preserving_calls = PreservingCalls {
            execute: preserving_call(offset_of!(Frame, execute))?,
            warm_fetch: preserving_call(offset_of!(Frame, warm_fetch))?,
        };
        // SAFETY: the code was compiled with this signature in the host's C convention.
        translator.call = unsafe { std::mem::transmute::<*const u8, Call>(call) };
        translator.reserved = translator.used;
        Ok(translator)
    }

    /// Compiles the function in the context into the arena; `None` if it does not fit or cannot be compiled.
    fn compile(&mut self, kind: CodeKind) -> Option<*const u8> {
        const ALIGN: usize = 16;
        let compiled =
            self.context.compile(&*self.targets[kind as usize], &mut ControlPlane::default());
        let code = match &compiled {
            Ok(code) if code.buffer.relocs().is_empty() => code.code_buffer(),
            Ok(_) => return None,
            Err(e) => {
                tracing::debug!("translator: {}", e.inner);
                return None;
            }
        };
        let at = self.used.next_multiple_of(ALIGN);
        let end = at.checked_add(code.len()).filter(|&end| end <= self.arena.len())?;
        let place = self.arena.as_mut_ptr::<u8>().wrapping_add(at);
        // SAFETY: the bytes from `at` to `end` lie in the arena, and no region there is in use.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
        self.used = end;
        Some(place)
    }

    /// What enters regions. They access the hart, and RAM through its TLBs.
    pub fn call(&self) -> Call {
        self.call
    }

    /// Makes sure that there is room for another region. True if all code was discarded for that.
    #[inline(always)]
    pub fn make_room(&mut self) -> bool {
        let drops = self.is_full();
        if drops {
            self.clear();
        }
        drops
    }

    /// The region that starts at a slot of a page, translated now if it was not. `None` if there is nothing to
    /// translate.
    pub fn region(&mut self, page: Page<'_>, index: usize, kind: CodeKind) -> Option<*const u8> {
        let key = (page.pa + 2 * index as u64, kind);
        if let Some(&(version, code)) = self.regions.get(&key)
            && version == page.version
        {
            return Some(code);
        }
        let blocks = discover::discover(page.slots, index, kind);
        if blocks.is_empty() {
            return None;
        }
        self.context.clear();
        let fallbacks = emit::region(
            &self.layout,
            &mut self.context.func,
            &mut self.builder,
            &blocks,
            (kind, page.pa),
            self.preserving_calls,
            self.has_fma,
        );
        let code = self.compile(kind)?;
        for placed in blocks.iter().flat_map(Block::instructions) {
            page.translated.add(placed.index);
        }
        self.fallbacks.push(fallbacks);
        self.regions.insert(key, (page.version, code));
        Some(code)
    }

    /// How many regions there are.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    fn clear(&mut self) {
        self.regions.clear();
        self.fallbacks.clear();
        self.used = self.reserved;
    }

    fn is_full(&self) -> bool {
        const MAX_REGION_BYTES: usize = 1 << 20;
        self.used + MAX_REGION_BYTES > self.arena.len()
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

unsafe extern "C" fn no_call(_: *mut u8, _: u64, _: u64, _: *const u8) -> u64 {
    unreachable!("replaced before the translator is there")
}
