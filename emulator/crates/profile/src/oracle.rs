//! The golden reference: every cycle, charged exactly.

use commit_trace::{
    CommitRecord, CycleClass, InstId, MAX_COMMIT_WIDTH, Redirect, Span, State, TeaEvents,
};

use crate::block::{BLOCK, Block, ForEachSpan, bits};
use crate::dense::{DenseTally, Sum};
use crate::over_time::ProcessUnits;
use crate::packed::{Packed, put, summed};
use crate::paged::Paged;
use crate::stacks::{COMPONENT_BITS, number};
use crate::stalls::{STALL_BITS, StallKind, Stalls, counted_as};
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

/// Rows of equal units, by the number of instructions that commit in one cycle: a whole row is copied at once.
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
/// of it. Stalls are counted for the top-down method and for TEA's reference, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// Two tables for each process: outside the trigger instructions, and between them. A count is units, and above
    /// [`UNIT_BITS`] how often the instruction committed, if that is counted.
    execution: Tables<u64>,
    counts_commits: bool,
    /// Stalled cycles, by the index of the table in `execution`.
    stalls: Stalls,
    /// Units of all other components, by the index of the table in `execution`, with the counts of `execution` that were packed or full. The kind is
    /// the number of the [`Component`], or [`COMMITS`].
    waits: DenseTally<COMPONENT_BITS>,
}

/// Cycles of a block's stalls, by class.
pub(crate) type Stalled = [u64; CycleClass::ALL.len()];

/// Number of low bits of a count that hold units; the bits above hold commits. A count is moved to [`Oracle::waits`] once the highest bit of its
/// units is set. Neither part overflows before: each commit adds 105 units or more, so that the units are full first.
const UNIT_BITS: u32 = 35;
const FULL: u64 = 1 << (UNIT_BITS - 1);
const _: () = assert!(FULL / SHARE[MAX_COMMIT_WIDTH] < 1 << (u64::BITS - UNIT_BITS - 1));

/// The number under which commits are packed, as units are under a component's number.
const COMMITS: u64 = (1 << COMPONENT_BITS) - 1;
const _: () = assert!(Component::COUNT as u64 <= COMMITS);

const COMMIT: u64 = 1 << UNIT_BITS;

/// Returns the units and the commits of a count that has both.
const fn parts(count: u64) -> (u64, u64) {
    (count & (COMMIT - 1), count >> UNIT_BITS)
}

impl Oracle {
    pub(crate) fn new() -> Self {
        let mut oracle = Self::default();
        oracle.select(ProcessId::BOOT, false);
        oracle
    }

    /// A process runs from here on, between the guest's trigger instructions or not.
    pub(crate) fn select(&mut self, process: ProcessId, marked: bool) {
        self.select_table(2 * process.0 as usize + usize::from(marked));
    }

    fn select_table(&mut self, index: usize) {
        self.execution.select(index);
        self.stalls.select(index);
        self.waits.select(index);
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
        } else if let Some(record) = span.records.first() {
            self.wait(span, record);
        }
    }

    #[inline]
    fn wait(&mut self, span: &Span<'_>, record: &CommitRecord) {
        if span.state == State::Stalled {
            let kind = StallKind::of(record).number();
            self.stalls.add(record.inst, kind.into(), span.cycles);
        } else {
            let component = component(span.state, record) as u64;
            let units = span.cycles * UNITS_PER_CYCLE;
            self.waits.add(record.inst, component, units);
        }
    }

    /// Charges records that commit: each is charged the units at its index.
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
        for record in records {
            self.move_if_full(record.inst);
        }
    }

    fn move_if_full(&mut self, inst: InstId) {
        let count = self.execution.of(inst.0);
        if *count & FULL != 0 {
            let (units, commits) = parts(std::mem::take(count));
            self.waits.add(inst, Component::Execution as u64, units);
            self.waits.add(inst, COMMITS, commits);
        }
    }

    /// Charges a block as its spans would be. Gives `each` the spans in which nothing commits, except stalls of the classes
    /// whose cycles it returns.
    #[inline(always)]
    pub(crate) fn block(&mut self, block: &Block<'_>, each: impl FnMut(&Span<'_>)) -> Stalled {
        self.commits(block);
        self.gaps(block, each)
    }

    #[inline(never)]
    fn commits(&mut self, block: &Block<'_>) {
        // Units of each of the block's instructions. Each group writes as many shares as the widest group has; the next group
        // writes over those beyond its end.
        let mut shares = [0u16; BLOCK + MAX_COMMIT_WIDTH];
        block.groups(|at, size| {
            let each = &SHARES[size.min(MAX_COMMIT_WIDTH)];
            shares[at..at + MAX_COMMIT_WIDTH].copy_from_slice(each);
        });
        self.commit(block.records, &shares);
    }

    #[inline(always)]
    fn gaps(&mut self, block: &Block<'_>, mut each: impl FnMut(&Span<'_>)) -> Stalled {
        // `empties` has a bit for each record before whose stall the ROB is empty; `others` has one for each record whose gap must be looked at span
        // by span.
        let (mut empties, mut others) = (0, 0);
        let mut stalled = Stalled::default();
        let stalls = bits(block.gaps).map(|at| {
            let first = &block.records[at];
            let gap = first.commit_delta - 1;
            let cycles = gap.min(first.residence());
            let class = first.class();
            // Saturated residences are longer than they say.
            let is_usual = IS_USUAL[class as usize] & (gap < Sum::<STALL_BITS>::MAX);
            empties |= u64::from(is_usual & (cycles < gap)) << at;
            others |= u64::from(!is_usual) << at;
            let cycles = if is_usual { cycles } else { 0 };
            stalled[class as usize] += u64::from(cycles);
            (first.inst, Sum::new(StallKind::of(first).number(), cycles))
        });
        self.stalls.add_each(stalls);
        for at in bits(empties | others) {
            let is_counted = empties >> at & 1 != 0;
            let mut sink = ForEachSpan(|span: &Span<'_>| {
                if let Some(record) = span.records.first()
                    && !(is_counted && span.state == State::Stalled)
                {
                    self.wait(span, record);
                    each(span);
                }
            });
            block.gap_spans(at, &mut sink);
        }
        stalled
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn pack_cold(
        &mut self,
        processes: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool,
    ) {
        let indices = || {
            let processes = processes.iter().map(|process| 2 * process.0 as usize);
            processes.flat_map(|index| [index, index + 1])
        };
        indices().for_each(|index| self.pack(index));
        let is_cold = |index: usize| is_cold(ProcessId(index as u32 / 2));
        self.stalls.pack_cold(indices(), is_cold);
        self.waits.pack_cold(indices(), is_cold);
    }

    /// Packs what the tables have at an index.
    fn pack(&mut self, index: usize) {
        let execution = self.execution.take(index);
        let amounts = amounts_of(&execution, self.counts_commits);
        self.waits.add_packed(index, amounts);
    }

    /// True if nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.execution.is_empty() && self.stalls.is_empty() && self.waits.is_empty()
    }

    /// Adds what another Oracle counted, and returns that: units by process and instruction. Counts of cold processes are
    /// packed.
    pub(crate) fn absorb(
        &mut self,
        later: Self,
        is_cold: impl Fn(ProcessId) -> bool,
    ) -> Vec<ProcessUnits> {
        let Self { mut execution, counts_commits, stalls, waits } = later;
        self.counts_commits = counts_commits;
        let (mut stalls, mut waits) = (stalls.owners(), waits.owners());
        let tables = execution.len().max(stalls.count()).max(waits.count());
        let mut all: Vec<ProcessUnits> = Vec::new();
        let (mut stalled, mut waited) = (Vec::new(), Vec::new());
        for index in 0..tables {
            let executed = execution.take(index);
            stalled.clear();
            stalls.next_into(&mut stalled);
            waited.clear();
            waits.next_into(&mut waited);
            if executed.is_empty() && stalled.is_empty() && waited.is_empty() {
                continue;
            }
            let process = ProcessId(index as u32 / 2);
            if all.last().is_none_or(|(last, ..)| *last != process) {
                all.push((process, Vec::new(), 0));
            }
            if let Some((_, spent, _)) = all.last_mut() {
                spent.extend(units_of(&executed, counts_commits));
                let stalled = stalled.iter();
                spent.extend(
                    stalled
                        .map(|(number, cycles)| (number >> STALL_BITS, cycles * UNITS_PER_CYCLE)),
                );
                let waited = waited.iter().filter(|amount| !is_commits(amount));
                spent.extend(waited.map(|(number, units)| (number >> COMPONENT_BITS, *units)));
            }
            if is_cold(process) {
                waited.extend(amounts_of(&executed, counts_commits));
                let summed = |amounts: &mut Vec<_>| summed(std::mem::take(amounts)).into_iter();
                self.stalls.add_packed(index, summed(&mut stalled));
                self.waits.add_packed(index, summed(&mut waited));
            } else {
                self.add_table(index, &executed, &stalled, &waited);
            }
        }
        for (_, spent, _) in &mut all {
            *spent = summed(std::mem::take(spent));
        }
        all
    }

    /// Adds to the tables of an index; numbers of stalls and waits as [`DenseTally::owners`] has them.
    fn add_table(
        &mut self,
        index: usize,
        executed: &Paged<u64>,
        stalled: &[(u64, u64)],
        waited: &[(u64, u64)],
    ) {
        self.select_table(index);
        for (inst, count) in executed.iter() {
            // Neither count is full: their sum does not run over.
            *self.execution.of(inst) += count;
            if self.counts_commits {
                self.move_if_full(InstId(inst));
            }
        }
        let parts = |number: u64, bits: u32| {
            let what = number & ((1 << bits) - 1);
            (InstId((number >> bits) as u32), what)
        };
        for (number, cycles) in stalled {
            let (inst, kind) = parts(*number, STALL_BITS);
            self.stalls.add(inst, kind, *cycles);
        }
        for (number, units) in waited {
            let (inst, component) = parts(*number, COMPONENT_BITS);
            self.waits.add(inst, component, *units);
        }
    }

    /// The result.
    pub(crate) fn finish(self) -> Charged {
        let mut charged = Charged {
            profile: Profile::new(UNITS_PER_CYCLE),
            stacks: CycleStacks::default(),
            marked: Profile::new(UNITS_PER_CYCLE),
            commits: Vec::new(),
            stalls: Vec::new(),
        };
        let Self { mut execution, counts_commits, stalls, waits } = self;
        let (mut stalls, mut waits) = (stalls.owners(), waits.owners());
        let component = |record: &CommitRecord| {
            let component = component(State::Stalled, record);
            Some((component as u64, UNITS_PER_CYCLE))
        };
        let tables = execution.len().max(stalls.count()).max(waits.count());
        let mut next = |index| {
            let (mut amounts, mut stalled) = (Vec::new(), Vec::new());
            stalls.next_into(&mut stalled);
            let stalled = summed(stalled);
            waits.next_into(&mut amounts);
            amounts.extend(amounts_of(&execution.take(index), counts_commits));
            let stalls = stalled.iter().copied();
            amounts.extend(counted_as(stalls, COMPONENT_BITS, component));
            (summed(amounts), stalled)
        };
        for (process, outside) in (0..).map(ProcessId).zip((0..tables).step_by(2)) {
            let (mut all, mut stalled) = next(outside);
            let (inside, stalled_inside) = next(outside + 1);
            if !inside.is_empty() {
                charged.marked.set(process, totals(&inside));
                all = summed([all, inside].concat());
                stalled = summed([stalled, stalled_inside].concat());
            }
            if all.is_empty() {
                continue;
            }
            charged.profile.set(process, totals(&all));
            let units = all.iter().copied().filter(|amount| !is_commits(amount));
            charged.stacks.set(process, units.collect());
            if counts_commits {
                let commits = all.iter().filter(|amount| is_commits(amount));
                let commits = commits.map(|(number, count)| (number >> COMPONENT_BITS, *count));
                put(&mut charged.commits, process.0 as usize, commits.collect());
            }
            put(&mut charged.stalls, process.0 as usize, stalled.into_iter().collect());
        }
        charged
    }
}

/// Units of the instructions in a table of executions.
fn units_of(execution: &Paged<u64>, counts_commits: bool) -> impl Iterator<Item = (u64, u64)> {
    execution.iter().map(move |(inst, count)| {
        let units = if counts_commits { parts(*count).0 } else { *count };
        (inst.into(), units)
    })
}

/// What a table of executions amounts to, as it is packed.
fn amounts_of(execution: &Paged<u64>, counts_commits: bool) -> impl Iterator<Item = (u64, u64)> {
    execution.iter().flat_map(move |(inst, count)| {
        let (units, commits) = match counts_commits {
            true => parts(*count),
            false => (*count, 0),
        };
        let first = number(InstId(inst), Component::Execution);
        [(first, units), (first | COMMITS, commits)]
    })
}

fn is_commits((number, _): &(u64, u64)) -> bool {
    number & COMMITS == COMMITS
}

/// What the Oracle found.
pub(crate) struct Charged {
    pub(crate) profile: Profile,
    /// The profile's units by component.
    pub(crate) stacks: CycleStacks,
    /// The marked part of the profile.
    pub(crate) marked: Profile,
    /// How often each instruction committed, by process, if that was counted.
    pub(crate) commits: Vec<Packed>,
    /// Stalled cycles of each instruction, by process and [`StallKind`].
    pub(crate) stalls: Vec<Packed>,
}

/// By class: true if how a stall counts does not depend on the instruction's own class.
pub(crate) const IS_USUAL: [bool; CycleClass::ALL.len()] = {
    let mut is_usual = [true; CycleClass::ALL.len()];
    is_usual[CycleClass::Serialize as usize] = false;
    is_usual[CycleClass::Device as usize] = false;
    is_usual
};

/// Units of each instruction, of all components.
fn totals(amounts: &[(u64, u64)]) -> impl Iterator<Item = (InstId, u64)> {
    let insts = amounts.chunk_by(|one, next| one.0 >> COMPONENT_BITS == next.0 >> COMPONENT_BITS);
    insts.map(|of_one| {
        let units = of_one.iter().filter(|amount| !is_commits(amount));
        let inst = InstId((of_one[0].0 >> COMPONENT_BITS) as u32);
        (inst, units.map(|(_, units)| units).sum())
    })
}

/// Returns what the cycles of a span without a commit are spent on, told by the record that they are charged to.
#[inline]
pub(crate) fn component(state: State, record: &CommitRecord) -> Component {
    let tea = record.tea();
    match state {
        State::Computing | State::Idle => Component::Execution,
        State::Stalled => Component::stall(record.class(), tea),
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
