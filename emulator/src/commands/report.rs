//! `tipsim report`, and the report's files of a run.

mod compare;

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::Path;

use commit_trace::TraceEnd;
use critical_path::Excerpts;
use profile::{Evaluation, Evaluator};
use report::stored::StoredError;
use report::{
    CounterInputs, FlameFile, Options, Report, ReportInputs, TruthInputs, UnitInputs, explain,
    part_line,
};
use serde_json::Value;
use simulation::{Sampled, SampledUnits, SamplingPlan};
use timing::Preset;

use super::{tables, trace};
use crate::cli::{Level, ReportArgs, ReportFormat};
use crate::commands::export::export;
use crate::failure::{BadInput, bad_input, write_whole};
use crate::host::terminal::{say_exactly, say_json};
use crate::run_folder::report_files::{FLAME, REPORT};
use crate::run_folder::run_json::RunJson;
use crate::run_folder::sampled_events::metric;
use crate::run_folder::{RUN, Results, TRACE, UNITS};
use crate::run_folder::{evaluation, guest_counts, guest_profiles, report_files, truth};
use crate::spec::MAX_HARTS;
use crate::symbol_sources::names::{SymbolPaths, disassemble, symbol_paths};

/// A report for the terminal.
pub(crate) struct Written {
    /// The whole report.
    pub text: String,
    /// What binds the program.
    pub verdict: String,
}

/// What a report is of.
pub(crate) struct ReportScope<'a> {
    /// The hart that the report is of, if the run has several; `None`: the report is of the whole run.
    pub hart: Option<u32>,
    /// Evaluations of all harts of the run.
    pub harts: &'a [Evaluation],
    /// Excerpts of what the report is of, if there are any.
    pub excerpts: Option<&'a Excerpts>,
}

/// Writes errors.json, flame.json and report.{txt,json,html} among the results of a run; `how` is its run.json.
pub(crate) fn write(
    run: &mut Results,
    evaluation: &Evaluation,
    symbols: &SymbolPaths,
    of: &ReportScope<'_>,
    core: &Preset,
    how: Value,
) -> anyhow::Result<Written> {
    let symbolizer = symbols.symbolizer();
    // The guest's profiles and counts have all harts in one.
    let whole = of.hart.is_none();
    let guest_files = run.guest_files();
    let guests = match whole {
        true => guest_profiles::read(&guest_files),
        false => Vec::new(),
    };
    let counters = report::counted(&how, of.hart).map(|events| CounterInputs {
        guest: match whole {
            true => guest_counts::read(&guest_files, &events),
            false => Vec::new(),
        },
        events,
    });
    // The truth has all harts in one, too.
    let truth = match whole {
        true => truth::read(run)?,
        false => None,
    };
    let samples = match &truth {
        Some(_) => guest_profiles::samples(&guest_files),
        None => Vec::new(),
    };
    let truth = truth.as_ref().map(|truth| TruthInputs { truth, files: &samples, metric: &metric });
    let units = match whole && run.has(UNITS) {
        true => unit_inputs(run, &how)?,
        false => None,
    };
    let report = Report::build(ReportInputs {
        units,
        of_all_harts: whole,
        harts: if whole { of.harts } else { &[] },
        guests: &guests,
        excerpts: of.excerpts,
        counters,
        truth,
        ..ReportInputs::new(evaluation, &symbolizer, &disassemble, how)
    });
    let text = report.text(&Options::default());
    let pretty = |value: &Value| serde_json::to_string_pretty(value).map(|s| s + "\n");
    for (file, content) in [
        ("report.txt", text.clone()),
        ("errors.json", pretty(&report.errors_json())?),
        (REPORT, report.json_text()?),
        ("report.html", report.html(&core.picture())),
        (FLAME, serde_json::to_string(&FlameFile::new(&report.common.flame))?),
    ] {
        run.write(&evaluation::name(of.hart, file), content.as_bytes())?;
    }
    let mut verdict = String::new();
    for notice in report.common.notices() {
        verdict += &(notice + "\n");
    }
    report.write_verdict(&mut verdict, &Options::default())?;
    Ok(Written { text, verdict })
}

/// Returns the units of a run's region; `None` if its run.json does not say what they are of.
fn unit_inputs(run: &Results, how: &Value) -> anyhow::Result<Option<UnitInputs>> {
    let Some(sampled) = Sampled::of_metadata(how) else { return Ok(None) };
    let units: SampledUnits = run.json(UNITS)?;
    Ok(Some(UnitInputs {
        instructions: sampled.instructions,
        at: units.at,
        unit_instructions: units.instructions,
        cycles: units.cycles,
        weights: units.weights,
        phases: units.strata,
        phases_over_region: units.phases.map_or_else(Vec::new, |phases| phases.of),
        tell_chance: sampled.plan.scheme.tells_chance(),
    }))
}

/// Returns why an evaluation is not what a reader of a report expects, if so.
pub(crate) fn empty(evaluation: &Evaluation) -> Option<String> {
    match evaluation {
        Evaluation { cycles: 0, .. } => Some("nothing was profiled".to_owned()),
        found if found.idle >= found.cycles => {
            Some("nothing but idle time was profiled".to_owned())
        }
        _ => None,
    }
}

/// The core that a trace was recorded on. What an older version did not know is as in the default preset.
fn core(recorded: &Value) -> anyhow::Result<Preset> {
    let mut core = serde_json::to_value(Preset::load("boom-4w")?)?;
    for (section, parameters) in recorded.as_object().into_iter().flatten() {
        match (&mut core[section], parameters) {
            (Value::Object(known), Value::Object(recorded)) => known.extend(recorded.clone()),
            (known, recorded) => *known = recorded.clone(),
        }
    }
    Ok(serde_json::from_value(core)?)
}

/// The excerpts of all harts, as the report of the whole run numbers their instructions.
pub(crate) fn whole_excerpts(harts: &[Evaluation], excerpts: &[Excerpts]) -> Option<Excerpts> {
    match excerpts {
        // Without other harts, the instructions of a hart keep their numbers.
        [one] => Some(one.clone()),
        _ => {
            let numbers = Evaluation::merged_numbers(harts);
            Excerpts::merged(excerpts, |hart, inst| numbers[hart].inst(inst))
        }
    }
}

/// What a run with its trace found, and on which core: what it kept of its evaluations, or else out of its trace.
pub(crate) struct Recorded {
    /// Evaluations by hart.
    harts: Vec<Evaluation>,
    /// Whether this very simulator had kept the evaluations of all harts.
    kept: bool,
    core: Preset,
    /// What the trace says of the run, as it is.
    metadata: Value,
    /// Why the trace does not have the whole run, if it does not.
    part: Option<String>,
}

impl Recorded {
    /// Reads what a run kept of its evaluations, or replays its trace.
    pub(crate) fn read(run: &Results, call_stacks: bool) -> anyhow::Result<Self> {
        let path = run.path().join(TRACE);
        // A report that is there is of the whole trace: one of a part must not take its place.
        run.check_trace().map_err(|e| {
            BadInput(format!(
                "{e}; the reports stay as they are (`tipsim trace evaluate` reads what is left)"
            ))
        })?;
        run.file(TRACE).map_err(|e| bad_input(&path, e))?;
        let reader = trace::open(&path)?;
        let meta = trace::metadata(&path, &reader)?;
        let (samplers, region) = trace::profiled(&path, &meta)?;
        let core =
            core(&meta.core).map_err(|e| bad_input(&path, format!("metadata: core: {e}")))?;
        // A hart that never left reset is in no chunk.
        let recorded = reader.chunks().iter().map(|chunk| chunk.hart.0.saturating_add(1));
        let harts = recorded.chain(harts(run)).max().unwrap_or(1);
        if harts > MAX_HARTS {
            let error = format!("expected at most {MAX_HARTS} harts, found {harts}");
            return Err(bad_input(&path, error).into());
        }
        let metadata = trace::raw_metadata(&reader);
        let is_sampled = trace::is_sampled(&reader);
        let tells_chance =
            SamplingPlan::of_metadata(&metadata).is_none_or(|plan| plan.scheme.tells_chance());
        let mut is_kept = true;
        let call_stacks = call_stacks || meta.call_stacks;
        let evaluate = |hart: u32| {
            let one = (harts > 1).then_some(hart);
            match evaluation::kept(run, one) {
                Ok(kept) if kept.contexts.is_some() || !call_stacks => return anyhow::Ok(kept),
                Ok(_) => {}
                Err(StoredError::Io(error)) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => eprintln!(
                    "tipsim: {}: {error}: it is made anew from the trace",
                    run.path().join(evaluation::name(one, evaluation::EVALUATION)).display()
                ),
            }
            is_kept = false;
            let mut evaluator = Evaluator::new(&samplers, region).in_detail(core.decode.width);
            if call_stacks {
                evaluator = evaluator.with_call_stacks();
            }
            if is_sampled {
                evaluator = match tells_chance {
                    true => evaluator.of_sampled_region(),
                    false => evaluator.of_chosen_units(),
                };
            }
            trace::replay(&path, hart, |batch| evaluator.batch(batch))?;
            let evaluation = evaluator.finish();
            evaluation::keep(run, one, &evaluation)?;
            Ok(evaluation)
        };
        Ok(Self {
            harts: (0..harts).map(evaluate).collect::<Result<_, _>>()?,
            kept: is_kept,
            core,
            metadata: trace::raw_metadata(&reader),
            part: match reader.end() {
                TraceEnd::Complete => None,
                end => Some(format!("the trace is {end}")),
            },
        })
    }

    /// Returns whether this very simulator ran the run, or has read all of its trace before.
    pub(crate) fn is_of_this_simulator(&self) -> bool {
        self.kept
    }

    /// All harts together.
    pub(crate) fn whole(&self) -> Cow<'_, Evaluation> {
        Evaluation::merged(&self.harts).unwrap_or_default()
    }

    /// Writes the reports among the results anew.
    pub(crate) fn rewrite(&self, run: &mut Results, symbols: &SymbolPaths) -> anyhow::Result<()> {
        let mut how = self.metadata.clone();
        if let (Value::Object(how), true) = (&mut how, run.has(RUN)) {
            // A run's own run.json says how it went; that of a killed run is from its beginning.
            let own: serde_json::Map<String, Value> = run.json(RUN)?;
            match run.is_unfinished() {
                true => how.extend(own),
                false => *how = own,
            }
        }
        let (excerpts, damaged) = self.excerpts(run);
        let mut how = RunJson::of(how).map_err(|e| bad_input(&run.path().join(RUN), e))?;
        // What the run said of itself says more than what its trace shows.
        let recorded = how
            .part
            .clone()
            .or_else(|| Some(run.part()?.to_owned()))
            .or_else(|| self.part.clone())
            .or_else(|| empty(&self.whole()));
        let parts: Vec<String> = recorded.into_iter().chain(damaged).collect();
        let part = (!parts.is_empty()).then(|| parts.join("; "));
        how.part.clone_from(&part);
        let how = how.to_value();
        if run.is_unfinished() || !run.has(RUN) {
            run.write(RUN, (serde_json::to_string_pretty(&how)? + "\n").as_bytes())?;
        }
        let whole = self.whole();
        let one = (0..).zip(&self.harts).filter(|_| self.harts.len() > 1);
        let one = one.map(|(hart, evaluation)| (Some(hart), evaluation));
        let all = match excerpts.len() == self.harts.len() {
            true => whole_excerpts(&self.harts, &excerpts),
            false => None,
        };
        for (hart, evaluation) in std::iter::once((None, &*whole)).chain(one) {
            let of = ReportScope {
                hart,
                harts: &self.harts,
                excerpts: match hart {
                    None => all.as_ref(),
                    Some(hart) => excerpts.get(hart as usize),
                },
            };
            write(run, evaluation, symbols, &of, &self.core, how.clone())?;
        }
        run.save(part.as_deref())
    }

    /// The excerpts of each hart, if those of all were kept, and what is wrong with them.
    fn excerpts(&self, run: &Results) -> (Vec<Excerpts>, Option<String>) {
        let several = self.harts.len() > 1;
        let mut excerpts = Vec::new();
        for hart in 0..self.harts.len() as u32 {
            match evaluation::kept_excerpts(run, several.then_some(hart)) {
                Ok(Some(of_hart)) => excerpts.push(of_hart),
                Ok(None) => return (Vec::new(), None),
                Err(error) => {
                    let file = evaluation::name(several.then_some(hart), evaluation::EXCERPTS);
                    let why = format!(
                        "{file}: {error}: there is no section Loops, as nothing else has the excerpts"
                    );
                    return (Vec::new(), Some(why));
                }
            }
        }
        (excerpts, None)
    }
}

/// Exit status of what shows a part of a run.
const PART_STATUS: u8 = 1;

/// The exit status of what shows a run, and a word of a part on standard error.
pub(crate) fn status(dir: &Path, part: Option<&str>) -> u8 {
    match part {
        None => 0,
        Some(part) => {
            eprintln!("tipsim: {}: not whole: {part}", dir.display());
            PART_STATUS
        }
    }
}

/// `tipsim report`: what the run wrote, one level of its errors, or its profiles for another tool. The exit status says whether the
/// run was whole.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<u8> {
    if !args.after.is_empty() {
        return compare::compare(args);
    }
    if !args.map.is_empty() {
        return Err(BadInput("--map: expected two runs to compare, found one".into()).into());
    }
    let mut run = match args.rebuild {
        true => Results::open_any(&args.dir)?,
        false => Results::open(&args.dir)?,
    };
    if !run.has(RUN) && !run.has(TRACE) {
        let expected =
            "expected the results of a run, such as tipsim run --out DIR leaves; found no run.json";
        return Err(bad_input(&args.dir, expected).into());
    }
    check_hart(args, &run)?;
    let is_retimed = RunJson::read(&run).is_ok_and(|how| how.retimed.is_some());
    if is_retimed && (args.rebuild || !run.has(REPORT)) {
        let expected = match args.rebuild {
            true => "expected a run with a trace; tipsim retime makes its report anew",
            false => "expected a report, found none: tipsim retime makes it without --cycles-only",
        };
        return Err(bad_input(&args.dir, expected).into());
    }
    if args.rebuild {
        run.lock()?;
        let symbols = symbol_paths(args, &run)?;
        Recorded::read(&run, args.call_stacks)?.rewrite(&mut run, &symbols)?;
    }
    show(args, &run)?;
    Ok(status(&args.dir, run.part()))
}

fn show(args: &ReportArgs, run: &Results) -> anyhow::Result<()> {
    let hart = one_of_several(args, run);
    let no_report = run.part().filter(|_| !run.has(&evaluation::name(hart, REPORT)));
    if let Some(part) = no_report {
        return match args.format {
            ReportFormat::Text => put(args, &(part_line(part) + "\n")),
            _ => Err(anyhow::anyhow!("{}: there is no report: {part}", args.dir.display())),
        };
    }
    let text = |file: &str| run.text(&evaluation::name(hart, file));
    if let Some(what) = &args.explain {
        return explained(args, run, what);
    }
    if args.level.is_some() && !matches!(args.format, ReportFormat::Text | ReportFormat::Json) {
        return Err(BadInput("--level: expected --format text or json".into()).into());
    }
    if let ReportFormat::Tool(format) = args.format {
        return export(args, run, format);
    }
    if !args.profiler.is_empty() {
        return Err(BadInput("--profiler: expected a format of another tool".into()).into());
    }
    if let ReportFormat::Tables(format) = args.format {
        let report = report_files::report(run, hart)?;
        // Counters of all harts are there.
        let how = run.json(RUN)?;
        return tables::report(args.table, &report, &how, format, args.output.as_deref());
    }
    if args.table.is_some() {
        return Err(BadInput("--table: expected --format parquet or arrow".into()).into());
    }
    let text = match (args.level, args.format) {
        (Some(level), format) => {
            let errors: Value = run.json(&evaluation::name(hart, "errors.json"))?;
            let part = run.part().filter(|_| format == ReportFormat::Text);
            let part = part.map_or_else(String::new, |part| part_line(part) + "\n");
            part + &one_level(&errors, level, format)?
        }
        (None, ReportFormat::Html) => text("report.html")?,
        (None, ReportFormat::Json) => text(REPORT)?,
        (None, _) => {
            let text = text("report.txt")?;
            // The report does not say so itself if something could not be written after it.
            let part = run.part().map(part_line);
            match part.filter(|_| !text.starts_with("NOT WHOLE")) {
                Some(line) => line + "\n\n" + &text,
                None => text,
            }
        }
    };
    put(args, &text)
}

/// Returns the hart that is asked for, if the run has several.
fn one_of_several(args: &ReportArgs, run: &Results) -> Option<u32> {
    args.one_hart.filter(|_| harts(run).is_none_or(|harts| harts > 1))
}

/// Returns the number of harts of a run that is over; `None`: its run.json does not say that it is.
fn harts(run: &Results) -> Option<u32> {
    let how = RunJson::read(run).ok()?;
    how.cycles?;
    // The run.json of a run with a single hart has no list of harts.
    Some(how.harts.map_or(1, |harts| harts.len() as u32))
}

fn check_hart(args: &ReportArgs, run: &Results) -> Result<(), BadInput> {
    let (Some(hart), Some(harts)) = (args.one_hart, harts(run)) else {
        return Ok(());
    };
    trace::is_hart(hart, harts).map_err(|e| bad_input(run.path(), e))
}

/// `tipsim report DIR --explain NUMBER-OR-PATH`.
fn explained(args: &ReportArgs, run: &Results, what: &str) -> anyhow::Result<()> {
    let report = report_files::report(run, one_of_several(args, run))?;
    let found = explain(&report, what).map_err(|e| BadInput(format!("--explain: {e}")))?;
    match args.format {
        ReportFormat::Text => {
            let part = run.part().map(|part| part_line(part) + "\n");
            put(args, &(part.unwrap_or_default() + &found.text()))
        }
        ReportFormat::Json => put(args, &(serde_json::to_string_pretty(&found)? + "\n")),
        _ => Err(BadInput("--format: expected text or json to explain a number".into()).into()),
    }
}

/// Writes to the output file, or to standard output.
fn put(args: &ReportArgs, text: &str) -> anyhow::Result<()> {
    match &args.output {
        Some(path) => write_whole(path, text)?,
        // Other programs read HTML and JSON.
        None if args.format == ReportFormat::Html => say_exactly(text),
        None if args.format == ReportFormat::Json => say_json(text),
        None => print!("{text}"),
    }
    Ok(())
}

fn one_level(errors: &Value, level: Level, format: ReportFormat) -> anyhow::Result<String> {
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
    if format == ReportFormat::Json {
        return Ok(serde_json::to_string_pretty(&processes)? + "\n");
    }
    let mut text = format!("profile error by {level}\n");
    for (process, errors) in processes {
        text += &format!("{process:24}");
        for (profiler, error) in errors.as_object().into_iter().flatten() {
            let percent = 100.0 * error.as_f64().unwrap_or(f64::NAN);
            text += &format!("  {profiler} {percent:.2} %");
        }
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_of_an_older_version_can_be_read() {
        let preset = Preset::load("mega-boom").unwrap();
        let mut recorded = serde_json::to_value(&preset).unwrap();
        recorded["isa"].as_object_mut().unwrap().remove("zfa");
        assert!(serde_json::from_value::<Preset>(recorded.clone()).is_err());
        let read = core(&recorded).unwrap();
        assert_eq!((read.rob, read.name), (preset.rob, preset.name));
        recorded["rob"] = "large".into();
        assert!(core(&recorded).is_err());
    }
}
