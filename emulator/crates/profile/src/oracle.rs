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
    /// Two for each process: outside the trigger instructions, and between them. Units, and above [`UNIT_BITS`] how often
    /// the instruction committed, if that is counted.
    execution: Tables<u64>,
    counts_commits: bool,
    waits: Waits,
}

/// Bits of a count that are units. A count is moved elsewhere once the highest of them is set: they do not run over until
/// then, nor do the commits above them, each of which is 105 units or more.
const UNIT_BITS: u32 = 35;
const FULL: u64 = 1 << (UNIT_BITS - 1);
const _: () = assert!(FULL / SHARE[MAX_COMMIT_WIDTH] < 1 << (u64::BITS - UNIT_BITS - 1));

/// What commits are packed under, where units are under a component's number.
const COMMITS: u64 = (1 << COMPONENT_BITS) - 1;
const _: () = assert!(Component::COUNT as u64 <= COMMITS);

const COMMIT: u64 = 1 << UNIT_BITS;

/// Units and commits of a count that has both.
const fn parts(count: u64) -> (u64, u64) {
    (count & (COMMIT - 1), count >> UNIT_BITS)
}

/// Counts cycles without a commit.
#[derive(Debug, Default)]
struct Waits {
    /// Of each instruction, as `Oracle::execution`, the component that it waits for first: cycles above
    /// [`COMPONENT_BITS`] bits that tell which.
    first: Tables<u64>,
    /// Units of all others, and what was packed or full: by index of the tables; what for: the number of the
    /// [`Component`], or [`COMMITS`].
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

    /// Counts commits from now on, too.
    pub(crate) fn count_commits(&mut self) {
        self.counts_commits = true;
    }

    /// Charges a span that is not idle.
    #[inline(always)]
    pub(crate) fn span(&mut self, span: &Span<'_>) {
        if span.state == State::Computing {
            self.commit(span.records, &SHARES[span.records.len()]);
        } else {
            self.waits.span(span);
        }
    }

    /// These commit, and each is charged the units at its index.
    #[inline(always)]
    fn commit(&mut self, records: &[CommitRecord], units: &[u16]) {
        if !self.counts_commits {
            self.execution.add(records, units, 0);
        } else if self.execution.add(records, units, COMMIT) & FULL != 0 {
            self.move_full(records);
        }
    }

    #[cold]
    #[inline(never)]
    fn move_full(&mut self, records: &[CommitRecord]) {
        let (others, index) = (&mut self.waits.others, self.waits.current);
        for record in records {
            let count = self.execution.of(record.inst.0);
            if *count & FULL != 0 {
                let (units, commits) = parts(std::mem::take(count));
                others.add(index, record.inst, Component::Execution as u64, units);
                others.add(index, record.inst, COMMITS, commits);
            }
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
        self.commit(block.records, &shares);
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
        let execution = execution.iter().flat_map(|(inst, count)| {
            let (units, commits) = match self.counts_commits {
                true => parts(*count),
                false => (*count, 0),
            };
            let first = number(InstId(inst), Component::Execution);
            [(first, units), (first | COMMITS, commits)]
        });
        let first = self.waits.first.take(index);
        let first = first.iter().map(|(inst, count)| {
            let component = Component::ALL[(count & FIRST) as usize];
            let units = (count >> COMPONENT_BITS) * UNITS_PER_CYCLE;
            (number(InstId(inst), component), units)
        });
        let all = merged(execution, first);
        self.waits.others.add_packed(index, all);
    }

    /// The result.
    pub(crate) fn finish(mut self) -> Charged {
        let mut charged = Charged {
            profile: Profile::new(UNITS_PER_CYCLE),
            stacks: CycleStacks::default(),
            marked: Profile::new(UNITS_PER_CYCLE),
            commits: Vec::new(),
        };
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
                charged.marked.set(process, totals(&inside));
            }
            if self.counts_commits {
                let is_commits = |number: u64| number & COMMITS == COMMITS;
                let commits = all.iter().filter(|(number, _)| is_commits(*number));
                let commits = commits.map(|(number, commits)| (number >> COMPONENT_BITS, commits));
                charged.commits.push(commits.collect());
                all = all
                    .iter()
                    .filter(|(number, _)| !is_commits(*number))
                    .collect();
            }
            charged.profile.set(process, totals(&all));
            charged.stacks.push(all);
        }
        charged
    }
}

/// What the Oracle found.
pub(crate) struct Charged {
    pub(crate) profile: Profile,
    /// The same by component.
    pub(crate) stacks: CycleStacks,
    /// The marked part of the profile.
    pub(crate) marked: Profile,
    /// How often each instruction committed, by process, if that was counted.
    pub(crate) commits: Vec<Packed>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_counts_lose_nothing() {
        let records = [3, 4, 900].map(|inst| CommitRecord::from_packed(InstId(inst), 1, 0, 0));
        let mut oracle = Oracle::new();
        oracle.count_commits();
        *oracle.execution.of(4) = 70 * COMMIT + FULL - 3;
        for _ in 0..5 {
            oracle.commit(&records, &SHARES[3]);
        }
        let charged = oracle.finish();
        let units = [3, 4, 900].map(|inst| charged.profile.weight(ProcessId::BOOT, InstId(inst)));
        assert_eq!(units, [5 * 280, FULL - 3 + 5 * 280, 5 * 280]);
        let commits: Vec<_> = charged.commits[0].iter().collect();
        assert_eq!(commits, [(3, 5), (4, 75), (900, 5)]);
    }
}
