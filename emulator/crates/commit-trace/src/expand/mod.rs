//! A trace in other tools' formats; README.md says what each holds.

mod csv;
mod konata;
mod o3pipeview;
mod token512;

use std::io::{self, Read, Seek};
use std::ops::ControlFlow;

use crate::walk::{Item, Range, Retired, WalkError, walk};
use crate::{Event, HartId, StaticInfo, TraceReader};

pub use csv::Csv;
pub use konata::Konata;
pub use o3pipeview::O3PipeView;
pub use token512::{RobShape, TOKEN_BYTES, Token512};

/// How an instruction reads.
pub type Disassembler<'a> = dyn Fn(&StaticInfo) -> String + 'a;

/// Registers of an instruction by number, from 1 to 63; 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Registers that the instruction reads.
    pub sources: [u8; 3],
    /// The register that the instruction writes.
    pub destination: u8,
}

/// Which registers an instruction reads and writes.
pub type RegistersOf<'a> = dyn Fn(&StaticInfo) -> Registers + 'a;

/// Receives the records of a range.
pub trait RecordSink {
    /// Takes the next record.
    ///
    /// # Errors
    /// If it cannot be written.
    fn record(&mut self, retired: &Retired<'_>) -> io::Result<()>;
    /// Takes an event between records, after `cycle`.
    ///
    /// # Errors
    /// If it cannot be written.
    fn event(&mut self, _cycle: u64, _event: &Event) -> io::Result<()> {
        Ok(())
    }
    /// True if the sink wants no more records.
    fn is_full(&self) -> bool {
        false
    }
    /// Writes what waits: no record or event follows.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Gives the records of `range` to `sink`, which is finished also if the trace is damaged. Returns what
/// [`walk()`](crate::walk()) returned.
///
/// # Errors
/// If [`walk()`](crate::walk()) fails, or `sink` cannot be finished.
pub fn expand<R: Read + Seek>(
    reader: &mut TraceReader<R>,
    hart: HartId,
    range: &Range,
    sink: &mut dyn RecordSink,
) -> Result<ControlFlow<()>, WalkError> {
    let mut inside = range.from == crate::Position::START;
    let walked = walk(reader, hart, range.from, |item| {
        match item {
            Item::Record(retired) => {
                let reached = |at: crate::Position| at.reached(retired.seq, retired.commit.commit);
                if range.to.is_some_and(reached) {
                    return Ok(ControlFlow::Break(()));
                }
                inside = inside || reached(range.from);
                if inside {
                    sink.record(&retired)?;
                    if sink.is_full() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Item::Event(cycle, event) if inside => sink.event(cycle, event)?,
            Item::Event(..) | Item::Start(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    });
    // A failure to write comes first: it would fail again.
    if !matches!(walked, Err(WalkError::Write(_))) {
        sink.finish()?;
    }
    walked
}

#[cfg(test)]
mod tests;
