//! Conditions of what commits, or keeps from it.

use commit_trace::{CommitRecord, CycleClass, Redirect, TeaEvents};
use isa::{InstClass, PerfEvent, Selection};

use super::watch::Watch;
use crate::micro_op::{Kind, MicroOp, jump};

/// A counter's condition of events at the ROB's head.
#[derive(Default)]
pub(super) struct CommitWatch {
    pub counter: usize,
    selection: Selection,
    pub watch: Watch,
}

snapshot::snapshot!(CommitWatch {
    counter,
    selection,
    watch
});

impl CommitWatch {
    pub fn new(counter: usize, selection: Selection, watch: Watch) -> Self {
        Self {
            counter,
            selection,
            watch,
        }
    }

    /// An instruction left in cycle `commit`, after one that left in cycle `before`. `flushed`: if the ROB was empty between them, it
    /// was by a misprediction, flush or trap.
    pub fn take(
        &mut self,
        record: &CommitRecord,
        before: u64,
        commit: u64,
        micro_op: &MicroOp,
        flushed: bool,
    ) {
        let events = || self.selection.events();
        let mut occurs = events()
            .filter(|&event| happens(event, record, micro_op))
            .count();
        if record.commit_delta != 0 {
            let empty = match flushed {
                true => PerfEvent::CyclesFlushed,
                false => PerfEvent::CyclesDrained,
            };
            let stalled = stalled_by(record.class());
            let is_stall =
                |event: &PerfEvent| *event == PerfEvent::CyclesStalled || *event == stalled;
            let enters = record.dispatch(commit).clamp(before + 1, commit);
            let while_empty = events().filter(|&event| event == empty).count();
            let while_stalled = events().filter(is_stall).count();
            self.watch.span(before + 1, enters, while_empty as u32);
            self.watch.span(enters, commit, while_stalled as u32);
            if !record.is_trap() {
                occurs += events()
                    .filter(|&event| event == PerfEvent::CyclesCommitting)
                    .count();
            }
        }
        if occurs != 0 {
            self.watch.add(commit, occurs as u32);
        }
    }
}

/// The event of a stall of that class.
fn stalled_by(class: CycleClass) -> PerfEvent {
    match class {
        CycleClass::Alu => PerfEvent::StalledAlu,
        CycleClass::LoadL1 => PerfEvent::StalledL1,
        CycleClass::LoadL2 => PerfEvent::StalledL2,
        CycleClass::LoadLlc => PerfEvent::StalledLlc,
        CycleClass::LoadDram => PerfEvent::StalledDram,
        CycleClass::Store => PerfEvent::StalledStore,
        CycleClass::Divider => PerfEvent::StalledDivider,
        CycleClass::Serialize => PerfEvent::StalledSerialize,
        CycleClass::Device => PerfEvent::StalledDevice,
    }
}

/// The event happens to an instruction as it leaves the ROB.
fn happens(event: PerfEvent, record: &CommitRecord, micro_op: &MicroOp) -> bool {
    use {CycleClass as C, InstClass as I, PerfEvent as E};
    let (redirect, tea) = (record.redirect(), record.tea());
    let fails_order = tea.contains(TeaEvents::FL_MO) && redirect == Redirect::Exception;
    match event {
        E::Exceptions => return redirect == Redirect::Exception && !fails_order,
        E::OrderFailures => return fails_order,
        E::Interrupts => return redirect == Redirect::Interrupt,
        _ if record.is_trap() => return false,
        _ => {}
    }
    let class = |class: InstClass| micro_op.class == class;
    let jumps = |kind: u8| (class(I::Jal) || class(I::Jalr)) && micro_op.jump == kind;
    let missed = redirect == Redirect::Mispredict;
    let load = |class: CycleClass| micro_op.kind == Kind::Load && record.class() == class;
    match event {
        E::Instructions => true,
        E::Branches => class(I::Branch) || class(I::Jal) || class(I::Jalr),
        E::BranchMisses => missed,
        E::CondMisses => missed && class(I::Branch),
        E::DirectJumps => jumps(jump::DIRECT),
        E::DirectCalls => jumps(jump::DIRECT_CALL),
        E::IndirectJumps => jumps(jump::INDIRECT),
        E::IndirectCalls => jumps(jump::INDIRECT_CALL),
        E::Returns => jumps(jump::RETURN),
        E::IndirectMisses => missed && jumps(jump::INDIRECT),
        E::IndirectCallMisses => missed && jumps(jump::INDIRECT_CALL),
        E::ReturnMisses => missed && jumps(jump::RETURN),
        E::Flushes => redirect == Redirect::Flush,
        E::IntAlu => class(I::IntAlu),
        E::IntMul => class(I::IntMul),
        E::IntDiv => class(I::IntDiv),
        E::BranchInst => class(I::Branch),
        E::Jal => class(I::Jal),
        E::Jalr => class(I::Jalr),
        E::Load => class(I::Load),
        E::Store => class(I::Store),
        E::FpLoad => class(I::FpLoad),
        E::FpStore => class(I::FpStore),
        E::Amo => class(I::Amo),
        E::LoadReserved => class(I::LoadReserved),
        E::StoreConditional => class(I::StoreConditional),
        E::FpArith => class(I::FpArith),
        E::FpDivSqrt => class(I::FpDivSqrt),
        E::FpToInt => class(I::FpToInt),
        E::IntToFp => class(I::IntToFp),
        E::Csr => class(I::Csr),
        E::Fence => class(I::Fence),
        E::FenceI => class(I::FenceI),
        E::SfenceVma => class(I::SfenceVma),
        E::Xret => class(I::Xret),
        E::Wfi => class(I::Wfi),
        E::RetiredIcacheMiss => tea.contains(TeaEvents::DR_L1),
        E::RetiredItlbMiss => tea.contains(TeaEvents::DR_TLB),
        E::RetiredStoreQueueFull => tea.contains(TeaEvents::DR_SQ),
        E::RetiredL1dMiss => tea.contains(TeaEvents::ST_L1),
        E::RetiredDtlbMiss => tea.contains(TeaEvents::ST_TLB),
        E::RetiredLlcMiss => tea.contains(TeaEvents::ST_LLC),
        E::RetiredLoadL1 => load(C::LoadL1) || load(C::Store),
        E::RetiredLoadL2 => load(C::LoadL2),
        E::RetiredLoadLlc => load(C::LoadLlc),
        E::RetiredLoadDram => load(C::LoadDram),
        E::RetiredLoadDevice => load(C::Device),
        _ => false,
    }
}
