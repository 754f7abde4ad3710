//! `tipsim report`, and the report's files of a run.

use std::path::{Path, PathBuf};

use profile::Evaluation;
use profile::perf_data::GuestProfile;
use profile::report::{Options, Report};
use profile::symbolize::{SymbolFiles, Symbolizer};
use serde_json::Value;
use timing::Preset;

use crate::cli::{Format, Level, ReportArgs};
use crate::failure::bad_input;
use crate::guest::GuestFiles;

/// The name that perf gives our PMU's event.
const GUEST_EVENT: &str = "tip";

/// Writes errors.json and report.{txt,json,html}, and prints the tables.
pub fn write(
    evaluation: &Evaluation,
    files: &GuestFiles,
    symbols: &[PathBuf],
    out: &Path,
    core: &Preset,
    run: Value,
) -> anyhow::Result<()> {
    let symbolizer = Symbolizer::new(SymbolFiles {
        roots: symbols.iter().chain(&files.debug).cloned().collect(),
        kernel: files.vmlinux.clone(),
        kernel_physical: Some(machine::KERNEL_BASE),
        firmware: files.firmware_elf.clone(),
        ..SymbolFiles::default()
    });
    let perf_data = out.join("perf.data");
    let guest = perf_data
        .exists()
        .then(|| GuestProfile::read(&perf_data, GUEST_EVENT))
        .and_then(|read| read.map_err(|e| eprintln!("tipsim: warning: {e}")).ok());
    let report = Report::build(evaluation, &symbolizer, guest.as_ref(), &disassemble, run);
    let text = report.text(&Options::default());
    let pretty = |value: &Value| serde_json::to_string_pretty(value).map(|s| s + "\n");
    for (name, content) in [
        ("report.txt", text.clone()),
        ("errors.json", pretty(&report.errors_json())?),
        ("report.json", pretty(&report.json())?),
        ("report.html", report.html(&core.picture())),
    ] {
        let path = out.join(name);
        std::fs::write(&path, content).map_err(|e| bad_input(&path, e))?;
    }
    print!("{text}");
    Ok(())
}

/// An instruction in assembly.
pub fn disassemble(raw: u32, pc: u64) -> String {
    isa::disasm(&isa::decode(raw), pc)
}

/// `tipsim report`: what the run wrote, or one level of its errors.
pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let read = |name: &str| {
        let path = args.dir.join(name);
        std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))
    };
    if let Some(level) = args.level {
        let path = args.dir.join("errors.json");
        let errors: Value =
            serde_json::from_str(&read("errors.json")?).map_err(|e| bad_input(&path, e))?;
        return one_level(&errors, level, args.format);
    }
    match args.format {
        Format::Text => print!("{}", read("report.txt")?),
        Format::Json => print!("{}", read("report.json")?),
        Format::Html => print!("{}", read("report.html")?),
    }
    Ok(())
}

fn one_level(errors: &Value, level: Level, format: Format) -> anyhow::Result<()> {
    let level = match level {
        Level::Function => "function",
        Level::Block => "block",
        Level::Instruction => "instruction",
    };
    let processes: serde_json::Map<String, Value> = errors
        .as_object()
        .into_iter()
        .flatten()
        .map(|(process, levels)| (process.clone(), levels[level].clone()))
        .collect();
    if format == Format::Json {
        println!("{}", serde_json::to_string_pretty(&processes)?);
        return Ok(());
    }
    println!("profile error by {level}");
    for (process, errors) in processes {
        print!("{process:24}");
        for (profiler, error) in errors.as_object().into_iter().flatten() {
            print!(
                "  {profiler} {:.2} %",
                100.0 * error.as_f64().unwrap_or(f64::NAN)
            );
        }
        println!();
    }
    Ok(())
}
