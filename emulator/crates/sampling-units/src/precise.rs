//! Attribution of a counter's overflow to the instruction that it is due to (Sspesa, draft of September 2026).
//!
//! The core tells which instruction makes a watched counter overflow. For cycles it is the instruction that the Oracle charges
//! the cycle to, by the rule of [`sampling_rules`]; if several commit in it, one of them at random.
//!
//! Beyond the draft, samples can go to memory ([`Memory`]).

mod memory;

pub use memory::{Awaited, Memory, MemorySample, sample_control, sample_info};

use commit_trace::{CommitRecord, InstId, Redirect, Seq, Span, SpanSink, gap_spans, group_spans};
use sampling_rules::{Heuristic, Outcome, Rule, Trigger};

use crate::Observed;
use crate::pdis::Record;
use memory::Due;

/// Fields of `shpmsdata`.
pub mod sample_data {
    /// Field: the counter that overflowed.
    pub const CNTRID: u64 = 31;
    /// Custom, read-only: samples can go to memory.
    pub const MEM: u64 = 1 << 61;
    /// Custom: overflows are attributed.
    pub const EN: u64 = 1 << 62;
    /// Custom, read-only: `shpmspc` is the address of the instruction that the overflow is due to.
    pub const PRECISE: u64 = 1 << 63;
}
use sample_data::{CNTRID, EN, MEM, PRECISE};

/// Most instructions that commit in a cycle.
const GROUP: usize = commit_trace::MAX_COMMIT_WIDTH;

/// An instruction that left the ROB, as far as it may have to be named.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    commit: CommitRecord,
    cycle: u64,
    record: Record,
}

snapshot::snapshot!(Left { commit, cycle, record });

/// The registers of attributed overflows, and what has to be known to fill them in.
#[derive(Clone, Debug, Default)]
pub struct PreciseSamples {
    enabled: bool,
    pc: u64,
    data: u64,
    record: Record,
    /// Virtual address of the instruction that left the ROB last.
    last: u64,
    /// Record of the last instruction after which fetch restarted.
    last_restart: Record,
    /// Number of instructions that have left the ROB.
    number: u64,
    /// True if a sample is held, which the next overflow does not replace.
    held: bool,
    /// Cycles in which counters of cycles overflow, with the counters' numbers.
    cycles: Vec<(u64, u8)>,
    /// Samples that go to memory.
    pub memory: Memory,
    /// The last commit group while somebody waits for a cycle, and the instruction that left before it.
    group: Vec<Left>,
    before: Option<Left>,
}

snapshot::snapshot!(PreciseSamples {
    enabled,
    pc,
    data,
    record,
    last,
    last_restart,
    number,
    held,
    cycles,
    memory,
    group,
    before
});

impl PreciseSamples {
    /// Returns whether every instruction has to be told: overflows are attributed.
    pub fn is_active(&self) -> bool {
        self.enabled
    }

    /// Returns the counters whose overflows are recorded in memory, by bit.
    pub fn recorded_counters(&self) -> u32 {
        match self.enabled {
            true => self.memory.counters(),
            false => 0,
        }
    }

    /// Returns `shpmspc`.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Writes `shpmspc`.
    pub fn set_pc(&mut self, value: u64) {
        self.pc = value;
    }

    /// Returns `shpmsdata`.
    pub fn data(&self) -> u64 {
        self.data | MEM | if self.enabled { EN } else { 0 }
    }

    /// Writes `shpmsdata`. While attribution is enabled, counters have to be [watched](isa::TimingModel::watch).
    pub fn set_data(&mut self, value: u64) {
        self.data = value & (CNTRID | PRECISE);
        self.enabled = value & EN != 0;
        if !self.enabled {
            self.held = false;
            self.cycles.clear();
            self.memory.due.clear();
            self.memory.awaited.clear();
            self.memory.not_recorded = 0;
            self.group.clear();
            self.before = None;
        }
    }

    /// Returns the record of the instruction to which the last overflow is due.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Sets the cycles in which counters of cycles overflow, with the counters' numbers.
    pub fn watch_cycles(&mut self, cycles: impl Iterator<Item = (u64, u8)>) {
        if self.cycles.is_empty() {
            // Instructions that passed until now are treated as if none had been kept.
            self.group.clear();
            self.before = None;
        }
        let Self { cycles: all, memory, .. } = self;
        all.retain(|&(_, counter)| memory.awaited.iter().any(|a| a.counter == counter));
        // A counter waits for one cycle at a time: while the hart sleeps, no instruction leaves.
        for (cycle, counter) in cycles {
            if all.iter().all(|&(_, other)| other != counter) {
                all.push((cycle, counter));
            }
        }
    }

    /// Adds counters that overflowed and whose samples are to be recorded. A sample that is still awaited stands for both
    /// overflows.
    pub fn expect(&mut self, overflowed: &[Awaited]) {
        for more in overflowed {
            let awaited = &mut self.memory.awaited;
            match awaited.iter_mut().find(|a| a.counter == more.counter) {
                Some(awaited) => awaited.periods = awaited.periods.saturating_add(more.periods),
                None => awaited.push(*more),
            }
        }
    }

    /// Takes the next sample that can be recorded. All that retired has passed; it is cycle `now`.
    pub fn take_sample(&mut self, now: u64) -> Option<MemorySample> {
        let waits = |awaited: &Awaited| {
            let due = self.memory.due.iter();
            let named = due.clone().any(|due| due.counter == awaited.counter);
            let of = |&(cycle, counter): &(u64, u8)| counter == awaited.counter && cycle <= now;
            !named && self.cycles.iter().any(of)
        };
        let next = self.memory.awaited.iter().position(|awaited| !waits(awaited))?;
        let Awaited { counter, periods } = self.memory.awaited.remove(next);
        let due = self.take_due(counter).unwrap_or_else(|| Due {
            counter,
            record: Record { pc: self.last, ..Record::default() },
            ..Due::default()
        });
        let mut record = due.record;
        record.header |= 1 << counter;
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let info = u64::from(counter)
            | flag(due.precise, PRECISE)
            | flag(due.precise && due.number == self.number, sample_info::EXACT);
        Some(MemorySample { record, info, periods })
    }

    fn take_due(&mut self, counter: u8) -> Option<Due> {
        let due = &mut self.memory.due;
        let at = due.iter().position(|due| due.counter == counter)?;
        Some(due.remove(at))
    }

    /// Lets counters, by bit, interrupt although their samples should have gone to memory: there was no room.
    pub fn interrupt_instead(&mut self, counters: u32) {
        let counters = counters & self.memory.counters();
        for counter in (3..32u8).filter(|counter| counters >> counter & 1 != 0) {
            match self.take_due(counter) {
                Some(due) if !self.held => self.hold(counter, due.record),
                Some(_) => {}
                None => self.memory.not_recorded |= 1 << counter,
            }
        }
    }

    /// Lets the next overflow be attributed: software has seen the last one.
    pub fn release(&mut self) {
        self.held = false;
    }

    /// Takes an overflow of which the instruction is not known: a guess is the one that left last.
    pub fn imprecise(&mut self, counter: u8) {
        if self.enabled && !self.held {
            self.held = true;
            self.pc = self.last;
            self.data = u64::from(counter);
            self.record = Record::default();
        }
    }

    /// Takes an instruction that left the ROB. Only while [active](Self::is_active).
    pub fn passed(&mut self, commit: &CommitRecord, observed: &Observed<'_>) {
        let before = observed.detail.overflows_before;
        if before != 0 {
            self.overflowed(before, self.last_restart);
        }
        self.last = observed.passed.pc;
        self.number += 1;
        if commit.redirect() != Redirect::None {
            (self.last_restart, _) = Record::of(observed, true);
        }
        let overflows = observed.detail.overflows;
        if overflows != 0 {
            self.overflowed(overflows, Record::of(observed, true).0);
        }
        if !self.cycles.is_empty() {
            let (record, _) = Record::of(observed, true);
            self.group_passes(Left { commit: *commit, cycle: observed.passed.cycle, record });
        }
    }

    /// Takes overflows of counters, by bit, that the instruction of `record` incurred.
    fn overflowed(&mut self, counters: u32, record: Record) {
        let mut others = counters;
        for counter in (3..32u8).filter(|counter| counters >> counter & 1 != 0) {
            if self.memory.records(counter) {
                self.due(counter, record);
                others &= !(1 << counter);
            }
        }
        if others != 0 && !self.held {
            self.hold(others.trailing_zeros() as u8, record);
        }
    }

    /// Keeps a sample of a counter that is to be recorded, unless it turns out that there is no room.
    fn due(&mut self, counter: u8, record: Record) {
        // An older sample that nobody has asked for is dropped.
        self.take_due(counter);
        self.memory.due.push(Due { counter, record, precise: true, number: self.number });
    }

    fn hold(&mut self, counter: u8, record: Record) {
        self.held = true;
        self.pc = record.pc;
        self.data = u64::from(counter) | PRECISE;
        self.record = record;
        // Field HPM of the record.
        self.record.header |= 1 << counter;
    }

    /// Adds an instruction that left to its commit group; a group is looked at when the next one begins.
    fn group_passes(&mut self, left: Left) {
        let begins = left.commit.commit_delta != 0 || self.group.len() >= GROUP;
        if begins && !self.group.is_empty() {
            self.look_for_cycles();
            self.before = self.group.last().copied();
            self.group.clear();
        }
        self.group.push(left);
    }

    /// Attributes the cycles that are waited for, as far as they are those of the group or before it.
    fn look_for_cycles(&mut self) {
        let Some(first) = self.group.first().map(|left| left.cycle) else {
            return;
        };
        while let Some(at) = self.cycles.iter().position(|&(cycle, _)| cycle <= first) {
            let (cycle, counter) = self.cycles.remove(at);
            let recorded = self.memory.records(counter);
            match self.spent_on(cycle) {
                Some(record) if recorded => self.due(counter, record),
                Some(record) if !self.held => self.hold(counter, record),
                None if !recorded => self.imprecise(counter),
                _ => {}
            }
        }
    }

    /// Returns the record of an instruction that a cycle was spent on, of the group or before it; `None`: the hart slept.
    fn spent_on(&self, cycle: u64) -> Option<Record> {
        let first = self.group.first()?;
        let gap = u64::from(first.commit.commit_delta).saturating_sub(1);
        let start = first.cycle - gap;
        if cycle < start {
            return None;
        }
        // Instructions are numbered by their places: the one before the group comes last.
        let numbered = |(place, left): (usize, &Left)| {
            let mut commit = left.commit;
            commit.inst = InstId(place as u32);
            commit
        };
        let all: Vec<Left> = self.group.iter().chain(&self.before).copied().collect();
        let mut commits: Vec<_> = all.iter().enumerate().map(numbered).collect();
        let before = self.before.and_then(|left| Some((commits.pop()?, left.cycle)));
        let mut named = Named::new(cycle);
        gap_spans(
            before.as_ref().map(|(commit, cycle)| (commit, *cycle)),
            &commits[0],
            start,
            gap,
            first.cycle,
            &mut named,
        );
        commits[0].commit_delta = 1;
        // No error is possible: the records come from a core itself.
        let _ = group_spans(&commits, None, first.cycle - 1, Seq(0), &mut named);
        let who = named.who.get(pick(cycle, named.who.len()))?;
        Some(all.get(who.0 as usize)?.record)
    }
}

/// Returns a number below `count`, which depends on `cycle` alone.
fn pick(cycle: u64, count: usize) -> usize {
    // The finaliser of SplitMix64: neighbouring cycles give unrelated numbers.
    let mut mixed = cycle.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) % count.max(1) as u64) as usize
}

/// Sink of spans that finds the instructions that TIP's rule names in a cycle.
struct Named {
    cycle: u64,
    rule: Rule,
    pending: bool,
    who: Vec<InstId>,
}

impl Named {
    fn new(cycle: u64) -> Self {
        Self { cycle, rule: Rule::new(Heuristic::Tip), pending: false, who: Vec::new() }
    }
}

impl SpanSink for Named {
    fn span(&mut self, span: &Span<'_>) {
        let outcome = if self.pending {
            self.rule.span(span)
        } else if self.who.is_empty() && (span.start..span.end()).contains(&self.cycle) {
            let (cycle, last) = (self.cycle, None);
            self.rule.trigger(&Trigger { cycle, span, last })
        } else {
            return;
        };
        self.pending = false;
        match outcome {
            Outcome::One(record) => self.who.push(record.inst),
            Outcome::All => self.who.extend(span.records.iter().map(|record| record.inst)),
            Outcome::Pending => self.pending = true,
            Outcome::Dropped => {}
        }
    }
}
