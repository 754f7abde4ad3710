//! One line per record.

use std::io;

use serde::Serialize;

use super::{Disassembler, RecordSink};
use crate::{Class, CycleClass, Redirect, Retired};

/// Writes comma-separated values (RFC 4180) with a header line. What is not known is empty.
pub struct Csv<'a, W: io::Write> {
    out: csv::Writer<W>,
    disassemble: &'a Disassembler<'a>,
}

/// The columns, in order.
#[derive(Serialize)]
struct CsvRow {
    record: u64,
    fetch: Option<u64>,
    decode: u64,
    dispatch: u64,
    issue: Option<u64>,
    complete: Option<u64>,
    commit: u64,
    space: u32,
    privilege: u8,
    pc: String,
    raw: String,
    class: Class,
    wait: CycleClass,
    redirect: Redirect,
    first_of_row: bool,
    tea: String,
    instruction: String,
}

impl<'a, W: io::Write> Csv<'a, W> {
    /// Writes to `out`.
    pub fn new(out: W, disassemble: &'a Disassembler<'a>) -> Self {
        Self { out: csv::Writer::from_writer(out), disassemble }
    }
}

impl<W: io::Write> RecordSink for Csv<'_, W> {
    fn record(&mut self, retired: &Retired<'_>) -> io::Result<()> {
        let Retired { seq, commit, stages, static_info, .. } = retired;
        self.out
            .serialize(CsvRow {
                record: seq.0,
                fetch: stages.map(|s| s.fetch),
                decode: commit.decode,
                dispatch: commit.dispatch,
                issue: stages.and_then(|s| s.issue),
                complete: stages.map(|s| s.complete),
                commit: commit.commit,
                space: static_info.space,
                privilege: static_info.privilege,
                pc: format!("{:#x}", static_info.pc),
                raw: format!("{:#x}", static_info.raw),
                class: static_info.class,
                wait: commit.class,
                redirect: commit.redirect,
                first_of_row: commit.first_of_row,
                tea: commit.tea.to_string(),
                instruction: (self.disassemble)(static_info),
            })
            .map_err(|error| match error.into_kind() {
                csv::ErrorKind::Io(error) => error,
                other => io::Error::other(format!("{other:?}")),
            })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
