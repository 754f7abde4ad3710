//! `tipsim schemes`: what schemes of sampling would have said of a program all of which was timed.

use std::path::Path;

use phases::Survey;
use schemars::JsonSchema;
use serde::Serialize;
use simulation::{SampledUnits, SamplingPlan, Scheme, TimedRegion, Trial};

use super::phases::PhasesFile;
use crate::cli::SchemesArgs;
use crate::failure::bad_input;
use crate::host::terminal::{ProgressLine, say_json};
use crate::run_folder::{PHASES, Results, UNITS};

/// What `tipsim schemes` found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SchemesFile {
    /// Version of the format.
    pub format: u32,
    /// Instructions of the region.
    pub instructions: u64,
    /// Cycles of the region while the hart is awake.
    pub cycles: u64,
    /// What each scheme says, by unit and number of units.
    pub trials: Vec<SchemeTrial>,
    /// What was asked for and could not be tried, a sentence each.
    pub left_out: Vec<String>,
}

/// What a scheme says with so many units.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SchemeTrial {
    /// The scheme.
    pub scheme: Scheme,
    /// Instructions of a unit.
    pub unit: u64,
    /// Number of units that were asked for.
    pub asked: u64,
    /// Part of the region that was asked for, in per cent; `None` if it was a number of units.
    pub budget: Option<f64>,
    /// What it says, over seeds.
    #[serde(flatten)]
    pub trial: Trial,
}

const FORMAT: u32 = 1;

/// Tries schemes on a run.
pub(crate) fn schemes(args: &SchemesArgs) -> anyhow::Result<u8> {
    let run = Results::open(&args.dir)?;
    let units: SampledUnits = run.json(UNITS)?;
    let region = TimedRegion::new(&units).ok_or_else(|| {
        let expected = "expected units that follow each other without a gap, as of a run with run.sampling.every equal to run.sampling.unit and run.sampling.warm_up = 0; found others";
        bad_input(&args.dir.join(UNITS), expected)
    })?;
    let survey = args.phases.as_deref().map(|dir| read_survey(dir, &region)).transpose()?;
    let (mut trials, mut left_out) = (Vec::new(), Vec::new());
    if survey.is_none() {
        left_out.push("Schemes that choose units by what is executed need --phases.".to_owned());
    }
    let all = args.unit.iter().map(|unit| SCHEMES.len() * sizes(args, &region, *unit).len());
    let (mut progress, mut done) = (ProgressLine::new("trials", all.sum()), 0);
    for unit in &args.unit {
        let survey = match (&args.phases, &survey) {
            (Some(dir), Some(survey)) => Some(joined(survey, *unit, dir)?),
            _ => None,
        };
        left_out.extend(impossible_sizes(args, &region, *unit));
        for (asked, budget) in sizes(args, &region, *unit) {
            if asked > MOST_CHOSEN && survey.is_some() {
                left_out.push(format!(
                    "Schemes that choose units are tried with {MOST_CHOSEN} units at most, and not with {asked} of {unit} instructions."
                ));
            }
            for scheme in SCHEMES {
                progress.show(done);
                done += 1;
                let plan = plan(scheme, *unit, asked, &region);
                let seeds = match plan.surveys() {
                    Some(_) if survey.is_none() || asked > MOST_CHOSEN => continue,
                    Some(_) => args.seeds.min(args.choosing_seeds),
                    None => args.seeds,
                };
                let none = Survey::new(*unit);
                let trial = region.trial(&plan, survey.as_ref().unwrap_or(&none), seeds);
                let trial = trial.map_err(|e| bad_input(&args.dir.join(UNITS), e))?;
                trials.push(SchemeTrial { scheme, unit: *unit, asked, budget, trial });
            }
        }
    }
    progress.end();
    let found = SchemesFile {
        format: FORMAT,
        instructions: region.instructions(),
        cycles: region.cycles(),
        trials,
        left_out,
    };
    match args.json {
        true => say_json(&serde_json::to_string_pretty(&found)?),
        false => print!("{}", text(&found)),
    }
    Ok(0)
}

/// The schemes that are tried, in order.
const SCHEMES: [Scheme; 5] =
    [Scheme::Systematic, Scheme::Random, Scheme::Stratified, Scheme::RankedSet, Scheme::Simpoint];
/// Units that schemes which choose them are asked for at most: more take long to choose, and are hardly nearer.
const MOST_CHOSEN: u64 = 1000;

/// Returns the plan of so many units of a scheme.
fn plan(scheme: Scheme, unit: u64, asked: u64, region: &TimedRegion) -> SamplingPlan {
    let plan = SamplingPlan { scheme, unit, ..SamplingPlan::default() };
    match scheme {
        Scheme::Systematic | Scheme::Random => {
            SamplingPlan { every: (region.instructions() / asked.max(1)).max(unit), ..plan }
        }
        _ => SamplingPlan { units: Some(asked), ..plan },
    }
}

/// Returns how many units of a length are tried, and of which budget each number is. Two units are the least.
fn sizes(args: &SchemesArgs, region: &TimedRegion, unit: u64) -> Vec<(u64, Option<f64>)> {
    let sizes = asked_sizes(args, region, unit);
    sizes.filter(|(asked, _)| fits(*asked, region, unit)).collect()
}

/// Says which sizes that are asked for have fewer than two units, or more than the region has.
fn impossible_sizes(
    args: &SchemesArgs,
    region: &TimedRegion,
    unit: u64,
) -> impl Iterator<Item = String> {
    let sizes =
        asked_sizes(args, region, unit).filter(move |(asked, _)| !fits(*asked, region, unit));
    sizes.map(move |(asked, budget)| match budget {
        Some(budget) => {
            format!("{budget} % of the region is {asked} units of {unit} instructions, of which two are the least.")
        }
        None => format!("The region has no {asked} units of {unit} instructions."),
    })
}

fn asked_sizes(
    args: &SchemesArgs,
    region: &TimedRegion,
    unit: u64,
) -> impl Iterator<Item = (u64, Option<f64>)> {
    let all = region.instructions() as f64 / unit as f64;
    let of_budgets = args
        .budget
        .iter()
        .map(move |budget| ((all * budget / 100.0).round() as u64, Some(*budget)));
    of_budgets.chain(args.units.iter().map(|units| (*units, None)))
}

fn fits(units: u64, region: &TimedRegion, unit: u64) -> bool {
    units >= 2 && units.saturating_mul(unit) <= region.instructions()
}

/// Reads the survey that `tipsim phases` left of a region.
fn read_survey(dir: &Path, region: &TimedRegion) -> anyhow::Result<Survey> {
    let found: PhasesFile = Results::open(dir)?.json(PHASES)?;
    let file = dir.join(PHASES);
    if found.format != PhasesFile::FORMAT {
        let expected = format!("format: expected {}, found {}", PhasesFile::FORMAT, found.format);
        return Err(bad_input(&file, expected).into());
    }
    let survey = found.survey;
    if survey.interval == 0 || survey.instructions.len() != survey.vectors.len() {
        return Err(
            bad_input(&file, "survey: expected a vector for each interval, found others").into()
        );
    }
    // Timer interrupts come elsewhere in a functional pass.
    let (found, expected) = (survey.total(), region.instructions());
    if found.abs_diff(expected) > expected / 100 {
        let expected = format!(
            "survey: expected phases of the same program, of about {expected} instructions, found {found}"
        );
        return Err(bad_input(&file, expected).into());
    }
    Ok(survey)
}

/// Returns a survey of intervals as long as units.
fn joined(survey: &Survey, unit: u64, dir: &Path) -> anyhow::Result<Survey> {
    match unit.checked_rem(survey.interval) {
        Some(0) => Ok(survey.joined(usize::try_from(unit / survey.interval).unwrap_or(usize::MAX))),
        _ => {
            let expected = format!(
                "expected intervals that units of {unit} instructions are a multiple of, found {}",
                survey.interval
            );
            Err(bad_input(&dir.join(PHASES), expected).into())
        }
    }
}

fn text(found: &SchemesFile) -> String {
    let mut text = format!(
        "{:.1} M instructions, {:.1} M cycles: {:.4} cycles per instruction\n",
        found.instructions as f64 / 1e6,
        found.cycles as f64 / 1e6,
        found.cycles as f64 / found.instructions as f64
    );
    text += &format!(
        "{:<12}{:>9}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>7}\n",
        "scheme",
        "unit",
        "units",
        "timed",
        "bias",
        "mean",
        "largest",
        "± 95 %",
        "95 %",
        "99.7 %",
        "seeds"
    );
    let percent = |share: Option<f64>| {
        share.map_or("–".to_owned(), |share| format!("{:.2}%", 100.0 * share))
    };
    let held = |share: Option<f64>| {
        share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
    };
    for SchemeTrial { scheme, unit, trial, .. } in &found.trials {
        text += &format!(
            "{:<12}{:>8}k{:>8.0}{:>9}{:>8.2}%{:>9}{:>9}{:>9}{:>8}{:>8}{:>7}\n",
            scheme.name(),
            unit / 1000,
            trial.units,
            percent(Some(trial.timed)),
            100.0 * trial.bias,
            percent(Some(trial.mean_error)),
            percent(Some(trial.largest_error)),
            percent(trial.half_width_95),
            held(trial.holds_95),
            held(trial.holds_99_7),
            trial.seeds
        );
    }
    found.left_out.iter().for_each(|words| text += &format!("{words}\n"));
    text + "error of the cycles over seeds: bias, mean and largest size; ± 95 %: the interval, and how often that and the one of 99.7 % hold\n"
}
