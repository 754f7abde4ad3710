//! Errors per profiler and level.

use std::fmt::Write;

use profile::{Filter, Level};

use crate::columns::Column;
use crate::margins::{MARGIN_TITLE, percent};
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
        let last = if common.is_sampled() { MARGIN_TITLE } else { "publ." };
        write!(out, " |{:>7}{:>9}{last:>9}", "error", "sampling")?;
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
            let last = match (common.is_sampled(), column.published.get(level)) {
                (true, _) => percent(error.margin),
                (false, Some(published)) => published.to_string(),
                (false, None) => "–".to_owned(),
            };
            write!(out, " |{:>7}{:>9}", fixed(error.error), fixed(error.sampling))?;
            write!(out, "{last:>9}")?;
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
