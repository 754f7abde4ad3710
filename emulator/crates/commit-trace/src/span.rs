//! Maximal runs of cycles in one commit state.

use crate::{Batch, CommitRecord, Event, HartId, Redirect, Seq, StaticInfo, StreamError};

/// Most instructions that may commit in one cycle.
pub const MAX_COMMIT_WIDTH: usize = 8;

/// Cycle numbers stay below this (3.6 days at 3.6 GHz): no sum of them overflows, nor do those of 16 harts together times the Oracle's units of
/// weight, of which a cycle has fewer than 1024.
pub const MAX_CYCLE: u64 = 1 << 50;

/// State of the commit stage (TIP, MICRO'21, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// At least one instruction commits.
    Computing,
    /// The ROB holds instructions, none commits.
    Stalled,
    /// The ROB is empty after a mispredict, a flush, or a trap.
    Flushed,
    /// The ROB is empty because the front end delivers nothing.
    Drained,
    /// The hart sleeps in `wfi`.
    Idle,
}

/// A run of cycles in one state, and the instructions that the Oracle charges it to.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// State.
    pub state: State,
    /// First cycle.
    pub start: u64,
    /// Number of cycles (at least 1). Computing spans have exactly one.
    pub cycles: u64,
    /// Computing: all that commit, oldest first. Stalled: the oldest in the ROB. Flushed: the one
    /// that emptied the ROB. Drained: the first to enter it next. Idle: none.
    pub records: &'a [CommitRecord],
    /// Cycle in which `records` commit (or are taken as a trap); meaningless when Idle.
    pub commit: u64,
}

impl Span<'_> {
    /// First cycle after the span.
    pub const fn end(&self) -> u64 {
        self.start + self.cycles
    }

    /// Cycle in which one of the span's records entered the ROB.
    pub fn dispatch(&self, record: &CommitRecord) -> u64 {
        record.dispatch(self.commit)
    }
}

/// The records that come next.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    /// The rest of the batch, from the start of a commit group.
    pub records: &'a [CommitRecord],
    /// An event precedes the record of this index, or the batch ends there. It may lie within a group.
    pub until: usize,
    /// The record before these, and the cycle in which it committed.
    pub before: Option<(&'a CommitRecord, u64)>,
    /// The last cycle before these records.
    pub cycle: u64,
}

/// What a sink does with the records ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The sink has dealt with the next records, which make whole commit groups.
    Whole {
        /// Number of records, at least one.
        records: usize,
        /// Cycles that the records last.
        cycles: u64,
    },
    /// The sink wants at least this many records as spans, and then to be asked again.
    Spans(usize),
}

/// Receives spans. Every cycle after the stream's start is in exactly one span, in order.
pub trait SpanSink {
    /// Takes the next run of cycles.
    fn span(&mut self, span: &Span<'_>);
    /// Asks, before records become spans, what the sink does with them. A sink that can count many records without their
    /// spans is faster.
    #[inline(always)]
    fn ahead(&mut self, _ahead: &Ahead<'_>) -> Take {
        Take::Spans(usize::MAX)
    }
    /// An instruction left the ROB by a trap in cycle `commit`, without committing. Its spans follow.
    fn trap(&mut self, _commit: u64, _record: &CommitRecord) {}
    /// The static info of an instruction, before its first use; `cycle` is that of the batch's start.
    fn static_info(&mut self, _cycle: u64, _static_info: &StaticInfo) {}
    /// An event after `cycle`. One within a commit group is delivered after the group's cycle.
    /// [`Event::Idle`] comes as a span instead.
    fn event(&mut self, _cycle: u64, _event: &Event) {}
}

/// Turns one hart's batches into spans.
///
/// The rules: the instructions of one commit cycle are a Computing span. In the cycles between two
/// such, the ROB is empty until the next instruction enters it — Flushed if the last instruction
/// redirected the front end, otherwise Drained — and then Stalled on that instruction. A trap
/// commits nothing: its own cycle and the empty ones after it are Flushed.
///
/// Batches are checked as they come; after an error the builder must not be used further.
#[derive(Debug, Default)]
pub struct SpanBuilder {
    expected: Option<Position>,
    last: Option<Last>,
    defined: u32,
}

/// Progress of [`SpanBuilder`] through one batch: records and events consumed, and the last cycle in a span.
#[derive(Clone, Copy, Debug)]
pub struct BatchProgress {
    records: usize,
    events: usize,
    /// Last cycle that is in a span.
    cycle: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    hart: HartId,
    seq: Seq,
    cycle: u64,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    record: CommitRecord,
    commit: u64,
}

impl SpanBuilder {
    /// A builder that starts wherever its first batch does.
    pub fn new() -> Self {
        Self::default()
    }

    /// Last cycle of the batches that became spans as a whole; before there are any, the cycle at which the first starts.
    pub fn cycle(&self) -> u64 {
        self.expected.map_or(0, |position| position.cycle)
    }

    /// Feeds one batch.
    ///
    /// # Errors
    /// If the batch does not continue the previous one, or no commit stage can have produced it.
    pub fn batch(&mut self, batch: &Batch, sink: &mut impl SpanSink) -> Result<(), StreamError> {
        let mut progress = self.begin(batch, sink)?;
        self.go_on(batch, &mut progress, usize::MAX, sink)?;
        Ok(())
    }

    /// Begins a batch that is fed in parts, so that no call takes long: feeds its static info. The caller then calls
    /// [`Self::go_on`] until that returns true.
    ///
    /// # Errors
    /// If the batch does not continue the previous one.
    pub fn begin(
        &mut self,
        batch: &Batch,
        sink: &mut impl SpanSink,
    ) -> Result<BatchProgress, StreamError> {
        self.admit(batch)?;
        for static_info in &batch.static_info {
            sink.static_info(batch.start_cycle, static_info);
        }
        Ok(BatchProgress { records: 0, events: 0, cycle: batch.start_cycle })
    }

    /// Feeds about `most` more records of the batch that was begun, and returns true if these were the last.
    ///
    /// # Errors
    /// If no commit stage can have produced them.
    #[inline(always)]
    pub fn go_on(
        &mut self,
        batch: &Batch,
        progress: &mut BatchProgress,
        most: usize,
        sink: &mut impl SpanSink,
    ) -> Result<bool, StreamError> {
        let records = &batch.records[..];
        let until = progress.records.saturating_add(most);
        let BatchProgress { records: mut at, mut events, mut cycle } = *progress;
        // A reference, as a copy for every group would cost more than the rest of it.
        let before = self.last;
        let mut last = before.as_ref().map(|last| (&last.record, last.commit));
        let is_whole = loop {
            let next = batch.events.get(events);
            let stop = next.map_or(records.len(), |(index, _)| *index as usize);
            while at < stop.min(until) {
                let ahead =
                    Ahead { records: &records[at..], until: stop - at, before: last, cycle };
                match sink.ahead(&ahead) {
                    Take::Whole { records, cycles } => {
                        at += records;
                        cycle += cycles;
                    }
                    Take::Spans(count) => {
                        let end = at.saturating_add(count.max(1)).min(stop);
                        while at < end {
                            let group = Group::find(records, at, batch.first_seq)?;
                            cycle = group.emit(last, cycle, sink);
                            at = group.end;
                            last = Some((&records[at - 1], cycle));
                        }
                    }
                }
                last = Some((&records[at - 1], cycle));
            }
            if at < stop {
                break false;
            }
            let Some((_, event)) = next else { break true };
            events += 1;
            let seq = Seq(batch.first_seq.0 + stop as u64);
            let after = pass(event, stop == at, cycle, sink);
            cycle = after.ok_or(StreamError::BadEvent { seq })?;
        };
        self.last = last.map(|(record, commit)| Last { record: *record, commit });
        *progress = BatchProgress { records: at, events, cycle };
        if is_whole {
            self.expected = Some(Position {
                hart: batch.hart,
                seq: Seq(batch.first_seq.0 + records.len() as u64),
                cycle,
            });
        }
        Ok(is_whole)
    }

    /// Checks what can be checked once per batch, to keep it out of the loop over records.
    fn admit(&mut self, batch: &Batch) -> Result<(), StreamError> {
        let found = Position { hart: batch.hart, seq: batch.first_seq, cycle: batch.start_cycle };
        let expected = self.expected.unwrap_or(found);
        if expected != found {
            return Err(StreamError::Gap {
                expected: expected.seq,
                found: found.seq,
                cycle: expected.cycle,
            });
        }
        let seq = batch.first_seq;
        if !ends_early(batch) || seq.0 >= MAX_CYCLE {
            return Err(StreamError::CycleOverflow { seq });
        }
        for static_info in &batch.static_info {
            if static_info.id.0 != self.defined {
                return Err(StreamError::StaticInfoOutOfOrder {
                    expected: self.defined,
                    found: static_info.id.0,
                });
            }
            self.defined += 1;
        }
        if !all_below(&batch.records, self.defined)
            && let Some(inst) = batch.records.iter().map(|record| record.inst.0).max()
            && inst >= self.defined
        {
            return Err(StreamError::UndefinedInst { inst, seq });
        }
        let ordered = batch.events.is_sorted_by_key(|(index, _)| *index);
        let last = batch.events.last().map_or(0, |(index, _)| *index as usize);
        if !ordered || last > batch.records.len() {
            return Err(StreamError::BadEvent { seq });
        }
        self.expected = Some(expected);
        Ok(())
    }
}

/// True only if all records are of instructions below `number`: faster than a search for the greatest.
fn all_below(records: &[CommitRecord], number: u32) -> bool {
    let (mut differences, mut numbers) = (u32::MAX, number);
    for record in records {
        differences &= record.inst.0.wrapping_sub(number);
        numbers |= record.inst.0;
    }
    // If no number has its top bit set, the top bit of a difference tells that the difference is negative.
    (differences & !numbers) >> 31 != 0
}

/// True if a batch ends before [`MAX_CYCLE`].
fn ends_early(batch: &Batch) -> bool {
    // Far from the limit the records need not be added up.
    let bound = batch.bound();
    bound.is_some_and(|end| end < MAX_CYCLE) || batch.end_cycle().is_some_and(|end| end < MAX_CYCLE)
}

/// Emits the spans of the commit group that `records` begin with, after `cycle`; `before` is the record before it
/// and its commit. Returns the group's size and cycle.
///
/// # Errors
/// If no commit stage can have produced it; `first_seq` is the first record's number.
#[inline]
pub fn group_spans(
    records: &[CommitRecord],
    before: Option<(&CommitRecord, u64)>,
    cycle: u64,
    first_seq: Seq,
    sink: &mut impl SpanSink,
) -> Result<(usize, u64), StreamError> {
    let group = Group::find(records, 0, first_seq)?;
    Ok((group.end, group.emit(before, cycle, sink)))
}

/// Gives an event to the sink and returns the cycle after it; `None` if the hart slept within a commit group.
fn pass(event: &Event, at_boundary: bool, cycle: u64, sink: &mut impl SpanSink) -> Option<u64> {
    let Event::Idle { cycles } = *event else {
        sink.event(cycle, event);
        return Some(cycle);
    };
    if !at_boundary {
        return None;
    }
    if cycles > 0 {
        let start = cycle + 1;
        sink.span(&Span { state: State::Idle, start, cycles, records: &[], commit: cycle });
    }
    Some(cycle + cycles)
}

/// The records of one commit cycle.
#[derive(Clone, Copy)]
struct Group<'a> {
    records: &'a [CommitRecord],
    /// Index after the last.
    end: usize,
    /// The last of them is a trap: it did not commit.
    trapped: bool,
}

impl<'a> Group<'a> {
    /// Emits the spans up to and including the group's cycle, and returns that cycle; `before` is the record before the
    /// group and its commit.
    #[inline(always)]
    fn emit(
        self,
        before: Option<(&CommitRecord, u64)>,
        cycle: u64,
        sink: &mut impl SpanSink,
    ) -> u64 {
        let first = &self.records[0];
        let gap = u64::from(first.commit_delta) - 1;
        let commit = cycle + gap + 1;
        if gap > 0 {
            gap_spans(before, first, cycle + 1, gap, commit, sink);
        }
        let committing = self.records.len() - usize::from(self.trapped);
        if committing > 0 {
            let records = &self.records[..committing];
            sink.span(&Span { state: State::Computing, start: commit, cycles: 1, records, commit });
        }
        if self.trapped {
            sink.trap(commit, &self.records[committing]);
            if committing == 0 {
                let records = self.records;
                sink.span(&Span {
                    state: State::Flushed,
                    start: commit,
                    cycles: 1,
                    records,
                    commit,
                });
            }
        }
        commit
    }

    #[inline(always)]
    fn find(
        records: &'a [CommitRecord],
        start: usize,
        first_seq: Seq,
    ) -> Result<Self, StreamError> {
        let seq = |index: usize| Seq(first_seq.0 + index as u64);
        let rest = &records[start..];
        if rest[0].commit_delta == 0 {
            return Err(StreamError::NoCycle { seq: seq(start) });
        }
        let mut len = 1;
        let mut trapped = rest[0].is_trap();
        if !trapped {
            let beside = rest[1..].iter().take_while(|record| record.commit_delta == 0);
            for record in beside {
                len += 1;
                if record.is_trap() {
                    trapped = true;
                    break;
                }
            }
        }
        let end = start + len;
        // A trap may share the cycle of a full group.
        if len > MAX_COMMIT_WIDTH + usize::from(trapped) {
            return Err(StreamError::WideGroup { seq: seq(start), width: len });
        }
        Ok(Self { records: &rest[..len], end, trapped })
    }
}

/// Returns in how many of the `gap` cycles without a commit, after which `first` commits, the ROB is empty. The empty cycles
/// are the first of the gap.
#[inline(always)]
pub fn empty_cycles(first: &CommitRecord, gap: u64) -> u64 {
    match first.residence() {
        // A residence that saturated is longer than it says: the ROB was not empty.
        CommitRecord::MAX_RESIDENCE => 0,
        residence => gap.saturating_sub(u64::from(residence)),
    }
}

/// Emits the spans of the `gap` cycles from `start` in which nothing commits, before `first` does in cycle `commit`;
/// `before` is the record before it and its commit.
#[inline(always)]
pub fn gap_spans(
    before: Option<(&CommitRecord, u64)>,
    first: &CommitRecord,
    start: u64,
    gap: u64,
    commit: u64,
    sink: &mut impl SpanSink,
) {
    let empty = empty_cycles(first, gap);
    let next = std::slice::from_ref(first);
    if empty > 0 {
        let (state, records, commit) = match before {
            Some((last, commit)) if last.redirect() != Redirect::None => {
                (State::Flushed, std::slice::from_ref(last), commit)
            }
            _ => (State::Drained, next, commit),
        };
        sink.span(&Span { state, start, cycles: empty, records, commit });
    }
    if gap > empty {
        sink.span(&Span {
            state: State::Stalled,
            start: start + empty,
            cycles: gap - empty,
            records: next,
            commit,
        });
    }
}

#[cfg(test)]
mod tests;
