//! A session with an experiment on a thread of its own, for callers on any thread: what the Python package drives. Each request gives a
//! [`Reply`], for which the caller can wait a while and then look at [`SessionThread::position`], or [`SessionThread::interrupt`] it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use devices::Input;
use isa::PerfEvent;
use machine::Mark;
use simulation::{Goal, SamplingPlan, SimulationError};
use snapshot::SnapshotError;

use crate::cli::RunArgs;
use crate::experiment::{ConsoleEcho, Experiment, ExperimentOptions, Plan, Step, net};
use crate::failure::BadInput;
use crate::run_folder::Work;

/// What a session begins with.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// The run spec.
    pub spec: PathBuf,
    /// Changes of the spec, as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Folder of the results.
    pub out: PathBuf,
    /// Directory of the built guest; without, the one that was built last.
    pub guest_dir: Option<PathBuf>,
    /// A checkpoint that the machine goes on from, instead of its boot.
    pub checkpoint: Option<PathBuf>,
    /// Text can be sent to the guest's console.
    pub interactive: bool,
}

/// Where a step is to end: at the first of these, or without any at the guest's end.
#[derive(Clone, Debug, Default)]
pub struct Until {
    /// Instructions, of all harts, from now on.
    pub instructions: Option<u64>,
    /// Cycle since reset.
    pub cycle: Option<u64>,
    /// Name of a mark: [`MOUNTED`], or one of [`MARKS`].
    pub mark: Option<String>,
    /// Text that the console prints.
    pub text: Option<String>,
    /// Virtual address of an instruction that a hart is about to execute.
    pub pc: Option<u64>,
}

/// Name of the place at which the guest has mounted the folder that it shares with the host, and not looked into it yet.
pub const MOUNTED: &str = "mounted";

/// Names of marks: the command's beginning and end, and those of its programs.
pub const MARKS: [(&str, Mark); 4] = [
    ("command-start", Mark::CommandStart),
    ("command-stop", Mark::CommandStop),
    ("start", Mark::Start),
    ("stop", Mark::Stop),
];

/// Returns all names of marks, for messages.
pub fn mark_names() -> String {
    let marks = MARKS.iter().map(|(name, _)| *name);
    [MOUNTED].into_iter().chain(marks).collect::<Vec<_>>().join(", ")
}

/// Cycle and instructions that a step has come to, which other threads can look at.
#[derive(Debug, Default)]
pub struct SharedPosition {
    cycle: AtomicU64,
    instructions: AtomicU64,
}

impl SharedPosition {
    /// Notes where a step is.
    pub(crate) fn set(&self, cycle: u64, instructions: u64) {
        self.cycle.store(cycle, Ordering::Relaxed);
        self.instructions.store(instructions, Ordering::Relaxed);
    }
}

/// The state of a hart between two steps.
#[derive(Clone, Debug)]
pub struct HartState {
    /// Address of the next instruction.
    pub pc: u64,
    /// The integer registers, x0 first.
    pub registers: Vec<u64>,
    /// Cycles since reset.
    pub cycle: u64,
    /// Instructions retired since reset.
    pub instructions: u64,
}

/// What a request gives, when it is done; an error is its text.
pub struct Reply<R>(Receiver<Result<R, String>>);

impl<R> Reply<R> {
    /// Waits at most so long. Returns `None` if the request is not done yet.
    pub fn wait(&self, at_most: Duration) -> Option<Result<R, String>> {
        match self.0.recv_timeout(at_most) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Err("the session has ended, or the simulator panicked".to_owned()))
            }
        }
    }
}

type Request = Box<dyn FnOnce(&mut Option<Experiment>) + Send>;

/// An experiment on a thread of its own.
pub struct SessionThread {
    /// The process that has the thread: one that forks has not.
    owner: u32,
    /// `None` only while it is dropped.
    requests: Option<Sender<Request>>,
    /// `None` only while it starts and while it is dropped.
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    position: Arc<SharedPosition>,
    input: Option<Input>,
}

impl SessionThread {
    /// Starts the thread, which boots the guest up to where the next run with the same boot would go on, or loads a checkpoint. The
    /// reply comes when the session can be used.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(options: SessionOptions) -> std::io::Result<(Self, Reply<()>)> {
        let (requests, received) = channel::<Request>();
        let (ready, reply) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let position = Arc::<SharedPosition>::default();
        let input = options.interactive.then(Input::default);
        let mut session = Self {
            owner: std::process::id(),
            requests: Some(requests),
            thread: None,
            stop: Arc::clone(&stop),
            position: Arc::clone(&position),
            input: input.clone(),
        };
        let thread = thread::Builder::new().name("session".to_owned()).spawn(move || {
            let begun = begin(&options, stop, position, input);
            let mut experiment = match begun {
                Ok(experiment) => Some(experiment),
                Err(error) => {
                    let _ = ready.send(Err(format!("{error:#}")));
                    return;
                }
            };
            let _ = ready.send(Ok(()));
            for request in received {
                request(&mut experiment);
                if experiment.is_none() {
                    break;
                }
            }
        })?;
        session.thread = Some(thread);
        Ok((session, Reply(reply)))
    }

    /// Lets the thread do something with the experiment.
    fn ask<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Experiment) -> anyhow::Result<R> + Send + 'static,
    ) -> Reply<R> {
        self.ask_last(|experiment| match experiment {
            Some(experiment) => act(experiment),
            None => Err(anyhow::anyhow!("the session has ended")),
        })
    }

    fn ask_last<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Option<Experiment>) -> anyhow::Result<R> + Send + 'static,
    ) -> Reply<R> {
        let (sender, receiver) = channel();
        let request: Request = Box::new(move |experiment| {
            let _ = sender.send(act(experiment).map_err(|error| format!("{error:#}")));
        });
        // A thread that is gone answers nothing, which the receiver tells.
        let _ = self.requests.as_ref().map(|requests| requests.send(request));
        Reply(receiver)
    }

    /// Ends the step that goes on, which can be gone on with.
    pub fn interrupt(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the cycle and the instructions that the step has come to.
    pub fn position(&self) -> (u64, u64) {
        let SharedPosition { cycle, instructions } = &*self.position;
        (cycle.load(Ordering::Relaxed), instructions.load(Ordering::Relaxed))
    }

    /// Runs a step. The reply says whether the goal is reached; false: the experiment has ended.
    pub fn run_until(&self, until: Until) -> Reply<bool> {
        // Before the request waits for another one: an interruption from now on is for this one.
        self.stop.store(false, Ordering::Relaxed);
        self.ask(move |experiment| {
            let pause = until.mark.as_deref() == Some(MOUNTED);
            if pause && experiment.has_mounted() {
                return Ok(true);
            }
            let mark = match &until.mark {
                None => None,
                Some(_) if pause => None,
                Some(name) => {
                    let known = MARKS.iter().find(|(known, _)| known == name);
                    let names = mark_names();
                    let unknown = || anyhow::anyhow!("mark: expected one of {names}; found {name}");
                    Some(known.ok_or_else(unknown)?.1)
                }
            };
            let goal = Goal {
                instructions: until.instructions,
                cycle: until.cycle,
                mark,
                breakpoint: until.pc,
                pause,
            };
            experiment.resume();
            Ok(experiment.step(&goal, until.text.as_deref(), None)? == Step::Reached)
        })
    }

    /// Lets the timing cores execute from now on, or the functional harts. `core`: changes of the core, as `KEY=VALUE`, before the first
    /// timed part.
    pub fn set_mode(&self, timing: bool, core: Vec<String>) -> Reply<()> {
        self.ask(move |experiment| {
            if !core.is_empty() {
                experiment.change_core(&core)?;
            }
            let is_sampled = experiment.plan().spec.run.sampling.is_some();
            anyhow::ensure!(
                !is_sampled || !experiment.session().is_region_open(),
                "{}: expected it outside of the region of interest, since run.sampling says what is timed within",
                if timing { "timing" } else { "functional" }
            );
            match timing {
                true => experiment.session().timing()?,
                false => experiment.session().functional(),
            }
            Ok(())
        })
    }

    /// Begins or ends a region of interest, as a program's mark does. The reply says whether one is open then.
    pub fn mark_region(&self, start: bool) -> Reply<bool> {
        self.ask(move |experiment| {
            let has_region = experiment.plan().spec.run.region.is_marked();
            anyhow::ensure!(
                has_region,
                "region: expected a spec with run.region = \"command\" or \"marked\", found \"run\""
            );
            anyhow::ensure!(experiment.end().is_none(), "region: the guest has ended");
            let session = experiment.session();
            session.mark(if start { Mark::Start } else { Mark::Stop })?;
            Ok(session.is_region_open())
        })
    }

    /// Returns whether the timing cores execute.
    pub fn is_timing(&self) -> Reply<bool> {
        self.ask(|experiment| Ok(experiment.session().is_timing()))
    }

    /// Returns what the console has printed.
    pub fn console(&self) -> Reply<String> {
        self.ask(|experiment| {
            let printed = experiment.console().printed()?;
            Ok(String::from_utf8_lossy(&printed).into_owned())
        })
    }

    /// Types text on the guest's console; the guest takes it when it goes on.
    ///
    /// # Errors
    /// If the session has no input.
    pub fn send(&self, text: &str) -> Result<(), String> {
        let input = self.input.as_ref();
        let input = input.ok_or("the session was not begun with interactive = True")?;
        input.push(text.as_bytes());
        Ok(())
    }

    /// Returns the running totals of all events on each hart, by their names in `tipsim core events`; nothing before the first timed
    /// part. Events that are counted only if somebody asks are there if the spec has `record.counters`.
    pub fn counters(&self) -> Reply<Vec<Vec<(&'static str, u64)>>> {
        self.ask(|experiment| {
            let all = experiment.plan().spec.record.counters;
            let named = |counts: Vec<u64>| {
                let events = PerfEvent::ALL.iter().zip(counts);
                let counted = events.filter(|(event, _)| all || !event.is_followed());
                counted.map(|(event, count)| (event.row().name, count)).collect()
            };
            Ok(experiment.session().counts().into_iter().map(named).collect())
        })
    }

    /// Returns the state of each hart.
    pub fn harts(&self) -> Reply<Vec<HartState>> {
        self.ask(|experiment| {
            let harts = &experiment.session().system().harts;
            let state = harts.iter().map(|hart| HartState {
                pc: hart.pc(),
                registers: (0..32).map(|register| hart.reg(register)).collect(),
                cycle: hart.cycle(),
                instructions: hart.instructions(),
            });
            Ok(state.collect())
        })
    }

    /// Returns bytes of memory at a virtual address of a hart, as far as they are mapped.
    pub fn read_memory(&self, hart: usize, address: u64, length: usize) -> Reply<Vec<u8>> {
        self.ask(move |experiment| {
            let (hart, bus) = experiment.session().system_mut().hart_and_bus(hart);
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(length)?;
            bytes.resize(length, 0);
            let found = hart.debug_read(bus, address, &mut bytes);
            bytes.truncate(found);
            Ok(bytes)
        })
    }

    /// Saves the machine as a checkpoint.
    pub fn checkpoint(&self, path: PathBuf) -> Reply<()> {
        self.ask(move |experiment| {
            anyhow::ensure!(experiment.end().is_none(), "checkpoint: the guest has ended");
            let printed = experiment.console().printed()?;
            let guest = experiment.guest_name()?.into_bytes();
            match experiment.session().save(&path, printed, guest) {
                Err(error @ SimulationError::State(SnapshotError::Unsaved(_))) => Err(anyhow::anyhow!(
                    "{error}: it could be up to where the guest mounted that folder (mark = \"{MOUNTED}\")"
                )),
                saved => Ok(saved?),
            }
        })
    }

    /// Returns why the experiment has ended, in words; nothing if it can go on.
    pub fn end(&self) -> Reply<Option<String>> {
        self.ask(|experiment| {
            Ok(experiment
                .end()
                .map(|end| end.part().unwrap_or_else(|| "the guest has ended".to_owned())))
        })
    }

    /// Ends the session: evaluates and writes what was recorded. The reply is the text of the report.
    pub fn finish(&self) -> Reply<String> {
        self.ask_last(|experiment| {
            let Some(mut experiment) = experiment.take() else {
                anyhow::bail!("the session has ended");
            };
            experiment.resume();
            let concluded = experiment.finish()?;
            concluded.published?;
            Ok(concluded.reports.text)
        })
    }

    /// Ends the session without results.
    pub fn discard(&self) -> Reply<()> {
        self.ask_last(|experiment| {
            *experiment = None;
            Ok(())
        })
    }
}

/// Ends the step that goes on and the session, and waits until nothing of it is left.
impl Drop for SessionThread {
    fn drop(&mut self) {
        self.interrupt();
        drop(self.requests.take());
        let thread = self.thread.take().filter(|_| self.owner == std::process::id());
        // A panic of the thread was told already.
        let _ = thread.map(JoinHandle::join);
    }
}

fn begin(
    options: &SessionOptions,
    stop: Arc<AtomicBool>,
    position: Arc<SharedPosition>,
    input: Option<Input>,
) -> anyhow::Result<Experiment> {
    Work::check(&options.out)?;
    let args = RunArgs::of_spec(
        options.spec.clone(),
        options.set.clone(),
        options.out.clone(),
        options.guest_dir.clone(),
    );
    let plan = Plan::new(&args)?;
    if options.interactive && plan.program.is_some() {
        let error = "interactive: expected a guest with a console of its own, found guest.program, whose input is run.input";
        return Err(BadInput(error.to_owned()).into());
    }
    if plan.spec.run.sampling.as_ref().is_some_and(SamplingPlan::has_passes) {
        let error = "run.sampling: expected no units, no error and scheme = \"systematic\", \"random\" or \"live\" in a session, which runs the program once";
        return Err(BadInput(error.to_owned()).into());
    }
    let net = net::of(plan.spec.guest.net, &plan.spec.forwards()?)?;
    let options = ExperimentOptions {
        survey: None,
        out: &options.out,
        spec_name: "",
        made: None,
        echo: ConsoleEcho::Nowhere,
        self_profile: false,
        has_debugger: false,
        stop,
        position: Some(position),
        input,
        checkpoint: options.checkpoint.as_deref(),
    };
    Experiment::boot(plan, net, &options)
}
