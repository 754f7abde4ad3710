//! The top-down tree: processes side by side, functions by level 1, time as bars.

use std::fmt::Write;

use profile::CATEGORIES;

use super::{TopDownReport, TopDownRow, TopDownWindow};
use crate::widths::{FULL_BAR, bar, fit, fit_name, fixed, percent};

/// Columns of processes, and their width.
const SHOWN: usize = 6;
const WIDTH: usize = 14;
/// Characters of a line of time.
const TIME: usize = 64;

/// Writes the tree with some processes side by side, its first level of some functions, and time as bars.
pub(crate) fn write(
    out: &mut String,
    tree: &TopDownReport,
    processes: &[usize],
    functions: usize,
) -> std::fmt::Result {
    let shown: Vec<&TopDownRow> =
        processes.iter().take(SHOWN).map(|index| &tree.processes[*index]).collect();
    write!(out, "{:<24}{:>6}", "Top-down, % of slots", "limit")?;
    for row in &shown {
        write!(out, "{:>WIDTH$}", fit(&row.name, WIDTH - 2))?;
    }
    writeln!(out)?;
    for node in &tree.nodes {
        let indent = 2 * (usize::from(node.level) - 1);
        let limit = node.threshold.map_or(String::new(), |limit| format!("{:.0}", 100.0 * limit));
        write!(out, "{:indent$}{:<width$}{limit:>6}", "", node.name, width = 24 - indent)?;
        for row in &shown {
            let mark = if row.closer.contains(&node.path) { " <" } else { "  " };
            let share = percent(share(row, node.path));
            let share = match row.margins.get(&node.path) {
                Some(margin) => format!("{share} ± {}", fixed(margin.within_95)),
                None => share,
            };
            write!(out, "{share:>width$}{mark}", width = WIDTH - 2)?;
        }
        writeln!(out)?;
    }
    if shown.iter().any(|row| !row.margins.is_empty()) {
        writeln!(out, "±: how far a share may be off by chance (95 %).")?;
    }
    writeln!(
        out,
        "{} slots a cycle, at commit. <: over the limit, and so is what it is part of: look closer there.",
        tree.width
    )?;
    write!(out, "\n{:<38}", "Function, % of its slots")?;
    let roots: Vec<_> = tree.nodes.iter().filter(|node| node.level == 1).collect();
    for name in ["retire", "bad spec.", "frontend", "backend"] {
        write!(out, "{name:>10}")?;
    }
    writeln!(out, "  look closer at")?;
    let own = tree
        .functions
        .iter()
        .filter(|row| processes.first().is_none_or(|p| *p == 0 || row.process == *p));
    for row in own.take(functions) {
        write!(out, "{:<38}", fit_name(&row.name, 37))?;
        for node in &roots {
            write!(out, "{:>10}", percent(share(row, node.path)))?;
        }
        let deepest = row.closer.iter().filter(|path| {
            !row.closer
                .iter()
                .any(|other| other.strip_prefix(**path).is_some_and(|rest| rest.starts_with('.')))
        });
        let names: Vec<&str> = deepest
            .filter_map(|path| tree.nodes.iter().find(|node| node.path == *path))
            .map(|node| node.name)
            .collect();
        writeln!(out, "{}", format!("  {}", fit(&names.join(", "), 39)).trim_end())?;
    }
    time(out, tree)
}

/// A line per root, and per category of the cycle stacks, all processes together.
fn time(out: &mut String, tree: &TopDownReport) -> std::fmt::Result {
    let (Some(first), Some(last)) = (tree.windows.first(), tree.windows.last()) else {
        return Ok(());
    };
    let roots = tree.nodes.iter().enumerate().filter(|(_, node)| node.level == 1);
    writeln!(
        out,
        "\nOver time, cycle {} to {} ({} = all slots, idle time left out)",
        first.start, last.end, FULL_BAR
    )?;
    for (at, node) in roots {
        line(out, node.name, &tree.windows, |window| window.processes[&0][at])?;
    }
    writeln!(out, "Cycle stacks over time ({} = all cycles)", FULL_BAR)?;
    for (at, name) in CATEGORIES.iter().enumerate() {
        line(out, name, &tree.windows, |window| window.stacks[&0][at])?;
    }
    Ok(())
}

/// A share of each window: each character is a stretch of time.
fn line(
    out: &mut String,
    name: &str,
    windows: &[TopDownWindow],
    share: impl Fn(&TopDownWindow) -> f64,
) -> std::fmt::Result {
    write!(out, "  {name:<18}")?;
    let cells = TIME.min(windows.len());
    for cell in 0..cells {
        let of = |cell: usize| cell * windows.len() / cells;
        let windows = &windows[of(cell)..of(cell + 1)];
        let cycles: u64 = windows.iter().map(|window| window.cycles).sum();
        let part: f64 = windows.iter().map(|w| w.cycles as f64 * share(w)).sum();
        out.push(bar(part / cycles.max(1) as f64));
    }
    writeln!(out)
}

fn share(row: &TopDownRow, path: &str) -> f64 {
    row.shares.get(path).copied().unwrap_or(0.0)
}
