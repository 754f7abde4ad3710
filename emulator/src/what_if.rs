//! `tipsim what-if`: what a program would gain if it lost no cycles in some way at some place. Each is a run of its own, on a core
//! without that cause at these instructions, of the same program from the same start.

mod candidates;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
use toml::Value as Toml;

use crate::cli::WhatIfArgs;
use crate::failure::{bad_input, write_whole};
use crate::report_cmd::Recorded;
use crate::spec::{Record, Spec};
use candidates::{Candidate, Wanted, candidates, main_program};

/// The folder of the runs in that of the run.
const FOLDER: &str = "what-if";

/// A candidate, and what became of it.
#[derive(Debug, Serialize)]
struct Trial {
    #[serde(flatten)]
    candidate: Candidate,
    /// Cycles of the program, without the cause.
    cycles: f64,
    /// Share of its cycles that it takes less.
    gain: f64,
}

/// Tries what the run's stacks suggest, or what is asked for, and adds it to the run's report.
pub fn what_if(args: &WhatIfArgs) -> anyhow::Result<()> {
    let wanted = { args.without.iter() }.map(|text| Wanted::parse(text));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let path = args.dir.join("run.json");
    let text = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
    let mut run: Value = serde_json::from_str(&text).map_err(|e| bad_input(&path, e))?;
    let spec: Spec = serde_json::from_value(run["spec"].clone())
        .map_err(|e| bad_input(&path, format!("spec: {e}")))?;
    if !spec.deterministic() {
        return Err(bad_input(
            &path,
            "expected a run that is the same each time, found one with a network",
        )
        .into());
    }
    let symbols = crate::names::recorded(&args.dir)?
        .unwrap_or_default()
        .with_output(&args.dir);
    let program;
    let found = {
        let recorded = Recorded::read(&args.dir, false)?;
        let evaluation = recorded.whole();
        program = match &args.process {
            Some(name) => name.clone(),
            None => main_program(&evaluation)
                .ok_or_else(|| bad_input(&args.dir, "no process was profiled"))?,
        };
        candidates(&evaluation, &program, &symbols.symbolizer(), &wanted)?
    };
    let before = program_cycles(&args.dir, &program)?;
    let folder = args.dir.join(FOLDER);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| bad_input(&folder, e))?;
    let most = args.most as usize;
    let count = found.len().min(most);
    if count == 0 {
        println!("{program} loses too few cycles at any place in a way that could be tried");
    }
    let mut trials = Vec::new();
    for (n, candidate) in (1..).zip(found.into_iter().take(most)) {
        eprintln!(
            "tipsim: {n} of {count}: no {} at {} {} of {}",
            candidate.cause,
            candidate.instructions.len(),
            candidate.kind,
            candidate.function
        );
        let out = folder.join(n.to_string());
        run_without(&spec, &candidate, &out, args)?;
        let cycles = program_cycles(&out, &program)?;
        trials.push(Trial {
            candidate,
            cycles,
            gain: 1.0 - cycles / before,
        });
    }
    trials.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    run["what_if"] = json!({ "program": program, "cycles": before, "trials": trials });
    write_whole(&path, serde_json::to_string_pretty(&run)? + "\n")?;
    Recorded::read(&args.dir, false)?.rewrite(&args.dir, &symbols)?;
    print!("{}", report::WhatIf::of(&run).unwrap_or_default());
    println!("report: {}", args.dir.join("report.html").display());
    Ok(())
}

/// Cycles of a program, all its processes on all harts together, as the run's report has them.
fn program_cycles(out: &Path, program: &str) -> anyhow::Result<f64> {
    let path = out.join("report.json");
    let text = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| bad_input(&path, e))?;
    let processes = report["processes"].as_array().into_iter().flatten();
    // The report adds the process id to names that several have.
    let is_own = |process: &&Value| {
        let name = process["name"].as_str().unwrap_or_default();
        name == program || name.starts_with(&format!("{program}-{}", process["pid"]))
    };
    let own = processes.filter(is_own);
    let sum: f64 = own.filter_map(|process| process["cycles"].as_f64()).sum();
    anyhow::ensure!(sum > 0.0, "{}: {program} was not profiled", out.display());
    Ok(sum)
}

/// Runs the spec on a core without the cause.
fn run_without(
    spec: &Spec,
    candidate: &Candidate,
    out: &Path,
    args: &WhatIfArgs,
) -> anyhow::Result<()> {
    let mut spec = spec.clone();
    // What is asked for is cycles.
    spec.record = Record {
        trace: false,
        detail: false,
        excerpts: false,
        ..Record::default()
    };
    spec.sampler = vec![serde_json::from_value(
        json!({"profiler": "tip", "period": 100_003}),
    )?];
    spec.make_absolute();
    let without = { candidate.instructions.iter() }
        .map(|instruction| Toml::String(instruction.without.clone()));
    let what_if = spec
        .core
        .set
        .entry("what_if")
        .or_insert_with(|| Toml::Table(toml::Table::new()));
    let what_if = what_if
        .as_table_mut()
        .context("core.what_if is not a table")?;
    let before = what_if
        .remove("without")
        .and_then(|value| value.as_array().cloned());
    let all = before
        .unwrap_or_default()
        .into_iter()
        .chain(without)
        .collect();
    what_if.insert("without".to_owned(), Toml::Array(all));
    std::fs::create_dir_all(out).map_err(|e| bad_input(out, e))?;
    let path = out.join("spec.toml");
    write_whole(&path, toml::to_string(&spec)?)?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("run")
        .arg(&path)
        .arg("--out")
        .arg(out)
        .stdout(Stdio::null());
    if let Some(dir) = &args.guest_dir {
        command.arg("--guest-dir").arg(dir);
    }
    let status = command.status()?;
    // The exit status of a run that went well is the guest's command's.
    let done = out.join("report.json").is_file();
    anyhow::ensure!(done, "{}: the run failed ({status})", path.display());
    Ok(())
}
