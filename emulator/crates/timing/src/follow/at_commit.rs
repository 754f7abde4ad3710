//! Counters' conditions of events at commit: of what commits, and of what keeps instructions from it.

use commit_trace::{CommitRecord, CycleClass, Redirect, TeaEvents};
use isa::{InstClass, PerfEvent, Selection};

use super::watch::Watch;
use crate::micro_op::{Kind, MicroOp, jump};

/// A counter's condition of events at the ROB's head.
#[derive(Default)]
pub(super) struct CommitWatch {
    pub counter: usize,
    selection: Selection,
    weights: Weights,
    pub watch: Watch,
}

snapshot::snapshot!(CommitWatch { counter, selection, weights, watch });

/// What is to be known of an instruction that leaves the ROB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leaving {
    /// Nothing: all events occur in cycles in which no instruction leaves.
    #[default]
    Nothing,
    /// Anything.
    Anything,
    /// Whether it retires, its class, kind of jump, and what a load waited for.
    Class,
    /// Whether it retires.
    Retiring,
}

snapshot::snapshot_enum!(Leaving: Nothing, Anything, Class, Retiring);

/// How often a selection's events occur, by what is known of an instruction.
#[derive(Clone, Debug)]
struct Weights {
    /// Occurrences as an instruction leaves the ROB, by its class, if it redirects nothing and has none of TEA's
    /// events.
    class: [u32; InstClass::COUNT],
    /// Further occurrences as a jump leaves, by its kind.
    jump: [u32; jump::BOUND as usize],
    /// Further occurrences as a load leaves, by what it waited for.
    load: [u32; CycleClass::ALL.len()],
    /// Occurrences in each cycle in which the ROB is empty after a redirection.
    flushed: u32,
    /// Occurrences in each cycle in which the ROB is empty otherwise.
    drained: u32,
    /// Occurrences in each cycle in which the ROB's head waits, by what it waits for.
    stalled: [u32; CycleClass::ALL.len()],
    /// Occurrences in each cycle in which something commits.
    committing: u32,
    /// What is to be known of an instruction to tell what occurs as it leaves.
    leaving: Leaving,
}

snapshot::snapshot!(Weights { class, jump, load, flushed, drained, stalled, committing, leaving });

impl Default for Weights {
    fn default() -> Self {
        Self {
            class: [0; InstClass::COUNT],
            jump: [0; jump::BOUND as usize],
            load: [0; CycleClass::ALL.len()],
            flushed: 0,
            drained: 0,
            stalled: [0; CycleClass::ALL.len()],
            committing: 0,
            leaving: Leaving::Nothing,
        }
    }
}

impl Weights {
    fn of(selection: Selection) -> Self {
        use {CycleClass as C, PerfEvent as E};
        let mut weights = Self::default();
        let count = |event: E| selection.events().filter(|&e| e == event).count() as u32;
        weights.class = [count(E::Instructions); InstClass::COUNT];
        for class in [InstClass::Branch, InstClass::Jal, InstClass::Jalr] {
            weights.class[class as usize] += count(E::Branches);
        }
        for class in selection.events().filter_map(class_of) {
            weights.class[class as usize] += 1;
        }
        for (kind, event) in [
            (jump::DIRECT, E::DirectJumps),
            (jump::DIRECT_CALL, E::DirectCalls),
            (jump::INDIRECT, E::IndirectJumps),
            (jump::INDIRECT_CALL, E::IndirectCalls),
            (jump::RETURN, E::Returns),
        ] {
            weights.jump[usize::from(kind)] = count(event);
        }
        for (class, event) in [
            (C::LoadL1, E::RetiredLoadL1),
            (C::Store, E::RetiredLoadL1),
            (C::LoadL2, E::RetiredLoadL2),
            (C::LoadLlc, E::RetiredLoadLlc),
            (C::LoadPeer, E::RetiredLoadLlc),
            (C::LoadDram, E::RetiredLoadDram),
            (C::Device, E::RetiredLoadDevice),
        ] {
            weights.load[class as usize] = count(event);
        }
        weights.flushed = count(E::CyclesFlushed);
        weights.drained = count(E::CyclesDrained);
        weights.committing = count(E::CyclesCommitting);
        let stalled = |class| count(E::CyclesStalled) + count(stalled_by(class));
        weights.stalled = C::ALL.map(stalled);
        weights.leaving = weights.needs(selection);
        weights
    }

    fn needs(&self, selection: Selection) -> Leaving {
        let leaving = || selection.events().filter(|&event| !stands(event));
        let all_alike = self.class == [self.class[0]; InstClass::COUNT];
        let by_class = self.jump.iter().chain(&self.load).any(|&weight| weight != 0);
        match (leaving().next(), leaving().all(is_of_class)) {
            (None, _) => Leaving::Nothing,
            (_, false) => Leaving::Anything,
            (_, true) if all_alike && !by_class => Leaving::Retiring,
            (_, true) => Leaving::Class,
        }
    }

    /// Returns true if something occurs in cycles in which nothing leaves, because of what waits for `class`.
    #[inline]
    fn stand(&self, class: CycleClass) -> bool {
        self.flushed | self.drained | self.stalled[class as usize] != 0
    }

    /// Returns how often the events occur as an instruction retires, beside those that depend on redirections and TEA's
    /// events.
    #[inline]
    fn plain(&self, record: &CommitRecord, micro_op: &MicroOp) -> u32 {
        let class = self.class[micro_op.class as usize];
        match micro_op.kind {
            Kind::Jump => class + self.jump[usize::from(micro_op.jump % jump::BOUND)],
            Kind::Load => class + self.load[record.class() as usize],
            _ => class,
        }
    }
}

impl CommitWatch {
    pub(super) fn new(counter: usize, selection: Selection, watch: Watch) -> Self {
        Self { counter, selection, weights: Weights::of(selection), watch }
    }

    /// Tells the watch of instructions that left the ROB, whose cycles count from `cycle`. `flushed`: its value in
    /// [`crate::window::Window`] before they left.
    pub(super) fn take_all<'a>(
        &mut self,
        (cycle, flushed): (u64, u8),
        records: &[CommitRecord],
        micro_op: impl Fn(&CommitRecord) -> &'a MicroOp,
    ) {
        let Self { selection, weights, watch, .. } = self;
        let left = Left { cycle, flushed, records };
        let each = weights.class[0];
        match weights.leaving {
            Leaving::Nothing => left.told_stalls(watch, weights),
            Leaving::Retiring => left.told(watch, weights, |record| match record.is_trap() {
                true => 0,
                false => each,
            }),
            Leaving::Class => left.told(watch, weights, |record| match record.is_trap() {
                true => 0,
                false => weights.plain(record, micro_op(record)),
            }),
            Leaving::Anything => left.told(watch, weights, |record| {
                let micro_op = micro_op(record);
                let redirects = record.redirect() != Redirect::None;
                if !redirects && record.tea() == TeaEvents::default() {
                    return weights.plain(record, micro_op);
                }
                let happens = |&event: &PerfEvent| happens(event, record, micro_op);
                selection.events().filter(happens).count() as u32
            }),
        }
    }
}

/// Instructions that left the ROB.
struct Left<'a> {
    /// Cycle of the last commit before them, from which the first record counts.
    cycle: u64,
    /// Value of `flushed` in [`crate::window::Window`] before they left.
    flushed: u8,
    records: &'a [CommitRecord],
}

impl Left<'_> {
    /// Tells a watch of the cycles in which nothing left.
    fn told_stalls(&self, watch: &mut Watch, weights: &Weights) {
        let mut commit = self.cycle;
        for (n, record) in self.records.iter().enumerate() {
            let before = commit;
            commit += u64::from(record.commit_delta);
            if record.commit_delta > 1 && weights.stand(record.class()) {
                *watch = self.stood_still(n, (before, commit), watch.clone(), weights);
            }
        }
        watch.close(commit);
    }

    /// Tells a watch of all cycles. `occurs`: how often the events occur as an instruction leaves.
    #[inline(always)]
    fn told(&self, to: &mut Watch, weights: &Weights, occurs: impl Fn(&CommitRecord) -> u32) {
        // A copy, which stays in the host's registers.
        let mut watch = to.clone();
        let mut commit = self.cycle;
        for (n, record) in self.records.iter().enumerate() {
            if record.commit_delta != 0 {
                let before = commit;
                commit += u64::from(record.commit_delta);
                if record.commit_delta > 1 && weights.stand(record.class()) {
                    watch = self.stood_still(n, (before, commit), watch, weights);
                }
                let commits = u32::from(!record.is_trap());
                watch.add(commit, commits * weights.committing);
            }
            watch.more(occurs(record));
        }
        *to = watch;
    }

    /// Returns `watch` after telling it of the cycles in which nothing left: after cycle `before`, until record `n` did
    /// in cycle `commit`.
    #[inline(never)]
    fn stood_still(
        &self,
        n: usize,
        (before, commit): (u64, u64),
        mut watch: Watch,
        weights: &Weights,
    ) -> Watch {
        let record = &self.records[n];
        let enters = record.dispatch(commit).clamp(before + 1, commit);
        if enters > before + 1 {
            let empty = match flushed_at(&self.records[..=n], self.flushed) {
                0 => weights.drained,
                _ => weights.flushed,
            };
            watch.span(before + 1, enters, empty);
        }
        watch.span(enters, commit, weights.stalled[record.class() as usize]);
        watch
    }
}

/// Returns what `flushed` of [`crate::window::Window`] is as the last of `records` leaves, given its value before them.
/// The next instruction after one that redirects is the first of its row.
pub(super) fn flushed_at(records: &[CommitRecord], flushed: u8) -> u8 {
    match records.iter().rposition(CommitRecord::first_of_row) {
        None => flushed,
        Some(0) => flushed >> 1,
        Some(first) => u8::from(records[first - 1].redirect() != Redirect::None),
    }
}

/// Returns true if the event occurs in cycles in which nothing leaves.
fn stands(event: PerfEvent) -> bool {
    use PerfEvent as E;
    let cycles = [E::CyclesFlushed, E::CyclesDrained, E::CyclesStalled];
    cycles.contains(&event) || CycleClass::ALL.map(stalled_by).contains(&event)
}

/// Returns true if an instruction's class, the kind of a jump, and what a load waited for say whether the event occurs
/// as it retires.
fn is_of_class(event: PerfEvent) -> bool {
    use PerfEvent as E;
    class_of(event).is_some()
        || matches!(
            event,
            E::Instructions
                | E::Branches
                | E::CyclesCommitting
                | E::DirectJumps
                | E::DirectCalls
                | E::IndirectJumps
                | E::IndirectCalls
                | E::Returns
                | E::RetiredLoadL1
                | E::RetiredLoadL2
                | E::RetiredLoadLlc
                | E::RetiredLoadDram
                | E::RetiredLoadDevice
        )
}

/// The event of a stall of that class.
fn stalled_by(class: CycleClass) -> PerfEvent {
    match class {
        CycleClass::Alu => PerfEvent::StalledAlu,
        CycleClass::LoadL1 => PerfEvent::StalledL1,
        CycleClass::LoadL2 => PerfEvent::StalledL2,
        CycleClass::LoadLlc | CycleClass::LoadPeer => PerfEvent::StalledLlc,
        CycleClass::LoadDram => PerfEvent::StalledDram,
        CycleClass::Store => PerfEvent::StalledStore,
        CycleClass::Divider => PerfEvent::StalledDivider,
        CycleClass::Serialize => PerfEvent::StalledSerialize,
        CycleClass::Device => PerfEvent::StalledDevice,
    }
}

/// Returns the class of instructions that an event is of, if it is of one.
pub(crate) fn class_of(event: PerfEvent) -> Option<InstClass> {
    use {InstClass as I, PerfEvent as E};
    Some(match event {
        E::IntAlu => I::IntAlu,
        E::IntMul => I::IntMul,
        E::IntDiv => I::IntDiv,
        E::BranchInst => I::Branch,
        E::Jal => I::Jal,
        E::Jalr => I::Jalr,
        E::Load => I::Load,
        E::Store => I::Store,
        E::FpLoad => I::FpLoad,
        E::FpStore => I::FpStore,
        E::Amo => I::Amo,
        E::LoadReserved => I::LoadReserved,
        E::StoreConditional => I::StoreConditional,
        E::FpArith => I::FpArith,
        E::FpDivSqrt => I::FpDivSqrt,
        E::FpToInt => I::FpToInt,
        E::IntToFp => I::IntToFp,
        E::Csr => I::Csr,
        E::Fence => I::Fence,
        E::FenceI => I::FenceI,
        E::SfenceVma => I::SfenceVma,
        E::Xret => I::Xret,
        E::Wfi => I::Wfi,
        _ => return None,
    })
}

/// Returns true if an instruction's record tells whether the event happens to it.
pub(crate) fn is_of_record(event: PerfEvent) -> bool {
    use PerfEvent as E;
    matches!(
        event,
        E::Exceptions
            | E::OrderFailures
            | E::Interrupts
            | E::Instructions
            | E::Branches
            | E::BranchMisses
            | E::CondMisses
            | E::DirectJumps
            | E::DirectCalls
            | E::IndirectJumps
            | E::IndirectCalls
            | E::Returns
            | E::IndirectMisses
            | E::IndirectCallMisses
            | E::ReturnMisses
            | E::Flushes
            | E::RetiredIcacheMiss
            | E::RetiredItlbMiss
            | E::RetiredStoreQueueFull
            | E::RetiredL1dMiss
            | E::RetiredDtlbMiss
            | E::RetiredLlcMiss
            | E::RetiredLoadL1
            | E::RetiredLoadL2
            | E::RetiredLoadLlc
            | E::RetiredLoadDram
            | E::RetiredLoadDevice
    ) || class_of(event).is_some()
}

/// Returns true if the event happens to an instruction as it leaves the ROB.
pub(crate) fn happens(event: PerfEvent, record: &CommitRecord, micro_op: &MicroOp) -> bool {
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
        E::RetiredIcacheMiss => tea.contains(TeaEvents::DR_L1),
        E::RetiredItlbMiss => tea.contains(TeaEvents::DR_TLB),
        E::RetiredStoreQueueFull => tea.contains(TeaEvents::DR_SQ),
        E::RetiredL1dMiss => tea.contains(TeaEvents::ST_L1),
        E::RetiredDtlbMiss => tea.contains(TeaEvents::ST_TLB),
        E::RetiredLlcMiss => tea.contains(TeaEvents::ST_LLC),
        E::RetiredLoadL1 => load(C::LoadL1) || load(C::Store),
        E::RetiredLoadL2 => load(C::LoadL2),
        E::RetiredLoadLlc => load(C::LoadLlc) || load(C::LoadPeer),
        E::RetiredLoadDram => load(C::LoadDram),
        E::RetiredLoadDevice => load(C::Device),
        _ => class_of(event).is_some_and(class),
    }
}
