//! From an evaluation to a report.

use std::collections::HashSet;

use guest_samples::GuestProfile;
use profile::{Evaluation, Filter, command_name, process_names};
use symbols::Symbols;

use super::columns::{Column, Levels};
use super::contended;
use super::counters;
use super::disagreements::{self, Disagreement};
use super::elapsed_profile::ElapsedProfile;
use super::flame::{Flame, FlameBuilder, Placed};
use super::gather::Gathered;
use super::guest::{self, Matched};
use super::harts;
use super::in_guest::{InGuest, InGuestBuilder};
use super::inclusive::{self, Inclusive};
use super::inputs::ReportInputs;
use super::interpreted;
use super::loops::LoopsReport;
use super::model::{Common, Totals, focus};
use super::over_time::{self, OverTime};
use super::precise;
use super::process_sums::ProcessSums;
use super::report::Report;
use super::rows::{self, Function, Selection};
use super::run_description::RunDescription;
use super::sections::Sections;
use super::sensitivity;
use super::speedup::SpeedupStack;
use super::tables::{FunctionRow, InstructionRow, ModuleRow, ProcessReport};
use super::tea::{self, TeaReport};
use super::thread_path::{self, PathInputs};
use super::threads;
use super::units::UnitReport;
use super::verdict::{self, Verdict, VerdictBuilder};
use super::waiting::{self, NamedSites};
use super::what_if::RecordedWhatIf;

impl Report {
    /// Compares every sampler of the evaluation, and the guest's own profiles, with the Oracle, and the latter with the samplers of the
    /// same rules; and makes all sections that there are inputs for.
    pub fn build(inputs: ReportInputs<'_>) -> Self {
        let ReportInputs { evaluation, symbolizer, disassemble, guests, .. } = inputs;
        let matched: Vec<Matched> =
            guests.iter().map(|guest| guest::matched(evaluation, guest)).collect();
        let gathered = Gathered::new(evaluation, symbolizer, &matched);
        let columns = columns(evaluation, guests, &matched);
        let units = evaluation.oracle.units_per_cycle().max(1) as f64;
        let subsample_totals = &gathered.subsample_totals;
        let selection = Selection {
            evaluation,
            symbols: &gathered.symbols,
            disassemble,
            units,
            subsample_totals,
        };
        let ProcessParts {
            names,
            focus,
            processes,
            functions,
            instructions,
            tea,
            disagreements,
            mut verdict,
            flame,
            placed,
            module_units,
            in_guest,
        } = ProcessParts::new(&selection, &gathered, &columns, guests);
        let stale = super::listing::stale(&gathered.symbols, &symbolizer.sources());
        let listings = super::listing::listings(
            &selection,
            &gathered,
            &functions,
            &focus,
            &stale,
            symbolizer.sources(),
        );
        let shown = over_time::shown(&instructions, &listings);
        let over_time = OverTime::new(evaluation, &gathered, &placed, &functions, &shown);
        let mut warnings = warnings(evaluation, &gathered, &matched, units);
        let is_sampled = subsample_totals.are_of_any();
        if is_sampled && inputs.of_all_harts {
            warnings.push(
                "the region was sampled: what threads wait for between units is not known".into(),
            );
        }
        for (_, stale) in stale {
            if !warnings.contains(&stale.why) {
                warnings.push(stale.why);
            }
        }
        let top_down = super::topdown::top_down(evaluation, &gathered, &names, &functions);
        let mut functions: Vec<FunctionRow> = functions.into_iter().map(|f| f.row).collect();
        let commands = super::commands::commands(&processes, subsample_totals);
        let command_of =
            |verdict: &Verdict| commands.iter().find(|row| row.name == verdict.command);
        for of_command in &mut verdict {
            of_command.interpreted = command_of(of_command)
                .map_or_else(Vec::new, |row| interpreted::of_command(evaluation, &processes, row));
        }
        if let Some(inclusive) = Inclusive::new(&flame, &processes) {
            inclusive.add_to(&mut functions, &processes);
            let own = inclusive::own_functions(&gathered.symbols);
            for of_command in &mut verdict {
                of_command.inclusive = command_of(of_command)
                    .map_or_else(Vec::new, |row| inclusive.of_command(row, &own));
            }
        }
        let common = Common {
            totals: totals(evaluation, &inputs.meta),
            modules: modules(&gathered.symbols, module_units),
            meta: inputs.meta,
            columns,
            processes,
            commands,
            functions,
            instructions,
            listings,
            flame,
            over_time,
            subsample_totals: subsample_totals.clone(),
            disagreements,
            warnings,
        };
        let loops = inputs.excerpts.and_then(|excerpts| {
            LoopsReport::new(&common, evaluation, excerpts, symbolizer, disassemble)
        });
        let sites =
            (inputs.of_all_harts && !is_sampled).then(|| NamedSites::new(evaluation, symbolizer));
        let waiting = sites
            .as_ref()
            .and_then(|sites| waiting::waiting(&common, evaluation, symbolizer, sites));
        let thread_path = sites.as_ref().zip(waiting.as_ref()).and_then(|(sites, waiting)| {
            let (gathered, harts) = (&gathered, inputs.harts);
            let inputs = PathInputs { evaluation, harts, gathered, sites, waiting };
            thread_path::thread_path(&common, &inputs)
        });
        let by_threads =
            verdict::ByThreads { waiting: waiting.as_ref(), path: thread_path.as_ref() };
        verdict::complete(&mut verdict, &common.commands, loops.as_ref(), &by_threads);
        let samples = &inputs.truth;
        let sections = Sections {
            interpreted: interpreted::interpreted(evaluation, &common.processes),
            what_if: RecordedWhatIf::of(&common.meta),
            units: inputs.units.as_ref().and_then(UnitReport::new),
            threads: threads::threads(evaluation, &gathered),
            speedup: (inputs.of_all_harts
                && inputs.harts.len() > 1
                && common.meta.sampled_words().is_none())
            .then(|| {
                SpeedupStack::new(evaluation, inputs.harts.len(), common.meta.memory_traffic())
            })
            .filter(SpeedupStack::has_user_mode),
            elapsed_profile: (inputs.of_all_harts
                && inputs.harts.len() > 1
                && common.meta.sampled_words().is_none())
            .then(|| ElapsedProfile::new(evaluation, &gathered, inputs.harts.len()))
            .flatten(),
            harts: harts::harts(&common, inputs.harts),
            sensitivity: sensitivity::sensitivity(&common),
            precise: samples
                .as_ref()
                .and_then(|it| precise::precise(it.truth, it.files, it.metric, disassemble)),
            contended: samples.as_ref().and_then(|it| contended::contended(it.truth, it.files)),
            counters: inputs
                .counters
                .map(|counted| counters::counters(&common, top_down.as_ref(), counted)),
            verdict,
            loops,
            waiting,
            thread_path,
            top_down,
            tea,
            in_guest,
        };
        Self { common, sections }
    }
}

fn totals(evaluation: &Evaluation, meta: &RunDescription) -> Totals {
    let busy = evaluation.cycles.saturating_sub(evaluation.idle).max(1);
    Totals {
        elapsed: meta.elapsed(),
        cycles: evaluation.cycles,
        idle: evaluation.idle,
        instructions: evaluation.instructions,
        traps: evaluation.traps,
        ipc: evaluation.instructions as f64 / busy as f64,
    }
}

fn columns(evaluation: &Evaluation, guests: &[GuestProfile], matched: &[Matched]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for result in &evaluation.samplers {
        let profiler = result.sampler.profiler;
        // The first of its kind, if possible one that sees all cycles.
        let same = || evaluation.samplers.iter().filter(|s| s.sampler.profiler == profiler);
        let first = same().find(|s| s.sampler.filter == Filter::NONE).or_else(|| same().next());
        columns.push(Column {
            name: result.sampler.name.clone(),
            profiler: Some(profiler),
            unit: None,
            schedule: Some(result.sampler.schedule),
            filter: result.sampler.filter.clone(),
            samples: result.samples,
            dropped: result.dropped,
            tail_cycles: result.tail_cycles,
            unmatched_cycles: 0.0,
            published: Levels::from_fn(|level| profiler.published(level)),
            primary: first.is_some_and(|first| std::ptr::eq(first, result)),
        });
    }
    for (number, (guest, matched)) in guests.iter().zip(matched).enumerate() {
        let units = evaluation.oracle.units_per_cycle().max(1) as f64;
        let unmatched = matched.unmatched.values().sum::<u64>() + matched.strangers;
        columns.push(Column {
            name: matched.name.clone(),
            profiler: None,
            unit: guest::rule(guest),
            schedule: None,
            filter: Filter::NONE,
            samples: guest.samples.len() as u64,
            dropped: guest.lost + guest.malformed,
            tail_cycles: 0,
            unmatched_cycles: unmatched as f64 / units,
            published: Levels::from_fn(|level| guest::rule(guest)?.published(level)),
            // The tables have room for one.
            primary: number == 0,
        });
    }
    columns
}

/// The parts of a report that are made process by process.
struct ProcessParts {
    names: Vec<String>,
    focus: Vec<usize>,
    processes: Vec<ProcessReport>,
    functions: Vec<Function>,
    instructions: Vec<InstructionRow>,
    tea: Option<TeaReport>,
    disagreements: Vec<Disagreement>,
    verdict: Vec<Verdict>,
    flame: Flame,
    /// Nodes of each process in it.
    placed: Vec<Placed>,
    /// The Oracle's units per module.
    module_units: Vec<u64>,
    in_guest: Vec<InGuest>,
}

impl ProcessParts {
    fn new(
        selection: &Selection<'_>,
        gathered: &Gathered<'_>,
        columns: &[Column],
        guests: &[GuestProfile],
    ) -> Self {
        let &Selection { evaluation, units, .. } = selection;
        let summaries = &gathered.processes;
        let ids: Vec<_> = summaries.iter().map(|summary| summary.process).collect();
        let names = process_names(evaluation, &ids);
        let commands: Vec<String> = ids.iter().map(|id| command_name(evaluation, *id)).collect();
        let mut all = ProcessSums::new(summaries, columns.len());
        let whole = summaries.iter().map(|summary| summary.oracle_total);
        let whole = whole.sum::<u64>() as f64 / units;
        let share = |oracle_total: u64| oracle_total as f64 / units / whole.max(f64::MIN_POSITIVE);
        let focus = focus(
            columns,
            1 + summaries.len(),
            |index, column| summaries[index - 1].columns[column].samples,
            |index| share(summaries[index - 1].oracle_total),
            |index| &commands[index - 1],
        );
        let in_verdict: HashSet<&str> = focus.iter().map(|at| &*commands[at - 1]).collect();
        let mut processes = Vec::new();
        let mut functions = rows::Functions::default();
        let mut instructions = rows::Instructions::default();
        let mut tea = tea::TeaBuilder::new(evaluation, columns);
        let mut disagreements = Vec::new();
        let mut verdict = VerdictBuilder::new(selection);
        let mut flame = FlameBuilder::new(evaluation, &gathered.symbols, columns);
        let mut in_guest = InGuestBuilder::new(columns, guests);
        let mut module_units = vec![0u64; gathered.symbols.modules.len()];
        let mut builder = rows::RowBuilder::new(selection);
        for (at, (summary, name)) in summaries.iter().zip(&names).enumerate() {
            let rows = gathered.rows(at);
            let mut own = ProcessSums::new(std::slice::from_ref(summary), columns.len());
            own.add(&rows, &mut all);
            let id = summary.process.0 as usize;
            let process = evaluation.processes.get(id);
            let stands_for = process.and_then(|process| process.stands_for);
            processes.push(ProcessReport {
                id: Some(summary.process),
                command: commands[at].clone(),
                count: stands_for.map_or(1, |others| others as usize),
                pid: process.and_then(|process| process.pid),
                ..own.finish(name, share(rows.oracle_total), units, selection.subsample_totals)
            });
            functions.add(selection, at, &rows);
            flame.add(name, &rows);
            in_guest.add(at, &rows, &mut builder);
            let in_focus = focus.contains(&(at + 1));
            instructions.add(at, &rows, in_focus);
            if let Some(tea) = &mut tea {
                tea.add(at, &rows, name, in_focus.then_some(&mut builder));
            }
            if in_focus {
                let own =
                    disagreements::disagreements(evaluation, at, &rows, columns, &mut builder);
                disagreements.extend(own);
            }
            if in_verdict.contains(&*commands[at]) {
                verdict.add(at, &commands[at], &rows);
            }
            for (place, weight) in rows.places.iter().zip(&rows.oracle) {
                let module = gathered.symbols.locations[*place as usize].module;
                module_units[module.0 as usize] += weight;
            }
        }
        let (flame, placed) = flame.finish();
        let mut everyone = all.finish("all", 1.0, units, selection.subsample_totals);
        everyone.count = processes.iter().map(|process| process.count).sum();
        if let Some(margins) = &mut everyone.margins {
            // All processes are all of it, whatever was sampled.
            (margins.share, margins.of_all) = Default::default();
        }
        processes.insert(0, everyone);
        Self {
            names,
            focus,
            processes,
            functions: functions.finish(),
            instructions: instructions.finish(selection, gathered),
            tea: tea.map(tea::TeaBuilder::finish),
            disagreements,
            verdict: verdict.finish(&mut builder),
            flame,
            placed,
            module_units,
            in_guest: in_guest.finish(),
        }
    }
}

fn modules(symbols: &Symbols, units: Vec<u64>) -> Vec<ModuleRow> {
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
            missing: module.missing.iter().chain(&module.nameless).cloned().collect(),
        })
        .collect()
}

fn warnings(
    evaluation: &Evaluation,
    gathered: &Gathered<'_>,
    matched: &[Matched],
    units: f64,
) -> Vec<String> {
    let mut out = gathered.symbols.warnings.clone();
    if evaluation.malformed_side_band > 0 {
        out.push(format!(
            "{} side-band records of the guest's driver could not be read",
            evaluation.malformed_side_band
        ));
    }
    for matched in matched {
        let name = &matched.name;
        let lost: u64 = matched.unmatched.values().sum();
        if lost > 0 {
            out.push(format!(
                "{name}: {:.0} cycles at addresses that were never executed count as wrong",
                lost as f64 / units
            ));
        }
        if matched.strangers > 0 {
            out.push(format!(
                "{name}: {:.0} cycles of processes that the stream does not know are left out",
                matched.strangers as f64 / units
            ));
        }
        let known = |process| gathered.processes.iter().any(|it| it.process == process);
        if !matched.unmatched.keys().copied().all(known) {
            out.push(format!("{name}: some sampled processes have no cycles in the stream"));
        }
    }
    out
}
