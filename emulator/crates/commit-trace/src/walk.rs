//! A trace record by record, with absolute cycles and the static info of each instruction.

use std::io::{Read, Seek};
use std::ops::ControlFlow;

use crate::{
    Batch, Commit, Event, HartId, Seq, StageCycles, StaticInfo, StreamError, TraceError,
    TraceReader,
};

/// A place in a hart's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A record: an instruction, or a trap.
    Record(Seq),
    /// A cycle.
    Cycle(u64),
}

impl Position {
    /// The stream's start.
    pub const START: Self = Self::Cycle(0);

    /// True for the record at this place and those after it; a record is where it commits.
    pub const fn reached(self, seq: Seq, commit: u64) -> bool {
        match self {
            Self::Record(first) => seq.0 >= first.0,
            Self::Cycle(first) => commit >= first,
        }
    }
}

/// A part of a hart's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The range's first place.
    pub from: Position,
    /// The first place after it; `None`: the stream's end.
    pub to: Option<Position>,
}

impl Range {
    /// The whole stream.
    pub const ALL: Self = Self { from: Position::START, to: None };
}

/// A record with everything that is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Retired<'a> {
    /// The record's hart.
    pub hart: HartId,
    /// The record's number in the hart's stream.
    pub seq: Seq,
    /// What the record says, with absolute cycles.
    pub commit: Commit,
    /// The instruction's other stages, if the run recorded them.
    pub stages: Option<StageCycles>,
    /// The residence is longer than a record can say: it entered the ROB in `commit.dispatch` or earlier.
    pub saturated: bool,
    /// What the instruction is.
    pub static_info: &'a StaticInfo,
}

impl Retired<'_> {
    /// Returns the cycle in which the instruction is dispatched: the ROB holds it from the next cycle on.
    pub const fn dispatched(&self) -> u64 {
        self.commit.dispatch.saturating_sub(1)
    }
}

/// One item that a walk over a trace visits, in commit order.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// The walk starts after this cycle.
    Start(u64),
    /// A record.
    Record(Retired<'a>),
    /// An event after the cycle given.
    Event(u64, &'a Event),
}

/// Why a walk ended early.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The trace cannot be read further.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The stream in it is one that no commit stage made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A stream that the format asked for cannot say.
    #[error("record {}: {what}", .seq.0)]
    Unsayable {
        /// The record.
        seq: Seq,
        /// Why not.
        what: &'static str,
    },
    /// What the walk found could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}

/// Visits what `hart` recorded, from the start of the chunk that holds `from` until `visit` breaks or the
/// trace ends, and says which.
///
/// # Errors
/// If the trace is damaged, or holds no such place; whatever `visit` returns. Everything before the damage
/// was visited.
pub fn walk<R: Read + Seek>(
    reader: &mut TraceReader<R>,
    hart: HartId,
    from: Position,
    mut visit: impl FnMut(Item<'_>) -> Result<ControlFlow<()>, WalkError>,
) -> Result<ControlFlow<()>, WalkError> {
    match from {
        Position::START => {}
        Position::Record(seq) => reader.seek_seq(hart, seq)?,
        Position::Cycle(cycle) => reader.seek_cycle(hart, cycle)?,
    }
    let mut batch = Batch::default();
    let mut walk = Walk::new(hart);
    while reader.next_batch(&mut batch)? {
        if walk.batch(&batch, &mut visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// [`walk()`] for callers that read the batches themselves: visits what the batches of one hart hold.
#[derive(Debug)]
pub struct Walk {
    hart: HartId,
    static_info: Vec<StaticInfo>,
    expected: Option<(Seq, u64)>,
}

impl Walk {
    /// A walk over what `hart` recorded, from the start of a trace or from where a reader was moved to.
    pub const fn new(hart: HartId) -> Self {
        Self { hart, static_info: Vec::new(), expected: None }
    }

    /// Visits the next batch of the trace, unless it is of another hart, and says whether `visit` broke.
    ///
    /// # Errors
    /// If the batch does not continue the one before; whatever `visit` returns.
    pub fn batch(
        &mut self,
        batch: &Batch,
        mut visit: impl FnMut(Item<'_>) -> Result<ControlFlow<()>, WalkError>,
    ) -> Result<ControlFlow<()>, WalkError> {
        if batch.hart != self.hart {
            return Ok(ControlFlow::Continue(()));
        }
        let first = (batch.first_seq, batch.start_cycle);
        match self.expected {
            None => {
                if visit(Item::Start(batch.start_cycle))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Some(expected) if expected == first => {}
            Some((seq, cycle)) => {
                return Err(
                    StreamError::Gap { expected: seq, found: batch.first_seq, cycle }.into()
                );
            }
        }
        self.static_info.extend_from_slice(&batch.static_info);
        if one_batch(batch, &self.static_info, &mut visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let overflow = StreamError::CycleOverflow { seq: batch.first_seq };
        let next = batch.first_seq.0.checked_add(batch.records.len() as u64);
        self.expected = Some(next.map(Seq).zip(batch.end_cycle()).ok_or(overflow)?);
        Ok(ControlFlow::Continue(()))
    }
}

fn one_batch(
    batch: &Batch,
    static_info: &[StaticInfo],
    visit: &mut impl FnMut(Item<'_>) -> Result<ControlFlow<()>, WalkError>,
) -> Result<ControlFlow<()>, WalkError> {
    let mut cycle = batch.start_cycle;
    let mut events = batch.events.iter().peekable();
    for n in 0..=batch.records.len() {
        while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= n) {
            if visit(Item::Event(cycle, event))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            cycle = cycle.saturating_add(event.idle());
        }
        let Some(record) = batch.records.get(n) else {
            break;
        };
        let seq = Seq(batch.first_seq.0.saturating_add(n as u64));
        cycle = cycle.saturating_add(u64::from(record.commit_delta));
        let inst = record.inst.0;
        let static_info =
            static_info.get(inst as usize).ok_or(StreamError::UndefinedInst { inst, seq })?;
        let retired = Retired {
            hart: batch.hart,
            seq,
            commit: record.at(cycle),
            stages: batch.stages.get(n).map(|stages| stages.at(cycle)),
            saturated: record.residence() == crate::CommitRecord::MAX_RESIDENCE,
            static_info,
        };
        if visit(Item::Record(retired))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
