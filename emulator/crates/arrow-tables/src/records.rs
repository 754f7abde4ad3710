//! The table `records`.

use std::ops::ControlFlow;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use commit_trace::{
    Batch, Class, CycleClass, HartId, Item, Position, Range, Redirect, Retired, Walk, WalkError,
};

use crate::builders::{DictionaryBuilder, NumberedDictionary, TakeArray, signed};
use crate::context::Context;
use crate::trace::{Disassembler, TableBuilder};

pub(crate) struct Records {
    walk: Walk,
    columns: Columns,
}

struct Columns {
    range: Range,
    inside: bool,
    context: Context,
    hart: Vec<u32>,
    record: Vec<i64>,
    fetch: Vec<Option<i64>>,
    decode: Vec<i64>,
    dispatch: Vec<i64>,
    issue: Vec<Option<i64>>,
    complete: Vec<Option<i64>>,
    commit: Vec<i64>,
    inst: Vec<u32>,
    space: Vec<u32>,
    privilege: Vec<u8>,
    pc: Vec<u64>,
    class: DictionaryBuilder,
    wait: DictionaryBuilder,
    redirect: DictionaryBuilder,
    first_of_row: Vec<bool>,
    tea: NumberedDictionary,
    instruction: NumberedDictionary,
}

impl Records {
    pub(crate) fn new(hart: HartId, range: Range) -> Self {
        Self { walk: Walk::new(hart), columns: Columns::new(range) }
    }
}

impl Columns {
    fn new(range: Range) -> Self {
        Self {
            range,
            inside: range.from == Position::START,
            context: Context::default(),
            hart: Vec::new(),
            record: Vec::new(),
            fetch: Vec::new(),
            decode: Vec::new(),
            dispatch: Vec::new(),
            issue: Vec::new(),
            complete: Vec::new(),
            commit: Vec::new(),
            inst: Vec::new(),
            space: Vec::new(),
            privilege: Vec::new(),
            pc: Vec::new(),
            class: DictionaryBuilder::of(Class::ALL.map(|class| format!("{class:?}"))),
            wait: DictionaryBuilder::of(CycleClass::ALL.map(|class| format!("{class:?}"))),
            redirect: DictionaryBuilder::of(Redirect::ALL.map(|redirect| format!("{redirect:?}"))),
            first_of_row: Vec::new(),
            tea: NumberedDictionary::default(),
            instruction: NumberedDictionary::default(),
        }
    }

    fn push(&mut self, retired: &Retired<'_>, disassemble: &Disassembler) {
        let Retired { hart, seq, commit, stages, static_info, .. } = retired;
        self.context.push();
        self.hart.push(hart.0);
        self.record.push(signed(seq.0));
        self.fetch.push(stages.map(|stages| signed(stages.fetch)));
        self.decode.push(signed(commit.decode));
        self.dispatch.push(signed(commit.dispatch));
        self.issue.push(stages.and_then(|stages| stages.issue.map(signed)));
        self.complete.push(stages.map(|stages| signed(stages.complete)));
        self.commit.push(signed(commit.commit));
        self.inst.push(static_info.id.0);
        self.space.push(static_info.space);
        self.privilege.push(static_info.privilege);
        self.pc.push(static_info.pc);
        self.class.push(static_info.class as usize);
        self.wait.push(commit.class as usize);
        self.redirect.push(commit.redirect as usize);
        self.first_of_row.push(commit.first_of_row);
        self.tea.push(commit.tea.0.into(), || commit.tea.to_string());
        self.instruction.push(static_info.id.0, || disassemble(static_info.raw, static_info.pc));
    }
}

impl TableBuilder for Records {
    fn batch(
        &mut self,
        batch: &Batch,
        disassemble: &Disassembler,
    ) -> Result<ControlFlow<()>, WalkError> {
        let columns = &mut self.columns;
        self.walk.batch(batch, |item| {
            match item {
                Item::Record(retired) => {
                    let reached = |at: Position| at.reached(retired.seq, retired.commit.commit);
                    if columns.range.to.is_some_and(reached) {
                        return Ok(ControlFlow::Break(()));
                    }
                    columns.inside = columns.inside || reached(columns.range.from);
                    if columns.inside {
                        columns.push(&retired, disassemble);
                    }
                }
                Item::Event(cycle, event) => columns.context.event(cycle, event),
                Item::Start(_) => {}
            }
            Ok(ControlFlow::Continue(()))
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
            columns.record.rows(),
            pid,
            tid,
            process,
            columns.fetch.rows(),
            columns.decode.rows(),
            columns.dispatch.rows(),
            columns.issue.rows(),
            columns.complete.rows(),
            columns.commit.rows(),
            columns.inst.rows(),
            columns.space.rows(),
            columns.privilege.rows(),
            columns.pc.rows(),
            columns.class.rows()?,
            columns.wait.rows()?,
            columns.redirect.rows()?,
            columns.first_of_row.rows(),
            columns.tea.finish()?,
            columns.instruction.finish()?,
        ])
    }
}
