//! What a model is told of the path: the log of what the hart executes.

use isa::{DecodedInst, DmaLines, PathSegment, TimingModel, TransferKind};

use super::Env;

impl<T: TimingModel> Env<'_, T> {
    /// Logs an instruction that was executed at `pc`, and after which `next` is, if the model keeps a log.
    #[inline]
    pub(crate) fn log_instruction(&mut self, inst: &DecodedInst, pc: u64, next: u64) {
        if !T::LOGS {
            return;
        }
        let kind = TransferKind::of(inst);
        let is_branch = kind == Some(TransferKind::Branch);
        let taken = is_branch && next != pc.wrapping_add(inst.len.into());
        let target = if is_branch { pc.wrapping_add(inst.imm as i64 as u64) } else { next };
        self.log(PathSegment::one(kind, pc, inst.len, taken, target));
    }

    /// Logs that a trap was taken at `pc` whose handler is next, if the model keeps a log.
    #[inline]
    pub(crate) fn log_trap(&mut self, pc: u64, handler: u64) {
        if T::LOGS {
            self.log(PathSegment::trap(pc, handler));
        }
    }

    fn log(&mut self, segment: PathSegment) {
        if let Some(log) = self.timing.path_log() {
            log.push(segment);
        }
        self.empty_full_log();
    }

    /// Tells the model what devices wrote to RAM.
    #[inline]
    pub(crate) fn pass_dma_writes(&mut self) {
        for write in self.bus.ram.take_dma_writes() {
            for lines in DmaLines::of(write.pa, write.len) {
                self.timing.dma_write(lines);
            }
        }
    }

    /// Has the model take the log if it is full, so that there is room again.
    pub(crate) fn empty_full_log(&mut self) {
        if self.timing.path_log().is_some_and(|log| log.is_full()) {
            self.timing.take_path_log();
        }
    }
}
