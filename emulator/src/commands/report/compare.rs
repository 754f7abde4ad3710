//! `tipsim report BEFORE AFTER`: runs beside each other.

use std::path::{Path, PathBuf};

use report::{Compared, Comparison, Run};

use super::{check_hart, one_of_several, put, status};
use crate::cli::{ReportArgs, ReportFormat};
use crate::failure::BadInput;
use crate::run_folder::run_json::RunJson;
use crate::run_folder::{RUN, Results, TRACE, evaluation, report_files};
use crate::spec::epoch::Epoch;

/// `tipsim report BEFORE AFTER`, or with more runs, each of which is compared with the first.
pub(super) fn compare(args: &ReportArgs) -> anyhow::Result<u8> {
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
    let count = 1 + args.after.len();
    let only_one = [
        ("--level", args.level.is_some()),
        ("--profiler", !args.profiler.is_empty()),
        ("--rebuild", args.rebuild),
        ("--explain", args.explain.is_some()),
    ];
    if let Some((option, _)) = only_one.iter().find(|(_, given)| *given) {
        let error = format!("{option}: expected one run, found {count} to compare");
        return Err(BadInput(error).into());
    }
    if count > 2 && !map.is_empty() {
        let error = format!("--map: expected two runs to compare, found {count}");
        return Err(BadInput(error).into());
    }
    let dirs: Vec<&Path> =
        std::iter::once(&args.dir).chain(&args.after).map(PathBuf::as_path).collect();
    let runs: Vec<Results> = dirs.iter().map(|dir| Results::open(dir)).collect::<Result<_, _>>()?;
    let read = |(dir, run): (&&Path, &Results)| {
        check_hart(args, run)?;
        let report = report_files::part_of_report::<Run>(run, one_of_several(args, run))?;
        anyhow::Ok(report.titled(&dir.display().to_string(), when(run)))
    };
    let mut reports: Vec<Run> = dirs.iter().zip(&runs).map(read).collect::<Result<_, _>>()?;
    if args.one_hart.is_none()
        && Run::differ_in_harts(&reports)
        && let Err(reason) = add_stack_of_one_hart(&mut reports, &runs)
    {
        eprintln!("tipsim: no speed-up is told: {reason}");
    }
    if let [before, after] = &reports[..] {
        let comparison =
            Comparison::new(before, after, &map).map_err(|e| BadInput(format!("--map: {e}")))?;
        match args.format {
            ReportFormat::Text => put(args, &comparison.text(ROWS))?,
            ReportFormat::Json => put(args, &(serde_json::to_string_pretty(&comparison)? + "\n"))?,
            ReportFormat::Html => {
                let flame = |run| report_files::flame(run, one_of_several(args, run));
                let (before, after) = (flame(&runs[0])?, flame(&runs[1])?);
                put(args, &comparison.html(&before, &after, &map))?;
            }
            _ => return Err(no_format("two runs").into()),
        }
    } else {
        let compared = Compared::new(&reports);
        match args.format {
            ReportFormat::Text => put(args, &compared.text(ROWS))?,
            ReportFormat::Json => put(args, &(serde_json::to_string_pretty(&compared)? + "\n"))?,
            ReportFormat::Html => put(args, &compared.html())?,
            _ => return Err(no_format("runs").into()),
        }
    }
    let statuses = runs.iter().zip(&reports).map(|(run, report)| status(run.path(), report.part()));
    Ok(statuses.max().unwrap_or(0))
}

/// Adds to the first run, which is of one hart, what its time was spent on, for the speed-up to each of the others. Otherwise returns why no speed-up
/// can be told.
fn add_stack_of_one_hart(reports: &mut [Run], runs: &[Results]) -> Result<(), String> {
    let [one, others @ ..] = reports else { return Ok(()) };
    if let Some(reason) = others.iter().find_map(|several| one.no_speedup_to(several)) {
        return Err(reason);
    }
    let evaluation = evaluation::kept(&runs[0], None).map_err(|error| {
        format!(
            "{}: the evaluation of its trace ({}, which tipsim report --rebuild makes of {TRACE}) cannot be read: {error}",
            runs[0].path().display(),
            evaluation::EVALUATION,
        )
    })?;
    *one = one.clone().with_stack_of(&evaluation);
    Ok(())
}

fn no_format(what: &str) -> BadInput {
    BadInput(format!("--format: expected text, json or html to compare {what}"))
}

/// Returns when a run ended, in UTC and without fractions of seconds; of a run that does not say it, when its run.json was written.
fn when(run: &Results) -> Option<String> {
    let ended = RunJson::read(run).ok().and_then(|how| how.ended_at?.parse().ok());
    if let Some(ended @ Epoch::At(_)) = ended {
        return Some(ended.to_string());
    }
    let written = std::fs::metadata(run.path().join(RUN)).ok()?.modified().ok()?;
    let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Epoch::At(since.as_secs()).to_string())
}
