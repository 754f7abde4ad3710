//! The table `static_instructions`.

use std::ops::ControlFlow;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use commit_trace::{Batch, Class, HartId, WalkError};

use crate::builders::{DictionaryBuilder, NumberedDictionary, TakeArray};
use crate::trace::{Disassembler, TableBuilder};

pub(crate) struct StaticInstructions {
    at: u32,
    hart: Vec<u32>,
    inst: Vec<u32>,
    space: Vec<u32>,
    pc: Vec<u64>,
    raw: Vec<u32>,
    length: Vec<u8>,
    privilege: Vec<u8>,
    class: DictionaryBuilder,
    target: Vec<Option<u64>>,
    instruction: NumberedDictionary,
}

impl StaticInstructions {
    pub(crate) fn new(hart: HartId) -> Self {
        Self {
            at: hart.0,
            hart: Vec::new(),
            inst: Vec::new(),
            space: Vec::new(),
            pc: Vec::new(),
            raw: Vec::new(),
            length: Vec::new(),
            privilege: Vec::new(),
            class: DictionaryBuilder::of(Class::ALL.map(|class| format!("{class:?}"))),
            target: Vec::new(),
            instruction: NumberedDictionary::default(),
        }
    }
}

impl TableBuilder for StaticInstructions {
    fn batch(
        &mut self,
        batch: &Batch,
        disassemble: &Disassembler,
    ) -> Result<ControlFlow<()>, WalkError> {
        for info in &batch.static_info {
            self.hart.push(self.at);
            self.inst.push(info.id.0);
            self.space.push(info.space);
            self.pc.push(info.pc);
            self.raw.push(info.raw);
            self.length.push(info.len);
            self.privilege.push(info.privilege);
            self.class.push(info.class as usize);
            self.target.push(info.target);
            self.instruction.push(info.id.0, || disassemble(info.raw, info.pc));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn rows(&self) -> usize {
        self.hart.len()
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        Ok(vec![
            self.hart.rows(),
            self.inst.rows(),
            self.space.rows(),
            self.pc.rows(),
            self.raw.rows(),
            self.length.rows(),
            self.privilege.rows(),
            self.class.rows()?,
            self.target.rows(),
            self.instruction.finish()?,
        ])
    }
}
