//! What translated code and the hart share.

use isa::{InstClass, TimingModel, Trap};

use super::discover::Block;
use crate::code_cache::Slot;
use crate::csr::status;
use crate::fp;
use crate::hart::{Env, Hart, InstPosition, RunBuffer};

/// How translated code came back: `Hart::pc` and `Hart::count` say where.
pub(super) const DONE: u64 = 0;
/// The instruction there raised [`Frame::trap`].
pub(super) const TRAPPED: u64 = 1;

/// What follows is for the interpreter: it cannot be part of a run, the run has no room for all of its block, or some of that no
/// number yet.
pub(super) const STAYS: u64 = 2;

/// What [`execute`] says: the region goes on.
pub(super) const GO_ON: u64 = 0;

/// Entries of the cache of entries; a power of two.
pub(super) const ENTRIES: usize = 4096;

/// An entry to translated code, for jumps between regions.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Entry {
    pub pc: u64,
    /// [`Frame::key`] when it was made.
    pub key: u64,
    pub code: *const u8,
}

/// An instruction that translated code may ask the interpreter to execute.
pub(super) struct Asked {
    slot: Slot,
    /// Bytes from the start of the page.
    offset: u32,
    /// Instructions of its block before it.
    before: u32,
}

impl Asked {
    /// Those of a block, but for the jump at its end.
    pub fn of(block: &Block) -> impl Iterator<Item = Self> {
        block.body.iter().enumerate().map(|(n, placed)| Self {
            slot: Slot::new(placed.inst),
            offset: 2 * placed.index as u32,
            before: n as u32,
        })
    }
}

/// What translated code reads and writes beside the registers.
#[repr(C)]
pub(crate) struct Frame {
    /// First-level TLB entries of loads under the present rights.
    pub(super) load_base: *const u8,
    /// The same of stores.
    pub(super) store_base: *const u8,
    /// Entries made under another key are void: translations, privilege or code have changed.
    pub(super) key: u64,
    pub(super) entries: Box<[Entry; ENTRIES]>,
    /// [`execute`] for the timing model of this run.
    pub(super) execute: *const u8,
    /// The environment of this run.
    pub(super) env: *mut u8,
    /// What [`execute`] said last, if it was called on a way that cannot give it.
    pub(super) said: u64,
    /// Where [`Hart::count`] may go to in this call: something is due then.
    pub(super) limit: u64,
    /// `mstatus.FS` is dirty already.
    pub(super) fp_dirty: u8,
    /// And rounding is to the nearest, and the inexact flag is set: what the host's FPU computes needs only to be
    /// comfortable (see `fp::host`).
    pub(super) fp_ready: u8,
    pub(super) trap: Option<Trap>,
    /// Of a run's page: the numbers of its instructions.
    pub(super) ids: *const u8,
    /// The end of the room that a run has for steps.
    pub(super) steps_end: *const u8,
    /// The run, and how many operands it has.
    pub(super) run: *mut RunBuffer,
    pub(super) operands: usize,
}

impl Frame {
    pub fn new() -> Self {
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
            execute: std::ptr::null(),
            env: std::ptr::null_mut(),
            said: GO_ON,
            limit: 0,
            fp_dirty: 0,
            fp_ready: 0,
            trap: None,
            ids: std::ptr::null(),
            steps_end: std::ptr::null(),
            run: std::ptr::null_mut(),
            operands: 0,
        }
    }

    /// The place of `pc` among the entries.
    pub(super) fn entry(&mut self, pc: u64) -> &mut Entry {
        &mut self.entries[(pc >> 1) as usize % ENTRIES]
    }
}

impl Hart {
    pub(super) fn update_fp_state(&mut self) {
        let dirty = self.csrs.mstatus & status::FS == status::FS;
        let ready = dirty && self.csrs.frm == 0 && self.csrs.fflags & fp::NX != 0;
        self.frame.fp_dirty = dirty.into();
        self.frame.fp_ready = ready.into();
    }
}

/// Executes one instruction of translated code in the interpreter, with all registers in their places. `vpage` is the
/// virtual page, `left` what may be executed from the block's start on. Unless it gives [`GO_ON`], the region has to be left with the
/// value minus 1, one of [`DONE`] and [`TRAPPED`].
///
/// # Safety
/// `hart` is the one that the region was called with, whose frame has this run's environment, and `asked` one that
/// its translator keeps.
pub(super) unsafe extern "C" fn execute<T: TimingModel>(
    hart: *mut Hart,
    vpage: u64,
    asked: *const Asked,
    left: u64,
) -> u64 {
    // SAFETY: `Hart::run_translated` lent the hart and the environment to the region, which calls this one at a time. `T` is the
    // type of the environment's model, since the frame has this function and that environment from the same call of it.
    let result = unsafe { execute_one::<T>(hart, vpage, asked, left, |_, _| ()) };
    result.unwrap_or_else(|(hart, trap)| {
        hart.frame.trap = Some(trap);
        TRAPPED + 1
    })
}

/// Executes one instruction, and then calls `executed`; what to say then. If it traps, pc and count are in their places.
///
/// # Safety
/// As of [`execute`], whose parameters these are.
#[inline(always)]
unsafe fn execute_one<'a, T: TimingModel>(
    hart: *mut Hart,
    vpage: u64,
    asked: *const Asked,
    left: u64,
    executed: impl FnOnce(&mut Hart, InstClass),
) -> Result<u64, (&'a mut Hart, Trap)> {
    // SAFETY: the caller's.
    let (hart, asked) = unsafe { (&mut *hart, &*asked) };
    // SAFETY: the caller's.
    let env = unsafe { &mut *hart.frame.env.cast::<Env<'_, T>>() };
    let pc = vpage.wrapping_add(asked.offset.into());
    let count = hart.frame.limit - left + u64::from(asked.before);
    let code = hart.code.generation();
    match hart.execute(env, &asked.slot, InstPosition { pc, count }) {
        Ok(next) => {
            executed(hart, asked.slot.get().class);
            hart.update_fp_state();
            if hart.after == 0 && hart.code.generation() == code {
                return Ok(GO_ON);
            }
            (hart.pc, hart.count) = (next, count + 1);
            Ok(DONE + 1)
        }
        Err(trap) => {
            (hart.pc, hart.count) = (pc, count);
            Err((hart, trap))
        }
    }
}

/// The same for an instruction of a run, which ends before it if it cannot be part of one, and is left by the region then: the
/// value is [`STAYS`] plus 1.
///
/// # Safety
/// As of [`execute`]; the frame has the run, too.
pub(super) unsafe extern "C" fn execute_in_run<T: TimingModel>(
    hart: *mut Hart,
    vpage: u64,
    asked: *const Asked,
    left: u64,
) -> u64 {
    let executed = |hart: &mut Hart, class: InstClass| {
        if class.accesses_memory() {
            hart.accesses.keep();
        }
        if class == InstClass::IntDiv {
            // SAFETY: `Hart::run_in_run` lent the buffer to the region, which calls this one at a time.
            let run = unsafe { &mut *hart.frame.run };
            run.set_operand(hart.frame.operands, hart.executed.operand);
            hart.frame.operands += 1;
        }
    };
    // SAFETY: as in `execute`; it is `Hart::run_in_run` that lent them.
    let result = unsafe { execute_one::<T>(hart, vpage, asked, left, executed) };
    result.unwrap_or(STAYS + 1)
}
