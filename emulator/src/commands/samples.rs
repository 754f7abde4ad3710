//! `tipsim samples`: the samples of a perf.data file, one a line.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use arrow_tables::{FileFormat, JsonRow, Notices, SAMPLES, batches_of_rows};
use guest_samples::{Sample, SampleFile};
use report::{printable, printable_json};
use serde_json::Value;
use symbols::{Place, Symbols};

use crate::cli::{SamplesArgs, SamplesFormat};
use crate::commands::tables;
use crate::failure::{bad_input, cannot_write, whole};
use crate::host::terminal::written;
use crate::run_folder::{GUEST_FILES, RUN, Results};
use crate::symbol_sources::names::{SymbolPaths, recorded};

/// Addresses from here up are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// A sample's value in a column.
enum Cell {
    /// The sample has no value in the column.
    None,
    /// A time, in nanoseconds.
    Time(u64),
    Text(String),
    Number(u64),
    /// An address.
    Address(u64),
    Flag(bool),
}

/// Writes all samples of a file in the format asked for.
pub(crate) fn samples(args: &SamplesArgs) -> anyhow::Result<()> {
    let file = SampleFile::read(&args.file).map_err(|e| bad_input(&args.file, e))?;
    if let Some(missing) = args.debug_dir.iter().find(|dir| !dir.is_dir()) {
        return Err(bad_input(missing, "--debug-dir: expected a folder").into());
    }
    if let Some(kernel) = &args.kernel {
        File::open(kernel).map_err(|e| bad_input(kernel, format!("--kernel: {e}")))?;
    }
    let symbols = symbolize(args, &file)?;
    let as_table = match args.format {
        SamplesFormat::Parquet => Some(FileFormat::Parquet),
        SamplesFormat::Arrow => Some(FileFormat::Arrow),
        SamplesFormat::Csv | SamplesFormat::Json => None,
    };
    let result = match (as_table, &args.output) {
        (Some(format), output) => {
            let rows = (0..file.samples.len()).map(|at| row(cells(&file, &symbols, at)));
            let table = batches_of_rows(&SAMPLES, rows);
            tables::write(table, format, output.as_deref(), &Notices::default())?;
            Ok(())
        }
        (None, Some(path)) => {
            let write = |out: &mut File| write(args.format, &file, &symbols, BufWriter::new(out));
            whole(path, write).map_err(|e| cannot_write(path, e))?;
            Ok(())
        }
        (None, None) => write(args.format, &file, &symbols, BufWriter::new(io::stdout().lock())),
    };
    written(args.output.as_deref(), result)?;
    if file.malformed > 0 {
        let path = args.file.display();
        eprintln!("tipsim: warning: {path}: {} sample records could not be read", file.malformed);
    }
    if file.aux_gaps > 0 {
        let path = args.file.display();
        eprintln!(
            "tipsim: warning: {path}: AUX data were lost {} times; use a longer period, or a larger area (perf record -m ,SIZE)",
            file.aux_gaps
        );
    }
    Ok(())
}

/// Names the instructions of all samples, in their order.
fn symbolize(args: &SamplesArgs, file: &SampleFile) -> anyhow::Result<Symbols> {
    // If a guest left the file, the run of that guest knows where the symbols are.
    let file_path = std::path::absolute(&args.file).map_err(|e| bad_input(&args.file, e))?;
    let folder = file_path.ancestors().skip(1);
    let mut folder = folder.skip_while(|folder| !folder.ends_with(GUEST_FILES));
    let run = folder.nth(1).and_then(|folder| Results::open(folder).ok());
    let mut paths = match run.filter(|run| run.has(RUN)) {
        Some(run) => recorded(&run)?.with_guest_files(run.guest_files()),
        None => SymbolPaths::default(),
    };
    paths.roots.splice(0..0, args.debug_dir.iter().cloned());
    if let Some(kernel) = &args.kernel {
        paths.kernel = Some(kernel.clone());
    }
    let places: Vec<Place> = file.samples.iter().map(|s| place(file, s)).collect();
    Ok(paths.symbolizer().resolve(&places))
}

fn place(file: &SampleFile, sample: &Sample) -> Place {
    let Some(ip) = sample.ip else {
        return Place::Unknown(0);
    };
    if ip >= KERNEL_HALF {
        return Place::Kernel(ip);
    }
    let mapping = sample.pid.and_then(|pid| file.mapping(pid, ip));
    match mapping {
        Some(mapping) => {
            let offset = ip.wrapping_sub(mapping.start).wrapping_add(mapping.file_offset);
            Place::file(&mapping.path, None, offset)
        }
        None => Place::Unknown(ip),
    }
}

/// The columns of a sample, as in [`SAMPLES`].
fn cells(file: &SampleFile, symbols: &Symbols, at: usize) -> Vec<Cell> {
    let sample = &file.samples[at];
    let symbol = match sample.ip {
        Some(_) => symbols.label(at),
        None => String::new(),
    };
    let number = |value: Option<u64>| value.map_or(Cell::None, Cell::Number);
    let address = |value: Option<u64>| value.map_or(Cell::None, Cell::Address);
    let text = |text: Option<String>| text.filter(|t| !t.is_empty()).map_or(Cell::None, Cell::Text);
    let source = sample.data_src;
    let command = sample.pid.and_then(|pid| file.commands.get(&pid));
    let event = file.events.get(sample.event).map(|event| event.name.clone());
    vec![
        sample.time.map_or(Cell::None, Cell::Time),
        text(command.cloned()),
        number(sample.pid.map(u64::from)),
        number(sample.tid.map(u64::from)),
        number(sample.cpu.map(u64::from)),
        text(event),
        number(sample.period),
        address(sample.ip),
        Cell::Flag(sample.is_exact),
        text(Some(symbol)),
        address(sample.addr),
        address(sample.phys_addr),
        text(source.map(|s| s.op())),
        text(source.map(|s| s.level())),
        text(source.map(|s| s.snoop())),
        text(source.map(|s| s.tlb())),
        text(source.map(|s| s.lock())),
        number(sample.weight),
        number(sample.ins_lat.map(u64::from)),
        number(sample.retire_lat.map(u64::from)),
    ]
}

fn write(
    format: SamplesFormat,
    file: &SampleFile,
    symbols: &Symbols,
    mut out: impl Write,
) -> io::Result<()> {
    if format == SamplesFormat::Json {
        write!(out, "[")?;
    } else {
        let names: Vec<&str> = SAMPLES.columns.iter().map(|column| column.name).collect();
        writeln!(out, "{}", names.join(","))?;
    }
    for at in 0..file.samples.len() {
        let cells = cells(file, symbols, at);
        if format == SamplesFormat::Json {
            let between = if at == 0 { "\n" } else { ",\n" };
            let row = Value::Object(json(cells)).to_string();
            write!(out, "{between}{}", printable_json(&row))?;
        } else {
            writeln!(out, "{}", csv(&cells))?;
        }
    }
    if format == SamplesFormat::Json {
        writeln!(out, "\n]")?;
    }
    out.flush()
}

/// A line of comma-separated values.
fn csv(cells: &[Cell]) -> String {
    let mut line = String::new();
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        let _ = match cell {
            Cell::None => Ok(()),
            Cell::Time(ns) => write!(line, "{}", seconds(*ns)),
            Cell::Text(text) => write!(line, "{}", csv_text(text)),
            Cell::Number(number) => write!(line, "{number}"),
            Cell::Address(address) => write!(line, "{address:#x}"),
            Cell::Flag(flag) => write!(line, "{}", u8::from(*flag)),
        };
    }
    line
}

/// A text as a cell: in quotes where there is a comma or a quote in it (RFC 4180). A name comes from the guest. So what a terminal would
/// obey is replaced, and a spreadsheet shall not take a name for a formula: one that begins like a formula, but is no number, has an
/// apostrophe before it (OWASP, "CSV Injection").
fn csv_text(text: &str) -> String {
    let mut cell = printable(text).into_owned();
    if cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err() {
        cell.insert(0, '\'');
    }
    match cell.contains([',', '"']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

/// An object of the columns that the sample has: with texts for what numbers in JSON are not exact for.
fn json(cells: Vec<Cell>) -> JsonRow {
    object(cells, |cell| match cell {
        Cell::Time(ns) => Value::from(seconds(ns)),
        // Numbers in JSON are not exact from 2^53 on.
        Cell::Address(address) => Value::from(format!("{address:#x}")),
        other => plain(other),
    })
}

/// A row of the table.
fn row(cells: Vec<Cell>) -> JsonRow {
    object(cells, plain)
}

fn plain(cell: Cell) -> Value {
    match cell {
        Cell::None => Value::Null,
        Cell::Time(ns) => Value::from(ns as f64 / 1e9),
        Cell::Text(text) => Value::from(text),
        Cell::Number(number) | Cell::Address(number) => Value::from(number),
        Cell::Flag(flag) => Value::from(flag),
    }
}

fn object(cells: Vec<Cell>, value: impl Fn(Cell) -> Value) -> JsonRow {
    let named = SAMPLES.columns.iter().zip(cells);
    let values = named.map(|(column, cell)| (column.name.to_owned(), value(cell)));
    values.filter(|(_, value)| !value.is_null()).collect()
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_neither_a_formula_nor_an_escape() {
        for (text, expected) in [
            ("sh", "sh"),
            ("=A1+B1", "'=A1+B1"),
            ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
            ("=\"x\"", "\"'=\"\"x\"\"\""),
            ("-5", "-5"),
            ("+1.5e3", "+1.5e3"),
            ("a=b", "a=b"),
            ("\t=1", "?=1"),
            ("\r=1", "?=1"),
            ("\u{1b}[31mred", "?[31mred"),
            ("a\nb", "a?b"),
        ] {
            assert_eq!(csv_text(text), expected, "{text:?}");
        }
        let cells = [Cell::Text("=1,2".into()), Cell::None, Cell::Number(5)];
        assert_eq!(csv(&cells), "\"'=1,2\",,5");
    }
}
