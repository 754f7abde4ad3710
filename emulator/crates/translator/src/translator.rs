//! Code of regions: what compiles it, and where it is kept.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;

use isa::{SLOTS, Slot};

use crate::compiler::{Compiled, Compiler, PreservingCalls};
use crate::compiler_thread::{CompilerThread, Job};
use crate::discover::Block;
use crate::frame::{Call, Fallback, Frame};
use crate::{Layout, discover, emit, interpret};

/// Bytes of host code that are kept; when they are full, all of it is dropped.
const ARENA: usize = 64 << 20;
/// Requests for code that is not there which are answered before the thread that compiles is asked again what it has.
const REQUESTS_BETWEEN_POLLS: u32 = 16;

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
    /// Execution without timing that writes a log of the path, as code for warming does, too.
    Logged = 3,
}

impl CodeKind {
    pub(crate) const COUNT: usize = 4;

    /// Returns whether the code writes a log of the path.
    pub(crate) fn logs(self) -> bool {
        matches!(self, Self::Warming | Self::Logged)
    }
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

/// What there is for a place where code is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The code.
    Code(*const u8),
    /// Nothing yet: a thread compiles the code, or will.
    Later,
    /// Nothing can be translated.
    Nothing,
}

/// Place and kind of a region: physical address of its first instruction, and what its code is made for.
pub(crate) type RegionKey = (u64, CodeKind);

/// Translated code and what makes it.
pub struct Translator {
    compiler: Compiler,
    /// What compiles regions instead, while the hart goes on in the interpreter.
    thread: Option<CompilerThread>,
    /// Requests that are still answered without asking the thread.
    requests_until_poll: u32,
    arena: ::region::Allocation,
    used: usize,
    call: Call,
    /// Bytes at the start of the arena that hold what all regions share.
    reserved: usize,
    /// With the page's version; `None` is what cannot be compiled.
    regions: HashMap<RegionKey, (u64, Option<*const u8>)>,
    /// Instructions that regions give to the interpreter: their code has the addresses.
    fallbacks: Vec<Box<[Fallback]>>,
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
        let memory = |e: ::region::Error| TranslatorError::Memory(e.to_string());
        let arena =
            ::region::alloc(ARENA, ::region::Protection::READ_WRITE_EXECUTE).map_err(memory)?;
        let mut translator = Self {
            compiler: Compiler::new(layout)?,
            thread: None,
            requests_until_poll: 0,
            arena,
            used: 0,
            call: no_call,
            reserved: 0,
            regions: HashMap::new(),
            fallbacks: Vec::new(),
        };
        let failed = || {
            TranslatorError::Isa(
                "the entry and the call of the interpreter could not be compiled".into(),
            )
        };
        let mut placed = |code: Option<Vec<u8>>| {
            code.and_then(|code| place(&mut translator.arena, &mut translator.used, &code))
                .ok_or_else(failed)
        };
        let compiler = &mut translator.compiler;
        let call = placed(compiler.function(emit::trampoline))?;
        let mut preserving_call = |callee: usize| {
            let code = compiler.function(|function, builder| {
                interpret::preserving_call(&layout, callee, function, builder);
            });
            Ok::<_, TranslatorError>(placed(code)? as usize)
        };
        compiler.preserving_calls = PreservingCalls {
            execute: preserving_call(offset_of!(Frame, execute))?,
            warm_fetch: preserving_call(offset_of!(Frame, warm_fetch))?,
        };
        // SAFETY: the code was compiled with this signature in the host's C convention.
        translator.call = unsafe { std::mem::transmute::<*const u8, Call>(call) };
        translator.reserved = translator.used;
        Ok(translator)
    }

    /// Compiles regions on a thread of its own from now on, if the host has one more. The hart goes on in the interpreter meanwhile; what is
    /// executed does not depend on it.
    pub fn compile_apart(&mut self) {
        self.thread = CompilerThread::new(self.compiler.another());
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

    /// The region that starts at a slot of a page, translated now if it was not, or soon if a thread compiles.
    pub fn region(&mut self, page: Page<'_>, index: usize, kind: CodeKind) -> Region {
        let key = (page.pa + 2 * index as u64, kind);
        if let Some(found) = self.known(key, page.version) {
            return found;
        }
        if self.requests_until_poll > 0 {
            self.requests_until_poll -= 1;
            return Region::Later;
        }
        if self.thread.is_some() {
            self.take_compiled();
            if let Some(found) = self.known(key, page.version) {
                return found;
            }
        }
        if let Some(thread) = &self.thread
            && (thread.awaits(key, page.version) || thread.is_busy())
        {
            self.requests_until_poll = REQUESTS_BETWEEN_POLLS;
            return Region::Later;
        }
        let blocks = discover::discover(page.slots, index, kind);
        if blocks.is_empty() {
            return Region::Nothing;
        }
        // From now on the page has another version if one of them changes.
        for placed in blocks.iter().flat_map(Block::instructions) {
            page.translated.add(placed.index);
        }
        let job = Job { key, version: page.version, page: page.pa, blocks };
        if let Some(thread) = &mut self.thread {
            thread.send(job);
            return Region::Later;
        }
        let compiled = self.compiler.region(&job.blocks, kind, page.pa);
        self.keep(key, page.version, compiled);
        self.known(key, page.version).unwrap_or(Region::Nothing)
    }

    /// What there is for a version of a page, if it was compiled.
    fn known(&self, key: RegionKey, version: u64) -> Option<Region> {
        let &(_, code) = self.regions.get(&key).filter(|known| known.0 == version)?;
        Some(code.map_or(Region::Nothing, Region::Code))
    }

    /// Keeps what the thread has compiled, as far as there is room.
    fn take_compiled(&mut self) {
        while !self.is_full()
            && let Some(thread) = &mut self.thread
            && let Some((key, version, compiled)) = thread.next_compiled()
        {
            self.keep(key, version, compiled);
        }
    }

    /// Keeps what became of a region; `None` is one that could not be compiled.
    fn keep(&mut self, key: RegionKey, version: u64, compiled: Option<Compiled>) {
        let code = compiled.and_then(|Compiled { code, fallbacks }| {
            let code = place(&mut self.arena, &mut self.used, &code)?;
            self.fallbacks.push(fallbacks);
            Some(code)
        });
        self.regions.insert(key, (version, code));
    }

    /// How many regions there are.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    fn clear(&mut self) {
        self.regions.clear();
        self.fallbacks.clear();
        self.used = self.reserved;
        self.requests_until_poll = 0;
        if let Some(thread) = &mut self.thread {
            thread.forget();
        }
    }

    fn is_full(&self) -> bool {
        const MAX_REGION_BYTES: usize = 1 << 20;
        self.used + MAX_REGION_BYTES > self.arena.len()
    }
}

/// Copies code to where it may be executed; `None` if there is no room.
fn place(arena: &mut ::region::Allocation, used: &mut usize, code: &[u8]) -> Option<*const u8> {
    const ALIGN: usize = 16;
    let at = used.next_multiple_of(ALIGN);
    let end = at.checked_add(code.len()).filter(|&end| end <= arena.len())?;
    let place = arena.as_mut_ptr::<u8>().wrapping_add(at);
    // SAFETY: the bytes from `at` to `end` lie in the arena, and no region there is in use.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
    *used = end;
    Some(place)
}

unsafe extern "C" fn no_call(_: *mut u8, _: u64, _: u64, _: *const u8) -> u64 {
    unreachable!("replaced before the translator is there")
}
