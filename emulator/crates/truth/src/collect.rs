//! One hart's stream, as it goes by.

use commit_trace::{CommitRecord, Detail, Event, StaticInfo};
use profile::Process;
use sampling_units::pdis::Record;
use sampling_units::{Observed, Outcome, Passed};

use crate::SharedLines;
use crate::counts::execution;
use crate::lines::{AccessCycles, Accessor};
use crate::records::{OpenRecord, add_fetch};
use crate::rows::{HartCounts, Rows};

/// Counts what leaves one hart's ROB, while the region of interest is open.
#[derive(Debug)]
pub struct Collector {
    hart: usize,
    open: bool,
    rows: Rows,
    lines: SharedLines,
    /// Record of the instruction that left the ROB last, until the next one is known.
    record: Option<OpenRecord>,
}

impl Collector {
    /// Returns the collector of hart `hart`, whose region of interest is not open yet.
    pub fn new(hart: usize, lines: SharedLines) -> Self {
        Self {
            hart,
            open: false,
            rows: Rows::new(lines.with(|lines| lines.harts())),
            lines,
            record: None,
        }
    }

    /// Opens the region of interest.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Starts, stops or clears the region of interest as the event says, and learns of processes.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Region(open) => {
                self.close_record(None);
                self.open = *open;
            }
            Event::RegionAnew => {
                self.record = None;
                self.open = true;
                self.rows.clear();
                self.lines.with(|lines| lines.clear());
            }
            Event::SideBand { kind, bytes } => self.rows.side_band(*kind, bytes),
            _ => {}
        }
    }

    /// Learns of a static instruction before its first use.
    pub fn define(&mut self, static_info: &StaticInfo) {
        self.rows.define(static_info);
    }

    /// Ends the record of the instruction that left last; the instruction at `target` follows, if one does.
    fn close_record(&mut self, target: Option<u64>) {
        if let Some(record) = self.record.take() {
            let records = &mut self.rows.counts_before(record.process, record.inst).records;
            record.close(target, records);
        }
    }

    /// Adds what the unit that samples instructions would record of an instruction that left in cycle `commit`.
    fn record(&mut self, record: &CommitRecord, detail: &Detail, commit: u64) {
        let inst = record.inst;
        let Some((&info, kind)) = self.rows.info(inst) else {
            return self.close_record(None);
        };
        let passed = &Passed {
            pc: info.pc,
            kind,
            outcome: Outcome::of(record),
            cycle: commit,
            cycles: record.commit_delta.into(),
        };
        self.close_record(Some(info.pc));
        let observed = &Observed { passed, detail };
        if detail.packet.delivered != 0 {
            let records = &mut self.rows.counts(inst).records;
            add_fetch(records, Record::of_packet(observed, false));
        }
        let (record, latencies) = Record::of(observed, false);
        let transfers = passed.kind.kind().is_some() && passed.outcome.retires();
        self.record = Some(OpenRecord {
            inst,
            process: self.rows.process(inst),
            record,
            latencies,
            following: transfers.then(|| info.pc.wrapping_add(info.len.into())),
        });
    }

    /// Counts instructions that left the ROB, with the details of each. The first record's `commit_delta` counts from
    /// cycle `from`.
    pub fn commits(&mut self, from: u64, records: &[CommitRecord], details: &[Detail]) {
        if !self.open {
            return;
        }
        let mut before = from;
        for (record, detail) in records.iter().zip(details) {
            let commit = before + u64::from(record.commit_delta);
            let counts = self.rows.counts(record.inst);
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
                let by = Accessor {
                    hart: self.hart,
                    inst: record.inst,
                    process: self.rows.process(record.inst),
                };
                let cycles = AccessCycles {
                    execution: execution(detail),
                    total: commit.saturating_sub(detail.decode),
                };
                lines.access(by, &detail.access, cycles);
            }
        });
    }

    /// Returns what was counted. Processes that `keep` does not ask for are told as one with the others of their program.
    pub fn finish(mut self, keep: impl Fn(&Process) -> bool) -> HartCounts {
        self.close_record(None);
        self.rows.finish(keep)
    }

    /// Counts of user code that are held, of at most `limit`.
    #[cfg(test)]
    pub(crate) fn held(&mut self, limit: usize) -> usize {
        self.rows.set_limit(limit);
        self.rows.held()
    }
}
