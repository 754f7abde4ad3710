//! `tipsim tables`, and tables out of traces and reports.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use arrow_tables::{
    ArrowError, FileFormat, Notices, REPORT_TABLES, RecordBatchReader, ReportError, RunColumns,
    Table, one_batch, report_table, tables, with_notices, write_table,
};
use report::RunDescription;
use serde_json::{Value, json};

use crate::cli::{TablesArgs, TablesFormat};
use crate::failure::{BadInput, bad_input, cannot_write, whole};
use crate::host::terminal::cannot_print;

/// A column of a table as documentation has it.
struct ColumnDoc<'a> {
    name: String,
    kind: String,
    unit: &'a str,
    about: &'a str,
}

fn column_docs(table: &'static Table) -> impl Iterator<Item = ColumnDoc<'static>> {
    let own = table.fixed_columns().map(|column| ColumnDoc {
        name: column.name.to_owned(),
        kind: match column.optional {
            true => format!("{} or null", column.column_type.name()),
            false => column.column_type.name().to_owned(),
        },
        unit: column.unit,
        about: column.about,
    });
    let more = table.run_columns.map(|RunColumns { names, unit, about }| ColumnDoc {
        name: format!("({names})"),
        kind: "double or null".to_owned(),
        unit,
        about,
    });
    own.chain(more)
}

/// Prints what the tables hold.
pub(crate) fn print(args: &TablesArgs) -> anyhow::Result<()> {
    let chosen = || tables().filter(|table| args.table.is_none_or(|only| only == *table));
    match args.format {
        TablesFormat::Text => print!("{}", text(chosen())),
        TablesFormat::Markdown => print!("{}", markdown(chosen())),
        TablesFormat::Json => {
            let list: Vec<_> = chosen().map(json).collect();
            println!("{}", serde_json::to_string_pretty(&list)?);
        }
    }
    Ok(())
}

fn text(chosen: impl Iterator<Item = &'static Table>) -> String {
    let mut out = String::new();
    for table in chosen {
        let _ = writeln!(out, "{}: {}", table.name, table.about);
        for column in column_docs(table) {
            let ColumnDoc { name, kind, unit, about } = column;
            let _ = writeln!(out, "  {name:<26} {kind:<30} {unit:<12} {about}");
        }
        out.push('\n');
    }
    out
}

fn json(table: &'static Table) -> Value {
    let columns: Vec<_> = column_docs(table)
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "unit": column.unit,
                "about": column.about,
            })
        })
        .collect();
    json!({"name": table.name, "about": table.about, "columns": columns})
}

fn markdown(chosen: impl Iterator<Item = &'static Table>) -> String {
    let mut out = "\
# Tables for analysts

Traces, samples and reports as tables of [Apache Arrow](https://arrow.apache.org), in files of Apache Parquet (or Arrow's IPC stream), which
DuckDB, polars, pandas and R read:

```
tipsim report out/quickstart --format parquet -o tables                 every table of the report
tipsim report out/quickstart --format parquet --table functions -o functions.parquet
tipsim trace expand out/quickstart/trace.tip --format parquet --table spans -o spans.parquet
tipsim samples out/quickstart/files/perf.data --format parquet -o samples.parquet
```

```
import duckdb
duckdb.sql(\"select function, round(100 * oracle, 1) as percent, round(100 * (lci - oracle), 1) as lci_is_off \"
           \"from 'tables/functions.parquet' where process = 'quickstart' order by cycles desc limit 5\").show()
```

What each column holds is in the files, too, as metadata (`unit`, `about`). Cycles count from reset. Shares go from 0 to 1. The columns of a report's
samplers are as many as the run had. No name needs
quotes in SQL: the column of the sampler `tip@800000` is `tip_800000`. Cycles and counts are signed, so that a difference may be negative. `tipsim tables` prints
this list; `--format markdown` wrote this page.

A table is written as it is read: a trace of any length takes little memory. Of a trace that is cut or damaged, the file holds what comes
before that. Tables without files: [the Python package](python.md).
"
    .to_owned();
    for table in chosen {
        let _ = write!(
            out,
            "\n## {}\n\nA row is {}.\n\n| column | type | unit | what |\n|---|---|---|---|\n",
            table.name, table.about
        );
        for column in column_docs(table) {
            let name = match column.name.starts_with('(') {
                true => column.name,
                false => format!("`{}`", column.name),
            };
            let about = column.about.replace('|', "\\|");
            let _ = writeln!(out, "| {name} | {} | {} | {about} |", column.kind, column.unit);
        }
    }
    out
}

/// Writes a table to a file, which is whole or not there, or to standard output; with what has to be known first of its run.
pub(crate) fn write(
    table: impl RecordBatchReader,
    format: FileFormat,
    output: Option<&Path>,
    notices: &Notices,
) -> anyhow::Result<()> {
    let table = with_notices(table, notices);
    match output {
        Some(path) => {
            let written = whole(path, |file| {
                let mut out = BufWriter::new(file);
                write_table(table, format, &mut out).map_err(io::Error::other)?;
                out.flush()
            });
            written.map_err(|e| cannot_write(path, e))
        }
        None if io::stdout().is_terminal() => {
            let error = "this format is not for terminals: expected -o FILE";
            Err(BadInput(error.into()).into())
        }
        None => match write_table(table, format, io::stdout()) {
            // Whoever reads has seen enough.
            Err(ArrowError::IoError(_, e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(cannot_print(error)),
            Ok(_) => Ok(()),
        },
    }
}

/// Writes one table of a report, or all of them into a folder.
pub(crate) fn report(
    only: Option<&'static Table>,
    report: &Value,
    run: &Value,
    format: FileFormat,
    output: Option<&Path>,
) -> anyhow::Result<()> {
    let described = RunDescription::from(run.clone());
    let [part, sampled] =
        [described.part(), described.sampled_words()].map(|words| words.map(str::to_owned));
    let notices = Notices { part, sampled };
    let made = |table: &'static Table| {
        report_table(table, report, run).map(one_batch).map_err(|e| match e {
            ReportError::Format(e) => BadInput(format!("report.json: {e}")),
            // The run alone says what it was.
            e @ ReportError::File { file: "run.json", .. } => BadInput(e.to_string()),
            e => BadInput(format!("{e}; `tipsim report DIR --rebuild` writes report.json anew")),
        })
    };
    let Some(folder) = output.filter(|_| only.is_none()) else {
        let Some(table) = only else {
            let error = "-o: expected a folder for the tables, or --table NAME for one of them";
            return Err(BadInput(error.into()).into());
        };
        return write(made(table)?, format, output, &notices);
    };
    std::fs::create_dir_all(folder).map_err(|e| bad_input(folder, e))?;
    for table in REPORT_TABLES {
        let path = folder.join(format!("{}.{}", table.name, format.name()));
        write(made(table)?, format, Some(&path), &notices)?;
    }
    Ok(())
}
