//! One hart's stream, as it goes by.

use commit_trace::{CommitRecord, Detail, Event, StaticInfo};

use crate::SharedLines;
use crate::counts::{Counts, execution};

/// A static instruction, and what was counted of it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// What it is; `None` if it was announced to somebody else before.
    pub static_info: Option<StaticInfo>,
    /// What was counted.
    pub counts: Counts,
}

/// Counts what leaves one hart's ROB, while the region of interest is open.
#[derive(Debug)]
pub struct Collector {
    hart: usize,
    open: bool,
    /// By number.
    instructions: Vec<Observed>,
    lines: SharedLines,
    /// Those of the records that come next.
    details: Vec<Detail>,
}

impl Collector {
    /// Of a hart, whose region is not open yet.
    pub fn new(hart: usize, lines: SharedLines) -> Self {
        Self {
            hart,
            open: false,
            instructions: Vec::new(),
            lines,
            details: Vec::new(),
        }
    }

    /// The region is open from now on.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// The region of interest starts, stops or begins anew.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Region(open) => self.open = *open,
            Event::RegionAnew => {
                self.open = true;
                for observed in &mut self.instructions {
                    observed.counts = Counts::default();
                }
                self.lines.with(|lines| lines.clear());
            }
            _ => {}
        }
    }

    fn at(&mut self, inst: usize) -> &mut Observed {
        if inst >= self.instructions.len() {
            self.instructions.resize_with(inst + 1, Observed::default);
        }
        &mut self.instructions[inst]
    }

    /// A static instruction is used for the first time.
    pub fn define(&mut self, static_info: &StaticInfo) {
        self.at(static_info.id.0 as usize).static_info = Some(*static_info);
    }

    /// The details of the records that come next.
    pub fn details(&mut self, details: &[Detail]) {
        self.details.clear();
        if self.open {
            self.details.extend_from_slice(details);
        }
    }

    /// Instructions left the ROB, the first of them counted from cycle `from`.
    pub fn commits(&mut self, from: u64, records: &[CommitRecord]) {
        let details = std::mem::take(&mut self.details);
        if details.is_empty() {
            return;
        }
        assert_eq!(details.len(), records.len(), "one detail for each record");
        let mut before = from;
        for (record, detail) in records.iter().zip(&details) {
            let commit = before + u64::from(record.commit_delta);
            let counts = &mut self.at(record.inst.0 as usize).counts;
            counts.add(record, detail, before, commit);
            before = commit;
        }
        let hart = self.hart;
        self.lines.with(|lines| {
            let some = records.iter().zip(&details);
            for (record, detail) in some.filter(|(record, _)| !record.is_trap()) {
                lines.access(hart, record.inst, &detail.access, execution(detail));
            }
        });
        self.details = details;
        self.details.clear();
    }

    /// What was counted, by instruction number.
    pub fn finish(self) -> Vec<Observed> {
        self.instructions
    }
}
