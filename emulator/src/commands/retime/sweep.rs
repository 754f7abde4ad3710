//! The stored units of a run on several cores: their cycles beside each other.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use profile::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use simulation::{RetimeOptions, Threads, retime as retime_units};
use timing::Preset;

use super::{StoredRun, check_out, core, default_out, ratio, smaller};
use crate::cli::RetimeArgs;
use crate::commands::run::{STATUS_OF_INTERRUPT, stop_on_signal};
use crate::failure::{BadInput, bad_input};
use crate::host::terminal::{ProgressLine, say, say_json};
use crate::run_folder::{STORED_UNITS, SWEEP, Work};

/// Most cores of one sweep.
const MOST_CORES: usize = 1000;

/// What several cores take for the stored units of a run, as `sweep.json` has it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SweepFile {
    /// Version of the file's format.
    pub format: u32,
    /// Folder of the run.
    pub run: PathBuf,
    /// Name of the core on which the run was.
    pub core: String,
    /// Number of units.
    pub units: u64,
    /// Instructions of the region.
    pub instructions: u64,
    /// The cores, in the order in which they were asked for.
    pub cores: Vec<SweepRow>,
}

impl SweepFile {
    /// Version of the file's format that is written.
    const FORMAT: u32 = 1;
}

/// What a core takes for the stored units of a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SweepRow {
    /// Name of the core, or its file.
    pub core: String,
    /// Parameters that were set of the core, each as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Cycles for each instruction of the region; `None` without a unit.
    pub cpi: Option<f64>,
    /// Cycles of the region while the hart is awake; `None` without a unit.
    pub cycles: Option<f64>,
    /// Interval of `cpi`; `None` without two units, or if the scheme says nothing of chance.
    pub cpi_estimate: Option<Estimate>,
    /// Cycles of the units relative to those of the run; `None` without a unit.
    pub ratio: Option<f64>,
    /// Interval of `ratio`, by pairs of units; `None` without two units, or if the scheme says nothing of chance.
    pub ratio_estimate: Option<Estimate>,
    /// Cycles of each unit.
    pub unit_cycles: Vec<u64>,
    /// Parameters that are smaller than on the core of the run, so that more is there where units begin than would be.
    pub smaller: Vec<String>,
}

/// A core that is asked for.
struct RequestedCore {
    name: String,
    set: Vec<String>,
    core: Preset,
}

/// Times the stored units of a run on each of several cores; prints and writes how they compare.
pub(super) fn retime(args: &RetimeArgs, of: &StoredRun, recorded: &Preset) -> anyhow::Result<u8> {
    let requested_cores = requested_cores(args, recorded)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => default_out(&args.dir, &["sweep"])?,
    };
    check_out(&out, &args.dir)?;
    let stop = stop_on_signal()?;
    let mut work = Work::begin(&out)?;
    let Some(cores) = time_all(&requested_cores, of, recorded, args.jobs, &stop)? else {
        eprintln!("tipsim: interrupted: there are no results");
        return Ok(STATUS_OF_INTERRUPT);
    };
    let found = SweepFile {
        format: SweepFile::FORMAT,
        run: std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone()),
        core: recorded.name.clone(),
        units: of.units.at.len() as u64,
        instructions: of.sampling.instructions,
        cores,
    };
    let json = serde_json::to_string_pretty(&found)? + "\n";
    work.results().write(SWEEP, json.as_bytes())?;
    let (_, published) = work.publish(None);
    published?;
    match args.json {
        true => say_json(&json),
        false => {
            say(format_args!("{}", table(&found)));
            println!("results: {}", out.display());
        }
    }
    Ok(0)
}

/// Returns the cores that are asked for: each of `--core`, or that of the run, with each combination of the values of `--sweep`.
fn requested_cores(args: &RetimeArgs, recorded: &Preset) -> Result<Vec<RequestedCore>, BadInput> {
    let names: Vec<Option<&str>> = match args.core.is_empty() {
        true => vec![None],
        false => args.core.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut sets = vec![args.set.clone()];
    for sweep in &args.sweep {
        let values = sweep.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, values) = values.ok_or_else(|| {
            BadInput(format!(
                "--sweep {sweep}: expected KEY=VALUE,VALUE,…, e.g. rob.entries=32,64,128"
            ))
        })?;
        let values: Vec<String> =
            values.split(',').map(|value| format!("{key}={}", value.trim())).collect();
        if sets.len() * values.len() * names.len() > MOST_CORES {
            return Err(BadInput(format!(
                "--sweep {sweep}: expected at most {MOST_CORES} cores in all, found more"
            )));
        }
        let with_each = |set: &Vec<String>| -> Vec<Vec<String>> {
            values.iter().map(|value| [&set[..], std::slice::from_ref(value)].concat()).collect()
        };
        sets = sets.iter().flat_map(with_each).collect();
    }
    let all = names.iter().flat_map(|name| sets.iter().map(move |set| (*name, set)));
    all.map(|(name, set)| {
        let core = core(name, set, recorded)?;
        let name = name.unwrap_or(&core.name).to_owned();
        Ok(RequestedCore { name, set: set.clone(), core })
    })
    .collect()
}

/// Has each core time the units, `jobs` cores at once or as many as the host has processors. Returns `None` if `stop` was set before all were done.
fn time_all(
    requested_cores: &[RequestedCore],
    of: &StoredRun,
    recorded: &Preset,
    jobs: Option<NonZeroUsize>,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Vec<SweepRow>>> {
    let jobs = jobs.or_else(|| thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get).min(requested_cores.len());
    let (next, units_done, failed) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let progress =
        Mutex::new(ProgressLine::new("units", requested_cores.len() * of.units.at.len()));
    let rows = Mutex::new(Vec::new());
    let after_unit = || {
        let done = units_done.fetch_add(1, Relaxed) + 1;
        if let Ok(mut progress) = progress.try_lock() {
            progress.show(done);
        }
        !stop.load(Relaxed) && !failed.load(Relaxed)
    };
    let work = || -> Result<(), BadInput> {
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(requested) = requested_cores.get(number) else { return Ok(()) };
            match time(requested, of, recorded, &after_unit) {
                Ok(Some(row)) => {
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((number, row));
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    failed.store(true, Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let ended = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<(), BadInput>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    progress.into_inner().unwrap_or_else(PoisonError::into_inner).end();
    ended.into_iter().collect::<Result<(), BadInput>>()?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    if rows.len() < requested_cores.len() {
        return Ok(None);
    }
    rows.sort_by_key(|(number, _)| *number);
    Ok(Some(rows.into_iter().map(|(_, row)| row).collect()))
}

/// Has a core time the units. Returns `None` if `after_unit` returned false.
fn time(
    requested: &RequestedCore,
    of: &StoredRun,
    recorded: &Preset,
    after_unit: &dyn Fn() -> bool,
) -> Result<Option<SweepRow>, BadInput> {
    let options = RetimeOptions {
        core: &requested.core,
        profilers: None,
        excerpts: false,
        all_events: false,
        units: &of.units,
        instructions: of.sampling.instructions,
        after_unit: &mut |_| after_unit(),
        threads: Threads::One,
        on_core_thread: || (),
    };
    let retimed = retime_units(of.stored_units()?, options);
    let retimed = retimed.map_err(|e| bad_input(&of.dir.join(STORED_UNITS), e))?;
    let Some(retimed) = retimed else { return Ok(None) };
    let ratio = ratio(&of.units, &retimed);
    let sampled = &retimed.sampled;
    Ok(Some(SweepRow {
        core: requested.name.clone(),
        set: requested.set.clone(),
        cpi: sampled.point.map(|point| point.cpi),
        cycles: sampled.point.map(|point| point.cycles),
        cpi_estimate: sampled.cpi,
        ratio: ratio.map(|(ratio, _)| ratio),
        ratio_estimate: ratio.and_then(|(_, estimate)| estimate),
        smaller: smaller(&requested.core, recorded).into_iter().map(str::to_owned).collect(),
        unit_cycles: retimed.units.cycles,
    }))
}

/// Returns how cores compare as a table.
fn table(found: &SweepFile) -> String {
    let name = |row: &SweepRow| {
        let mark = if row.smaller.is_empty() { "" } else { " *" };
        format!("{} {}", row.core, row.set.join(" ")).trim_end().to_owned() + mark
    };
    let width = found.cores.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:width$}  {:>8}  {:>8}  {:>11}  {:>10}  {:>8}\n",
        "core", "CPI", "± 95 %", "M cycles", "of the run", "± 95 %"
    );
    let number = |number: Option<f64>, digits: usize| {
        number.map_or_else(|| "?".to_owned(), |number| format!("{number:.digits$}"))
    };
    let margin = |estimate: Option<Estimate>| {
        let margin = |e: Estimate| format!("{:.2} %", 100.0 * e.margin().within_95 / e.value);
        estimate.map_or_else(|| "?".to_owned(), margin)
    };
    for row in &found.cores {
        text += &format!(
            "{:width$}  {:>8}  {:>8}  {:>11}  {:>10}  {:>8}\n",
            name(row),
            number(row.cpi, 4),
            margin(row.cpi_estimate),
            number(row.cycles.map(|cycles| cycles / 1e6), 1),
            number(row.ratio, 4),
            margin(row.ratio_estimate),
        );
    }
    text += &format!(
        "{} units of {}, which was on {}; the last interval is of the ratio, which is nearer, as the units are the same\n",
        found.units,
        found.run.display(),
        found.core
    );
    if found.cores.iter().any(|row| !row.smaller.is_empty()) {
        text += "* has a smaller L1 or TLB than the core of the run: units begin with more in it than it would have, so that it seems faster than it is\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(more: &[&str]) -> RetimeArgs {
        let words = ["tipsim", "retime", "run"].iter().chain(more);
        match Cli::parse_from(words).command {
            Command::Retime(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn named(more: &[&str]) -> Result<Vec<String>, String> {
        let recorded = Preset::load("boom-4w").unwrap();
        let found = requested_cores(&args(more), &recorded).map_err(|BadInput(error)| error)?;
        let describe =
            |c: &RequestedCore| format!("{} {} {}", c.name, c.set.join(" "), c.core.rob.entries);
        Ok(found.iter().map(describe).collect())
    }

    #[test]
    fn each_core_comes_with_each_combination() {
        let found = named(&[
            "--set",
            "lsu.loads=16",
            "--sweep",
            "rob.entries=32,64",
            "--sweep",
            "issue.mem_width=1, 2",
        ]);
        let expected = [
            "boom-4w lsu.loads=16 rob.entries=32 issue.mem_width=1 32",
            "boom-4w lsu.loads=16 rob.entries=32 issue.mem_width=2 32",
            "boom-4w lsu.loads=16 rob.entries=64 issue.mem_width=1 64",
            "boom-4w lsu.loads=16 rob.entries=64 issue.mem_width=2 64",
        ];
        assert_eq!(found.unwrap(), expected);
        let found = named(&["--core", "mega-boom", "--core", "boom-4w"]).unwrap();
        assert!(
            found[0].starts_with("mega-boom ") && found[1].starts_with("boom-4w "),
            "{found:?}"
        );
        assert!(!args(&["--core", "mega-boom", "--set", "rob.entries=32"]).is_sweep());
    }

    #[test]
    fn what_is_no_core_is_told() {
        let error = |more: &[&str]| named(more).unwrap_err();
        assert!(
            error(&["--sweep", "rob.entries"])
                .contains("--sweep rob.entries: expected KEY=VALUE,VALUE")
        );
        let odd = error(&["--sweep", "rob.entries=64,63"]);
        assert!(odd.contains("rob.entries=63"), "{odd}");
        assert!(
            error(&["--core", "mega-boom", "--core", "megaboom"]).contains("--core megaboom: ")
        );
        let many = (1..1200).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert!(error(&["--sweep", &format!("rob.entries={many}")]).contains("at most 1000 cores"));
    }

    #[test]
    fn a_table_says_what_is_not_known() {
        let row = |core: &str, ratio: Option<f64>| SweepRow {
            core: core.to_owned(),
            set: vec!["rob.entries=32".to_owned()],
            cpi: ratio,
            cycles: ratio.map(|ratio| ratio * 2e6),
            cpi_estimate: None,
            ratio,
            ratio_estimate: None,
            unit_cycles: Vec::new(),
            smaller: ratio.map(|_| "l1d.kib".to_owned()).into_iter().collect(),
        };
        let text = table(&SweepFile {
            format: SweepFile::FORMAT,
            run: "run".into(),
            core: "boom-4w".to_owned(),
            units: 1,
            instructions: 1000,
            cores: vec![row("mega-boom", Some(1.5)), row("none", None)],
        });
        let lines: Vec<&str> = text.lines().collect();
        let fields = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(
            fields(1),
            ["mega-boom", "rob.entries=32", "*", "1.5000", "?", "3.0", "1.5000", "?"]
        );
        assert_eq!(fields(2), ["none", "rob.entries=32", "?", "?", "?", "?", "?"]);
        assert!(lines[3].starts_with("1 units of run") && lines[4].starts_with("* has a smaller"));
    }
}
