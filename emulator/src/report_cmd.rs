//! `tipsim report`, and the report's files of a run.

use std::collections::BTreeMap;
use std::path::Path;

use critical_path::Excerpts;
use profile::{Evaluation, Evaluator};
use report::{Comparison, Options, Report, Run, explain};
use serde::Deserialize;
use serde_json::Value;
use timing::Preset;

use crate::cli::{Level, ReportArgs, ReportFormat};
use crate::export_cmd::export;
use crate::failure::{BadInput, bad_input, write_whole};
use crate::kept::folder;
use crate::names::{SymbolPaths, disassemble, symbol_paths};
use crate::sampled_events::metric;
use crate::{guest_counts, guest_profiles, kept, trace_cmd, truth};

/// A report for the terminal.
pub struct Written {
    /// All of it.
    pub text: String,
    /// What binds the program.
    pub verdict: String,
}

/// What is known of a hart's part of a run.
pub struct Found<'a> {
    /// Its profiles,
    pub evaluation: &'a Evaluation,
    /// and its excerpts, if there are any.
    pub excerpts: Option<&'a Excerpts>,
}

/// Writes errors.json and report.{txt,json,html} of a hart into its folder.
pub fn write(
    found: &Found<'_>,
    symbols: &SymbolPaths,
    (out, hart): (&Path, u32),
    core: &Preset,
    run: Value,
) -> anyhow::Result<Written> {
    let evaluation = found.evaluation;
    let symbolizer = symbols.symbolizer();
    // Of several harts, the guest's profile has all in one.
    let one_hart = run["harts"].is_null();
    let guests = match one_hart {
        true => guest_profiles::read(out),
        false => Vec::new(),
    };
    let counts = &run["counters"]["harts"][hart as usize];
    let counts = BTreeMap::<String, u64>::deserialize(counts).ok();
    let mut report = Report::build(evaluation, &symbolizer, &guests, &disassemble, run);
    if let Some(excerpts) = found.excerpts {
        report = report.with_loops(evaluation, excerpts, &symbolizer, &disassemble);
    }
    if let Some(counts) = counts {
        // The guest's are those of all harts.
        let guest = match one_hart {
            true => guest_counts::read(out, &counts),
            false => Vec::new(),
        };
        report = report.with_counters(counts, guest);
    }
    // The truth is of all harts, as the guest's files are: the first hart's report has them.
    if let (0, Some(truth)) = (hart, truth::read(out)?) {
        let samples = guest_profiles::samples(out);
        report = report.with_truth(&truth, &samples, &metric, &disassemble);
    }
    let text = report.text(&Options::default());
    let pretty = |value: &Value| serde_json::to_string_pretty(value).map(|s| s + "\n");
    for (name, content) in [
        ("report.txt", text.clone()),
        ("errors.json", pretty(&report.errors_json())?),
        ("report.json", pretty(&report.json())?),
        ("report.html", report.html(&core.picture())),
    ] {
        let path = out.join(name);
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

/// Writes a run's report anew, from what the run kept of its evaluation or else from its trace.
fn rebuild(args: &ReportArgs) -> anyhow::Result<()> {
    let path = args.dir.join("trace.tip");
    let reader = trace_cmd::open(&path)?;
    let meta = trace_cmd::metadata(&reader);
    let (samplers, region) = trace_cmd::profiled(&path, &meta)?;
    let core = core(&meta["core"]).map_err(|e| bad_input(&path, format!("metadata: core: {e}")))?;
    let out = folder(&args.dir, args.hart());
    let evaluation = match kept::kept(&args.dir, args.hart()) {
        Some(evaluation) => evaluation,
        None => {
            let mut evaluator = Evaluator::new(&samplers, region).in_detail(core.decode.width);
            trace_cmd::replay(&path, args.hart(), |batch| evaluator.batch(batch))?;
            let evaluation = evaluator.finish();
            std::fs::create_dir_all(&out).map_err(|e| bad_input(&out, e))?;
            kept::keep(&args.dir, args.hart(), &evaluation)?;
            evaluation
        }
    };
    let run = std::fs::read_to_string(args.dir.join("run.json"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or(meta);
    let excerpts = kept::kept_excerpts(&args.dir, args.hart());
    let found = Found {
        evaluation: &evaluation,
        excerpts: excerpts.as_ref(),
    };
    write(
        &found,
        &symbol_paths(args)?,
        (&out, args.hart()),
        &core,
        run,
    )?;
    Ok(())
}

/// `tipsim report`: what the run wrote, one level of its errors, or its profiles for another tool.
pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    for dir in std::iter::once(&args.dir).chain(&args.after) {
        check_hart(args, dir)?;
    }
    let dir = folder(&args.dir, args.hart());
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
        rebuild(args)?;
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
    if let (None, Some(2..)) = (args.one_hart, harts(&args.dir)) {
        eprintln!("tipsim: of hart 0; the run has others (--hart N)");
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
    let path = folder(&args.dir, args.hart()).join("report.json");
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
        None => print!("{text}"),
    }
    Ok(())
}

/// `tipsim report BEFORE AFTER`.
fn compare(args: &ReportArgs, after: &Path) -> anyhow::Result<()> {
    const ROWS: usize = 20;
    let read = |dir: &Path| -> anyhow::Result<Vec<Run>> {
        let of_hart = |hart| {
            let path = folder(dir, hart).join("report.json");
            let text = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
            Ok(serde_json::from_str(&text).map_err(|e| bad_input(&path, e))?)
        };
        match args.one_hart {
            Some(hart) => Ok(vec![of_hart(hart)?]),
            None => (0..harts(dir).unwrap_or(1)).map(of_hart).collect(),
        }
    };
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
    let (before, after) = (read(&args.dir)?, read(after)?);
    let comparison =
        Comparison::new(&before, &after, &map).map_err(|e| BadInput(format!("--map: {e}")))?;
    match args.format {
        ReportFormat::Text => put(args, &comparison.text(ROWS)),
        ReportFormat::Json => put(args, &(serde_json::to_string_pretty(&comparison)? + "\n")),
        _ => Err(BadInput("--format: expected text or json to compare two runs".into()).into()),
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
