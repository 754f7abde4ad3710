//! Time by event: the process, then its instructions.

use std::fmt::Write;

use profile::Level;

use super::{EventStack, TeaColumn, TeaReport};
use crate::model::Common;
use crate::widths::{fit, fit_label, fixed, percent};

/// Signatures of a process.
const SIGNATURES: usize = 12;
/// Width of a column.
const WIDTH: usize = 18;

/// Writes the time by event of a process, and of its `instructions` most expensive instructions.
pub(crate) fn write(
    out: &mut String,
    common: &Common,
    tea: &TeaReport,
    process: usize,
    instructions: usize,
) -> std::fmt::Result {
    let Some(row) = tea.process(process) else {
        return Ok(());
    };
    let columns: Vec<&TeaColumn> =
        tea.columns.iter().filter(|c| common.columns[c.column].primary).collect();
    writeln!(out, "\nTime by event (TEA, ISCA'23), {}", fit(&row.name, 60))?;
    write!(out, "{:<36}{:>8}", "% of the cycles", "Oracle")?;
    for column in &columns {
        write!(out, "{:>WIDTH$}", fit(&column.name, WIDTH - 1))?;
    }
    writeln!(out)?;
    for (signature, share) in largest(&row.stack).into_iter().take(SIGNATURES) {
        write!(out, "{:<36}{:>8}", fit(signature, 35), fixed(share))?;
        for column in &columns {
            let stack = row.stacks.get(&column.name);
            let share = stack.and_then(|stack| stack.get(signature)).copied().unwrap_or(0.0);
            write!(out, "{:>WIDTH$}", percent(share))?;
        }
        writeln!(out)?;
    }
    for level in Level::ALL {
        write!(out, "{:<44}", format!("error by event and {}", level.name()))?;
        for column in &columns {
            let error = tea.error(process, column, level).map_or(String::new(), fixed);
            write!(out, "{error:>WIDTH$}")?;
        }
        writeln!(out)?;
        write!(out, "{:<44}", format!("  of the same samples without events"))?;
        for column in &columns {
            let error =
                common.processes[process].errors[column.column].map(|e| fixed(e.get(level).error));
            write!(out, "{:>WIDTH$}", error.unwrap_or_default())?;
        }
        writeln!(out)?;
    }
    writeln!(out, "\n{:<31}{:<26}{:>6}  by event", "Instruction", "", "Oracle")?;
    for row in tea.instructions.iter().filter(|row| row.process == process).take(instructions) {
        let stack = largest(&row.stack);
        let all: f64 = row.stack.values().sum();
        let parts: Vec<String> =
            stack.iter().map(|(name, share)| format!("{name} {}", fixed(*share))).collect();
        writeln!(
            out,
            "{:<31}{:<26}{:>6}  {}",
            fit_label(&row.label, 30),
            fit(&row.text.replace('\t', " "), 25),
            percent(all),
            fit(&parts.join(", "), 55)
        )?;
    }
    Ok(())
}

fn largest(stack: &EventStack) -> Vec<(&String, f64)> {
    let mut rows: Vec<_> = stack.iter().map(|(name, share)| (name, *share)).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows
}
