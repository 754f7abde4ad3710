//! `tipsim phases`: what a program does over time, without timing.

use std::path::Path;

use phases::{Phases, Survey};
use report::{most_frequent_phase, phase_character};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::{STATUS_OF_INTERRUPT, stop_on_signal};
use crate::cli::{PhasesArgs, RunArgs};
use crate::experiment::passes::{Surveyed, survey};
use crate::experiment::{ConsoleEcho, End, ExperimentOptions, Plan, SurveyRequest, command};
use crate::failure::BadInput;
use crate::run_folder::{PHASES, PHASES_POINTS, PHASES_WEIGHTS, Results, Work};
use crate::spec::Net;

/// What `tipsim phases` found, as `phases.json` has it.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PhasesFile {
    /// Version of the file's format.
    pub format: u32,
    /// Instructions of the region.
    pub instructions: u64,
    /// Status of the guest's command, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_status: Option<u32>,
    /// Seed of the numbers by which first centres of phases are drawn.
    pub seed: u64,
    /// The phases, and the phase of each interval.
    #[serde(flatten)]
    pub phases: Phases,
    /// The intervals.
    pub survey: Survey,
}

impl PhasesFile {
    /// Version of the file's format that is written.
    pub(crate) const FORMAT: u32 = 1;
}

/// Surveys the region of a run spec, and says which phases it has.
pub(crate) fn phases(args: &PhasesArgs) -> anyhow::Result<u8> {
    Work::check(&args.out)?;
    let plan = Plan::new(&RunArgs::of_spec(
        args.spec.clone(),
        args.set.clone(),
        args.out.clone(),
        args.guest_dir.clone(),
    ))?;
    let plan = surveyed_plan(plan)?;
    let options = ExperimentOptions {
        out: &args.out,
        spec_name: "",
        made: None,
        echo: ConsoleEcho::Nowhere,
        self_profile: false,
        has_debugger: false,
        stop: stop_on_signal()?,
        position: None,
        input: None,
        checkpoint: None,
        survey: Some(SurveyRequest {
            interval: args.interval,
            dimensions: args.dimensions,
            vectors: true,
        }),
    };
    let Surveyed { survey, mut work, end, status, command_at, .. } = survey(plan, &options)?;
    if end == End::Interrupted {
        eprintln!("tipsim: interrupted: there are no phases");
        return Ok(STATUS_OF_INTERRUPT);
    }
    if let Some(why) = end.part() {
        anyhow::bail!("{why}: there are no phases");
    }
    anyhow::ensure!(
        survey.total() > 0,
        "there are no phases, as there was no region of interest: the command did not begin, or its programs marked nothing"
    );
    let phases = Phases::of(&survey, args.most, args.seed);
    let found = PhasesFile {
        format: PhasesFile::FORMAT,
        instructions: survey.total(),
        command_status: status,
        seed: args.seed,
        phases,
        survey,
    };
    write(work.results(), &found)?;
    let (place, published) = work.publish(None);
    published?;
    if let Some(status) = status {
        command::report_status(status, &place, command_at.unwrap_or(0));
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&found)?),
        false => print!("{}", text(&found, &args.out)),
    }
    Ok(status.map_or(0, |status| u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Returns the plan with what a survey needs: the region is executed functionally, by one hart.
fn surveyed_plan(mut plan: Plan) -> Result<Plan, BadInput> {
    let expected = |what: &str| Err(BadInput(format!("phases: expected {what}")));
    let run = &mut plan.spec.run;
    run.sampling = None;
    run.boot = simulation::Mode::Functional;
    if !run.region.is_marked() {
        run.region = match plan.spec.guest.program.is_some() {
            true => return expected("run.region = \"marked\" with guest.program, found \"run\""),
            false => simulation::Region::Command,
        };
    }
    if plan.spec.guest.harts > 1 {
        return expected(&format!("guest.harts = 1, found {}", plan.spec.guest.harts));
    }
    if plan.spec.guest.net != Net::None {
        return expected("guest.net = \"none\", found \"user\"");
    }
    Ok(plan)
}

/// Writes all that was found, and what SimPoint's tools write, among the results.
fn write(results: &mut Results, found: &PhasesFile) -> anyhow::Result<()> {
    let phases = (0..).zip(&found.phases.phases);
    let points: String = phases
        .clone()
        .map(|(number, phase)| format!("{} {number}\n", phase.representative))
        .collect();
    let weights: String =
        phases.map(|(number, phase)| format!("{:.9} {number}\n", phase.share)).collect();
    results.write(PHASES, &serde_json::to_vec(found)?)?;
    results.write(PHASES_POINTS, points.as_bytes())?;
    results.write(PHASES_WEIGHTS, weights.as_bytes())
}

fn text(found: &PhasesFile, out: &Path) -> String {
    let survey = &found.survey;
    let mut text = format!(
        "{:.1} M instructions in {} intervals of {}, {} basic blocks, {:.1} MiB of data, {} phases\n",
        found.instructions as f64 / 1e6,
        survey.instructions.len(),
        survey.interval,
        survey.blocks,
        survey.footprint() as f64 / PAGES_OF_A_MIB,
        found.phases.phases.len()
    );
    text += &format!(
        "{:>5}{:>9}{:>11}{:>11}{:>8}{:>12}{:>14}{:>11}{:>9}{:>9}{:>11}\n",
        "phase",
        "share",
        "intervals",
        "stretches",
        "spread",
        "interval",
        "at, M instr.",
        "data, MiB",
        "written",
        "new",
        "code, KiB"
    );
    for (number, phase) in found.phases.phases.iter().enumerate() {
        let before: u64 = survey.instructions[..phase.representative].iter().sum();
        text += &format!(
            "{number:>5}{:>7.2} %{:>11}{:>11}{:>8.3}{:>12}{:>14.1}{:>11.2}{:>9.2}{:>9.2}{:>11.0}\n",
            100.0 * phase.share,
            phase.intervals,
            phase.stretches,
            phase.spread,
            phase.representative,
            before as f64 / 1e6,
            phase.pages.data / PAGES_OF_A_MIB,
            phase.pages.written / PAGES_OF_A_MIB,
            phase.pages.new / PAGES_OF_A_MIB,
            4.0 * phase.pages.code
        );
    }
    let singles = found.phases.phases.iter().filter(|phase| phase.intervals == 1).count();
    if 2 * singles > found.phases.phases.len() {
        text += &format!(
            "{singles} phases are one interval each, such as those in which shell and kernel start a program; longer intervals (--interval) have fewer\n"
        );
    }
    text += &format!("\nover time, {} intervals a character:\n", line_step(found));
    text += &over_time(found);
    text += &format!("\nresults: {}\n", out.display());
    text
}

/// Pages of 4 KiB in 1 MiB.
const PAGES_OF_A_MIB: f64 = 256.0;

/// Characters of a line of phases over time.
const LINE_CHARACTERS: usize = 100;

/// Returns how many intervals a character stands for.
fn line_step(found: &PhasesFile) -> usize {
    found.phases.of.len().div_ceil(LINE_CHARACTERS).max(1)
}

/// Returns the phase of each stretch of time: the one that most of its intervals have.
fn over_time(found: &PhasesFile) -> String {
    let of: Vec<u32> = found.phases.of.iter().map(|phase| *phase as u32).collect();
    let marks = of.chunks(line_step(found)).map(most_frequent_phase).map(phase_character);
    marks.collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_phases_over_time() {
        let mut survey = Survey::new(1000);
        let of: Vec<usize> = (0..250).map(|at| usize::from(at >= 100)).collect();
        for phase in &of {
            let mut vector = vec![0.0; phases::DIMENSIONS];
            vector[*phase] = 1.0;
            survey.instructions.push(1000);
            survey.vectors.push(vector);
            survey.pages.push(phases::IntervalPages { data: 512, written: 256, new: 128, code: 8 });
        }
        let phases = Phases::of(&survey, 10, 1);
        let found = PhasesFile {
            format: 1,
            instructions: survey.total(),
            command_status: None,
            seed: 1,
            phases,
            survey,
        };
        let text = text(&found, Path::new("out"));
        assert!(text.starts_with(
            "0.2 M instructions in 250 intervals of 1000, 0 basic blocks, 125.0 MiB of data, 2 phases\n"
        ));
        assert!(text.contains("    0  40.00 %        100          1"), "{text}");
        assert!(text.contains("       2.00     1.00     0.50         32\n"), "{text}");
        let line =
            format!("over time, 3 intervals a character:\n{}{}\n", "0".repeat(33), "1".repeat(51));
        assert!(text.contains(&line), "{text}");
    }
}
