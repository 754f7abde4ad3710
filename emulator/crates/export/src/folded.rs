//! Folded stacks: a line per stack, frames separated by semicolons, then the cycles. Kernel and
//! firmware functions end in `_[k]`, inlined ones in `_[i]`, as perf's stackcollapse script marks them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Export;

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> io::Result<()> {
    let series = export.series();
    let [series] = &series[..] else {
        let message = format!("folded stacks hold one profiler, found {}", series.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    // Equal stacks are added up: an address may have held several instructions over time.
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (row, cycles) in export.cycles(series) {
        *stacks.entry(stack(export, row)).or_default() += cycles;
    }
    // Readers of folded stacks leave out lines that do not end in a number.
    if export.options.notice.is_some() {
        writeln!(out, "# {}", sanitized(&export.title()))?;
    }
    for (stack, cycles) in stacks {
        writeln!(out, "{stack} {cycles}")?;
    }
    Ok(())
}

fn stack(export: &Export<'_>, row: usize) -> String {
    let mut stack = sanitized(export.process_name(export.rows()[row].process));
    if let Some(thread) = export.own_name(row) {
        stack.push(';');
        stack.push_str(&sanitized(thread));
    }
    let mut rows: Vec<usize> = export.stack(row).collect();
    rows.reverse();
    for row in rows {
        for frame in export.frames(row).iter().rev() {
            let suffix = match (frame.inlined, export.is_kernel(row)) {
                (true, _) => "_[i]",
                (false, true) => "_[k]",
                (false, false) => "",
            };
            stack.push(';');
            stack.push_str(&sanitized(frame.name));
            stack.push_str(suffix);
        }
    }
    if let Some(instruction) = export.instruction(row) {
        stack.push(';');
        stack.push_str(&sanitized(&instruction));
    }
    stack
}

/// Names come from the guest: nothing in them may end a frame or a line.
fn sanitized(name: &str) -> String {
    name.replace(|c: char| c == ';' || c.is_control(), ":")
}
