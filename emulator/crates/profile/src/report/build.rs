//! From an evaluation to a report.

use serde_json::Value;

use super::error::{Pair, error, sampling_error};
use super::gather::{self, Rows};
use super::guest::{self, Matched};
use super::model::{Column, LevelError, Levels, ModuleRow, ProcessReport, Report, Totals, focus};
use super::published::published;
use super::rows::{self, Selection};
use crate::names::names;
use crate::perf_data::GuestProfile;
use crate::symbolize::{Symbolizer, Symbols};
use crate::{Evaluation, Filter, Profiler};

/// A process that has at least this share counts when it is asked whether the guest's profile covers
/// the whole machine.
const NOTICEABLE: f64 = 0.01;

impl Report {
    /// Compares every sampler of `evaluation`, and the guest's own profile if there is one, with the
    /// Oracle. `disassemble` gets an instruction's encoding and address. `meta` is shown as it is.
    pub fn build(
        evaluation: &Evaluation,
        symbolizer: &Symbolizer,
        guest: Option<&GuestProfile>,
        disassemble: &dyn Fn(u32, u64) -> String,
        meta: Value,
    ) -> Self {
        let matched = guest.map(|guest| guest::matched(evaluation, guest));
        let (mut gathered, symbols) = gather::gather(evaluation, symbolizer, matched.as_ref());
        gathered.sort_by_key(|rows| (std::cmp::Reverse(rows.oracle_total), rows.process));
        let columns = columns(evaluation, guest, matched.as_ref());
        let processes: Vec<_> = gathered.iter().map(|rows| rows.process).collect();
        let names = names(evaluation, &processes);
        let units = evaluation.oracle.units_per_cycle().max(1) as f64;

        let mut processes = vec![all(evaluation, &gathered, units, columns.len())];
        for (rows, name) in gathered.iter().zip(&names) {
            let pid = evaluation
                .processes
                .get(rows.process.0 as usize)
                .and_then(|p| p.pid);
            processes.push(process(
                evaluation,
                rows,
                name,
                pid,
                units,
                processes[0].cycles,
            ));
        }
        let selection = Selection {
            evaluation,
            symbols: &symbols,
            disassemble,
            units,
        };
        let functions = rows::functions(&selection, &gathered);
        let focus = focus(&columns, &processes);
        let instructions = rows::instructions(&selection, &gathered, &focus);
        let listings = super::listing::listings(
            &selection,
            &gathered,
            &functions,
            &focus,
            symbolizer.sources(),
        );
        let top_down =
            super::topdown::top_down(evaluation, &gathered, &symbols, &names, &functions);
        let mut maker = rows::Maker::new(&selection);
        let tea = super::tea::tea(evaluation, &gathered, &names, &columns, &focus, &mut maker);
        let disagreements =
            super::words::disagreements(evaluation, &gathered, &columns, &focus, &mut maker);
        Self {
            meta,
            totals: totals(evaluation),
            columns,
            modules: modules(&symbols, &gathered),
            warnings: warnings(evaluation, &symbols, matched.as_ref(), &gathered, units),
            processes,
            functions: functions.into_iter().map(|f| f.row).collect(),
            instructions,
            listings,
            top_down,
            tea,
            disagreements,
        }
    }
}

fn totals(evaluation: &Evaluation) -> Totals {
    let busy = evaluation.cycles.saturating_sub(evaluation.idle).max(1);
    Totals {
        cycles: evaluation.cycles,
        idle: evaluation.idle,
        instructions: evaluation.instructions,
        traps: evaluation.traps,
        ipc: evaluation.instructions as f64 / busy as f64,
    }
}

fn columns(
    evaluation: &Evaluation,
    guest: Option<&GuestProfile>,
    matched: Option<&Matched>,
) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for result in &evaluation.samplers {
        let profiler = result.sampler.profiler;
        // The first of its kind, if possible one that sees all cycles.
        let same = || { evaluation.samplers.iter() }.filter(|s| s.sampler.profiler == profiler);
        let first = same()
            .find(|s| s.sampler.filter == Filter::NONE)
            .or_else(|| same().next());
        columns.push(Column {
            name: result.sampler.name.clone(),
            profiler: Some(profiler),
            schedule: Some(result.sampler.schedule),
            filter: result.sampler.filter.clone(),
            samples: result.samples,
            dropped: result.dropped,
            tail_cycles: result.tail_cycles,
            unmatched_cycles: 0.0,
            published: Levels::from_fn(|level| published(profiler, level)),
            primary: first.is_some_and(|first| std::ptr::eq(first, result)),
        });
    }
    if let (Some(guest), Some(matched)) = (guest, matched) {
        let units = evaluation.oracle.units_per_cycle().max(1) as f64;
        let unmatched = matched.unmatched.values().sum::<u64>() + matched.strangers;
        columns.push(Column {
            name: "guest-tip".to_owned(),
            profiler: None,
            schedule: None,
            filter: Filter::NONE,
            samples: guest.samples.len() as u64,
            dropped: guest.lost + guest.malformed,
            tail_cycles: 0,
            unmatched_cycles: unmatched as f64 / units,
            published: Levels::from_fn(|level| published(Profiler::Tip, level)),
            primary: true,
        });
    }
    columns
}

fn process(
    evaluation: &Evaluation,
    rows: &Rows,
    name: &str,
    pid: Option<u32>,
    units: f64,
    whole: f64,
) -> ProcessReport {
    let single = std::slice::from_ref(rows);
    let cycles = rows.oracle_total as f64 / units;
    let stack = stack(evaluation, single);
    ProcessReport {
        name: name.to_owned(),
        pid,
        cycles,
        share: cycles / whole.max(f64::MIN_POSITIVE),
        class: class(&stack),
        stack,
        samples: rows.columns.iter().map(|weights| weights.samples).collect(),
        errors: (0..rows.columns.len())
            .map(|column| errors(single, column))
            .collect(),
    }
}

fn all(evaluation: &Evaluation, gathered: &[Rows], units: f64, columns: usize) -> ProcessReport {
    let total: u64 = gathered.iter().map(|rows| rows.oracle_total).sum();
    let sum = |column: usize| {
        gathered
            .iter()
            .map(|rows| rows.columns[column].samples)
            .sum()
    };
    let stack = stack(evaluation, gathered);
    ProcessReport {
        name: "all".to_owned(),
        pid: None,
        cycles: total as f64 / units,
        share: 1.0,
        class: class(&stack),
        stack,
        samples: (0..columns).map(sum).collect(),
        errors: (0..columns)
            .map(|column| errors(gathered, column))
            .collect(),
    }
}

/// Errors of a column over the rows of one or all processes.
fn errors(gathered: &[Rows], column: usize) -> Option<Levels<LevelError>> {
    let whole: u64 = gathered.iter().map(|rows| rows.oracle_total).sum();
    // What perf measured of one program says nothing about the others.
    let silent = |rows: &Rows| {
        rows.columns[column].is_guest
            && rows.columns[column].samples == 0.0
            && rows.oracle_total as f64 >= NOTICEABLE * whole as f64
    };
    if gathered.iter().any(silent) {
        return None;
    }
    let oracle_total = gathered
        .iter()
        .flat_map(|rows| rows.oracle_for(column))
        .sum();
    let profile_total = gathered.iter().map(|rows| rows.columns[column].total).sum();
    let samples: f64 = gathered
        .iter()
        .map(|rows| rows.columns[column].samples)
        .sum();
    Some(Levels::from_fn(|level| {
        let sums: Vec<(Vec<u64>, Vec<u64>)> = gathered
            .iter()
            .map(|rows| {
                let keys = rows.keys(level);
                (
                    keys.sum(rows.oracle_for(column).iter().copied().enumerate()),
                    keys.sum(rows.columns[column].by_row.iter()),
                )
            })
            .collect();
        let pairs = sums
            .iter()
            .map(|(oracle, profile)| Pair { oracle, profile });
        let weights = sums.iter().map(|(oracle, _)| &oracle[..]);
        LevelError {
            error: error(pairs, oracle_total, profile_total),
            sampling: sampling_error(weights, oracle_total, samples),
        }
    }))
}

fn stack(evaluation: &Evaluation, gathered: &[Rows]) -> [f64; 7] {
    let mut units = [0u64; 7];
    for rows in gathered {
        for row in 0..rows.insts.len() {
            for (sum, part) in units.iter_mut().zip(rows.stack(evaluation, row)) {
                *sum += part;
            }
        }
    }
    let total = units.iter().sum::<u64>().max(1) as f64;
    units.map(|part| part as f64 / total)
}

/// The published classes: by the share that commits, then by that of flushes.
fn class(stack: &[f64; 7]) -> &'static str {
    if stack[0] > 0.5 {
        "compute"
    } else if stack[5] + stack[6] > 0.03 {
        "flush"
    } else {
        "stall"
    }
}

fn modules(symbols: &Symbols, gathered: &[Rows]) -> Vec<ModuleRow> {
    let mut units = vec![0u64; symbols.modules.len()];
    for rows in gathered {
        for (place, weight) in rows.places.iter().zip(&rows.oracle) {
            units[symbols.locations[*place as usize].module.0 as usize] += weight;
        }
    }
    let total = units.iter().sum::<u64>().max(1) as f64;
    symbols
        .modules
        .iter()
        .zip(units)
        .map(|(module, units)| ModuleRow {
            path: module.path.to_string(),
            file: module.file.as_ref().map(|file| file.display().to_string()),
            build_id: module.build_id.as_ref().map(|id| id.to_string()),
            share: units as f64 / total,
        })
        .collect()
}

fn warnings(
    evaluation: &Evaluation,
    symbols: &Symbols,
    matched: Option<&Matched>,
    gathered: &[Rows],
    units: f64,
) -> Vec<String> {
    let mut out = symbols.warnings.clone();
    if evaluation.malformed_side_band > 0 {
        out.push(format!(
            "{} side-band records of the guest's driver could not be read",
            evaluation.malformed_side_band
        ));
    }
    let Some(matched) = matched else { return out };
    let lost: u64 = matched.unmatched.values().sum();
    if lost > 0 {
        out.push(format!(
            "guest-tip: {:.0} cycles at addresses that were never executed count as wrong",
            lost as f64 / units
        ));
    }
    if matched.strangers > 0 {
        out.push(format!(
            "guest-tip: {:.0} cycles of processes that the stream does not know are left out",
            matched.strangers as f64 / units
        ));
    }
    if !matched
        .unmatched
        .keys()
        .all(|p| gathered.iter().any(|rows| rows.process == *p))
    {
        out.push("guest-tip: some sampled processes have no cycles in the stream".to_owned());
    }
    out
}
