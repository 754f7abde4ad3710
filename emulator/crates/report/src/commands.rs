//! Processes by command: ten that run one program are one row.

use std::collections::HashMap;

use super::margins::{SubsampleTotals, add_stacks};
use super::parts::class;
use super::tables::{CommandRow, ProcessReport};

/// Returns the commands of some processes, whose first is the sum of all.
pub(super) fn commands(
    processes: &[ProcessReport],
    subsample_totals: &SubsampleTotals,
) -> Vec<CommandRow> {
    let mut rows: Vec<CommandRow> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (index, process) in processes.iter().enumerate().skip(1) {
        let at = *known.entry(&process.command).or_insert_with(|| {
            rows.push(CommandRow {
                name: process.command.clone(),
                count: 0,
                members: Vec::new(),
                cycles: 0.0,
                share: 0.0,
                stack: [0.0; 7],
                margins: None,
                stack_margins: None,
                class: "",
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.count += process.count;
        row.members.push(index);
        row.cycles += process.cycles;
        row.share += process.share;
        for (sum, share) in row.stack.iter_mut().zip(process.stack) {
            *sum += share * process.cycles;
        }
    }
    for row in &mut rows {
        let whole = row.cycles.max(f64::MIN_POSITIVE);
        row.stack = row.stack.map(|cycles| cycles / whole);
        row.class = class(&row.stack);
        let mut by_subsample = Vec::new();
        for member in &row.members {
            add_stacks(&mut by_subsample, &processes[*member].by_subsample);
        }
        row.margins = subsample_totals.margins_of_stacks(&by_subsample);
        row.stack_margins = subsample_totals.stack_margins(&by_subsample);
    }
    rows.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(a.members.cmp(&b.members)));
    rows
}
