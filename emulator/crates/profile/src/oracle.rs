//! The golden reference: every cycle, charged exactly.

use commit_trace::{
    CommitRecord, InstId, MAX_COMMIT_WIDTH, Redirect, Span, SpanSink, State, TeaEvents,
};

use crate::block::{BLOCK, Block, bits};
use crate::counts::OwnedTally;
use crate::packed::{Packed, merged};
use crate::stacks::{COMPONENT_BITS, number};
use crate::tables::Tables;
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

/// The same, for each that may.
const SHARES: [[u16; MAX_COMMIT_WIDTH]; MAX_COMMIT_WIDTH + 1] = {
    let mut shares = [[0; MAX_COMMIT_WIDTH]; MAX_COMMIT_WIDTH + 1];
    let mut n = 1;
    while n <= MAX_COMMIT_WIDTH {
        shares[n] = [SHARE[n] as u16; MAX_COMMIT_WIDTH];
        n += 1;
    }
    shares
};

/// Counts units per process, instruction and component.
///
/// Execution is apart from the rest: it is what nearly every instruction adds to, and a cache line should hold eight
/// of it. Of the other components few instructions have more than one or two.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Two for each process: outside the trigger instructions, and between them.
    execution: Tables<u64>,
    waits: Waits,
}

/// Counts cycles without a commit.
#[derive(Debug, Default)]
struct Waits {
    /// Of each instruction, as `Oracle::execution`, the component that it waits for first: cycles above
    /// [`COMPONENT_BITS`] bits that tell which.
    first: Tables<u64>,
    /// Units of all others, and of what was packed: by index of the tables; what for: the number of the [`Component`].
    others: OwnedTally<COMPONENT_BITS>,
    /// Index of what is counted now.
    current: usize,
}

/// Takes the spans in which nothing commits.
impl SpanSink for Waits {
    #[inline(always)]
    fn span(&mut self, span: &Span<'_>) {
        let Some(record) = span.records.first() else {
            return;
        };
        let component = component(span.state, record) as u64;
        let first = self.first.of(record.inst.0);
        if *first == 0 {
            // Execution, the component 0, is not among them.
            *first = component;
        }
        if *first & FIRST == component {
            *first += span.cycles << COMPONENT_BITS;
        } else {
            let units = span.cycles * UNITS_PER_CYCLE;
            self.others.add(self.current, record.inst, component, units);
        }
    }
}

/// The bits of `Waits::first` that tell which component.
const FIRST: u64 = (1 << COMPONENT_BITS) - 1;

impl Oracle {
    pub(crate) fn new() -> Self {
        let mut oracle = Self::default();
        oracle.select(ProcessId::BOOT, false);
        oracle
    }

    /// A process runs from here on, between the guest's trigger instructions or not.
    pub(crate) fn select(&mut self, process: ProcessId, marked: bool) {
        let index = 2 * process.0 as usize + usize::from(marked);
        self.execution.select(index);
        self.waits.first.select(index);
        self.waits.current = index;
    }

    /// Charges a span that is not idle.
    #[inline(always)]
    pub(crate) fn span(&mut self, span: &Span<'_>) {
        if span.state == State::Computing {
            self.execution
                .add(span.records, &SHARES[span.records.len()]);
        } else {
            self.waits.span(span);
        }
    }

    /// Charges a block: the same as its spans.
    #[inline(never)]
    pub(crate) fn block(&mut self, block: &Block<'_>) {
        // What each of its instructions gets. A group writes that of the widest group's, the next one over it.
        let mut shares = [0u16; BLOCK + MAX_COMMIT_WIDTH];
        block.groups(|at, size| {
            let each = &SHARES[size.min(MAX_COMMIT_WIDTH)];
            shares[at..at + MAX_COMMIT_WIDTH].copy_from_slice(each);
        });
        self.execution.add(block.records, &shares);
        bits(block.gaps).for_each(|at| block.gap_spans(at, &mut self.waits));
    }

    /// Keeps what such processes have, which do not run, in few bytes.
    pub(crate) fn cool(&mut self, processes: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        for process in processes {
            self.pack(2 * process.0 as usize);
            self.pack(2 * process.0 as usize + 1);
        }
        self.waits
            .others
            .cool(|index| is_cold(ProcessId(index as u32 / 2)));
    }

    /// Packs what the tables have at an index.
    fn pack(&mut self, index: usize) {
        let execution = self.execution.take(index);
        let execution = { execution.iter() }
            .map(|(inst, units)| (number(InstId(inst), Component::Execution), *units));
        let first = self.waits.first.take(index);
        let first = first.iter().map(|(inst, count)| {
            let component = Component::ALL[(count & FIRST) as usize];
            let units = (count >> COMPONENT_BITS) * UNITS_PER_CYCLE;
            (number(InstId(inst), component), units)
        });
        let all = merged(execution, first);
        self.waits.others.add_packed(index, all);
    }

    /// The result: the profile, and the same by component; and of the profile the marked part.
    pub(crate) fn finish(mut self) -> (Profile, CycleStacks, Profile) {
        let mut profile = Profile::new(UNITS_PER_CYCLE);
        let mut marked = Profile::new(UNITS_PER_CYCLE);
        let mut stacks = CycleStacks::default();
        for index in 0..self.execution.len() {
            self.pack(index);
        }
        let mut units = self.waits.others.finish().into_iter();
        for process in (0..).map(ProcessId) {
            let Some(mut all) = units.next() else {
                break;
            };
            if let Some(inside) = units.next() {
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
