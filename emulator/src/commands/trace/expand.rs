//! `tipsim trace expand`: a trace in other tools' formats.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use arrow_tables::{FileFormat, Notices, RECORDS, TraceTable, TraceTableError};
use commit_trace::expand::{
    Csv, Konata, O3PipeView, Registers, RobShape, Token512, expand as expand_records,
};
use commit_trace::{StaticInfo, TraceEnd, WalkError};
use critical_path::Inst;
use serde_json::Value;

use super::labels::Labels;
use super::{Part, Reader, ended, metadata, open, run_description};
use crate::cli::{ExpandArgs, ExpandFormat};
use crate::commands::tables;
use crate::failure::{BadInput, bad_input, cannot_write, whole};
use crate::symbol_sources::names::disassemble;

/// Writes a part of a trace in the format asked for.
pub(super) fn expand(args: &ExpandArgs) -> anyhow::Result<u8> {
    let mut reader = open(&args.trace)?;
    let part = args.part.of(&args.trace, &reader)?;
    let output = args.output.as_deref();
    if let Some(path) = output.filter(|path| same_file(path, &args.trace)) {
        return Err(bad_input(path, "the output is the trace itself").into());
    }
    let as_table = match args.format {
        ExpandFormat::Parquet => Some(FileFormat::Parquet),
        ExpandFormat::Arrow => Some(FileFormat::Arrow),
        _ => None,
    };
    if let Some(format) = as_table {
        return table(args, reader, part, format);
    }
    if args.table.is_some() {
        return Err(BadInput("--table: expected --format parquet or arrow".into()).into());
    }
    let shape = match args.format {
        ExpandFormat::Token512 => Some(
            shape(&metadata(&args.trace, &reader)?.core).map_err(|e| bad_input(&args.trace, e))?,
        ),
        _ => None,
    };
    // Without names beside the trace, the view has none.
    let labels = Labels::beside(&args.trace).unwrap_or_default();
    let read = match output {
        None => {
            let out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
            write(args.format, &mut reader, part, shape, &labels, out)
        }
        Some(path) => {
            let mut read = Ok(ControlFlow::Continue(()));
            let written = whole(path, |file| {
                let out = BufWriter::with_capacity(1 << 18, file);
                read = match write(args.format, &mut reader, part, shape, &labels, out) {
                    Err(WalkError::Write(error)) => return Err(error),
                    // If the trace is damaged, the file has what comes before the damage.
                    read => read,
                };
                Ok(())
            });
            written.map_err(|e| cannot_write(path, e))?;
            read
        }
    };
    ended(&args.trace, &reader, output, read)
}

fn write(
    format: ExpandFormat,
    reader: &mut Reader,
    Part { hart, range }: Part,
    shape: Option<RobShape>,
    labels: &Labels,
    out: impl Write,
) -> Result<ControlFlow<()>, WalkError> {
    let text = |static_info: &StaticInfo| disassemble(static_info.raw, static_info.pc);
    let named = |static_info: &StaticInfo| match labels.label(static_info.pc) {
        Some(label) => format!("{}  <{label}>", text(static_info)),
        None => text(static_info),
    };
    match format {
        ExpandFormat::Token512 => match shape {
            Some(shape) => Token512::new(out, shape, range).expand(reader, hart),
            None => Ok(ControlFlow::Break(())),
        },
        ExpandFormat::Konata => {
            let mut konata = Konata::new(out, &named, &registers)?;
            expand_records(reader, hart, &range, &mut konata)
        }
        ExpandFormat::O3pipeview => {
            expand_records(reader, hart, &range, &mut O3PipeView::new(out, &text))
        }
        ExpandFormat::Csv => expand_records(reader, hart, &range, &mut Csv::new(out, &text)),
        // Tables are not written record by record.
        ExpandFormat::Parquet | ExpandFormat::Arrow => Ok(ControlFlow::Break(())),
    }
}

/// The registers between which a report's pipeline view draws dependences.
fn registers(static_info: &StaticInfo) -> Registers {
    let inst = Inst::new(static_info);
    Registers { sources: inst.sources, destination: inst.destination }
}

/// Writes a table of a part of the trace.
fn table(
    args: &ExpandArgs,
    reader: Reader,
    Part { hart, range }: Part,
    format: FileFormat,
) -> anyhow::Result<u8> {
    let reader_end = reader.end();
    let sampled = run_description(&reader).sampled_words().map(str::to_owned);
    let table = args.table.unwrap_or(&RECORDS);
    let mut table = TraceTable::new(table, reader, hart, range, Box::new(disassemble)).map_err(
        |e| match e {
            // The error of a walk has the trace's name already.
            TraceTableError::Walk(error) => BadInput(error.to_string()),
            other => bad_input(&args.trace, other),
        },
    )?;
    let part = (reader_end != TraceEnd::Complete).then(|| format!("the trace is {reader_end}"));
    let notices = Notices { part, sampled };
    let rows = table.rows_before_error();
    tables::write(rows, format, args.output.as_deref(), &notices)?;
    let (reader, read) = table.end();
    ended(&args.trace, &reader, args.output.as_deref(), read)
}

fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(a).is_some() && real(a) == real(b)
}

/// Returns the shape of the ROB of the core that the trace says it is of.
fn shape(core: &Value) -> Result<RobShape, BadInput> {
    let (entries, width) = (&core["rob"]["entries"], &core["decode"]["width"]);
    entries
        .as_u64()
        .zip(width.as_u64())
        .and_then(|(entries, width)| RobShape::new(entries, width))
        .ok_or_else(|| {
            BadInput(format!(
                "metadata: expected a core whose ROB rows hold 1 to 5 instructions, as a token does; found \
                 rob.entries {entries}, decode.width {width}"
            ))
        })
}
