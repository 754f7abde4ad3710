//! The golden reference: every cycle, charged exactly.

use commit_trace::{
    CommitRecord, InstId, MAX_COMMIT_WIDTH, Redirect, Span, State, TeaEvents, gap_spans,
};

use crate::block::{BLOCK, Block, Each};
use crate::paged::Paged;
use crate::tally::Tally;
use crate::{Component, CycleStack, CycleStacks, ProcessId, Profile};

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
    execution: Vec<Paged<u64>>,
    /// By [`Waiting`].
    waiting: Tally,
    /// What is counted now: always a valid index after [`Oracle::select`].
    current: usize,
}

/// Whose wait it is, as a number: index of `Oracle::execution`, component, instruction (whose low bits tell most apart).
struct Waiting;

impl Waiting {
    const INST_BITS: u32 = 32;
    const INDEX_SHIFT: u32 = Self::INST_BITS + 5;

    #[inline(always)]
    fn key(index: usize, inst: InstId, component: Component) -> u64 {
        let component = (component as u64) << Self::INST_BITS;
        (index as u64) << Self::INDEX_SHIFT | component | u64::from(inst.0)
    }

    fn index(key: u64) -> usize {
        (key >> Self::INDEX_SHIFT) as usize
    }

    /// Instruction and number of the component.
    fn of(key: u64) -> (u32, usize) {
        (key as u32, (key >> Self::INST_BITS) as usize & 31)
    }
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
            self.execution.resize_with(self.current + 1, Paged::default);
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

    /// The result: the profile, and the same by component; and of the profile the marked part.
    pub(crate) fn finish(self) -> (Profile, CycleStacks, Profile) {
        let mut profile = Profile::new(UNITS_PER_CYCLE);
        let mut marked = Profile::new(UNITS_PER_CYCLE);
        let mut stacks = CycleStacks::default();
        let waiting = self.waiting.finish();
        // Of an index: instruction, component, units; ascending.
        let counts = |index: usize, execution: &Paged<u64>| {
            let from = waiting.partition_point(|(key, _)| Waiting::index(*key) < index);
            let to = waiting.partition_point(|(key, _)| Waiting::index(*key) <= index);
            let waiting = waiting[from..to].iter().map(|(key, units)| {
                let (inst, component) = Waiting::of(*key);
                (inst, component, *units)
            });
            let execution = execution.iter();
            let execution =
                execution.map(|(inst, units)| (inst, Component::Execution as usize, *units));
            let mut counts: Vec<_> = execution.chain(waiting).collect();
            // Each component is in order already, which a stable sort makes use of.
            counts.sort();
            counts
        };
        for (process, pair) in self.execution.chunks(2).enumerate() {
            let process_id = ProcessId(process as u32);
            let mut all = counts(2 * process, &pair[0]);
            if let Some(inside) = pair.get(1) {
                let inside = counts(2 * process + 1, inside);
                for (inst, _, units) in &inside {
                    marked.add(process_id, InstId(*inst), *units);
                }
                all.extend(inside);
                all.sort();
            }
            stacks.push(all.chunk_by(|one, next| one.0 == next.0).map(|counts| {
                let mut stack = CycleStack::default();
                for (_, component, units) in counts {
                    stack.0[*component] += units;
                }
                let inst = InstId(counts[0].0);
                profile.add(process_id, inst, stack.total());
                (inst, stack)
            }));
        }
        (profile, stacks, marked)
    }
}

#[inline(always)]
fn charge(waiting: &mut Tally, index: usize, span: &Span<'_>, record: &CommitRecord) {
    let component = component(span.state, record);
    let key = Waiting::key(index, record.inst, component);
    waiting.add(key, span.cycles * UNITS_PER_CYCLE);
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
