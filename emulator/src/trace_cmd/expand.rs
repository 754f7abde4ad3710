//! `tipsim trace expand`: a trace in other tools' formats.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use arrow_tables::{FileFormat, RECORDS, TraceTable, TraceTableError};
use commit_trace::expand::{Csv, Konata, O3PipeView, RobShape, Token512, expand as expand_records};
use commit_trace::{StaticInfo, WalkError};
use serde_json::Value;

use super::{Part, Reader, ended, metadata, open};
use crate::cli::{ExpandArgs, ExpandFormat};
use crate::failure::{BadInput, bad_input};
use crate::names::disassemble;
use crate::tables_cmd;

/// Writes a part of a trace in the format asked for.
pub fn expand(args: &ExpandArgs) -> anyhow::Result<()> {
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
        ExpandFormat::Token512 => {
            Some(shape(&metadata(&reader)).map_err(|e| bad_input(&args.trace, e))?)
        }
        _ => None,
    };
    let out: Box<dyn Write> = match output {
        Some(path) => Box::new(File::create(path).map_err(|e| bad_input(path, e))?),
        None => Box::new(io::stdout().lock()),
    };
    let out = BufWriter::with_capacity(1 << 18, out);
    let read = write(args.format, &mut reader, part, shape, out);
    ended(&args.trace, &reader, output, read)
}

fn write(
    format: ExpandFormat,
    reader: &mut Reader,
    Part { hart, range }: Part,
    shape: Option<RobShape>,
    out: impl Write,
) -> Result<ControlFlow<()>, WalkError> {
    let text = |static_info: &StaticInfo| disassemble(static_info.raw, static_info.pc);
    match format {
        ExpandFormat::Token512 => match shape {
            Some(shape) => Token512::new(out, shape, range).expand(reader, hart),
            None => Ok(ControlFlow::Break(())),
        },
        ExpandFormat::Konata => expand_records(reader, hart, &range, &mut Konata::new(out, &text)?),
        ExpandFormat::O3pipeview => {
            expand_records(reader, hart, &range, &mut O3PipeView::new(out, &text))
        }
        ExpandFormat::Csv => expand_records(reader, hart, &range, &mut Csv::new(out, &text)),
        // Tables are not written record by record.
        ExpandFormat::Parquet | ExpandFormat::Arrow => Ok(ControlFlow::Break(())),
    }
}

/// Writes a table of it.
fn table(
    args: &ExpandArgs,
    reader: Reader,
    Part { hart, range }: Part,
    format: FileFormat,
) -> anyhow::Result<()> {
    let table = args.table.unwrap_or(&RECORDS);
    let mut table = TraceTable::new(table, reader, hart, range, Box::new(disassemble)).map_err(
        |e| match e {
            // It has the trace's name.
            TraceTableError::Walk(error) => BadInput(error.to_string()),
            other => bad_input(&args.trace, other),
        },
    )?;
    tables_cmd::write(table.rows_before_error(), format, args.output.as_deref())?;
    let (reader, read) = table.end();
    ended(&args.trace, &reader, args.output.as_deref(), read)
}

fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(a).is_some() && real(a) == real(b)
}

/// The ROB of the core that the trace says it is of.
fn shape(metadata: &Value) -> Result<RobShape, BadInput> {
    let core = &metadata["core"];
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
