//! Buffers for a run: its instructions are executed, but not timed yet.

use isa::{MemAccess, Operand, RUN_STEPS, Step};

/// Room for a [run](isa::Run), but for its data accesses.
pub(crate) struct RunBuffer {
    pub(super) steps: [Step; RUN_STEPS],
    pub(super) operands: [Operand; RUN_STEPS],
}

impl Default for RunBuffer {
    fn default() -> Self {
        Self { steps: [Step::default(); RUN_STEPS], operands: [Operand::default(); RUN_STEPS] }
    }
}

impl RunBuffer {
    /// Pointer past the first `count` steps: the limit up to which translated code may write.
    pub(crate) fn steps_up_to(&mut self, count: usize) -> *mut Step {
        self.steps[..count].as_mut_ptr_range().end
    }

    #[inline(always)]
    pub(crate) fn set_operand(&mut self, number: usize, operand: Operand) {
        self.operands[number] = operand;
    }
}

/// How much of a [`RunBuffer`] is used.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunLength {
    pub steps: usize,
    pub operands: usize,
}

/// The data accesses of a run, or of one instruction. They are written to where the timing model reads them. A copy would be slow: the host would
/// wait until the pieces of each access have left its store queue.
pub(crate) struct Accesses {
    pub accesses: [MemAccess; RUN_STEPS],
    pub kept: usize,
}

impl Default for Accesses {
    fn default() -> Self {
        Self { accesses: [MemAccess::default(); RUN_STEPS], kept: 0 }
    }
}

impl Accesses {
    /// The access of the instruction that is executing.
    #[inline(always)]
    pub(crate) fn current(&mut self) -> &mut MemAccess {
        &mut self.accesses[self.kept % RUN_STEPS]
    }

    /// Keeps the current access: the next access is that of another instruction.
    #[inline(always)]
    pub(crate) fn keep(&mut self) {
        self.kept += 1;
    }

    /// Forgets all of them: the next instruction has not accessed anything yet.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.kept = 0;
        *self.current() = MemAccess::default();
    }
}
