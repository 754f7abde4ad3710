//! `tipsim trace`.

mod dump;
mod evaluate;
mod expand;
mod gaps;
mod info;
mod labels;
mod verify;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;

use ::report::RunDescription;
use commit_trace::expand::{RecordSink, expand as expand_records};
use commit_trace::{
    HartId, Position, Range, Retired, Seq, TraceEnd, TraceError, TraceReader, WalkError,
};
use serde_json::Value;

use crate::cli::{Address, PartArgs, TraceCommand};
use crate::commands::report;
use crate::failure::{BadInput, bad_input};
use crate::host::terminal::written;
use crate::run_folder::Results;
use crate::run_folder::trace_metadata::TraceMetadata;
use labels::Labels;

pub(crate) use evaluate::{fingerprint, profiled, replay};

/// A trace file.
pub(crate) type Reader = TraceReader<BufReader<File>>;

/// Runs one of the trace commands; the exit status says whether the trace has a whole run.
pub(crate) fn trace(command: &TraceCommand) -> anyhow::Result<u8> {
    match command {
        TraceCommand::Info(args) => info::info(args),
        TraceCommand::Dump(args) => dump::dump(args),
        TraceCommand::Verify(args) => verify::verify(args),
        TraceCommand::Evaluate(args) => evaluate::evaluate(args),
        TraceCommand::Expand(args) => expand::expand(args),
    }
}

/// Opens a trace.
pub(crate) fn open(path: &Path) -> anyhow::Result<Reader> {
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
    report::status(path, part.as_deref())
}

/// Returns what the trace says of the run, as it is. Traces of other writers may say anything.
pub(crate) fn raw_metadata(reader: &Reader) -> Value {
    serde_json::from_str(reader.metadata()).unwrap_or(Value::Null)
}

/// Returns what reports need of what the trace says of the run.
pub(crate) fn run_description(reader: &Reader) -> RunDescription {
    raw_metadata(reader).into()
}

/// Returns whether a trace has units of a sampled run alone.
pub(crate) fn is_sampled(reader: &Reader) -> bool {
    run_description(reader).sampled_words().is_some()
}

/// Returns what the trace at `path` says of the run.
///
/// # Errors
/// If a key has another type than the schema says.
pub(crate) fn metadata(path: &Path, reader: &Reader) -> Result<TraceMetadata, BadInput> {
    match raw_metadata(reader) {
        value @ Value::Object(_) => {
            serde_json::from_value(value).map_err(|e| bad_input(path, format!("metadata: {e}")))
        }
        _ => Ok(TraceMetadata::default()),
    }
}

/// Checks that there is hart `hart` in a machine of `harts` harts.
pub(crate) fn is_hart(hart: u32, harts: u32) -> Result<(), BadInput> {
    match harts {
        _ if hart < harts => Ok(()),
        1 => Err(BadInput(format!("--hart: expected 0, the only hart, found {hart}"))),
        _ => Err(BadInput(format!(
            "--hart: expected 0 to {}, found {hart}: there are {harts} harts",
            harts - 1
        ))),
    }
}

/// Checks that a trace is of hart `hart`, too. A hart of which nothing was recorded is as good as none.
fn check_hart(path: &Path, reader: &Reader, hart: u32) -> Result<(), BadInput> {
    let recorded = reader.chunks().iter().map(|chunk| chunk.hart.0.saturating_add(1));
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
        let clock_hz = metadata(path, reader)?.clock_hz;
        let from = self.from.map_or(Position::START, |at| at.position(clock_hz));
        let to = self.to.map(|at| at.position(clock_hz));
        let is_backwards = match (from, to) {
            (Position::Record(from), Some(Position::Record(to))) => from > to,
            (Position::Cycle(from), Some(Position::Cycle(to))) => from > to,
            _ => false,
        };
        if is_backwards {
            let expected = "--to: expected a place that is not before --from";
            return Err(BadInput(expected.to_owned()));
        }
        let (hart, range) = (HartId(self.hart), Range { from, to });
        let first = match (&self.function, self.pc) {
            (Some(function), _) => {
                let pcs = Labels::beside(path)?.of_function(function)?;
                first_record(path, hart, &range, &pcs)?.ok_or_else(|| {
                    BadInput(format!("--function {function}: it is not executed there"))
                })?
            }
            (None, Some(Address(pc))) => {
                let found = first_record(path, hart, &range, &BTreeSet::from([pc]))?;
                found.ok_or_else(|| {
                    BadInput(format!("--pc {pc:#x}: no instruction there is executed"))
                })?
            }
            (None, None) => return Ok(Part { hart, range }),
        };
        let to = to.unwrap_or(Position::Record(Seq(first.0.saturating_add(PART_RECORDS))));
        let from = Position::Record(first);
        let range = Range { from, to: Some(to) };
        Ok(Part { hart, range })
    }
}

/// Records of a part that begins at a function or address, unless told.
const PART_RECORDS: u64 = 1000;

/// The first record in a range of an instruction at one of these addresses.
fn first_record(
    path: &Path,
    hart: HartId,
    range: &Range,
    pcs: &BTreeSet<u64>,
) -> Result<Option<Seq>, BadInput> {
    struct FirstExecution<'a> {
        pcs: &'a BTreeSet<u64>,
        found: Option<Seq>,
    }
    impl RecordSink for FirstExecution<'_> {
        fn record(&mut self, retired: &Retired<'_>) -> std::io::Result<()> {
            if self.pcs.contains(&retired.static_info.pc) {
                self.found = Some(retired.seq);
            }
            Ok(())
        }

        fn is_full(&self) -> bool {
            self.found.is_some()
        }

        fn finish(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut reader = Reader::open(path).map_err(|e| BadInput(e.to_string()))?;
    let mut first = FirstExecution { pcs, found: None };
    match expand_records(&mut reader, hart, range, &mut first) {
        Ok(_) => Ok(first.found),
        // If the trace is damaged, what comes before the damage can be shown.
        Err(_) if first.found.is_some() => Ok(first.found),
        Err(e) => Err(BadInput(e.to_string())),
    }
}

/// Returns the outcome of reading a trace, of which everything up to the first error was used: a cut trace is worth a
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
