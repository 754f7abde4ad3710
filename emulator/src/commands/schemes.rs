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
pub struct SchemesFile {
    /// Version of the format.
    pub format: u32,
    /// Instructions of the region.
    pub instructions: u64,
    /// Cycles of the region while the hart is awake.
    pub cycles: u64,
    /// What each scheme says, by unit and number of units.
    pub trials: Vec<SchemeTrial>,
}

/// What a scheme says with so many units.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SchemeTrial {
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
pub fn schemes(args: &SchemesArgs) -> anyhow::Result<u8> {
    let run = Results::open(&args.dir)?;
    let units: SampledUnits = run.json(UNITS)?;
    let region = TimedRegion::new(&units).ok_or_else(|| {
        let expected = "expected units that follow each other without a gap, as of a run with run.sampling.every equal to run.sampling.unit and run.sampling.warm_up = 0; found others";
        bad_input(&args.dir.join(UNITS), expected)
    })?;
    let survey = args.phases.as_deref().map(read_survey).transpose()?;
    let mut trials = Vec::new();
    let all = args.unit.iter().map(|unit| SCHEMES.len() * sizes(args, &region, *unit).len());
    let (mut progress, mut done) = (ProgressLine::new("trials", all.sum()), 0);
    for unit in &args.unit {
        let survey = match (&args.phases, &survey) {
            (Some(dir), Some(survey)) => Some(joined(survey, *unit, dir)?),
            _ => None,
        };
        for (asked, budget) in sizes(args, &region, *unit) {
            for scheme in SCHEMES {
                progress.show(done);
                done += 1;
                let plan = plan(scheme, *unit, asked, &region);
                let seeds = match plan.surveys() {
                    Some(_) if survey.is_none() || asked > MOST_CHOSEN => continue,
                    Some(_) => args.seeds.min(args.choosing_seeds),
                    None => args.seeds,
                };
                if plan.fault().is_some() {
                    continue;
                }
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
    let all = region.instructions() as f64 / unit as f64;
    let of_budgets =
        args.budget.iter().map(|budget| ((all * budget / 100.0).round() as u64, Some(*budget)));
    let of_numbers = args.units.iter().map(|units| (*units, None));
    let sizes = of_budgets.chain(of_numbers);
    sizes.filter(|(asked, _)| *asked >= 2 && *asked as f64 <= all).collect()
}

/// Reads the survey that `tipsim phases` left.
fn read_survey(dir: &Path) -> anyhow::Result<Survey> {
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
            scheme.name().trim_matches('"'),
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
    text + "error of the cycles over seeds: bias, mean and largest size; ± 95 %: the interval, and how often that and the one of 99.7 % hold\n"
}
