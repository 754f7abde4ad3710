//! The golden reference: every cycle, charged exactly.

use commit_trace::{
    CommitRecord, InstId, MAX_COMMIT_WIDTH, Redirect, Span, State, TeaEvents, gap_spans,
};

use crate::block::{BLOCK, Block, Each};
use crate::counts::{Counts, OwnedTally};
use crate::packed::{Packed, merged};
use crate::stacks::{COMPONENT_BITS, number};
use crate::{Component, CycleStacks, ProcessId, Profile};

/// Units of weight in one cycle: lcm(1..=8), so that a cycle divides evenly among any number of
/// instructions that commit in it. 64 bits hold 2 * 10^16 cycles of them.
pub const UNITS_PER_CYCLE: u64 = 840;

/// Units for each of `n` instructions that commit in one cycle.
pub(crate) const SHARE: [u64; MAX_COMMIT_WIDTH + 1] = {
    let mut share = [0; MAX_COMMIT_WIDTH + 1];
    let mut n = 1;
    while n <= MAX_COMMIT_WIDTH {
        assert!(UNITS_PER_CYCLE.is_multiple_of(n as u64));
        share[n] = UNITS_PER_CYCLE / n as u64;
        n += 1;
    }
    share
};

/// Counts units per process, instruction and component.
///
/// Execution is apart from the rest: it is what nearly every instruction adds to, and a cache line should hold eight
/// of it. Of the other components few instructions have more than one or two.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Two for each process: outside the trigger instructions, and between them.
    execution: Vec<Counts>,
    /// What for: the number of the [`Component`]. Owners: indices of `execution`.
    waiting: OwnedTally<COMPONENT_BITS>,
    /// What is counted now: always a valid index after [`Oracle::select`].
    current: usize,
}

impl Oracle {
    pub(crate) fn new() -> Self {
        let mut oracle = Self::default();
        oracle.select(ProcessId::BOOT, false);
        oracle
    }

    /// A process runs from here on, between the guest's trigger instructions or not.
    pub(crate) fn select(&mut self, process: ProcessId, marked: bool) {
        self.current = 2 * process.0 as usize + usize::from(marked);
        if self.execution.len() <= self.current {
            self.execution
                .resize_with(self.current + 1, Counts::default);
        }
    }

    /// Charges a span that is not idle.
    #[inline(always)]
    pub(crate) fn span(&mut self, span: &Span<'_>) {
        if span.state == State::Computing {
            let share = SHARE[span.records.len()];
            let insts = span.records.iter().map(|record| record.inst.0);
            self.execution[self.current].update(insts, |units| *units += share);
        } else if let Some(record) = span.records.first() {
            charge(&mut self.waiting, self.current, span, record);
        }
    }

    /// Charges a block: the same as its spans.
    #[inline(always)]
    pub(crate) fn block(&mut self, block: &Block<'_>) {
        // What each of its instructions gets. A group writes that of the widest group's, the next one over it.
        let mut shares = [0u16; BLOCK + MAX_COMMIT_WIDTH];
        block.groups(|at, size| {
            let share = SHARE[size.min(MAX_COMMIT_WIDTH)] as u16;
            shares[at..at + MAX_COMMIT_WIDTH].fill(share);
        });
        let insts = block.records.iter().map(|record| record.inst.0);
        let mut shares = shares.iter();
        self.execution[self.current].update(insts, |units| {
            *units += shares.next().map_or(0, |share| u64::from(*share));
        });
        let mut gaps = block.gaps;
        while gaps != 0 {
            let at = gaps.trailing_zeros() as usize;
            gaps &= gaps - 1;
            let first = &block.records[at];
            let gap = u64::from(first.commit_delta) - 1;
            let mut sink = Each(|span: &Span<'_>| {
                if let Some(record) = span.records.first() {
                    charge(&mut self.waiting, self.current, span, record);
                }
            });
            gap_spans(block.before(at), first, 0, gap, 0, &mut sink);
        }
    }

    /// Keeps what such processes have, which do not run, in few bytes.
    pub(crate) fn cool(&mut self, processes: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        for process in processes {
            let pair = self.execution.iter_mut().skip(2 * process.0 as usize);
            pair.take(2).for_each(Counts::cool);
        }
        self.waiting
            .cool(|index| is_cold(ProcessId(index as u32 / 2)));
    }

    /// The result: the profile, and the same by component; and of the profile the marked part.
    pub(crate) fn finish(self) -> (Profile, CycleStacks, Profile) {
        let mut profile = Profile::new(UNITS_PER_CYCLE);
        let mut marked = Profile::new(UNITS_PER_CYCLE);
        let mut stacks = CycleStacks::default();
        let waiting = self.waiting.finish();
        // Of an index: units by component, ascending by instruction.
        let units = |index: usize, execution: Counts| -> Packed {
            let execution = execution.packed();
            let execution = { execution.iter() }
                .map(|(inst, units)| (number(InstId(inst as u32), Component::Execution), units));
            merged(
                execution,
                waiting.get(index).into_iter().flat_map(Packed::iter),
            )
            .collect()
        };
        let mut execution = (0..).zip(self.execution);
        for process in (0..).map(ProcessId) {
            let Some((index, outside)) = execution.next() else {
                break;
            };
            let mut all = units(index, outside);
            if let Some((index, inside)) = execution.next() {
                let inside = units(index, inside);
                all.add(inside.iter());
                marked.set(process, totals(&inside));
            }
            profile.set(process, totals(&all));
            stacks.push(all);
        }
        (profile, stacks, marked)
    }
}

/// Units of each instruction, of all components.
fn totals(stacks: &Packed) -> impl Iterator<Item = (InstId, u64)> {
    let stacks = crate::stacks::unpacked(stacks);
    stacks.map(|(inst, stack)| (inst, stack.total()))
}

#[inline(always)]
fn charge(
    waiting: &mut OwnedTally<COMPONENT_BITS>,
    index: usize,
    span: &Span<'_>,
    record: &CommitRecord,
) {
    let component = component(span.state, record) as u64;
    waiting.add(index, record.inst, component, span.cycles * UNITS_PER_CYCLE);
}

/// What the cycles of a span without a commit are spent on, from the record that they belong to.
#[inline]
pub(crate) fn component(state: State, record: &CommitRecord) -> Component {
    let tea = record.tea();
    match state {
        State::Computing | State::Idle => Component::Execution,
        State::Stalled => Component::stall(record.class()),
        State::Drained if tea.contains(TeaEvents::DR_L1) => Component::FrontEndCache,
        State::Drained if tea.contains(TeaEvents::DR_TLB) => Component::FrontEndTlb,
        State::Drained if tea.contains(TeaEvents::DR_SQ) => Component::FrontEndStores,
        State::Drained => Component::FrontEnd,
        // A load that is replayed leaves the ROB by a trap of its own.
        State::Flushed if tea.contains(TeaEvents::FL_MO) => Component::MemoryOrdering,
        State::Flushed => match record.redirect() {
            Redirect::Mispredict => Component::Mispredict,
            Redirect::Exception => Component::Exception,
            Redirect::Interrupt => Component::Interrupt,
            Redirect::None | Redirect::Flush => Component::Flush,
        },
    }
}
