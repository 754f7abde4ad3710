//! `tipsim retime`: the stored units of a sampled run on another core, or on several ([`sweep`]).

mod sweep;

pub(crate) use sweep::SweepFile;

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use profile::{Estimate, Evaluation};
use serde_json::{Value, json};
use simulation::{
    Profilers, RetimeOptions, Retimed, Sampled, SampledUnits, StoredUnits, Threads,
    retime as retime_units,
};
use timing::Preset;

use super::report::{self, ReportScope};
use super::run::{STATUS_OF_INTERRUPT, stop_on_signal};
use super::trace::fingerprint;
use crate::cli::RetimeArgs;
use crate::failure::{BadInput, bad_input};
use crate::host::terminal::{ProgressLine, say_json};
use crate::run_folder::run_json::{RetimedRun, RunJson};
use crate::run_folder::{RUN, Results, STORED_UNITS, UNITS, Work};
use crate::spec::{Spec, samplers::samplers};
use crate::symbol_sources::names;

/// A sampled run that stored its units.
struct StoredRun {
    /// Folder of the run, as the user names it.
    dir: PathBuf,
    run: Results,
    recorded: RunJson,
    sampling: Sampled,
    /// Units as the run found them.
    units: SampledUnits,
}

impl StoredRun {
    fn open(dir: &Path) -> Result<Self, BadInput> {
        let run = Results::open(dir)?;
        let at = |file: &str, e: &str| bad_input(&dir.join(file), e);
        if !run.has(STORED_UNITS) {
            return Err(at(
                STORED_UNITS,
                "expected the units of a sampled run with run.sampling.store = true, found none",
            ));
        }
        if let Some(part) = run.part() {
            return Err(bad_input(dir, format!("expected a whole run; {part}")));
        }
        let recorded = RunJson::read(&run)?;
        let units: SampledUnits = run.json(UNITS)?;
        let Some(sampling) = recorded.sampling.clone() else {
            return Err(at(RUN, "sampling: expected that of a sampled run, found none"));
        };
        run.check_stored_units()?;
        Ok(Self { dir: dir.to_owned(), run, recorded, sampling, units })
    }

    /// Begins to read the stored units. Each core needs a reader of its own.
    fn stored_units(&self) -> Result<StoredUnits, BadInput> {
        let at = |e: String| bad_input(&self.dir.join(STORED_UNITS), e);
        let file = self.run.file(STORED_UNITS).map_err(|e| at(e.to_string()))?;
        let stored = StoredUnits::new(Box::new(BufReader::new(file)));
        let stored = stored.map_err(|e| at(e.to_string()))?;
        match stored.metadata().plan == self.sampling.plan {
            true => Ok(stored),
            false => Err(at("expected the plan of run.json, found another".to_owned())),
        }
    }
}

/// Times the stored units of a run on one core, or on each of several.
pub(crate) fn retime(args: &RetimeArgs) -> anyhow::Result<u8> {
    let of = StoredRun::open(&args.dir)?;
    let stored = of.stored_units()?;
    match args.is_sweep() {
        true => sweep::retime(args, &of, &stored.metadata().core),
        false => on_one_core(args, of, stored),
    }
}

/// Times the stored units of a run on one core, with all that a run finds.
fn on_one_core(args: &RetimeArgs, of: StoredRun, stored: StoredUnits) -> anyhow::Result<u8> {
    let StoredRun { run, recorded, sampling, units, .. } = of;
    let at = |file: &str, e: String| bad_input(&args.dir.join(file), e);
    let metadata = stored.metadata();
    let name = args.core.first().map(String::as_str);
    let core = core(name, &args.set, &metadata.core)?;
    let smaller = smaller(&core, &metadata.core);
    let out = match &args.out {
        Some(out) => out.clone(),
        None => {
            let name = name.unwrap_or(&core.name);
            let names: Vec<&str> =
                std::iter::once(name).chain(args.set.iter().map(String::as_str)).collect();
            default_out(&args.dir, &names)?
        }
    };
    check_out(&out, &args.dir)?;
    let spec: Spec =
        serde_json::from_value(recorded.spec.clone()).map_err(|e| at(RUN, format!("spec: {e}")))?;
    let samplers = samplers(&spec.sampler, f64::from(core.clock.mhz) * 1e6)
        .map_err(|e| at(RUN, format!("spec: {e}")))?;
    let profilers = (!args.cycles_only).then_some(Profilers {
        samplers,
        detail: spec.record.detail,
        call_stacks: spec.record.call_stacks,
        sampled: spec.run.sampling.as_ref().map(|sampling| sampling.scheme),
    });
    let stop = stop_on_signal()?;
    let mut work = Work::begin(&out)?;
    let begun = Instant::now();
    let mut progress = ProgressLine::new("units", units.at.len());
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
            threads: match args.jobs.is_some_and(|jobs| jobs.get() == 1) {
                true => Threads::One,
                false => Threads::Auto,
            },
            on_core_thread: || (),
        },
    );
    progress.end();
    let Some(retimed) = retimed.map_err(|e| at(STORED_UNITS, e.to_string()))? else {
        eprintln!("tipsim: interrupted: there are no results");
        return Ok(STATUS_OF_INTERRUPT);
    };
    if !smaller.is_empty() {
        eprintln!(
            "tipsim: note: smaller than on the core of the run, so that more is there where units begin than would be: {}",
            smaller.join(", ")
        );
    }
    let ratio = ratio(&units, &retimed);
    let of_run = RetimedRun {
        run: std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone()),
        core: recorded.core["name"].as_str().unwrap_or_default().to_owned(),
        cycles_ratio: ratio.and_then(|(_, estimate)| estimate),
        set: args.set.clone(),
        smaller: smaller.into_iter().map(str::to_owned).collect(),
    };
    let how = run_json(recorded, of_run, &core, &retimed, begun.elapsed().as_secs_f64());
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
                println!("{}", in_words(ratio, &args.dir));
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

/// Returns a core by its name, or that of the run, with what is set of it.
fn core(name: Option<&str>, set: &[String], recorded: &Preset) -> Result<Preset, BadInput> {
    let core = match name {
        Some(name) => super::core::load(name, set)
            .map_err(|BadInput(error)| BadInput(format!("--core {name}: {error}"))),
        None => {
            let mut core = recorded.clone();
            super::core::apply(&mut core, set)?;
            Ok(core)
        }
    }?;
    match core.isa == recorded.isa {
        true => Ok(core),
        false => Err(BadInput(format!(
            "core {}: isa: expected the extensions of the core for which the units were stored, found others (tipsim core show)",
            name.unwrap_or(&core.name)
        ))),
    }
}

/// Returns the run's folder with names behind its own, the first of which may be that of a file.
fn default_out(run: &Path, names: &[&str]) -> Result<PathBuf, BadInput> {
    let first = names.first().map_or("", |name| name);
    let first = Path::new(first).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._=-".contains(c));
    let names: Vec<&str> = std::iter::once(&*first).chain(names.iter().skip(1).copied()).collect();
    let dir = run.canonicalize().map_err(|e| bad_input(run, e))?;
    let (Some(folder), true) = (dir.file_name(), names.iter().all(|name| is_plain(name))) else {
        return Err(BadInput(
            "--out: expected a folder, as --core and --set make no name for one; found none".into(),
        ));
    };
    let folder = format!("{}-{}", folder.to_string_lossy(), names.join("-"));
    // Beside the run as its user names it, unless the name says nothing of where that is.
    Ok(match run.file_name() {
        Some(_) => run.with_file_name(folder),
        None => dir.with_file_name(folder),
    })
}

/// Refuses a folder of results that is the run's own or within it, or that has what only a guest could make again.
fn check_out(out: &Path, run: &Path) -> Result<(), BadInput> {
    Work::check(out)?;
    let run = run.canonicalize().map_err(|e| bad_input(run, e))?;
    let place = std::path::absolute(out).map_err(|e| bad_input(out, e))?;
    if place.ancestors().any(|above| above.canonicalize().is_ok_and(|above| above == run)) {
        return Err(BadInput(format!(
            "--out: expected a folder that is not in that of the run, found {}",
            out.display()
        )));
    }
    if !out.join(RUN).exists() {
        return Ok(());
    }
    match RunJson::read(&Results::open_any(out)?) {
        Ok(RunJson { retimed: Some(_), .. }) => Ok(()),
        _ => Err(BadInput(format!(
            "--out: expected a new folder or one of tipsim retime, found the results of a run in {}",
            out.display()
        ))),
    }
}

/// Returns what of a core is smaller than of the one for which the units were stored, and may have lost what that had.
fn smaller(core: &Preset, recorded: &Preset) -> Vec<&'static str> {
    let sizes = |core: &Preset| {
        [
            ("l1i.kib", core.l1i.kib),
            ("l1d.kib", core.l1d.kib),
            ("itlb.entries", core.itlb.entries),
            ("dtlb.entries", core.dtlb.entries),
        ]
    };
    let pairs = sizes(core).into_iter().zip(sizes(recorded));
    pairs.filter(|((_, size), (_, recorded))| size < recorded).map(|((key, _), _)| key).collect()
}

/// Returns the cycles of the retimed units relative to those of the run, and the estimate for the region if how much units differ tells of chance: it is nearer than either
/// alone, as the units are the same.
fn ratio(before: &SampledUnits, retimed: &Retimed) -> Option<(f64, Option<Estimate>)> {
    let Retimed { units: after, sampled, .. } = retimed;
    let units: u64 = before.instructions.iter().sum();
    let rest = 1.0 - units as f64 / sampled.instructions.max(units).max(1) as f64;
    let weights = before.weights.iter().copied().chain(std::iter::repeat(1)).map(f64::from);
    let pairs = before.cycles.iter().zip(&after.cycles).zip(weights);
    let pairs =
        pairs.map(|((before, after), weight)| (weight * *after as f64, weight * *before as f64));
    let (part, whole) =
        pairs.clone().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    let estimate = Estimate::of_ratio(pairs, rest);
    (whole > 0.0).then(|| (part / whole, estimate.filter(|_| sampled.plan.scheme.tells_chance())))
}

/// Returns what a ratio says of two cores.
fn in_words((ratio, estimate): (f64, Option<Estimate>), run: &Path) -> String {
    let margin = estimate.map_or_else(String::new, |estimate| {
        let margin = estimate.margin();
        let percent = |margin: f64| 100.0 * margin / ratio;
        format!(
            " ± {:.2} % (95 %), ± {:.2} % (99.7 %) by chance, as the units are the same",
            percent(margin.within_95),
            percent(margin.within_99_7)
        )
    });
    format!("{ratio:.4} times the cycles of the run in {}{margin}", run.display())
}

/// Returns how the units went: what the run says of its guest stays, and what is of the core is that of this one.
fn run_json(
    recorded: RunJson,
    of_run: RetimedRun,
    core: &Preset,
    retimed: &Retimed,
    seconds: f64,
) -> RunJson {
    let stats = retimed.stats.first();
    let first = retimed.recorded.as_ref().and_then(|recorded| recorded.evaluations.first());
    let (cycles, instructions) = stats.map_or((0, 0), |stats| (stats.cycles, stats.instructions));
    RunJson {
        core: json!(core),
        sampling: Some(retimed.sampled.clone()),
        retimed: Some(of_run),
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
