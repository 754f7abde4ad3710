//! What translated code may call: the interpreter, for one instruction.

use isa::{InstClass, PathSegment, Privilege, SegmentLengths, TimingModel, TransferKind, Trap};
use translator::{DONE, Fallback, GO_ON, STAYS, TRAPPED};

use crate::hart::{Env, Hart, InstPosition, RunBuffer};

/// What a hart that calls translated code lends to the functions that this code calls.
pub(crate) struct FallbackContext {
    /// An [`Env`] of the timing model whose function the frame has.
    pub(super) env: *mut u8,
    /// Trap of the last instruction of translated code that the interpreter executed, if the instruction raised one.
    pub(super) trap: Option<Trap>,
    /// The run, and how many operands it has.
    pub(super) run: *mut RunBuffer,
    pub(super) operands: usize,
}

impl Default for FallbackContext {
    fn default() -> Self {
        Self { env: std::ptr::null_mut(), trap: None, run: std::ptr::null_mut(), operands: 0 }
    }
}

/// Executes one instruction of translated code in the interpreter; before the call, all registers are stored in the hart. `vpage` is the address of
/// the virtual page, `left` the number of instructions that may be executed from the start of the block on. Returns [`GO_ON`] if the region goes on;
/// otherwise the region has to be left with the result minus 1, which is [`DONE`] or [`TRAPPED`].
///
/// # Safety
/// `hart` is the one that the region was called with, which has lent this run's environment, and `inst` one that
/// its translator keeps.
pub(super) unsafe extern "C" fn execute<T: TimingModel>(
    hart: *mut u8,
    vpage: u64,
    inst: *const Fallback,
    left: u64,
) -> u64 {
    // SAFETY: `Hart::run_translated` lent the hart and the environment to the region, which calls this one at a time. `T` is the
    // type of the environment's model, since the hart's frame has this function, from the same call of it.
    let result = unsafe { execute_one::<T>(hart, vpage, inst, left, |_, _| ()) };
    result.unwrap_or_else(|(hart, trap)| {
        hart.translations.fallback_context.trap = Some(trap);
        TRAPPED + 1
    })
}

/// Tells the model of a line of code that its filter does not show. `vpage` is the virtual page, `pa` the physical address of the next
/// instruction.
///
/// # Safety
/// The conditions of [`execute`].
pub(super) unsafe extern "C" fn warm_fetch<T: TimingModel>(
    hart: *mut u8,
    vpage: u64,
    pa: u64,
    _: u64,
) -> u64 {
    // SAFETY: as in `execute`.
    let hart = unsafe { &mut *hart.cast::<Hart>() };
    // SAFETY: as in `execute`.
    let env = unsafe { &mut *hart.translations.fallback_context.env.cast::<Env<'_, T>>() };
    let translated = hart.arch.privilege != Privilege::Machine && hart.arch.csrs.satp.levels() != 0;
    env.timing.warm_fetch(vpage | pa & 0xfff, pa, translated);
    GO_ON
}

/// Executes one instruction, and then calls `executed`. Returns what to tell the region, or the trap; pc and count are in their
/// places then.
///
/// # Safety
/// The conditions of [`execute`], whose parameters these are.
#[inline(always)]
unsafe fn execute_one<'a, T: TimingModel>(
    hart: *mut u8,
    vpage: u64,
    inst: *const Fallback,
    left: u64,
    executed: impl FnOnce(&mut Hart, InstClass),
) -> Result<u64, (&'a mut Hart, Trap)> {
    // SAFETY: the caller keeps the conditions above.
    let (hart, inst) = unsafe { (&mut *hart.cast::<Hart>(), &*inst) };
    // SAFETY: the caller keeps the conditions above.
    let env = unsafe { &mut *hart.translations.fallback_context.env.cast::<Env<'_, T>>() };
    let pc = vpage.wrapping_add(inst.offset.into());
    let count = hart.translations.frame.limit - left + u64::from(inst.before);
    let code = hart.decoded.code.generation();
    match hart.execute(env, &inst.slot, InstPosition { pc, count }) {
        Ok(next) => {
            executed(hart, inst.slot.get().class);
            hart.update_fp_state();
            if hart.deadlines.after == 0 && hart.decoded.code.generation() == code {
                return Ok(GO_ON);
            }
            if T::LOGS {
                // SAFETY: the caller keeps the conditions above.
                unsafe { log_block(hart, env, vpage, inst) };
                hart.log_in_region(
                    env,
                    PathSegment::one(
                        TransferKind::of(&inst.slot.get()),
                        pc,
                        inst.slot.len() as u8,
                        false,
                        next,
                    ),
                );
            }
            (hart.arch.pc, hart.progress.count) = (next, count + 1);
            Ok(DONE + 1)
        }
        Err(trap) => {
            if T::LOGS {
                // SAFETY: the caller keeps the conditions above.
                unsafe { log_block(hart, env, vpage, inst) };
            }
            (hart.arch.pc, hart.progress.count) = (pc, count);
            Err((hart, trap))
        }
    }
}

/// Logs the instructions of a block that the region has executed, but not logged, before it leaves the block at `inst`.
///
/// # Safety
/// `inst` is one of those that a translator keeps of a block.
unsafe fn log_block<T: TimingModel>(
    hart: &mut Hart,
    env: &mut Env<'_, T>,
    vpage: u64,
    inst: *const Fallback,
) {
    // SAFETY: by the condition above.
    let unlogged = unsafe { (*inst).unlogged } as usize;
    if unlogged == 0 {
        return;
    }
    // SAFETY: the instructions before it in its block, of which there are at least as many, stand before it.
    let block = unsafe { std::slice::from_raw_parts(inst.sub(unlogged), unlogged) };
    let lengths = block.iter().map(|inst| inst.slot.len() as u8);
    let segment = PathSegment {
        start_and_taken: vpage.wrapping_add(block[0].offset.into()),
        target_and_tag: PathSegment::tag(None),
        lengths: lengths.fold(SegmentLengths::default(), SegmentLengths::with),
    };
    hart.log_in_region(env, segment);
}

impl Hart {
    /// Logs a segment while translated code keeps the log.
    fn log_in_region<T: TimingModel>(&mut self, env: &mut Env<'_, T>, segment: PathSegment) {
        self.count_path(env);
        if let Some(log) = env.timing.path_log() {
            log.push(segment);
            self.translations.frame.path_bytes = (log.len() * size_of::<PathSegment>()) as u64;
        }
    }
}

/// Executes one instruction of a run. If the instruction cannot be part of a run, the run ends before it and the region has to be left: the result is
/// [`STAYS`] plus 1.
///
/// # Safety
/// The conditions of [`execute`]; the hart has lent the run, too.
pub(super) unsafe extern "C" fn execute_in_run<T: TimingModel>(
    hart: *mut u8,
    vpage: u64,
    inst: *const Fallback,
    left: u64,
) -> u64 {
    let executed = |hart: &mut Hart, class: InstClass| {
        if class.accesses_memory() {
            hart.instruction.accesses.keep();
        }
        if class == InstClass::IntDiv {
            // SAFETY: `Hart::run_in_run` lent the buffer to the region, which calls this one at a time.
            let run = unsafe { &mut *hart.translations.fallback_context.run };
            run.set_operand(
                hart.translations.fallback_context.operands,
                hart.instruction.executed.operand,
            );
            hart.translations.fallback_context.operands += 1;
        }
    };
    // SAFETY: as in `execute`; it is `Hart::run_in_run` that lent them.
    let result = unsafe { execute_one::<T>(hart, vpage, inst, left, executed) };
    result.unwrap_or(STAYS + 1)
}
