//! What translated code and the hart share beside the registers.

use isa::Slot;

use crate::discover::Block;
use crate::warm::Segment;

/// Result of a [`Call`]: normal return. The hart continues at the stored pc and count.
pub const DONE: u64 = 0;
/// Result of a [`Call`]: the instruction at the stored pc and count has trapped.
pub const TRAPPED: u64 = 1;
/// Result of a [`Call`]: what follows is for the interpreter. It cannot be part of a run, the run has no room for all of its
/// block, or some of its instructions have no number yet.
pub const STAYS: u64 = 2;

/// Result of [`Execute`]: the region goes on. For any other end, the result is one of the above plus 1.
pub const GO_ON: u64 = 0;

/// Enters translated code: hart, pc, instructions that may be executed, code. Returns [`DONE`], [`TRAPPED`] or [`STAYS`].
pub type Call = unsafe extern "C" fn(*mut u8, u64, u64, *const u8) -> u64;

/// Executes one instruction in the interpreter, with all registers in their places: the hart, the virtual page, the
/// instruction, and what may be executed from the start of its block on. Returns [`GO_ON`], or how the region has to be left
/// plus 1.
pub type Execute = unsafe extern "C" fn(*mut u8, u64, *const Fallback, u64) -> u64;

/// Is told that an instruction is executed next whose line of code the filter does not show. Parameters: the hart, the virtual page, the
/// instruction's physical address, and a number that means nothing, as does the one that it returns.
pub type WarmFetch = unsafe extern "C" fn(*mut u8, u64, u64, u64) -> u64;

/// Number of entries of the cache of entries; a power of two.
pub(crate) const ENTRIES: usize = 4096;

/// An entry to translated code, for jumps between regions.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct Entry {
    /// Virtual address of the first instruction.
    pub pc: u64,
    /// [`Frame::key`] when the entry was made.
    pub key: u64,
    /// Host code.
    pub code: *const u8,
}

/// An instruction that translated code may give to the interpreter.
pub struct Fallback {
    /// The instruction.
    pub slot: Slot,
    /// Offset of the instruction in its page, in bytes.
    pub offset: u32,
    /// Number of instructions before it in its block.
    pub before: u32,
    /// Number of those that code which logs the path has not logged yet.
    pub unlogged: u32,
}

impl Fallback {
    /// Returns the fallbacks of a block's instructions, without the jump at its end.
    pub(crate) fn of(block: &Block) -> impl Iterator<Item = Self> {
        let mut segment = Segment::default();
        block.body.iter().enumerate().map(move |(n, &placed)| {
            let unlogged = segment.lengths.count();
            segment.add(placed);
            if segment.ends_with(placed) {
                segment = Segment::default();
            }
            Self {
                slot: Slot::new(placed.inst),
                offset: 2 * placed.index as u32,
                before: n as u32,
                unlogged,
            }
        })
    }
}

/// What translated code reads and writes beside the registers. The hart owns it, and sets it before each call.
#[repr(C)]
pub struct Frame {
    /// First-level TLB entries of loads under the present rights.
    pub load_base: *const u8,
    /// First-level TLB entries of stores under the present rights.
    pub store_base: *const u8,
    /// Key of valid entries: those made under another key are void, since translations, privilege or code have changed.
    pub key: u64,
    pub(crate) entries: Box<[Entry; ENTRIES]>,
    /// Function that executes single instructions, in this call.
    pub execute: Option<Execute>,
    /// Function that is told of code whose line is not shown, in this call.
    pub warm_fetch: Option<WarmFetch>,
    /// Entries of the [`isa::LineFilter`] of loads.
    pub load_filter: *const u8,
    /// Entries of the [`isa::LineFilter`] of stores.
    pub store_filter: *const u8,
    /// Entries of the [`isa::LineFilter`] of code.
    pub fetch_filter: *const u8,
    /// The first segment of the [`isa::PathLog`].
    pub path: *mut u8,
    /// Bytes of the segments in the [`isa::PathLog`].
    pub path_bytes: u64,
    /// What [`Execute`] returned last, if it was called by way of [`crate::interpret::preserving_call`].
    pub(crate) returned: u64,
    /// Limit of the hart's count in this call: something is due then.
    pub limit: u64,
    /// Nonzero if `mstatus.FS` is dirty already.
    pub fp_dirty: u8,
    /// `fp_dirty`, rounding to nearest, and inexact flag set: a host FPU result is usable if it is neither infinite nor tiny.
    pub fp_ready: u8,
    /// Numbers of the instructions of a run's page, 4 bytes for each slot.
    pub ids: *const u8,
    /// The end of the room that a run has for steps.
    pub steps_end: *const u8,
}

impl Default for Frame {
    fn default() -> Self {
        let none = Entry { pc: 1, key: 0, code: std::ptr::null() };
        Self {
            load_base: std::ptr::null(),
            store_base: std::ptr::null(),
            key: 0,
            entries: Box::new([none; ENTRIES]),
            execute: None,
            warm_fetch: None,
            load_filter: std::ptr::null(),
            store_filter: std::ptr::null(),
            fetch_filter: std::ptr::null(),
            path: std::ptr::null_mut(),
            path_bytes: 0,
            returned: GO_ON,
            limit: 0,
            fp_dirty: 0,
            fp_ready: 0,
            ids: std::ptr::null(),
            steps_end: std::ptr::null(),
        }
    }
}

impl Frame {
    /// The place of `pc` among the entries.
    pub fn entry(&mut self, pc: u64) -> &mut Entry {
        &mut self.entries[(pc >> 1) as usize % ENTRIES]
    }
}
