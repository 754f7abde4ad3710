//! `tipsim trace`.

mod dump;
mod evaluate;
mod expand;
mod info;
mod verify;

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;

use commit_trace::{
    CLOCK_HZ, HartId, Position, Range, TraceEnd, TraceError, TraceReader, WalkError,
};
use serde_json::Value;

use crate::cli::{PartArgs, TraceCommand};
use crate::failure::{BadInput, bad_input};
use crate::report_cmd;
use crate::results::Results;
use crate::terminal::written;

pub use evaluate::{fingerprint, profiled, replay};

/// A trace file.
pub type Reader = TraceReader<BufReader<File>>;

/// Runs one of the trace commands; the exit status says whether the trace has a whole run.
pub fn trace(command: &TraceCommand) -> anyhow::Result<u8> {
    match command {
        TraceCommand::Info(args) => info::info(args),
        TraceCommand::Dump(args) => dump::dump(args),
        TraceCommand::Verify(args) => verify::verify(args),
        TraceCommand::Evaluate(args) => evaluate::evaluate(args),
        TraceCommand::Expand(args) => expand::expand(args),
    }
}

/// Opens a trace.
pub fn open(path: &Path) -> anyhow::Result<Reader> {
    Results::check(path)?;
    // Something else, such as a pipe, cannot be read from its end.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(bad_input(path, "expected a file, found something else").into());
    }
    Ok(Reader::open(path).map_err(|e| BadInput(e.to_string()))?)
}

/// The exit status of what shows a trace, and a word on standard error of one that does not have a whole run.
fn status(path: &Path, end: TraceEnd) -> u8 {
    let part = (end != TraceEnd::Complete).then(|| format!("the trace is {end}"));
    report_cmd::status(path, part.as_deref())
}

/// What the trace says of the run.
pub fn metadata(reader: &Reader) -> Value {
    serde_json::from_str(reader.metadata()).unwrap_or(Value::Null)
}

/// Whether there is such a hart among so many.
pub fn is_hart(hart: u32, harts: u32) -> Result<(), BadInput> {
    match harts {
        _ if hart < harts => Ok(()),
        1 => Err(BadInput(format!(
            "--hart: expected 0, the only hart, found {hart}"
        ))),
        _ => Err(BadInput(format!(
            "--hart: expected 0 to {}, found {hart}: there are {harts} harts",
            harts - 1
        ))),
    }
}

/// Whether a trace is of such a hart, too. One of which nothing was recorded is as good as none.
fn check_hart(path: &Path, reader: &Reader, hart: u32) -> Result<(), BadInput> {
    let recorded = reader
        .chunks()
        .iter()
        .map(|chunk| chunk.hart.0.saturating_add(1));
    // A trace of nothing at all is empty for whatever hart.
    let Some(recorded) = recorded.max() else {
        return Ok(());
    };
    is_hart(hart, recorded).map_err(|e| bad_input(path, e))
}

/// A part of a trace.
struct Part {
    hart: HartId,
    range: Range,
}

impl PartArgs {
    fn of(&self, path: &Path, reader: &Reader) -> Result<Part, BadInput> {
        check_hart(path, reader, self.hart)?;
        let clock_hz = metadata(reader)["clock_hz"].as_u64().unwrap_or(CLOCK_HZ);
        Ok(Part {
            hart: HartId(self.hart),
            range: Range {
                from: self
                    .from
                    .map_or(Position::START, |at| at.position(clock_hz)),
                to: self.to.map(|at| at.position(clock_hz)),
            },
        })
    }
}

/// What became of reading a trace, of which everything up to the first error was used: a cut one is worth a
/// warning, a damaged one is an error, and a standard output (`output` is `None`) that nobody reads any longer is neither.
fn ended(
    path: &Path,
    reader: &Reader,
    output: Option<&Path>,
    read: Result<ControlFlow<()>, WalkError>,
) -> anyhow::Result<u8> {
    match read {
        Ok(ControlFlow::Break(())) => {}
        Ok(ControlFlow::Continue(())) => return Ok(status(path, reader.end())),
        Err(WalkError::Write(e)) => return written(output, Err(e)).map(|()| 0),
        Err(WalkError::Trace(e @ TraceError::OutOfRange { .. })) => {
            return Err(BadInput(format!("{e}, which is {}", reader.end())).into());
        }
        Err(WalkError::Trace(e)) => return Err(BadInput(e.to_string()).into()),
        Err(e) => return Err(bad_input(path, e).into()),
    }
    Ok(0)
}
