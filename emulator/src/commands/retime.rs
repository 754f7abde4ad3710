//! `tipsim retime`: the stored units of a sampled run on another core.

use std::io::{BufReader, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use profile::{Estimate, Evaluation};
use serde_json::{Value, json};
use simulation::{
    Profilers, RetimeOptions, Retimed, SampledUnits, StoredUnits, Threads, retime as retime_units,
};
use timing::Preset;

use super::report::{self, ReportScope};
use super::run::{STATUS_OF_INTERRUPT, stop_on_signal};
use super::trace::fingerprint;
use crate::cli::RetimeArgs;
use crate::failure::{BadInput, bad_input};
use crate::host::terminal::{rewrite_line, say_json};
use crate::run_folder::run_json::{RetimedRun, RunJson};
use crate::run_folder::{RUN, Results, STORED_UNITS, UNITS, Work};
use crate::spec::{Spec, samplers::samplers};
use crate::symbol_sources::names;

/// Times the stored units of a run.
pub fn retime(args: &RetimeArgs) -> anyhow::Result<u8> {
    let run = Results::open(&args.dir)?;
    let at = |file: &str, e: String| bad_input(&args.dir.join(file), e);
    if !run.has(STORED_UNITS) {
        return Err(at(
            STORED_UNITS,
            "expected the units of a sampled run with run.sampling.store = true, found none"
                .to_owned(),
        )
        .into());
    }
    if let Some(part) = run.part() {
        return Err(bad_input(&args.dir, format!("expected a whole run; {part}")).into());
    }
    let recorded = RunJson::read(&run)?;
    let units: SampledUnits = run.json(UNITS)?;
    let Some(sampling) = recorded.sampling.clone() else {
        return Err(
            at(RUN, "sampling: expected that of a sampled run, found none".to_owned()).into()
        );
    };
    let file = run.file(STORED_UNITS).map_err(|e| at(STORED_UNITS, e.to_string()))?;
    let file: Box<dyn Read> = Box::new(BufReader::new(file));
    let stored = StoredUnits::new(file).map_err(|e| at(STORED_UNITS, e.to_string()))?;
    let core = core(args, &stored.metadata().core)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(args, &core));
    Work::check(&out)?;
    if is_same(&out, &args.dir) {
        return Err(
            BadInput("--out: expected another folder than that of the run".to_owned()).into()
        );
    }
    let spec: Spec =
        serde_json::from_value(recorded.spec.clone()).map_err(|e| at(RUN, format!("spec: {e}")))?;
    let samplers = samplers(&spec.sampler, f64::from(core.clock.mhz) * 1e6)
        .map_err(|e| at(RUN, format!("spec: {e}")))?;
    let profilers = (!args.cycles_only).then_some(Profilers {
        samplers,
        detail: spec.record.detail,
        call_stacks: spec.record.call_stacks,
        subsamples: true,
    });
    let stop = stop_on_signal()?;
    let mut work = Work::begin(&out)?;
    let begun = Instant::now();
    let mut progress = Progress::new(units.at.len());
    let retimed = retime_units(
        stored,
        RetimeOptions {
            core: &core,
            profilers,
            excerpts: spec.record.excerpts && !args.cycles_only,
            all_events: spec.record.counters,
            units: &units,
            instructions: sampling.instructions,
            after_unit: &mut |unit| {
                progress.show(unit);
                !stop.load(Ordering::Relaxed)
            },
            threads: Threads::Auto,
            on_core_thread: || (),
        },
    );
    progress.end();
    let Some(retimed) = retimed.map_err(|e| at(STORED_UNITS, e.to_string()))? else {
        eprintln!("tipsim: interrupted: there are no results");
        return Ok(STATUS_OF_INTERRUPT);
    };
    let ratio = ratio(&units, &retimed.units, sampling.instructions);
    let how = run_json(recorded, &core, &retimed, (args, ratio), begun.elapsed().as_secs_f64());
    let how = how.to_value();
    let results = work.results();
    results.write(RUN, (serde_json::to_string_pretty(&how)? + "\n").as_bytes())?;
    results.write(UNITS, &serde_json::to_vec(&retimed.units)?)?;
    let verdict = report_of(&run, results, &retimed, &core, &how)?;
    let (_, published) = work.publish(None);
    published?;
    match args.json {
        true => say_json(&(serde_json::to_string_pretty(&how)? + "\n")),
        false => {
            print!("{verdict}");
            println!("sampled: {}", retimed.sampled.in_words);
            if let Some(ratio) = ratio {
                println!("{}", in_words(&ratio, &args.dir));
            }
            println!("results: {}", out.display());
        }
    }
    Ok(0)
}

/// Writes the report of what the profilers found; returns its first lines.
fn report_of(
    run: &Results,
    results: &mut Results,
    retimed: &Retimed,
    core: &Preset,
    how: &Value,
) -> anyhow::Result<String> {
    let Some(recorded) = &retimed.recorded else { return Ok(String::new()) };
    if let Some(error) = &recorded.error {
        anyhow::bail!("recording failed: {error}");
    }
    let Some(whole) = Evaluation::merged(&recorded.evaluations) else { return Ok(String::new()) };
    // Files of the guest's own, such as programs that it built, are where the run left them.
    let symbols = names::recorded(run)?.with_guest_files(run.guest_files());
    let excerpts = report::whole_excerpts(&recorded.evaluations, &retimed.excerpts);
    let of = ReportScope { hart: None, harts: &recorded.evaluations, excerpts: excerpts.as_ref() };
    let written = report::write(results, &whole, &symbols, &of, core, how.clone())?;
    Ok(written.verdict)
}

/// Returns the core that is asked for.
fn core(args: &RetimeArgs, recorded: &Preset) -> Result<Preset, BadInput> {
    match &args.core {
        Some(name) => super::core::load(name, &args.set)
            .map_err(|BadInput(error)| BadInput(format!("--core: {error}"))),
        None => {
            let mut core = recorded.clone();
            super::core::apply(&mut core, &args.set)?;
            Ok(core)
        }
    }
}

/// Returns the run's folder with the core's name behind it.
fn default_out(args: &RetimeArgs, core: &Preset) -> PathBuf {
    let name = args.core.as_deref().unwrap_or(&core.name);
    let name = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let dir = args.dir.canonicalize().unwrap_or_else(|_| args.dir.clone());
    let folder = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    args.dir.with_file_name(format!("{folder}-{name}"))
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns the cycles of the retimed units relative to those of the run: an estimate for the region that is nearer than either alone, as the
/// units are the same.
fn ratio(before: &SampledUnits, after: &SampledUnits, instructions: u64) -> Option<Estimate> {
    let units: u64 = before.instructions.iter().sum();
    let rest = 1.0 - units as f64 / instructions.max(units).max(1) as f64;
    let pairs = before.cycles.iter().zip(&after.cycles);
    Estimate::of_ratio(pairs.map(|(before, after)| (*after as f64, *before as f64)), rest)
}

/// Returns what a ratio says of two cores.
fn in_words(ratio: &Estimate, run: &Path) -> String {
    let margin = ratio.margin();
    format!(
        "{:.4} times the cycles of the run in {} ± {:.2} % (95 %), ± {:.2} % (99.7 %), as the units are the same",
        ratio.value,
        run.display(),
        100.0 * margin.within_95 / ratio.value,
        100.0 * margin.within_99_7 / ratio.value
    )
}

/// Returns how the units went: what the run says of its guest stays, and what is of the core is that of this one.
fn run_json(
    recorded: RunJson,
    core: &Preset,
    retimed: &Retimed,
    (args, ratio): (&RetimeArgs, Option<Estimate>),
    seconds: f64,
) -> RunJson {
    let stats = retimed.stats.first();
    let first = retimed.recorded.as_ref().and_then(|recorded| recorded.evaluations.first());
    let (cycles, instructions) = stats.map_or((0, 0), |stats| (stats.cycles, stats.instructions));
    let retimed_run = RetimedRun {
        run: std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone()),
        core: recorded.core["name"].as_str().unwrap_or_default().to_owned(),
        cycles_ratio: ratio,
    };
    RunJson {
        core: json!(core),
        sampling: Some(retimed.sampled.clone()),
        retimed: Some(retimed_run),
        cycles: Some(cycles),
        instructions: Some(instructions),
        ipc: Some(instructions as f64 / cycles.max(1) as f64),
        host_seconds: Some(seconds),
        mips: Some(instructions as f64 / seconds / 1e6),
        mcycles_per_second: Some(cycles as f64 / seconds / 1e6),
        peak_memory_mb: None,
        host_ns_per_instruction: None,
        functional: None,
        tip_frozen_cycles: None,
        uncore: Value::Null,
        stats: json!(stats),
        harts: None,
        counters: json!(retimed.counts),
        trace: None,
        fingerprint: json!(first.map(fingerprint)),
        oracle_cycles: first.map(|e| e.oracle.total() / e.oracle.units_per_cycle()),
        idle_cycles: first.map(|e| e.idle),
        what_if: Value::Null,
        what_if_others: Vec::new(),
        ..recorded
    }
}

/// How far the units are, on a terminal.
struct Progress {
    units: usize,
    shown: Instant,
    /// Characters of the line that is shown.
    width: usize,
    is_terminal: bool,
}

impl Progress {
    fn new(units: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { units, shown: Instant::now(), width: 0, is_terminal }
    }

    fn show(&mut self, unit: usize) {
        if self.is_terminal && self.shown.elapsed().as_secs_f64() > 0.5 {
            self.shown = Instant::now();
            let line = format!("{unit} of {} units", self.units);
            rewrite_line(std::mem::replace(&mut self.width, line.len()), format_args!("{line}"));
        }
    }

    fn end(&self) {
        if self.width > 0 {
            rewrite_line(self.width, format_args!(""));
        }
    }
}
