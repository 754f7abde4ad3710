//! `tipsim run`: a whole experiment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use simulation::{Goal, Mode, Region};

use crate::cli::{Made, RunArgs};
use crate::experiment::{
    ConsoleEcho, Experiment, ExperimentOptions, FinishedExperiment, Plan, net,
    passes::{self, Pass},
};
use crate::failure::{BadInput, bad_input};
use crate::gdb::Debugger;
use crate::run_folder::{EXEC_SPEC, PROFILE_SPEC, RUN, Work};
use crate::spec::Spec;

/// Exit status of a program that SIGINT ended, as shells have it.
pub(crate) const STATUS_OF_INTERRUPT: u8 = 130;

/// Runs the experiment; the exit status is that of the guest's command.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    Work::check(&args.out)?;
    let plan = Plan::new(args)?;
    if plan.spec.run.boot == Mode::Functional && plan.spec.run.region == Region::Run {
        eprintln!(
            "tipsim: note: run.boot = \"functional\" without run.region: nothing is timed, and nothing is profiled; \
             run.region = \"command\" profiles the command"
        );
    }
    if args.made.as_ref().is_some_and(|made| made.has_default_out) && args.out.join(RUN).exists() {
        let out = args.out.display();
        eprintln!("tipsim: note: the run before in {out} is replaced; --out DIR keeps both");
    }
    let net = net::of(plan.spec.guest.net, &plan.spec.forwards()?)?;
    let stop = stop_on_signal()?;
    let repeated = match &args.made {
        Some(_) => None,
        None => repeated(args, &plan.spec)?,
    };
    let made = args.made.as_ref().or(repeated.as_ref());
    let echo = match made.is_some_and(|made| made.prints) {
        true => ConsoleEcho::StandardOutput,
        false if args.console => ConsoleEcho::StandardError,
        false => ConsoleEcho::Nowhere,
    };
    if args.gdb.is_some() && plan.spec.run.sampling.is_some() {
        return Err(BadInput(
            "--gdb: expected no run.sampling with it, since a debugger steps past where units begin"
                .to_owned(),
        )
        .into());
    }
    let options = ExperimentOptions {
        survey: None,
        out: &args.out,
        spec_name: &args.spec.file_name().unwrap_or_default().to_string_lossy(),
        made,
        echo,
        self_profile: args.self_profile,
        has_debugger: args.gdb.is_some(),
        stop: Arc::clone(&stop),
        position: None,
        input: None,
        checkpoint: None,
    };
    let Some(mut plan) = passes::settled(plan, &options)? else {
        eprintln!("tipsim: interrupted in the pass before the run: there are no results");
        return Ok(STATUS_OF_INTERRUPT);
    };
    let mut net = net;
    let experiment = loop {
        let mut experiment = Experiment::boot(plan, net.take(), &options)?;
        let mut debugger = args.gdb.map(Debugger::listen).transpose()?;
        if let Some(debugger) = &mut debugger {
            debugger.wait()?;
        }
        experiment.step(&Goal::END, None, debugger.as_mut())?;
        match passes::judged(experiment)? {
            Pass::Done(experiment) => break experiment,
            Pass::Again(next) => plan = *next,
        }
    };
    conclude(experiment.finish()?, &args.out, args.brief, &stop)
}

/// Returns what a signal that asks this process to end sets.
///
/// # Errors
/// If it was called before.
pub(crate) fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&stop);
    ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// Prints what an experiment found, or its verdict alone if `brief`; the exit status is that of the guest's command.
pub(crate) fn conclude(
    concluded: FinishedExperiment,
    out: &Path,
    brief: bool,
    stop: &AtomicBool,
) -> anyhow::Result<u8> {
    let FinishedExperiment { outcome, place, reports, published } = concluded;
    // What went wrong is told before what took how long.
    outcome.tell_failure(&place);
    print!("{}", if brief { reports.verdict } else { reports.text });
    let status = outcome.verdict(out, &place)?;
    published?;
    // The run was over before the signal came; a script that has more of them shall end.
    Ok(match stop.load(Ordering::Relaxed) {
        true if status == 0 => STATUS_OF_INTERRUPT,
        _ => status,
    })
}

/// Returns the spec of `tipsim profile` or `exec` that is to be run again into its own folder: it stays beside the results, with its input.
fn repeated(args: &RunArgs, spec: &Spec) -> anyhow::Result<Option<Made>> {
    let real = |path: &Path| path.canonicalize().ok();
    let folder = real(&args.out);
    let own = |path: &Path| {
        folder.is_some() && real(path).as_deref().and_then(Path::parent) == folder.as_deref()
    };
    let read = |path: &Path| std::fs::read(path).map_err(|e| bad_input(path, e));
    let is_made = [PROFILE_SPEC, EXEC_SPEC].map(AsRef::as_ref).map(Some);
    if !own(&args.spec) || !is_made.contains(&args.spec.file_name()) {
        return Ok(None);
    }
    let text = String::from_utf8(read(&args.spec)?).map_err(|e| bad_input(&args.spec, e))?;
    let input = spec.run.input.as_deref().filter(|input| own(input));
    let prints = spec.guest.program.is_some();
    Ok(Some(Made {
        spec: text,
        input: input.map(read).transpose()?,
        has_default_out: false,
        prints,
    }))
}
