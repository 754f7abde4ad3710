//! The hottest functions and instructions, and the profilers' largest disagreements with the Oracle.

use std::collections::HashMap;
use std::fmt::Write;

use profile::{CATEGORIES, Margin, Profiler};

use super::short;
use crate::columns::Column;
use crate::disagreements::Disagreement;
use crate::margins::{self, MARGIN_TITLE, add};
use crate::model::Common;
use crate::options::Options;
use crate::places::short as short_path;
use crate::tables::InstructionRow;
use crate::widths::{fit, fit_end, fit_label, fit_name, percent, wrap};

/// Columns of profilers that fit beside the Oracle's.
const MAX_COLUMNS: usize = 9;
/// Differences below this show as zero.
const NOTICEABLE: f64 = 0.0005;

pub(super) fn write(
    out: &mut String,
    common: &Common,
    process: usize,
    options: &Options,
) -> std::fmt::Result {
    let everyone = process == 0;
    let columns: Vec<usize> = (0..common.columns.len())
        .filter(|c| common.columns[*c].primary)
        .take(MAX_COLUMNS)
        .collect();
    functions(out, common, process, &columns, options.functions)?;
    // Shares of different processes cannot be ranked against each other.
    if !everyone {
        instructions(out, common, process, options.instructions)?;
        disagreements(out, common, process, &columns, options.disagreements)?;
        if common.disagreements.iter().any(|d| d.process == process) {
            sentences(out, common, process, &columns, options.sentences)?;
        }
    }
    Ok(())
}

fn functions(
    out: &mut String,
    common: &Common,
    process: usize,
    columns: &[usize],
    limit: usize,
) -> std::fmt::Result {
    writeln!(out)?;
    let followed = common.functions.iter().any(|row| row.total.is_some());
    let sampled = common.is_sampled();
    let name_width = 44 - 7 * (usize::from(followed) + usize::from(sampled));
    let title_of = "Function, % of the cycles";
    write!(out, "{title_of:<name_width$}{:>7}", "Oracle")?;
    if sampled {
        write!(out, "{MARGIN_TITLE:>7}")?;
    }
    if followed {
        write!(out, "{:>7}", "below")?;
    }
    for column in columns {
        write!(out, "{:>7}", title(common, *column))?;
    }
    writeln!(out)?;
    let rows = match process {
        0 => by_command(common),
        _ => common
            .functions
            .iter()
            .filter(|row| row.process == process)
            .map(|row| FunctionLine {
                name: row.name.clone(),
                share: row.share,
                margin: row.margins.map(|margins| margins.share),
                total: row.total,
                shares: row.shares.clone(),
                missing: &row.missing,
            })
            .collect(),
    };
    // A file that is missing is named once in a table.
    let mut listed = Vec::new();
    for row in rows.into_iter().take(limit) {
        let name = fit_name(&row.name, name_width - 1);
        write!(out, "{name:<name_width$}{:>7}", percent(row.share))?;
        if sampled {
            write!(out, "{:>7}", margins::percent(row.margin))?;
        }
        if followed {
            write!(out, "{:>7}", percent(row.total.unwrap_or(row.share)))?;
        }
        for column in columns {
            write!(out, "{:>7}", percent(row.shares[*column]))?;
        }
        writeln!(out)?;
        for missing in row.missing {
            if listed.contains(&missing) {
                continue;
            }
            listed.push(missing);
            for line in wrap(missing, 112) {
                writeln!(out, "      {line}")?;
            }
        }
    }
    Ok(())
}

/// A function as the table shows it.
struct FunctionLine<'a> {
    name: String,
    share: f64,
    /// Margin of the share, if the region was sampled.
    margin: Option<Margin>,
    /// Share of the function with all that it calls, if calls were followed.
    total: Option<f64>,
    /// Share by column.
    shares: Vec<f64>,
    missing: &'a [String],
}

/// Functions of all processes: of those of one command together. Shares are of all cycles.
fn by_command(common: &Common) -> Vec<FunctionLine<'_>> {
    let mut rows: Vec<FunctionLine<'_>> = Vec::new();
    let mut by_subsample: Vec<Vec<u64>> = Vec::new();
    let mut known: HashMap<(&str, &str, usize), usize> = HashMap::new();
    for function in &common.functions {
        let process = &common.processes[function.process];
        let key = (&*process.command, &*function.name, function.module);
        let at = *known.entry(key).or_insert_with(|| {
            rows.push(FunctionLine {
                name: format!("{}: {}", process.command, function.name),
                share: 0.0,
                margin: None,
                total: function.total.map(|_| 0.0),
                shares: vec![0.0; function.shares.len()],
                missing: &function.missing,
            });
            by_subsample.push(Vec::new());
            rows.len() - 1
        });
        add(&mut by_subsample[at], &function.by_subsample);
        // Rows have shares of their process.
        rows[at].share += process.share * function.share;
        if let (Some(sum), Some(total)) = (&mut rows[at].total, function.total) {
            *sum += process.share * total;
        }
        for (sum, share) in rows[at].shares.iter_mut().zip(&function.shares) {
            *sum += process.share * share;
        }
    }
    for (row, part) in rows.iter_mut().zip(&by_subsample) {
        row.margin = common.subsample_totals.margin_of_all(part);
    }
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    rows
}

/// Column titles of at most six characters.
fn title(common: &Common, column: usize) -> &str {
    let profiler = common.columns[column].profiler;
    profiler.map_or(Column::GUEST, Profiler::heading)
}

fn instructions(
    out: &mut String,
    common: &Common,
    process: usize,
    limit: usize,
) -> std::fmt::Result {
    // The others are in the page and in the JSON.
    let wanted =
        Profiler::ALL.map(|profiler| profiler.is_in_instruction_table().then_some(profiler));
    let shown: Vec<usize> = wanted
        .iter()
        .flatten()
        .filter_map(|p| common.columns.iter().position(|c| c.profiler == Some(*p)))
        .collect();
    let sampled = common.is_sampled();
    write!(out, "\n{:<31}{:<26}{:>6}", "Instruction", "", "Oracle")?;
    if sampled {
        write!(out, "{MARGIN_TITLE:>7}")?;
    }
    for column in &shown {
        write!(out, "{:>6}", title(common, *column))?;
    }
    writeln!(out, "  {:<9}source", "mostly")?;
    for row in common.instructions.iter().filter(|row| row.process == process).take(limit) {
        let text = row.text.replace('\t', " ");
        write!(
            out,
            "{:<31}{:<26}{:>6}",
            fit_label(&row.label, 30),
            fit(&text, 25),
            percent(row.share)
        )?;
        if sampled {
            write!(out, "{:>7}", margins::percent(row.margins.map(|of| of.share)))?;
        }
        for column in &shown {
            write!(out, "{:>6}", percent(row.shares[*column]))?;
        }
        let room = 120 - 31 - 26 - 6 - 7 * usize::from(sampled) - 6 * shown.len() - 2 - 9;
        let source = match (&row.source, &row.library_source) {
            // The program's own line comes first, and is not cut.
            (Some(source), Some(library)) => {
                fit(&format!("{} ({})", short_path(source), short_path(library)), room)
            }
            (Some(source), None) => fit_end(short_path(source), room),
            _ => String::new(),
        };
        let tail = format!("  {:<9}{source}", mostly(row));
        writeln!(out, "{}", tail.trim_end())?;
    }
    Ok(())
}

/// The largest component of an instruction's cycle stack.
fn mostly(row: &InstructionRow) -> &'static str {
    let largest = (0..7).max_by(|a, b| row.stack[*a].total_cmp(&row.stack[*b]).then(b.cmp(a)));
    match largest {
        Some(index) if row.stack[index] > 0.0 => short(CATEGORIES[index]),
        _ => "",
    }
}

fn disagreements(
    out: &mut String,
    common: &Common,
    process: usize,
    columns: &[usize],
    limit: usize,
) -> std::fmt::Result {
    writeln!(
        out,
        "\n{:<16}{:<34}{:<28}{:>9}{:>9}{:>11}",
        "Furthest off", "at", "", "Oracle", "says", "points"
    )?;
    for column in columns {
        let difference = |row: &InstructionRow| row.shares[*column] - row.share;
        let mut rows: Vec<&InstructionRow> =
            common.instructions.iter().filter(|row| row.process == process).collect();
        rows.retain(|row| difference(row).abs() >= NOTICEABLE);
        rows.sort_by(|a, b| difference(b).abs().total_cmp(&difference(a).abs()));
        for (rank, row) in rows.into_iter().take(limit).enumerate() {
            let name =
                if rank == 0 { fit(common.columns[*column].label(), 15) } else { String::new() };
            writeln!(
                out,
                "{name:<16}{:<34}{:<28}{:>9}{:>9}{:>+11.1}",
                fit_label(&row.label, 33),
                fit(&row.text.replace('\t', " "), 27),
                percent(row.share),
                percent(row.shares[*column]),
                100.0 * difference(row)
            )?;
        }
    }
    Ok(())
}

/// What the profilers charge to the wrong instruction, `limit` sentences each.
fn sentences(
    out: &mut String,
    common: &Common,
    process: usize,
    columns: &[usize],
    limit: usize,
) -> std::fmt::Result {
    writeln!(out)?;
    for column in columns {
        let own = |d: &&Disagreement| d.process == process && d.column == *column;
        for row in common.disagreements.iter().filter(own).take(limit) {
            for (at, line) in wrap(&row.words, 116).into_iter().enumerate() {
                writeln!(out, "{}{line}", if at == 0 { "" } else { "    " })?;
            }
        }
    }
    Ok(())
}
