//! Errors per profiler and level.

use std::fmt::Write;

use profile::{Filter, Level};

use crate::columns::Column;
use crate::model::Common;
use crate::widths::{count, fit, fixed};

/// Writes the errors of a process. If there are `curves` of errors, samplers on them have tables of their own.
pub(super) fn write(
    out: &mut String,
    common: &Common,
    process: usize,
    curves: bool,
) -> std::fmt::Result {
    let process = &common.processes[process];
    let listed = |column: &Column| {
        !curves || column.primary || column.profiler.is_none() || column.filter != Filter::NONE
    };
    writeln!(out, "Profile error, {} ({} cycles)", fit(&process.name, 60), count(process.cycles))?;
    writeln!(
        out,
        "{:<17}{:>11}{:>11} |{:^25} |{:^25} |{:>18}",
        "", "every", "", "instruction, %", "basic block, %", "function, %"
    )?;
    write!(out, "{:<17}{:>11}{:>11}", "Profiler", "cycles", "samples")?;
    for _ in Level::ALL {
        write!(out, " |{:>7}{:>9}{:>9}", "error", "sampling", "publ.")?;
    }
    writeln!(out)?;
    for (index, column) in common.columns.iter().enumerate() {
        let Some(errors) = process.errors[index].as_ref().filter(|_| listed(column)) else {
            continue;
        };
        write!(out, "{:<17}{:>11}", fit(&column.name, 16), every(column))?;
        write!(out, "{:>11}", count(process.samples[index]))?;
        for level in Level::ALL {
            let error = errors.get(level);
            let published = column.published.get(level);
            let published = published.map_or("–".to_owned(), |p| p.to_string());
            write!(out, " |{:>7}{:>9}", fixed(error.error), fixed(error.sampling))?;
            write!(out, "{published:>9}")?;
        }
        writeln!(out)?;
    }
    let hidden = common.columns.iter().filter(|column| !listed(column)).count();
    if hidden > 0 {
        writeln!(out, "and {hidden} samplers at other rates, see below")?;
    }
    Ok(())
}

/// The period, `~` before it if each sample falls on a random cycle of it.
fn every(column: &Column) -> String {
    match column.schedule {
        Some(schedule) => {
            let random = if schedule.random.is_some() { "~" } else { "" };
            format!("{random}{}", count(schedule.period as f64))
        }
        None => "in guest".to_owned(),
    }
}
