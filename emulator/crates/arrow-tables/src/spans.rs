//! The table `spans`.

use std::ops::ControlFlow;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use commit_trace::{
    Batch, Event, HartId, Position, Range, Span, SpanBuilder, SpanSink, State, WalkError,
};

use crate::builders::{DictionaryBuilder, ListBuilder, TakeArray, signed};
use crate::context::Context;
use crate::trace::{Disassembler, TableBuilder};

const STATES: [&str; 5] = ["computing", "stalled", "flushed", "drained", "idle"];

pub(crate) struct Spans {
    builder: SpanBuilder,
    columns: Columns,
}

struct Columns {
    /// First cycle, and the first after it.
    range: (u64, u64),
    at: u32,
    context: Context,
    hart: Vec<u32>,
    state: DictionaryBuilder,
    start: Vec<i64>,
    cycles: Vec<i64>,
    commit: Vec<Option<i64>>,
    insts: ListBuilder,
}

impl Spans {
    /// None if the range is one of records.
    pub(crate) fn new(hart: HartId, range: Range) -> Option<Self> {
        let cycle = |position| match position {
            Position::Cycle(cycle) => Some(cycle),
            Position::Record(_) => None,
        };
        let to = range.to.map_or(Some(u64::MAX), cycle)?;
        Some(Self {
            builder: SpanBuilder::new(),
            columns: Columns {
                range: (cycle(range.from)?, to),
                at: hart.0,
                context: Context::default(),
                hart: Vec::new(),
                state: DictionaryBuilder::of(STATES.map(str::to_owned)),
                start: Vec::new(),
                cycles: Vec::new(),
                commit: Vec::new(),
                insts: ListBuilder::default(),
            },
        })
    }
}

impl SpanSink for Columns {
    fn span(&mut self, span: &Span<'_>) {
        let (from, to) = self.range;
        if span.end() <= from || span.start >= to {
            return;
        }
        self.context.push();
        self.hart.push(self.at);
        self.state.push(match span.state {
            State::Computing => 0,
            State::Stalled => 1,
            State::Flushed => 2,
            State::Drained => 3,
            State::Idle => 4,
        });
        self.start.push(signed(span.start));
        self.cycles.push(signed(span.cycles));
        self.commit.push((span.state != State::Idle).then_some(signed(span.commit)));
        self.insts.push(span.records.iter().map(|record| record.inst.0));
    }

    fn event(&mut self, cycle: u64, event: &Event) {
        self.context.event(cycle, event);
    }
}

impl TableBuilder for Spans {
    fn batch(&mut self, batch: &Batch, _: &Disassembler) -> Result<ControlFlow<()>, WalkError> {
        self.builder.batch(batch, &mut self.columns)?;
        Ok(match self.builder.cycle() >= self.columns.range.1 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    fn rows(&self) -> usize {
        self.columns.hart.len()
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        let columns = &mut self.columns;
        let [pid, tid, process] = columns.context.columns()?;
        Ok(vec![
            columns.hart.rows(),
            pid,
            tid,
            process,
            columns.state.rows()?,
            columns.start.rows(),
            columns.cycles.rows(),
            columns.commit.rows(),
            columns.insts.finish()?,
        ])
    }
}
