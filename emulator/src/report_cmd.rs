//! `tipsim report`, and the report's files of a run.

use std::borrow::Cow;
use std::path::Path;

use critical_path::Excerpts;
use profile::{Evaluation, Evaluator};
use report::{Comparison, Flame, Options, Report, Run, explain};
use serde::de::DeserializeOwned;
use serde_json::Value;
use timing::Preset;

use crate::cli::{Level, ReportArgs, ReportFormat};
use crate::export_cmd::export;
use crate::failure::{BadInput, bad_input, write_whole};
use crate::kept::folder;
use crate::names::{SymbolPaths, disassemble, symbol_paths};
use crate::sampled_events::metric;
use crate::spec::MAX_HARTS;
use crate::terminal::{say_exactly, say_json};
use crate::{guest_counts, guest_profiles, kept, tables_cmd, trace_cmd, truth};

/// A report's flame graph, for comparisons.
const FLAME: &str = "flame.json";

/// A report for the terminal.
pub struct Written {
    /// All of it.
    pub text: String,
    /// What binds the program.
    pub verdict: String,
}

/// What a report is of.
pub struct ReportScope<'a> {
    /// The run's folder.
    pub out: &'a Path,
    /// One of several harts; `None`: the whole run.
    pub hart: Option<u32>,
    /// Of the whole run: its harts.
    pub harts: &'a [Evaluation],
    /// Of it, if there are any.
    pub excerpts: Option<&'a Excerpts>,
}

/// Writes errors.json, flame.json and report.{txt,json,html} into the folder of what it is of.
pub fn write(
    evaluation: &Evaluation,
    symbols: &SymbolPaths,
    of: &ReportScope<'_>,
    core: &Preset,
    run: Value,
) -> anyhow::Result<Written> {
    let symbolizer = symbols.symbolizer();
    // The guest's profiles and counts have all harts in one.
    let whole = of.hart.is_none();
    let guests = match whole {
        true => guest_profiles::read(of.out),
        false => Vec::new(),
    };
    let counts = report::counted(&run, of.hart);
    let mut report = Report::build(evaluation, &symbolizer, &guests, &disassemble, run);
    if let Some(excerpts) = of.excerpts {
        report = report.with_loops(evaluation, excerpts, &symbolizer, &disassemble);
    }
    if let Some(counts) = counts {
        let guest = match whole {
            true => guest_counts::read(of.out, &counts),
            false => Vec::new(),
        };
        report = report.with_counters(counts, guest);
    }
    // So has the truth.
    if let (true, Some(truth)) = (whole, truth::read(of.out)?) {
        let samples = guest_profiles::samples(of.out);
        report = report.with_truth(&truth, &samples, &metric, &disassemble);
    }
    // A hart knows but its own part of what threads do.
    if whole {
        report = report
            .with_harts(of.harts)
            .with_waiting(evaluation, &symbolizer);
    }
    let text = report.text(&Options::default());
    let pretty = |value: &Value| serde_json::to_string_pretty(value).map(|s| s + "\n");
    for (name, content) in [
        ("report.txt", text.clone()),
        ("errors.json", pretty(&report.errors_json())?),
        ("report.json", pretty(&report.json())?),
        ("report.html", report.html(&core.picture())),
        (FLAME, serde_json::to_string(&report.flame)?),
    ] {
        let path = folder(of.out, of.hart).join(name);
        write_whole(&path, content)?;
    }
    let mut verdict = String::new();
    report.write_verdict(&mut verdict, &Options::default())?;
    Ok(Written { text, verdict })
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
pub fn whole_excerpts(harts: &[Evaluation], excerpts: &[Excerpts]) -> Option<Excerpts> {
    match excerpts {
        // Its numbers are its own.
        [one] => Some(one.clone()),
        _ => {
            let numbers = Evaluation::merged_numbers(harts);
            Excerpts::merged(excerpts, |hart, inst| numbers[hart].inst(inst))
        }
    }
}

/// What a run with its trace found, and on which core: what it kept of its evaluations, or else out of its trace.
pub struct Recorded {
    /// By hart.
    harts: Vec<Evaluation>,
    /// This very simulator had kept all of them.
    kept: bool,
    core: Preset,
    meta: Value,
}

impl Recorded {
    /// Of the run in `dir`.
    pub fn read(dir: &Path, call_stacks: bool) -> anyhow::Result<Self> {
        let path = dir.join("trace.tip");
        let reader = trace_cmd::open(&path)?;
        let meta = trace_cmd::metadata(&reader);
        let (samplers, region) = trace_cmd::profiled(&path, &meta)?;
        let core =
            core(&meta["core"]).map_err(|e| bad_input(&path, format!("metadata: core: {e}")))?;
        // One that never left reset is in no chunk.
        let recorded = reader
            .chunks()
            .iter()
            .map(|chunk| chunk.hart.0.saturating_add(1));
        let harts = recorded.chain(harts(dir)).max().unwrap_or(1);
        if harts > MAX_HARTS {
            let error = format!("expected at most {MAX_HARTS} harts, found {harts}");
            return Err(bad_input(&path, error).into());
        }
        let mut is_kept = true;
        let call_stacks = call_stacks || meta["call_stacks"] == true;
        let evaluate = |hart: u32| {
            let one = (harts > 1).then_some(hart);
            let kept = kept::kept(dir, one);
            if let Some(evaluation) = kept.filter(|kept| kept.contexts.is_some() || !call_stacks) {
                return anyhow::Ok(evaluation);
            }
            is_kept = false;
            let mut evaluator = Evaluator::new(&samplers, region).in_detail(core.decode.width);
            if call_stacks {
                evaluator = evaluator.with_call_stacks();
            }
            trace_cmd::replay(&path, hart, |batch| evaluator.batch(batch))?;
            let evaluation = evaluator.finish();
            let out = folder(dir, one);
            std::fs::create_dir_all(&out).map_err(|e| bad_input(&out, e))?;
            kept::keep(dir, one, &evaluation)?;
            Ok(evaluation)
        };
        Ok(Self {
            harts: (0..harts).map(evaluate).collect::<Result<_, _>>()?,
            kept: is_kept,
            core,
            meta,
        })
    }

    /// This very simulator ran it, or has read all of its trace before.
    pub fn is_of_this_simulator(&self) -> bool {
        self.kept
    }

    /// All harts together.
    pub fn whole(&self) -> Cow<'_, Evaluation> {
        Evaluation::merged(&self.harts).unwrap_or_default()
    }

    /// What was kept of each of several harts, if it was of all.
    fn excerpts(&self, dir: &Path) -> Vec<Excerpts> {
        let each = (0..self.harts.len() as u32).map(|hart| kept::kept_excerpts(dir, Some(hart)));
        each.collect::<Option<_>>().unwrap_or_default()
    }

    /// Writes the reports in `dir` anew.
    pub fn rewrite(&self, dir: &Path, symbols: &SymbolPaths) -> anyhow::Result<()> {
        let run = std::fs::read_to_string(dir.join("run.json"))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_else(|| self.meta.clone());
        let whole = self.whole();
        let one = (0..).zip(&self.harts).filter(|_| self.harts.len() > 1);
        let one = one.map(|(hart, evaluation)| (Some(hart), evaluation));
        for (hart, evaluation) in std::iter::once((None, &*whole)).chain(one) {
            let excerpts = match (hart, &self.harts[..]) {
                (None, [_, _, ..]) => whole_excerpts(&self.harts, &self.excerpts(dir)),
                _ => kept::kept_excerpts(dir, hart),
            };
            let of = ReportScope {
                out: dir,
                hart,
                harts: &self.harts,
                excerpts: excerpts.as_ref(),
            };
            write(evaluation, symbols, &of, &self.core, run.clone())?;
        }
        Ok(())
    }
}

/// `tipsim report`: what the run wrote, one level of its errors, or its profiles for another tool.
pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    for dir in std::iter::once(&args.dir).chain(&args.after) {
        check_hart(args, dir)?;
    }
    let dir = folder(&args.dir, one_of_several(args, &args.dir));
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))
    };
    if let Some(after) = &args.after {
        return compare(args, after);
    }
    if !args.map.is_empty() {
        return Err(BadInput("--map: expected two runs to compare, found one".into()).into());
    }
    if args.rebuild {
        Recorded::read(&args.dir, args.call_stacks)?.rewrite(&args.dir, &symbol_paths(args)?)?;
    }
    if let Some(what) = &args.explain {
        return explained(args, what);
    }
    if args.level.is_some() && !matches!(args.format, ReportFormat::Text | ReportFormat::Json) {
        return Err(BadInput("--level: expected --format text or json".into()).into());
    }
    if let ReportFormat::Tool(format) = args.format {
        return export(args, format);
    }
    if !args.profiler.is_empty() {
        return Err(BadInput("--profiler: expected a format of another tool".into()).into());
    }
    if let ReportFormat::Tables(format) = args.format {
        let report = read_json(args, &args.dir, "report.json")?;
        // Counters of all harts are there.
        let path = args.dir.join("run.json");
        let run = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
        let run = serde_json::from_str(&run).map_err(|e| bad_input(&path, e))?;
        return tables_cmd::report(args.table, &report, &run, format, args.output.as_deref());
    }
    if args.table.is_some() {
        return Err(BadInput("--table: expected --format parquet or arrow".into()).into());
    }
    let text = match (args.level, args.format) {
        (Some(level), format) => {
            let path = dir.join("errors.json");
            let errors: Value =
                serde_json::from_str(&read("errors.json")?).map_err(|e| bad_input(&path, e))?;
            one_level(&errors, level, format)?
        }
        (None, ReportFormat::Html) => read("report.html")?,
        (None, ReportFormat::Json) => read("report.json")?,
        (None, _) => read("report.txt")?,
    };
    put(args, &text)
}

/// The hart that is asked for, of a run of several.
fn one_of_several(args: &ReportArgs, dir: &Path) -> Option<u32> {
    args.one_hart
        .filter(|_| harts(dir).is_none_or(|harts| harts > 1))
}

/// Harts of a run that is over, if it says so.
fn harts(dir: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(dir.join("run.json")).ok()?;
    let run: Value = serde_json::from_str(&text).ok()?;
    // That of a single hart has no list of them.
    run.get("cycles")?;
    Some(
        run["harts"]
            .as_array()
            .map_or(1, |harts| harts.len() as u32),
    )
}

fn check_hart(args: &ReportArgs, dir: &Path) -> Result<(), BadInput> {
    let (Some(hart), Some(harts)) = (args.one_hart, harts(dir)) else {
        return Ok(());
    };
    trace_cmd::is_hart(hart, harts).map_err(|e| bad_input(dir, e))
}

/// `tipsim report DIR --explain NUMBER-OR-PATH`.
fn explained(args: &ReportArgs, what: &str) -> anyhow::Result<()> {
    let path = folder(&args.dir, one_of_several(args, &args.dir)).join("report.json");
    let text = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| bad_input(&path, e))?;
    let found = explain(&report, what).map_err(|e| BadInput(format!("--explain: {e}")))?;
    match args.format {
        ReportFormat::Text => put(args, &found.text()),
        ReportFormat::Json => put(args, &(serde_json::to_string_pretty(&found)? + "\n")),
        _ => Err(BadInput("--format: expected text or json to explain a number".into()).into()),
    }
}

/// Writes to the output file, or to standard output.
fn put(args: &ReportArgs, text: &str) -> anyhow::Result<()> {
    match &args.output {
        Some(path) => write_whole(path, text)?,
        // Other programs read those.
        None if args.format == ReportFormat::Html => say_exactly(text),
        None if args.format == ReportFormat::Json => say_json(text),
        None => print!("{text}"),
    }
    Ok(())
}

/// A JSON file of a run, or of the one of its harts that is asked for.
fn read_json<T: DeserializeOwned>(args: &ReportArgs, dir: &Path, name: &str) -> anyhow::Result<T> {
    let path = folder(dir, one_of_several(args, dir)).join(name);
    let text = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
    Ok(serde_json::from_str(&text).map_err(|e| bad_input(&path, e))?)
}

/// The flame graph of a run.
fn flame(args: &ReportArgs, dir: &Path) -> anyhow::Result<Flame> {
    let found = read_json(args, dir, FLAME);
    found.map_err(|error| match dir.join(FLAME).exists() {
        true => error,
        false => bad_input(
            &dir.join(FLAME),
            "no such file; `tipsim report DIR --rebuild` writes it",
        )
        .into(),
    })
}

/// `tipsim report BEFORE AFTER`.
fn compare(args: &ReportArgs, after_dir: &Path) -> anyhow::Result<()> {
    const ROWS: usize = 20;
    let renamed = |pair: &String| match pair.split_once('=') {
        Some((before, after)) if !before.is_empty() && !after.is_empty() => {
            Ok((before.to_owned(), after.to_owned()))
        }
        _ => Err(BadInput(format!(
            "--map: expected BEFORE=AFTER, two names of processes, found \"{pair}\""
        ))),
    };
    let map: Vec<_> = args.map.iter().map(renamed).collect::<Result<_, _>>()?;
    if args.level.is_some() || !args.profiler.is_empty() {
        let error = "--level, --profiler: expected one run, found two to compare";
        return Err(BadInput(error.into()).into());
    }
    let read = |dir| read_json::<Run>(args, dir, "report.json");
    let (before, after) = (read(&args.dir)?, read(after_dir)?);
    let comparison =
        Comparison::new(&before, &after, &map).map_err(|e| BadInput(format!("--map: {e}")))?;
    match args.format {
        ReportFormat::Text => put(args, &comparison.text(ROWS)),
        ReportFormat::Json => put(args, &(serde_json::to_string_pretty(&comparison)? + "\n")),
        ReportFormat::Html => {
            let (before, after) = (flame(args, &args.dir)?, flame(args, after_dir)?);
            put(args, &comparison.html(&before, &after, &map))
        }
        _ => {
            Err(BadInput("--format: expected text, json or html to compare two runs".into()).into())
        }
    }
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
