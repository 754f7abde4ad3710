//! What threads wait for: locks, system calls, a hart; and who wakes them.

mod build;
mod callers;
mod page;
mod text;

use profile::Evaluation;
use serde::Serialize;
use symbols::Symbolizer;

use super::loops::short;
use super::model::Report;
use super::text::fit::fit_name;

/// Of a program's time, the share of a kind of waiting from which on the verdict has a sentence about it.
const WORTH_A_SENTENCE: f64 = 0.05;

/// Said of a function that is not known.
pub(crate) const UNKNOWN: &str = "?";

/// Said of operations that others than the program may answer.
const SHARED: &str = " (shared)";

/// The section's content.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingReport {
    /// Sums of programs, in the order of [`processes`](Report::processes).
    pub programs: Vec<ProgramWaiting>,
    /// Threads by program; those that live longest in the region first.
    pub threads: Vec<ThreadWaiting>,
    /// How many threads more there were.
    pub more_threads: usize,
    /// Futexes, those with most waiting first.
    pub futexes: Vec<FutexRow>,
    /// How many futexes more there were.
    pub more_futexes: usize,
    /// Calls were followed: [`FutexRow::callers`] are known.
    pub calls_followed: bool,
}

/// The time of a program's threads, added up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProgramWaiting {
    /// Index into [`processes`](Report::processes).
    pub process: usize,
    /// Its threads.
    pub threads: usize,
    /// Cycles of the region in which they lived.
    pub cycles: u64,
    /// Share of these cycles on a hart.
    pub running: f64,
    /// Share in which a thread is ready, but on no hart.
    pub ready: f64,
    /// Share in which a thread waits for futexes of the program: locks, conditions, barriers.
    pub locks: f64,
    /// Share in which a thread waits for work in the scheduler of a language's runtime, such as Go's.
    pub idle: f64,
    /// Share in which a thread waits in such a runtime, for what is not known to be of the program.
    pub runtime: f64,
    /// Share in which a thread waits for anything else.
    pub other: f64,
}

/// A thread's time in the region.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadWaiting {
    /// Index into [`processes`](Report::processes).
    pub process: usize,
    /// The kernel's name.
    pub name: String,
    /// The kernel's number.
    pub tid: u32,
    /// Cycles of the region in which it lived.
    pub cycles: u64,
    /// On a hart.
    pub running: Time,
    /// Ready to run: new, woken, or another thread's turn.
    pub ready: Time,
    /// Waiting, the longest first.
    pub waits: Vec<WaitRow>,
    /// Share of its time of which nobody told anything.
    pub unknown: f64,
}

/// Stretches of a thread's time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Time {
    /// How many.
    pub count: u64,
    /// Their cycles.
    pub cycles: u64,
    /// Those of the longest.
    pub longest: u64,
    /// Share of the thread's time; of a futex's rows, of all waiting for it.
    pub share: f64,
}

/// A thread's waits for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct WaitRow {
    /// `futex`, another system call's name, `page fault`, `idle Go thread`, or `Go runtime` for what else that waits for.
    pub reason: String,
    /// All of them.
    #[serde(flatten)]
    pub time: Time,
    /// Who ended how many of them.
    pub wakers: Vec<WakerRow>,
}

/// Who ended waits.
#[derive(Clone, Debug, Serialize)]
pub struct WakerRow {
    /// A thread's name and number, `interrupt`, `?` if it was not told, `nobody` for a wait that goes on.
    pub waker: String,
    /// The waits; shares of all of that reason.
    #[serde(flatten)]
    pub time: Time,
}

/// A futex that threads waited for.
#[derive(Clone, Debug, Serialize)]
pub struct FutexRow {
    /// Index into [`processes`](Report::processes).
    pub process: usize,
    /// Its address, in hexadecimal.
    pub address: String,
    /// The data object that it is in, with the distance from its start, if a symbol says.
    pub object: Option<String>,
    /// What the calls were, with `shared` if others than this program may wake it: a thread's end, by `pthread_join`.
    pub operations: Vec<String>,
    /// All waits; the share is of the time of all threads of the program.
    #[serde(flatten)]
    pub time: Time,
    /// Who waited, and who woke it, the longest first.
    pub pairs: Vec<PairRow>,
    /// Where it was waited, the longest first.
    pub places: Vec<PlaceRow>,
    /// Which functions of the program's own code waited, the longest first; empty if that is not known.
    pub callers: Vec<CallerRow>,
    /// A language's runtime waits for it, and not the program's own code.
    pub of_runtime: bool,
}

/// A function of the program's own code that waited.
#[derive(Clone, Debug, Serialize)]
pub struct CallerRow {
    /// The function's name; `?` if nobody of the program is among the callers that are known.
    pub function: String,
    /// The line from which it calls what waits, `file:line`.
    pub source: Option<String>,
    /// The waits.
    #[serde(flatten)]
    pub time: Time,
}

/// A thread that waited for another one.
#[derive(Clone, Debug, Serialize)]
pub struct PairRow {
    /// Its name and number.
    pub waiter: String,
    /// As in [`WakerRow`].
    pub waker: String,
    /// The waits.
    #[serde(flatten)]
    pub time: Time,
}

/// Where a program waited.
#[derive(Clone, Debug, Serialize)]
pub struct PlaceRow {
    /// The function of the system call, with the distance from its start.
    pub label: String,
    /// The waits.
    #[serde(flatten)]
    pub time: Time,
}

impl ProgramWaiting {
    /// Returns the time of two programs together.
    fn and(&self, other: &Self) -> Self {
        let cycles = self.cycles.saturating_add(other.cycles);
        let share = |one: f64, two: f64| {
            (one * self.cycles as f64 + two * other.cycles as f64) / cycles.max(1) as f64
        };
        Self {
            process: self.process,
            threads: self.threads + other.threads,
            cycles,
            running: share(self.running, other.running),
            ready: share(self.ready, other.ready),
            locks: share(self.locks, other.locks),
            idle: share(self.idle, other.idle),
            runtime: share(self.runtime, other.runtime),
            other: share(self.other, other.other),
        }
    }
}

impl ThreadWaiting {
    /// Its name and number.
    fn title(&self) -> String {
        format!("{} {}", self.name, self.tid)
    }

    /// Share of its time in which it waited.
    fn waiting(&self) -> f64 {
        self.waits.iter().map(|wait| wait.time.share).sum()
    }
}

impl CallerRow {
    /// The function, with its line if that is known.
    fn title(&self) -> String {
        let name = fit_name(&self.function, 60);
        match &self.source {
            Some(source) => format!("{name} ({})", short(source)),
            None => name,
        }
    }
}

impl FutexRow {
    /// The object's name, if there is one, and the address.
    fn title(&self) -> String {
        match &self.object {
            Some(object) => format!("{object} {}", self.address),
            None => self.address.clone(),
        }
    }

    /// Programs other than its own may use it, and the kernel at a thread's end.
    fn is_shared(&self) -> bool {
        self.operations.iter().all(|it| it.ends_with(SHARED))
    }

    /// Threads that woke others, with their share of the waiting.
    fn wakers(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> = Vec::new();
        for pair in &self.pairs {
            match all.iter_mut().find(|(waker, _)| *waker == pair.waker) {
                Some((_, share)) => *share += pair.time.share,
                None => all.push((&pair.waker, pair.time.share)),
            }
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

impl Report {
    /// The same report with what threads waited for, if the guest's kernel told. `evaluation` is of all harts.
    pub fn with_waiting(mut self, evaluation: &Evaluation, symbolizer: &Symbolizer) -> Self {
        self.waiting = build::waiting(&self, evaluation, symbolizer);
        self
    }

    /// The programs that the section lists: those in focus, or the one that is asked for.
    fn shown_waiting(&self, wanted: Option<&str>) -> Vec<usize> {
        match wanted {
            Some(name) => {
                let own = |index: &usize| self.processes[*index].name == name;
                (0..self.processes.len()).filter(own).collect()
            }
            None => self.focus(),
        }
    }
}
