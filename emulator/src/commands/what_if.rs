//! `tipsim what-if`: what a program would gain if it lost no cycles in some way at some place. Each is a run of its own, on a core
//! without that cause at these instructions, of the same program from the same start; what threads wait for is replayed from what the
//! kernel's scheduler recorded.

mod among_harts;
mod candidates;
mod code;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toml::Value as Toml;

use crate::cli::WhatIfArgs;
use crate::commands::report::Recorded;
use crate::failure::{bad_input, cannot_write};
use crate::run_folder::run_json::RunJson;
use crate::run_folder::{Folder, RUN, Results, TRIALS, report_files};
use crate::spec::{Record, Spec};
use among_harts::{Attempt, ReplayTrial, WantedBetween, suggested};
use candidates::{Candidate, Instruction, Wanted, candidates, main_program};

/// A candidate, and what became of it.
#[derive(Debug, Serialize)]
struct Trial {
    #[serde(flatten)]
    candidate: Candidate,
    /// Cycles without the cause; see [`Original::cycles`].
    cycles: f64,
    /// Share of the cycles that it takes less.
    gain: f64,
    /// What became of selects in the place of the branches, if the candidate is of branches that are foreseen.
    #[serde(skip_serializing_if = "Option::is_none")]
    select: Option<SelectTrial>,
    /// The replay that the cycles are estimated from, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayTrial>,
}

/// What became of selects in the place of branches.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SelectTrial {
    /// Branches were tried as selects.
    Tried { instructions: Vec<Instruction>, cycles: f64, gain: f64 },
    /// There is no select, for this reason.
    None { none: &'static str },
}

/// A run that is repeated without something.
struct Original<'a> {
    args: &'a WhatIfArgs,
    run: RunJson,
    spec: Spec,
    program: String,
}

/// Tries what the run's stacks suggest, or what is asked for, and adds it to the run's report.
pub(crate) fn what_if(args: &WhatIfArgs) -> anyhow::Result<()> {
    let (mut wanted, mut between) = (Vec::new(), Vec::new());
    for text in &args.without {
        match WantedBetween::parse(text) {
            Some(asked) => between.push(asked),
            None => wanted.push(Wanted::parse(text)?),
        }
    }
    let mut results = Results::open(&args.dir)?;
    results.lock()?;
    let (run, spec) = original(&results)?;
    let symbols = crate::symbol_sources::names::recorded(&results)?
        .with_folders(&args.debug_dir)?
        .with_guest_files(results.guest_files());
    let recorded = Recorded::read(&results, false)?;
    let (program, found) = {
        let evaluation = recorded.whole();
        let program = match &args.process {
            Some(name) => name.clone(),
            None => main_program(&evaluation)
                .ok_or_else(|| bad_input(&args.dir, "no process was profiled"))?,
        };
        let symbolizer = symbols.symbolizer();
        let found = match wanted.is_empty() && !between.is_empty() {
            true => Vec::new(),
            false => candidates(&evaluation, &program, &symbolizer, &wanted)?,
        };
        let mut attempts: Vec<Attempt> = found.into_iter().map(Attempt::Run).collect();
        let harts = spec.guest.harts as usize;
        let elapsed = elapsed(&run)?;
        for asked in &between {
            attempts.push(asked.attempt(&results, &evaluation, &program, harts, elapsed)?);
        }
        if args.without.is_empty() {
            attempts.extend(suggested(&results, &evaluation, &program, harts, elapsed)?);
            attempts.sort_by(|a, b| b.candidate().lost.total_cmp(&a.candidate().lost));
        }
        (program, attempts)
    };
    let earlier = Earlier::of(&run, &program);
    let original = Original { args, run, spec, program };
    let folder = args.dir.join(TRIALS);
    let trials_folder = results.folder().make(TRIALS).map_err(|e| bad_input(&folder, e))?;
    let before = match recorded.is_of_this_simulator() {
        true => original.cycles(&results)?,
        false => {
            eprintln!("tipsim: another tipsim ran it: once more as it was");
            original.run_without("without", &[], &trials_folder, "before")?
        }
    };
    let most = args.most as usize;
    let count = found.len().min(most);
    if count == 0 {
        println!(
            "{} loses too few cycles at any place in a way that could be tried",
            original.program
        );
    }
    let mut trials = earlier.trials.clone();
    // Folders of earlier trials stay, with what they found.
    let first = next_number(&folder);
    for (n, attempt) in found.into_iter().take(most).enumerate() {
        let (mut candidate, replayed) = match attempt {
            Attempt::Run(candidate) => (candidate, None),
            Attempt::Replay(candidate, replayed) => (candidate, Some(ReplayTrial::new(replayed))),
        };
        let progress = format!("{} of {count}", n + 1);
        let (name, selects) = ((first + n).to_string(), candidate.selects.take());
        let place = format!(
            "{} {} of {}",
            candidate.instructions.len(),
            candidate.kind,
            report::short_name(&candidate.function, 60)
        );
        match candidate.cause {
            "select" => eprintln!("tipsim: {progress}: selects in the place of {place}"),
            cause => eprintln!("tipsim: {progress}: no {cause} at {place}"),
        }
        let key = if candidate.cause == "sharing" { "padded" } else { "without" };
        let try_without = |instructions: &[Instruction], name: &str| {
            let cycles = original.run_without(key, instructions, &trials_folder, name)?;
            anyhow::Ok((cycles, 1.0 - cycles / before))
        };
        let (cycles, gain) = match &replayed {
            Some(replayed) => (before * (1.0 - replayed.gain()), replayed.gain()),
            None => try_without(&candidate.instructions, &name)?,
        };
        let select = match selects {
            None => None,
            Some(Err(none)) => Some(SelectTrial::None { none }),
            Some(Ok(instructions)) => {
                eprintln!("tipsim: {progress}: selects in their place");
                let (cycles, gain) = try_without(&instructions, &format!("{name}-select"))?;
                Some(SelectTrial::Tried { instructions, cycles, gain })
            }
        };
        let trial = json!(Trial { candidate, cycles, gain, select, replay: replayed });
        // The trial takes the place of an earlier one with the same cause and instructions.
        let question = |trial: &Value| (trial["cause"].clone(), trial["instructions"].clone());
        trials.retain(|known| question(known) != question(&trial));
        trials.push(trial);
        // Each trial is written at once: an interruption loses nothing that was found.
        trials.sort_by(|a, b| gain_of(b).total_cmp(&gain_of(a)));
        let mut how = original.run.clone();
        how.what_if = json!({
            "program": original.program,
            "cycles": before,
            "harts": original.spec.guest.harts,
            "trials": trials,
        });
        how.what_if_others.clone_from(&earlier.others);
        results.write(RUN, (serde_json::to_string_pretty(&how.to_value())? + "\n").as_bytes())?;
        let part = results.part().map(str::to_owned);
        results.save(part.as_deref())?;
    }
    recorded.rewrite(&mut results, &symbols)?;
    let how: report::RunDescription = results.json(RUN)?;
    print!("{}", report::WhatIf::of(&how).unwrap_or_default());
    println!("report: {}", args.dir.join("report.html").display());
    Ok(())
}

fn gain_of(trial: &Value) -> f64 {
    trial["gain"].as_f64().unwrap_or_default()
}

/// What earlier trials found.
struct Earlier {
    /// Trials of the same program.
    trials: Vec<Value>,
    /// Entries like `what_if` of run.json that are about other programs.
    others: Vec<Value>,
}

impl Earlier {
    fn of(run: &RunJson, program: &str) -> Self {
        let all = run.what_if_others.iter().chain([&run.what_if]);
        let all = all.filter(|known| known.is_object());
        let (own, others): (Vec<&Value>, _) = all.partition(|known| known["program"] == program);
        let trials = own.iter().filter_map(|known| known["trials"].as_array());
        Self {
            trials: trials.flatten().cloned().collect(),
            others: others.into_iter().cloned().collect(),
        }
    }
}

/// Returns the number that follows those of the folders of earlier trials.
fn next_number(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let digits = name.split(['.', '-']).next()?;
        digits.parse::<u16>().ok().map(usize::from)
    };
    entries.filter_map(number).max().map_or(1, |last| last + 1)
}

/// A run that can be repeated: its run.json, and the spec in it.
fn original(results: &Results) -> anyhow::Result<(RunJson, Spec)> {
    let path = results.path().join(RUN);
    let run = RunJson::read(results)?;
    let spec: Spec = serde_json::from_value(run.spec.clone())
        .map_err(|e| bad_input(&path, format!("spec: {e}")))?;
    if !spec.deterministic() {
        let found = "expected a run that is the same each time, found guest.net = \"user\" or guest.clock = \"host\"";
        return Err(bad_input(&path, found).into());
    }
    if !run.end.is_by_guest() {
        let end = json!(run.end);
        let error = format!("expected a run that the guest ended, found end = {end}");
        return Err(bad_input(&path, error).into());
    }
    Ok((run, spec))
}

/// The processes of a report.
#[derive(Deserialize)]
struct ReportProcesses {
    processes: Vec<ReportProcess>,
}

/// What a report says of a process; `pid` is null of all processes together.
#[derive(Deserialize)]
struct ReportProcess {
    name: String,
    pid: Option<u32>,
    cycles: f64,
}

/// Returns the cycles of a program, all its processes on all harts together, as the run's report has them.
fn program_cycles(results: &Results, program: &str) -> anyhow::Result<f64> {
    let ReportProcesses { processes } = report_files::part_of_report(results, None)?;
    // The report adds the process id to names that several have.
    let is_own = |process: &&ReportProcess| {
        let numbered = process.pid.map(|pid| format!("{program}-{pid}"));
        process.name == program || numbered.is_some_and(|name| process.name.starts_with(&name))
    };
    let sum: f64 = processes.iter().filter(is_own).map(|process| process.cycles).sum();
    let shown = results.path().display();
    anyhow::ensure!(sum > 0.0, "{shown}: {program} was not profiled");
    Ok(sum)
}

/// Returns the elapsed cycles of a run's region. Without a region, everything is profiled.
fn elapsed(run: &RunJson) -> anyhow::Result<f64> {
    let elapsed = run.regions.as_ref().map(|regions| regions.cycles).filter(|cycles| *cycles > 0);
    Ok(elapsed.or(run.cycles).context("run.json: no cycles")? as f64)
}

impl Original<'_> {
    /// Returns the cycles that a run took: on one hart the program's own; on several harts the elapsed ones of the region, in
    /// which one hart may wait for another.
    fn cycles(&self, results: &Results) -> anyhow::Result<f64> {
        if self.spec.guest.harts == 1 {
            return program_cycles(results, &self.program);
        }
        elapsed(&RunJson::read(results)?)
    }

    /// Runs the program on a core without the cause at these instructions, or with these lines padded, and returns its cycles. `key` is
    /// the core's parameter under `what_if`.
    fn run_without(
        &self,
        key: &str,
        instructions: &[Instruction],
        folder: &Folder,
        name: &str,
    ) -> anyhow::Result<f64> {
        let mut spec = self.spec.clone();
        // Only the cycles are asked for.
        spec.record = Record { trace: false, detail: false, excerpts: false, ..Record::default() };
        spec.sampler = vec![serde_json::from_value(json!({"profiler": "tip", "period": 100_003}))?];
        let without = instructions.iter().map(|inst| Toml::String(inst.without.clone()));
        let what_if = spec
            .core
            .set
            .entry("what_if")
            .or_insert_with(|| Toml::Table(toml::Table::new()))
            .as_table_mut()
            .context("core.what_if is not a table")?;
        let before = what_if.remove(key);
        let before = before.and_then(|value| value.as_array().cloned());
        let all = before.unwrap_or_default().into_iter().chain(without);
        what_if.insert(key.to_owned(), Toml::Array(all.collect()));
        let (out, file) = (folder.path().join(name), format!("{name}.toml"));
        let path = folder.path().join(&file);
        // The folder may be somebody else's.
        let written = folder.write(&file, spec.to_toml()?.as_bytes());
        written.map_err(|e| cannot_write(&path, e))?;
        anyhow::ensure!(!out.is_symlink(), "{}: expected a folder, found a link", out.display());
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("run").arg(&path).arg("--out").arg(&out);
        if let Some(dir) = &self.args.guest_dir {
            command.arg("--guest-dir").arg(dir);
        }
        // The exit status of the run is the guest's command's, if all went well.
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        let results = Results::open(&out).with_context(|| format!("the run failed ({status})"))?;
        let run = RunJson::read(&results)?;
        // How an older version tells its end is not how this one does.
        let is_older = self.run.format < run.format;
        anyhow::ensure!(
            run.end == self.run.end || is_older && run.end.is_by_guest(),
            "{}: it ended otherwise than the run itself: {}",
            path.display(),
            json!(run.end)
        );
        anyhow::ensure!(
            run.guest == self.run.guest,
            "{}: it had another guest than the run itself (--guest-dir DIR)",
            path.display()
        );
        self.cycles(&results)
    }
}
