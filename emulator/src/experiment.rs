//! An experiment: a machine of a run spec with its results' folder, driven in steps, from the boot to the report.

mod boot_cache;
pub(crate) mod command;
mod description;
mod end;
pub(crate) mod input;
mod jit;
pub(crate) mod net;
mod observer;
mod outcome;
pub(crate) mod passes;
mod plan;
mod points;
mod progress;
mod share;

use std::fs::File;
use std::io::{BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::{Input, Output};
use simulation::{
    Checkpoint, CheckpointContext, Goal, MachineOptions, Mode, Profilers, Recording, RegionState,
    Session, Stop, SurveyOptions, System, TraceOutput,
};
use user_net::UserNet;

use crate::cli::Made;
use crate::failure::{BadInput, bad_input};
use crate::gdb::{self, Debugger, UnderDebugger};
use crate::guest_files::program::{Program, ProgramArguments, ProgramConsole};
use crate::host::self_profile::{Samples, SelfProfile, sample_this_thread};
use crate::run_folder::{CONSOLE, PHASES_VECTORS, RUN, STORED_UNITS, TRACE, Work};
use crate::session::SharedPosition;
use crate::spec::Net;
use boot_cache::Boot;
use description::metadata;
use observer::{ExperimentObserver, ExperimentState};

pub(crate) use end::End;
pub(crate) use outcome::{Outcome, Reports};
pub(crate) use plan::Plan;
pub(crate) use progress::{Console, ConsoleEcho};
use share::Share;

/// What an experiment is given beside its plan.
#[derive(Clone)]
pub(crate) struct ExperimentOptions<'a> {
    /// Folder of the results.
    pub out: &'a Path,
    /// Name of the run spec's file.
    pub spec_name: &'a str,
    /// The spec and the input that are kept among the results, if they are no files of the user's.
    pub made: Option<&'a Made>,
    /// Where the guest's console is shown, too.
    pub echo: ConsoleEcho,
    /// The simulator samples itself.
    pub self_profile: bool,
    /// A debugger may stop the guest for as long as it likes: a guest that does nothing is not ended.
    pub has_debugger: bool,
    /// Ends the step that goes on, from another thread.
    pub stop: Arc<AtomicBool>,
    /// Where other threads see how far the run is, if it is not shown on the terminal.
    pub position: Option<Arc<SharedPosition>>,
    /// What is typed on the guest's console.
    pub input: Option<Input>,
    /// A checkpoint that the machine goes on from, instead of its boot.
    pub checkpoint: Option<&'a Path>,
    /// The region is surveyed, and nothing is recorded.
    pub survey: Option<SurveyRequest>,
}

/// What is to be surveyed.
#[derive(Clone, Copy)]
pub(crate) struct SurveyRequest {
    /// Instructions of an interval.
    pub interval: u64,
    /// Numbers that basic-block vectors are projected to.
    pub dimensions: usize,
    /// Basic-block vectors are written among the results.
    pub vectors: bool,
}

/// A machine of a run spec, its session, and the folder in which its results come to be. Dropped before [`Self::finish`], nothing of it
/// stays.
pub(crate) struct Experiment {
    plan: Plan,
    work: Work,
    session: Session,
    state: ExperimentState,
    self_profile: Option<SelfProfile>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The step's goal is reached, and the experiment can go on.
    Reached,
    /// The guest of an interactive session waits for what is typed.
    Waiting,
    /// The experiment has ended: the next is [`Experiment::finish`].
    Ended,
}

/// What an experiment left.
pub(crate) struct FinishedExperiment {
    /// What it found.
    pub outcome: Outcome,
    /// Where its results are.
    pub place: PathBuf,
    /// The report for the terminal.
    pub reports: Reports,
    /// Whether the results took their place.
    pub published: anyhow::Result<()>,
}

impl Experiment {
    /// Boots the guest of a plan, or goes on where an earlier run with the same boot had saved it; a bare-metal program is loaded.
    ///
    /// # Errors
    /// If the folder of the results cannot be made, or a file of the guest is not as it should be.
    pub(crate) fn boot(
        plan: Plan,
        net: Option<UserNet>,
        options: &ExperimentOptions<'_>,
    ) -> anyhow::Result<Self> {
        let work = begin(&plan, options)?;
        if let Some(program) = &plan.program {
            let mut console = console(&work, options.echo)?;
            let output = Output::new(Box::new(console.clone()));
            let mut system = System::new(machine_options(&plan, output))?;
            let results = [work.path(), options.out];
            load_program(&plan, results, program, &mut system, &console, options.made)?;
            let resumed = restore(&plan, &mut system, &mut console, options.checkpoint)?;
            return Self::of(plan, work, system, console, (None, resumed), options);
        }
        let share = Share { path: work.guest_files() };
        give_files(&plan, &share, options.made)?;
        let mut console = console(&work, options.echo)?;
        let mut net = net;
        let output = console.clone();
        let mut make = || {
            let output = Output::new(Box::new(output.clone()));
            Ok(System::new(MachineOptions {
                share: Some(&share.path),
                input: options.input.clone(),
                // A machine that is made once more has no network: there is no checkpoint of a machine with one.
                net: net.take(),
                ..machine_options(&plan, output)
            })?)
        };
        let mut system = make()?;
        let resumed = restore(&plan, &mut system, &mut console, options.checkpoint)?;
        let boot = match (&resumed, &options.input) {
            (Some(_), _) => None,
            // The port with an input is not that of the runs whose boot is kept.
            (None, Some(_)) => {
                plan.load_guest(&mut system)?;
                None
            }
            (None, None) => Boot::start(&plan, &mut system, &mut console, make)?,
        };
        Self::of(plan, work, system, console, (boot, resumed), options)
    }

    fn of(
        plan: Plan,
        work: Work,
        system: System,
        console: Console,
        (boot, resumed): (Option<Boot>, Option<Resumed>),
        options: &ExperimentOptions<'_>,
    ) -> anyhow::Result<Self> {
        let mut boot = boot;
        let (region, warmed_state) = match (resumed, &mut boot) {
            (Some(Resumed { region, warmed_state }), _) => (Some(region), warmed_state),
            (None, Some(boot)) => (None, boot.take_warmed_state()),
            (None, None) => (None, Vec::new()),
        };
        let recording = match options.survey {
            Some(request) => survey(&plan, &work, request)?,
            None => recording(&plan, &work)?,
        };
        let mut session = Session::new(system, &plan.preset, recording, plan.spec.run.boot)?;
        session.keep_warm(&warmed_state)?;
        if let Some(region) = &region {
            session.resume_region(region)?;
        }
        let self_profile = options.self_profile.then(SelfProfile::start).transpose()?;
        let state =
            ExperimentState::new(&plan, &session, console, (boot, region.is_some()), options);
        Ok(Self { plan, work, session, state, self_profile })
    }

    /// Returns the session, to look at the machine or to change how it executes.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns whether the guest has mounted the folder that it shares with the host.
    pub(crate) fn has_mounted(&self) -> bool {
        self.state.mounted
    }

    /// Returns the guest's console.
    pub(crate) fn console(&self) -> &Console {
        &self.state.console
    }

    /// Runs until the goal is reached, until the console prints `text` if there is one, or to the end; under the control of a debugger
    /// if one is connected.
    ///
    /// # Errors
    /// If recording cannot begin, or a debugger's connection fails.
    pub(crate) fn step(
        &mut self,
        goal: &Goal,
        text: Option<&str>,
        debugger: Option<&mut Debugger>,
    ) -> anyhow::Result<Step> {
        if self.state.end.is_some() {
            return Ok(Step::Ended);
        }
        // Slices are shorter while the console is looked at.
        self.state.boot_is_cacheable &= text.is_none()
            && goal.instructions.is_none()
            && goal.cycle.is_none()
            && goal.breakpoint.is_none();
        let goal = self.plan.limited(goal.clone(), self.session.position());
        let mut observer = ExperimentObserver::new(&self.plan, &mut self.state, text);
        let mut observer = UnderDebugger::new(debugger, &mut observer);
        let stop = self.session.run_until(&goal, &mut observer)?;
        let debugger_end = observer.end;
        if matches!(debugger_end, Some(gdb::End::Killed)) {
            self.state.stop.store(true, Ordering::Relaxed);
            self.state.end = Some(End::Interrupted);
        }
        if self.state.has_found_text() {
            return Ok(Step::Reached);
        }
        if stop == Stop::Reached {
            self.state.end = self.plan.exceeded(self.session.position());
        }
        Ok(match self.state.end {
            Some(_) => Step::Ended,
            None if self.state.waits() => Step::Waiting,
            None => Step::Reached,
        })
    }

    /// Returns what names the guest that booted, in checkpoints.
    ///
    /// # Errors
    /// If a file of the guest cannot be read.
    pub(crate) fn guest_name(&self) -> anyhow::Result<String> {
        description::guest_name(&self.plan)
    }

    /// Changes parameters of the core (`KEY=VALUE`), before the first timed part.
    ///
    /// # Errors
    /// If a key or value is wrong, a timed part has begun, or the machine would be another one.
    pub(crate) fn change_core(&mut self, set: &[String]) -> anyhow::Result<()> {
        let mut preset = self.plan.preset.clone();
        crate::commands::core::apply(&mut preset, set)?;
        self.session.set_core(&preset)?;
        self.plan.preset = preset;
        Ok(())
    }

    /// Goes on after a step that was interrupted.
    pub(crate) fn resume(&mut self) {
        if self.state.end == Some(End::Interrupted) {
            self.state.end = None;
        }
    }

    /// Returns why the experiment has ended; nothing if it can go on, as it can after a step that was interrupted.
    pub(crate) fn end(&self) -> Option<&End> {
        self.state.end.as_ref().filter(|end| **end != End::Interrupted)
    }

    /// Ends the experiment: waits until all is evaluated, writes the report, and puts the results in their place.
    ///
    /// # Errors
    /// If the results cannot be written.
    pub(crate) fn finish(self) -> anyhow::Result<FinishedExperiment> {
        let Self { plan, mut work, session, mut state, self_profile } = self;
        let share = work.guest_files();
        let has_command = plan.spec.run.command.is_some();
        let status = command::status(&share);
        let complete = session.has_closed_region() && !session.is_region_open();
        let end = state.end.take().unwrap_or(End::Session { complete });
        let end = end.settled(has_command && status.is_none(), work.path());
        state.progress.end();
        let samples = self_profile.map(SelfProfile::stop);
        let finished = session.finish(end.is_part())?;
        let parts = samples.map(Samples::parts).transpose()?;
        let never_began = plan.spec.boots_functionally_first() && finished.regions.count == 0;
        let mut outcome = Outcome {
            end,
            never_began,
            has_command,
            mounted: state.mounted,
            status,
            console: state.console.failure(),
            command_at: state.command_at,
            parts,
            finished,
        };
        let files = &plan.spec.run.files;
        jit::keep(files, &share);
        Share { path: share.clone() }.take_back(files);
        command::take_back(&share);
        let part = outcome.part();
        let written = outcome.write(&plan, work.results(), part.as_deref());
        let unwritten = written.as_ref().err().map(|error| format!("{error:#}"));
        let (place, published) = work.publish(part.or(unwritten).as_deref());
        // Nobody may read what is printed, which ends the program: the results are in their place by then.
        if let Err(error) = &published {
            eprintln!("tipsim: {error:#}");
        }
        let reports = match written {
            Ok(reports) => reports,
            // What failed first is why the rest does.
            Err(error) if !outcome.failed() => return Err(error),
            Err(_) => Reports::default(),
        };
        Ok(FinishedExperiment { outcome, place, reports, published })
    }
}

/// Makes the working folder, with what is known before anything runs.
fn begin(plan: &Plan, options: &ExperimentOptions<'_>) -> anyhow::Result<Work> {
    let mut work = Work::begin(options.out)?;
    if let Some(made) = options.made {
        work.results().write(options.spec_name, made.spec.as_bytes())?;
        if let Some(content) = &made.input {
            work.results().write(input::MADE_INPUT, content)?;
        }
    }
    if options.survey.is_none() {
        let begun = serde_json::to_vec_pretty(&outcome::begun(plan).to_value())?;
        work.results().write(RUN, &begun)?;
    }
    Ok(work)
}

/// Returns what the guest's command or program has as its standard input, if anything.
fn standard_input<'a>(
    plan: &Plan,
    made: Option<&'a Made>,
) -> Result<Option<Box<dyn Read + 'a>>, BadInput> {
    Ok(match (made.and_then(|made| made.input.as_deref()), &plan.spec.run.input) {
        (Some(content), _) => Some(Box::new(content)),
        (None, Some(file)) => Some(Box::new(File::open(file).map_err(|e| bad_input(file, e))?)),
        (None, None) => None,
    })
}

/// Puts the guest's command, its input and its files into the shared folder.
fn give_files(plan: &Plan, share: &Share, made: Option<&Made>) -> anyhow::Result<()> {
    let run = &plan.spec.run;
    share.give(&run.files)?;
    let command = run.command.as_deref();
    let command = command.map(|command| command::with_environment(command, &run.env));
    let mut input = standard_input(plan, made)?;
    let input = input.as_mut().map(|input| &mut **input as &mut dyn Read);
    command::give(&share.path, command.as_deref(), input)?;
    // What the guest sees of the folder does not depend on when it was made.
    share.made_at(&[command::COMMAND, command::INPUT, ""], plan.epoch)?;
    share.fix_modes()
}

/// Returns whether a path leads into a folder, or is that folder.
fn is_within(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(path).starts_with(real(folder)) || real(folder).starts_with(real(path))
}

/// Where a checkpoint lets an experiment go on, beside the machine.
struct Resumed {
    /// Where among marks the machine is.
    region: RegionState,
    /// What the core was taught while it was kept warm, if that was the plan's core; empty: nothing.
    warmed_state: Vec<u8>,
}

/// Lets a machine go on from a checkpoint, if there is one.
fn restore(
    plan: &Plan,
    system: &mut System,
    console: &mut Console,
    checkpoint: Option<&Path>,
) -> anyhow::Result<Option<Resumed>> {
    let Some(path) = checkpoint else {
        return Ok(None);
    };
    let saved = Checkpoint::open(path)?;
    let is_same_core = saved.header.core == plan.preset;
    let (_, CheckpointContext { printed, region, guest, warmed_state }) =
        saved.load(system, Mode::Functional, &plan.preset)?;
    if !guest.is_empty() && guest != description::guest_name(plan)?.as_bytes() {
        let error = "expected a checkpoint of this guest, found one of other files, arguments, kernel command line or clock";
        return Err(bad_input(path, error).into());
    }
    console.restore(&printed)?;
    let warmed_state = if is_same_core { warmed_state } else { Vec::new() };
    Ok(Some(Resumed { region, warmed_state }))
}

/// Loads a bare-metal program, which reads its input from a file or none. `results`: where the results are now, and will be.
fn load_program(
    plan: &Plan,
    results: [&Path; 2],
    program: &Program,
    system: &mut System,
    console: &Console,
    made: Option<&Made>,
) -> anyhow::Result<()> {
    let folder = plan.spec.guest.semihosting.as_deref();
    if let Some(folder) = folder.filter(|folder| results.iter().any(|path| is_within(path, folder)))
    {
        let error = "guest.semihosting: expected a folder without the results in it, which the program could change";
        return Err(bad_input(folder, error).into());
    }
    let mut input = Vec::new();
    if let Some(mut from) = standard_input(plan, made)? {
        from.read_to_end(&mut input)?;
    }
    let guest = &plan.spec.guest;
    let given =
        ProgramArguments { arguments: guest.arguments.clone(), files: guest.semihosting.clone() };
    program.load(system, &given, || {
        ProgramConsole::of(Box::new(Cursor::new(input.clone())), Box::new(console.clone()))
    })?;
    Ok(())
}

fn console(work: &Work, echo: ConsoleEcho) -> anyhow::Result<Console> {
    Ok(Console::new(work.create(CONSOLE)?, &work.path().join(CONSOLE), echo))
}

/// The machine of a plan, without a folder that it shares with the host and without a network.
fn machine_options(plan: &Plan, console: Output) -> MachineOptions<'_> {
    MachineOptions {
        harts: plan.spec.guest.harts as usize,
        console,
        drives: &plan.drives,
        translator: plan.spec.run.translator,
        threads: plan.spec.run.threads,
        hart_order: plan.spec.run.hart_order,
        epoch: plan.epoch,
        packages: plan.packages.as_ref().map(|packages| packages.root.as_path()),
        live: plan.spec.guest.net != Net::None,
        on_core_thread: sample_this_thread,
        ..MachineOptions::new(plan.memory, &plan.preset)
    }
}

/// What a survey of the region counts.
fn survey(plan: &Plan, work: &Work, request: SurveyRequest) -> anyhow::Result<Recording> {
    let vectors = request.vectors.then(|| {
        let file = BufWriter::new(work.create(PHASES_VECTORS)?);
        anyhow::Ok(Box::new(file) as Box<dyn Write + Send>)
    });
    let SurveyRequest { interval, dimensions, .. } = request;
    let survey = SurveyOptions { interval, dimensions, vectors: vectors.transpose()? };
    Ok(Recording { region: plan.spec.run.region, survey: Some(survey), ..Recording::default() })
}

/// What the spec says is recorded, into the working folder.
fn recording(plan: &Plan, work: &Work) -> anyhow::Result<Recording> {
    let record = &plan.spec.record;
    let stores = plan.spec.run.sampling.as_ref().is_some_and(|sampling| sampling.store);
    let stored_units = stores.then(|| {
        let file = BufWriter::new(work.create(STORED_UNITS)?);
        anyhow::Ok(Box::new(file) as Box<dyn Write + Send>)
    });
    let path = work.path().join(TRACE);
    let trace = || {
        anyhow::Ok(TraceOutput {
            create: work.creator(TRACE)?,
            name: path.display().to_string(),
            // The description reads all files that boot.
            metadata: metadata(plan)?,
            level: record.level,
        })
    };
    Ok(Recording {
        trace: record.trace.then(trace).transpose()?,
        profilers: record.profilers.then(|| Profilers {
            samplers: plan.samplers.clone(),
            detail: record.detail,
            call_stacks: record.call_stacks,
            sampled: plan.spec.run.sampling.as_ref().map(|sampling| sampling.scheme),
        }),
        stages: record.stages,
        all_events: record.counters,
        truth: record.truth,
        excerpts: record.excerpts && record.profilers,
        scripts: record.interpreters && (record.trace || record.profilers),
        region: plan.spec.run.region,
        warm: plan.spec.run.warm,
        sampling: plan.spec.run.sampling.clone(),
        chosen: plan.chosen.clone(),
        stored_units: stored_units.transpose()?,
        survey: None,
    })
}
