//! One hart's stream, as it goes by.

use commit_trace::{CommitRecord, Detail, Event, StaticInfo};
use sampling_units::pdis::Record;
use sampling_units::{Observed, Outcome, Passed, StaticKind};

use crate::SharedLines;
use crate::counts::{Counts, execution};
use crate::lines::{AccessCycles, Accessor};
use crate::records::{OpenRecord, add_fetch};

/// A static instruction, and what was counted of it.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// What it is; `None` if it was announced to somebody else before.
    pub static_info: Option<StaticInfo>,
    /// What was counted.
    pub counts: Counts,
    kind: StaticKind,
}

/// Counts what leaves one hart's ROB, while the region of interest is open.
#[derive(Debug)]
pub struct Collector {
    hart: usize,
    open: bool,
    /// By number.
    instructions: Vec<Counted>,
    lines: SharedLines,
    /// Of the instruction that left last.
    record: Option<OpenRecord>,
}

impl Collector {
    /// Of a hart, whose region is not open yet.
    pub fn new(hart: usize, lines: SharedLines) -> Self {
        Self {
            hart,
            open: false,
            instructions: Vec::new(),
            lines,
            record: None,
        }
    }

    /// The region is open from now on.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// The region of interest starts, stops or begins anew.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Region(open) => {
                self.close_record(None);
                self.open = *open;
            }
            Event::RegionAnew => {
                self.record = None;
                self.open = true;
                for counted in &mut self.instructions {
                    counted.counts = Counts::default();
                }
                self.lines.with(|lines| lines.clear());
            }
            _ => {}
        }
    }

    fn at(&mut self, inst: usize) -> &mut Counted {
        if inst >= self.instructions.len() {
            self.instructions.resize_with(inst + 1, Counted::default);
        }
        &mut self.instructions[inst]
    }

    /// A static instruction is used for the first time.
    pub fn define(&mut self, static_info: &StaticInfo) {
        let counted = self.at(static_info.id.0 as usize);
        counted.static_info = Some(*static_info);
        counted.kind = StaticKind::of(static_info.raw);
    }

    /// The instruction that left last is followed by that at `target`, if anything follows.
    fn close_record(&mut self, target: Option<u64>) {
        if let Some(record) = self.record.take() {
            let records = &mut self.instructions[record.inst].counts.records;
            record.close(target, records);
        }
    }

    /// What the unit that samples instructions would record of one that left in cycle `commit`.
    fn record(&mut self, record: &CommitRecord, detail: &Detail, commit: u64) {
        let inst = record.inst.0 as usize;
        let counted = &self.instructions[inst];
        let Some(info) = counted.static_info else {
            return self.close_record(None);
        };
        let passed = &Passed {
            pc: info.pc,
            kind: counted.kind,
            outcome: Outcome::of(record),
            cycle: commit,
            cycles: record.commit_delta.into(),
        };
        self.close_record(Some(info.pc));
        let observed = &Observed { passed, detail };
        if detail.packet.delivered != 0 {
            let records = &mut self.instructions[inst].counts.records;
            add_fetch(records, Record::of_packet(observed, false));
        }
        let (record, latencies) = Record::of(observed, false);
        let transfers = passed.kind.kind().is_some() && passed.outcome.retires();
        self.record = Some(OpenRecord {
            inst,
            record,
            latencies,
            following: transfers.then(|| info.pc.wrapping_add(info.len.into())),
        });
    }

    /// Instructions left the ROB, the first of them counted from cycle `from`; with the details of each.
    pub fn commits(&mut self, from: u64, records: &[CommitRecord], details: &[Detail]) {
        if !self.open {
            return;
        }
        let mut before = from;
        for (record, detail) in records.iter().zip(details) {
            let commit = before + u64::from(record.commit_delta);
            let counts = &mut self.at(record.inst.0 as usize).counts;
            counts.add(record, detail, before, commit);
            self.record(record, detail, commit);
            before = commit;
        }
        self.lines.with(|lines| {
            let mut commit = from;
            for (record, detail) in records.iter().zip(details) {
                commit += u64::from(record.commit_delta);
                if record.is_trap() {
                    continue;
                }
                let known = &self.instructions[record.inst.0 as usize].static_info;
                let by = Accessor {
                    hart: self.hart,
                    inst: record.inst,
                    space: known.map_or(0, |info| info.space),
                };
                let cycles = AccessCycles {
                    execution: execution(detail),
                    total: commit.saturating_sub(detail.decode),
                };
                lines.access(by, &detail.access, cycles);
            }
        });
    }

    /// What was counted, by instruction number.
    pub fn finish(mut self) -> Vec<Counted> {
        self.close_record(None);
        self.instructions
    }
}
