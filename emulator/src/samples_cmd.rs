//! `tipsim samples`: the samples of a perf.data file, one a line.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use report::perf_data::{Sample, SampleFile};
use serde_json::{Map, Value};
use symbols::{Place, Symbols};

use crate::cli::{SamplesArgs, SamplesFormat};
use crate::failure::{bad_input, cannot_write};
use crate::names::{SymbolPaths, recorded};

/// Addresses from here up are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// Names of the columns, in order.
const COLUMNS: [&str; 20] = [
    "time",
    "comm",
    "pid",
    "tid",
    "cpu",
    "event",
    "period",
    "ip",
    "exact",
    "symbol",
    "addr",
    "phys_addr",
    "op",
    "level",
    "snoop",
    "tlb",
    "lock",
    "weight",
    "ins_lat",
    "retire_lat",
];

/// A sample's column.
enum Cell {
    /// It does not have it.
    None,
    Text(String),
    Number(u64),
    /// An address.
    Address(u64),
    Flag(bool),
}

/// Writes all samples of a file in the format asked for.
pub fn samples(args: &SamplesArgs) -> anyhow::Result<()> {
    let file = SampleFile::read(&args.file).map_err(|e| bad_input(&args.file, e))?;
    if let Some(missing) = args.debug_dir.iter().find(|dir| !dir.is_dir()) {
        return Err(bad_input(missing, "--debug-dir: expected a folder").into());
    }
    if let Some(kernel) = &args.kernel {
        File::open(kernel).map_err(|e| bad_input(kernel, format!("--kernel: {e}")))?;
    }
    let symbols = symbolize(args, &file)?;
    let written = match &args.output {
        Some(path) => {
            let out = File::create(path).map_err(|e| cannot_write(path, e))?;
            write(args.format, &file, &symbols, BufWriter::new(out))
        }
        None => write(
            args.format,
            &file,
            &symbols,
            BufWriter::new(io::stdout().lock()),
        ),
    };
    match written {
        // Whoever reads has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    if file.malformed > 0 {
        let path = args.file.display();
        eprintln!(
            "tipsim: warning: {path}: {} sample records could not be read",
            file.malformed
        );
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
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let mut paths = match recorded(folder)? {
        Some(paths) => paths.with_output(folder),
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
            let offset = ip
                .wrapping_sub(mapping.start)
                .wrapping_add(mapping.file_offset);
            Place::file(&mapping.path, None, offset)
        }
        None => Place::Unknown(ip),
    }
}

/// The columns of a sample, as in [`COLUMNS`].
fn cells(file: &SampleFile, sample: &Sample, symbol: String) -> Vec<Cell> {
    let number = |value: Option<u64>| value.map_or(Cell::None, Cell::Number);
    let address = |value: Option<u64>| value.map_or(Cell::None, Cell::Address);
    let text = |text: Option<String>| {
        text.filter(|t| !t.is_empty())
            .map_or(Cell::None, Cell::Text)
    };
    let source = sample.data_src;
    let command = sample.pid.and_then(|pid| file.commands.get(&pid));
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let event = file
        .events
        .get(sample.event)
        .map(|event| event.name.clone());
    vec![
        text(sample.time.map(seconds)),
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
    match format {
        SamplesFormat::Csv => writeln!(out, "{}", COLUMNS.join(","))?,
        SamplesFormat::Json => write!(out, "[")?,
    }
    for (at, sample) in file.samples.iter().enumerate() {
        let label = match sample.ip {
            Some(_) => symbols.label(at),
            None => String::new(),
        };
        let cells = cells(file, sample, label);
        match format {
            SamplesFormat::Csv => writeln!(out, "{}", csv(&cells))?,
            SamplesFormat::Json => {
                let between = if at == 0 { "\n" } else { ",\n" };
                write!(out, "{between}{}", json(cells))?;
            }
        }
    }
    if format == SamplesFormat::Json {
        writeln!(out, "\n]")?;
    }
    out.flush()
}

/// RFC 4180: quoted where there is a comma, a quote or the end of a line in it.
fn csv(cells: &[Cell]) -> String {
    let mut line = String::new();
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        let _ = match cell {
            Cell::None => Ok(()),
            Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                write!(line, "\"{}\"", text.replace('"', "\"\""))
            }
            Cell::Text(text) => write!(line, "{text}"),
            Cell::Number(number) => write!(line, "{number}"),
            Cell::Address(address) => write!(line, "{address:#x}"),
            Cell::Flag(flag) => write!(line, "{}", u8::from(*flag)),
        };
    }
    line
}

/// An object of the columns that the sample has.
fn json(cells: Vec<Cell>) -> Value {
    let value = |cell| {
        Some(match cell {
            Cell::None => return None,
            Cell::Text(text) => Value::from(text),
            Cell::Number(number) => Value::from(number),
            // Numbers in JSON are exact only below 2^53.
            Cell::Address(address) => Value::from(format!("{address:#x}")),
            Cell::Flag(flag) => Value::from(flag),
        })
    };
    let named = COLUMNS.into_iter().zip(cells);
    let some = named.filter_map(|(name, cell)| Some((name.to_owned(), value(cell)?)));
    Value::Object(some.collect::<Map<String, Value>>())
}
