//! What translated code and the hart share beside the registers.

use isa::Slot;

use crate::discover::Block;

/// Result of a [`Call`]: normal return. The hart continues at the stored pc and count.
pub const DONE: u64 = 0;
/// The same, and the instruction there has trapped.
pub const TRAPPED: u64 = 1;
/// What follows is for the interpreter: it cannot be part of a run, the run has no room for all of its block, or some of that no
/// number yet.
pub const STAYS: u64 = 2;

/// What [`Execute`] returns for the region to go on. For any other end it is one of the above plus 1.
pub const GO_ON: u64 = 0;

/// Enters translated code: hart, pc, instructions that may be executed, code. Gives [`DONE`], [`TRAPPED`] or [`STAYS`].
pub type Call = unsafe extern "C" fn(*mut u8, u64, u64, *const u8) -> u64;

/// Executes one instruction in the interpreter, with all registers in their places: the hart, the virtual page, the instruction, and
/// what may be executed from the start of its block on. Gives [`GO_ON`], or how the region has to be left plus 1.
pub type Execute = unsafe extern "C" fn(*mut u8, u64, *const Fallback, u64) -> u64;

/// Entries of the cache of entries; a power of two.
pub(crate) const ENTRIES: usize = 4096;

/// An entry to translated code, for jumps between regions.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct Entry {
    /// Virtual address of the first instruction.
    pub pc: u64,
    /// [`Frame::key`] when it was made.
    pub key: u64,
    /// Host code.
    pub code: *const u8,
}

/// An instruction that translated code may give to the interpreter.
pub struct Fallback {
    /// The instruction.
    pub slot: Slot,
    /// Bytes from the start of the page.
    pub offset: u32,
    /// Instructions of its block before it.
    pub before: u32,
}

impl Fallback {
    /// Those of a block, but for the jump at its end.
    pub(crate) fn of(block: &Block) -> impl Iterator<Item = Self> {
        block.body.iter().enumerate().map(|(n, placed)| Self {
            slot: Slot::new(placed.inst),
            offset: 2 * placed.index as u32,
            before: n as u32,
        })
    }
}

/// What translated code reads and writes beside the registers. The hart owns it, and sets it before each call.
#[repr(C)]
pub struct Frame {
    /// First-level TLB entries of loads under the present rights.
    pub load_base: *const u8,
    /// The same of stores.
    pub store_base: *const u8,
    /// Entries made under another key are void: translations, privilege or code have changed.
    pub key: u64,
    pub(crate) entries: Box<[Entry; ENTRIES]>,
    /// What executes single instructions, in this call.
    pub execute: Option<Execute>,
    /// What [`Execute`] returned last, if it was called by way of [`crate::interpret::preserving_call`].
    pub(crate) returned: u64,
    /// What the hart's count may come to in this call: something is due then.
    pub limit: u64,
    /// `mstatus.FS` is dirty already.
    pub fp_dirty: u8,
    /// `fp_dirty`, rounding to nearest, and inexact flag set: a host FPU result is usable if it is neither infinite nor tiny.
    pub fp_ready: u8,
    /// Of a run's page: the numbers of its instructions, 4 bytes for each slot.
    pub ids: *const u8,
    /// The end of the room that a run has for steps.
    pub steps_end: *const u8,
}

impl Default for Frame {
    fn default() -> Self {
        let none = Entry {
            pc: 1,
            key: 0,
            code: std::ptr::null(),
        };
        Self {
            load_base: std::ptr::null(),
            store_base: std::ptr::null(),
            key: 0,
            entries: Box::new([none; ENTRIES]),
            execute: None,
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
