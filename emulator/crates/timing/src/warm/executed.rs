//! What a functional hart would tell of instructions that were executed with timing.

use commit_trace::CommitSink;
use isa::{
    Executed, InstClass, MemAccess, MemKind, PathSegment, Run, StaticId, TimingModel as _,
    TransferKind,
};

use super::Warming;
use crate::mem::LINE_BITS;

impl<S: CommitSink> Warming<'_, S> {
    /// Keeps the core warm as if the hart executed a run without timing.
    pub fn execute(&mut self, run: &Run<'_>) {
        let mut line = u64::MAX;
        for step in run.steps {
            let pc = run.pc(step);
            // The last byte of an instruction may be in the next line.
            for offset in [0, u64::from(step.size()) - 1] {
                let pa = run.page + (pc - run.vpage) + offset;
                if pa >> LINE_BITS != line {
                    line = pa >> LINE_BITS;
                    self.fetch_line(pc + offset, pa, run.translated);
                }
            }
        }
        for access in run.accesses {
            self.access_line(access, run.translated);
        }
        for (n, step) in run.steps.iter().enumerate() {
            let pc = run.pc(step);
            let next = run.steps.get(n + 1).map_or(run.next_pc, |next| run.pc(next));
            self.follow_one(step.id, (pc, step.size()), next);
        }
    }

    /// Keeps the core warm as if the hart executed an instruction without timing, or took its trap.
    pub fn execute_one(&mut self, executed: &Executed) {
        let Executed { inst, pc, fetch_pa, next_pc, ref mem, translated, .. } = *executed;
        self.fetch_line(pc, fetch_pa, translated);
        if executed.trap.is_some() {
            return self.follow(&[PathSegment::trap(pc, next_pc)]);
        }
        if mem.kind() != MemKind::None && !mem.mmio() {
            self.access_line(mem, translated);
        }
        if inst.class == InstClass::FenceI {
            self.warm_fence_i();
        }
        self.follow_one(executed.id, (pc, inst.len), next_pc);
    }

    /// Lets the predictors learn from an instruction of `len` bytes at `pc`, after which the one at `next` was executed.
    fn follow_one(&mut self, id: StaticId, (pc, len): (u64, u8), next: u64) {
        let kind = self.path.transfer(id);
        let taken = kind == Some(TransferKind::Branch) && next != pc.wrapping_add(len.into());
        self.follow(&[PathSegment::one(kind, pc, len, taken, next)]);
    }

    /// Keeps the core warm as if the hart took an interrupt in place of the instruction at `pc`.
    pub fn interrupted(&mut self, pc: u64) {
        // Predictors do not use the target of a flush, so that `pc` may stand for the handler.
        self.follow(&[PathSegment::trap(pc, pc)]);
    }

    fn fetch_line(&mut self, pc: u64, pa: u64, translated: bool) {
        let is_shown =
            self.line_filters().is_some_and(|filters| filters.fetches.shows(pa >> LINE_BITS));
        if !is_shown {
            self.warm_fetch(pc, pa, translated);
        }
    }

    fn access_line(&mut self, access: &MemAccess, translated: bool) {
        let is_shown = self.line_filters().is_some_and(|filters| {
            let loads = access.kind() == MemKind::Load;
            let filter = if loads { filters.loads } else { filters.stores };
            filter.shows(access.pa() >> LINE_BITS)
        });
        if !is_shown {
            self.warm_access(access, translated);
        }
    }
}
