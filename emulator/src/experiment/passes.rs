//! Passes over a sampled program whose results are not kept: a survey before, and runs that told less than was wanted.
//!
//! Each pass is a run of its own, from the boot on, with files and folders of its own: a guest cannot tell it from the one whose results
//! are kept.

use phases::Survey;
use simulation::Goal;

use super::outcome::NO_REGION;
use super::{ConsoleEcho, End, Experiment, ExperimentOptions, Plan, SurveyRequest, command};
use crate::failure::BadInput;
use crate::run_folder::Work;

/// What a survey found, and the plan that it was for.
pub(crate) struct Surveyed {
    /// The plan.
    pub plan: Plan,
    /// The region's intervals.
    pub survey: Survey,
    /// Where the results of the survey come to be. Dropped, nothing of it stays.
    pub work: Work,
    /// Why the pass ended.
    pub end: End,
    /// Status of the guest's command, if it ended.
    pub status: Option<u32>,
    /// Bytes that the console had printed when the command started, if it did.
    pub command_at: Option<u64>,
}

/// Executes a plan functionally up to its end, and surveys its region.
///
/// # Errors
/// If the guest cannot boot, or vectors cannot be written.
pub(crate) fn survey(plan: Plan, options: &ExperimentOptions<'_>) -> anyhow::Result<Surveyed> {
    let mut experiment = Experiment::boot(plan, None, options)?;
    experiment.step(&Goal::END, None, None)?;
    experiment.state.progress.end();
    let survey = experiment.session.take_survey()?.unwrap_or_else(|| Survey::new(1));
    let Experiment { plan, work, state, .. } = experiment;
    let status = command::status(&work.guest_files());
    let has_command = plan.spec.run.command.is_some();
    let end = state.end.unwrap_or(End::Session { complete: true });
    let end = end.settled(has_command && status.is_none(), work.path());
    Ok(Surveyed { plan, survey, work, end, status, command_at: state.command_at })
}

/// Settles where the units of a sampled run are, by a survey if it takes one. `None`: the survey was interrupted.
///
/// # Errors
/// If the guest cannot boot, its command fails or has no region of interest, or a unit that the spec names lies beyond the region.
pub(crate) fn settled(plan: Plan, options: &ExperimentOptions<'_>) -> anyhow::Result<Option<Plan>> {
    let sampling = plan.spec.run.sampling.as_ref();
    let request = sampling.and_then(|sampling| {
        let interval = sampling.surveys()?;
        Some(SurveyRequest { interval, dimensions: sampling.dimensions(), vectors: false })
    });
    let Some(request) = request else { return Ok(Some(plan)) };
    let Surveyed { mut plan, survey, end, status, .. } = self::survey(
        plan,
        &ExperimentOptions { survey: Some(request), echo: ConsoleEcho::Nowhere, ..options.clone() },
    )?;
    if end == End::Interrupted {
        return Ok(None);
    }
    let failed = match status {
        Some(status) if status != 0 => Some(format!("its command ended with status {status}")),
        _ => end.part().or_else(|| (survey.total() == 0).then(|| NO_REGION.to_owned())),
    };
    if let Some(why) = failed {
        anyhow::bail!(
            "the pass before the run, which says where its units are, failed: {why}; without run.sampling the console of the program says more"
        );
    }
    if let Some(sampling) = plan.spec.run.sampling.as_mut() {
        let chosen = sampling.settle(&survey, &plan.points);
        plan.chosen = chosen.map_err(|e| BadInput(format!("run.sampling.{e}")))?;
        let weights: f64 = plan.points.iter().map(|point| point.weight).sum();
        if !plan.points.is_empty() && (weights - 1.0).abs() > 0.01 {
            eprintln!(
                "tipsim: note: the weights of run.sampling.points add up to {weights:.2}, not 1: each counts relative to that sum"
            );
        }
        eprintln!(
            "tipsim: surveyed {:.1} M instructions with {} basic blocks: some {} units, one in {:.2} M instructions",
            survey.total() as f64 / 1e6,
            survey.blocks,
            match plan.chosen.units.len() {
                0 => survey.total() / sampling.every,
                chosen => chosen as u64,
            },
            sampling.every as f64 / 1e6
        );
    }
    Ok(Some(plan))
}

/// What follows a pass.
pub(crate) enum Pass {
    /// The pass told enough.
    Done(Box<Experiment>),
    /// The program runs again, with this plan.
    Again(Box<Plan>),
}

/// Decides whether a sampled program runs again, as its cycles are not known as well as was wanted.
///
/// # Errors
/// If the recording of a region cannot begin.
pub(crate) fn judged(mut experiment: Experiment) -> anyhow::Result<Pass> {
    let wanted = experiment.plan.spec.run.sampling.clone().filter(|plan| plan.error.is_some());
    let Some(wanted) = wanted.filter(|_| !experiment.ended_early()) else {
        return Ok(Pass::Done(Box::new(experiment)));
    };
    let Some(sampled) = experiment.session.sampled()? else {
        return Ok(Pass::Done(Box::new(experiment)));
    };
    let (Some(every), Some(cycles), Some(error)) =
        (wanted.narrower(&sampled), sampled.cycles, wanted.error)
    else {
        return Ok(Pass::Done(Box::new(experiment)));
    };
    experiment.state.progress.end();
    eprintln!(
        "tipsim: ± {:.2} % by chance (95 %), ± {error} wanted: the program runs again, with one unit in {:.2} M instructions instead of {:.2} M",
        100.0 * cycles.margin().within_95 / cycles.value,
        every as f64 / 1e6,
        wanted.every as f64 / 1e6
    );
    let Experiment { mut plan, .. } = experiment;
    if let Some(sampling) = &mut plan.spec.run.sampling {
        sampling.every = every;
    }
    Ok(Pass::Again(Box::new(plan)))
}

impl Experiment {
    /// Returns whether the run ended before the guest did.
    fn ended_early(&self) -> bool {
        self.state.end.as_ref().is_none_or(|end| end.part().is_some())
    }
}
