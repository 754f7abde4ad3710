//! What threads wait for: locks, system calls, a hart; and who wakes them.

mod build;
mod callers;
mod page;
pub(crate) mod rules;
mod text;

use maud::Markup;
use schemars::JsonSchema;
use serde::Serialize;

use super::model::Common;
use super::options::Options;
use super::places::short;
use super::section::Section;
use super::widths::fit_name;
pub(super) use build::{reason as reason_name, waiting};
pub(super) use callers::NamedSites;

/// Least share of a program's time in a kind of waiting for a sentence of the verdict about it.
const WORTH_A_SENTENCE: f64 = 0.05;

/// Name of a function that is not known.
pub(crate) const UNKNOWN: &str = "?";

/// Suffix of operations that others than the program may answer.
const SHARED: &str = " (shared)";

/// The section's content.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WaitingReport {
    /// Sums of programs, in the order of [`processes`](Common::processes).
    pub programs: Vec<ProgramWaiting>,
    /// Threads by program; those that live longest in the region first.
    pub threads: Vec<ThreadWaiting>,
    /// Number of threads that are not listed.
    pub more_threads: usize,
    /// Futexes, those with most waiting first.
    pub futexes: Vec<FutexRow>,
    /// Number of futexes that are not listed.
    pub more_futexes: usize,
    /// True if calls were followed: [`FutexRow::callers`] are known.
    pub calls_followed: bool,
}

/// The time of a program's threads, added up.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct ProgramWaiting {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// Number of the program's threads.
    pub threads: usize,
    /// Cycles of the region in which the threads lived, summed over the threads.
    pub cycles: u64,
    /// Share of `cycles` on a hart.
    pub running: f64,
    /// Share of `cycles` in which a thread is ready, but on no hart.
    pub ready: f64,
    /// Share of `cycles` in which a thread waits for futexes of the program: locks, conditions, barriers.
    pub locks: f64,
    /// Share of `cycles` in which a thread waits for work in the scheduler of a language's runtime, such as Go's.
    pub idle: f64,
    /// Share of `cycles` in which a thread waits in a language's runtime for what is not known to be of the program.
    pub runtime: f64,
    /// Share of `cycles` in which a thread waits for anything else.
    pub other: f64,
}

/// A thread's time in the region.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ThreadWaiting {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// The thread's name in the kernel.
    pub name: String,
    /// The kernel's thread id.
    pub tid: u32,
    /// Cycles of the region in which the thread lived.
    pub cycles: u64,
    /// Time on a hart.
    pub running: Time,
    /// Time in which the thread was ready to run: it was new or woken, or it was another thread's turn.
    pub ready: Time,
    /// Time in which the thread waited, by reason, the longest first.
    pub waits: Vec<WaitRow>,
    /// Share of the thread's time of which nothing is known.
    pub unknown: f64,
}

/// Stretches of a thread's time.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Time {
    /// Number of stretches.
    pub count: u64,
    /// Cycles of all stretches.
    pub cycles: u64,
    /// Cycles of the longest stretch.
    pub longest: u64,
    /// Share of the thread's time; in the rows of a futex, the share of all waiting for the futex.
    pub share: f64,
}

/// A thread's waits for one reason.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WaitRow {
    /// `futex`, another system call's name, `page fault`, `idle Go thread`, or `Go runtime` for what else that waits for.
    pub reason: String,
    /// All waits for the reason.
    #[serde(flatten)]
    pub time: Time,
    /// Wakers, and the waits that each ended.
    pub wakers: Vec<WakerRow>,
}

/// A waker, and the waits that it ended.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WakerRow {
    /// A thread's name and number, `interrupt`, `?` if it was not told, `nobody` for a wait that goes on.
    pub waker: String,
    /// The waits; shares of all of that reason.
    #[serde(flatten)]
    pub time: Time,
}

/// A futex that threads waited for.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FutexRow {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// The futex's address, in hexadecimal.
    pub address: String,
    /// The data object that the futex is in, with the distance from its start, if a symbol says.
    pub object: Option<String>,
    /// Operations of the system calls, with `shared` if others than this program may wake the futex: a thread's end, by
    /// `pthread_join`.
    pub operations: Vec<String>,
    /// All waits; the share is of the time of all threads of the program.
    #[serde(flatten)]
    pub time: Time,
    /// Pairs of waiting and waking threads, the longest waits first.
    pub pairs: Vec<PairRow>,
    /// Places where threads waited, the longest waits first.
    pub places: Vec<PlaceRow>,
    /// Functions of the program's own code that waited, the longest waits first; empty if they are not known.
    pub callers: Vec<CallerRow>,
    /// True if a language's runtime waits for the futex, and not the program's own code.
    pub of_runtime: bool,
}

/// A function of the program's own code that waited.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CallerRow {
    /// The function's name; `?` if nobody of the program is among the callers that are known.
    pub function: String,
    /// The line, `file:line`, from which the function calls what waits.
    pub source: Option<String>,
    /// The waits.
    #[serde(flatten)]
    pub time: Time,
}

/// A thread that waited for another one.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PairRow {
    /// Name and number of the waiting thread.
    pub waiter: String,
    /// The waker, as in [`WakerRow::waker`].
    pub waker: String,
    /// The waits.
    #[serde(flatten)]
    pub time: Time,
}

/// A place where a program waited.
#[derive(Clone, Debug, JsonSchema, Serialize)]
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
    /// Returns the thread's name and number.
    fn title(&self) -> String {
        format!("{} {}", self.name, self.tid)
    }

    /// Returns the share of the thread's time in which it waited.
    fn waiting(&self) -> f64 {
        self.waits.iter().map(|wait| wait.time.share).sum()
    }
}

impl CallerRow {
    /// Returns the function, with its line if that is known.
    fn title(&self) -> String {
        let name = fit_name(&self.function, 60);
        match &self.source {
            Some(source) => format!("{name} ({})", short(source)),
            None => name,
        }
    }
}

impl WaitingReport {
    /// Returns the row of a process's futex, if it is listed.
    pub(crate) fn futex_row(&self, process: usize, address: u64) -> Option<&FutexRow> {
        let address = format!("{address:#x}");
        self.futexes.iter().find(|row| row.process == process && row.address == address)
    }
}

impl FutexRow {
    /// Returns the object's name, if there is one, and the address.
    fn title(&self) -> String {
        match &self.object {
            Some(object) => format!("{object} {}", self.address),
            None => self.address.clone(),
        }
    }

    /// True if others than the futex's program may wake it: other programs, or the kernel at a thread's end.
    fn is_shared(&self) -> bool {
        self.operations.iter().all(|it| it.ends_with(SHARED))
    }

    /// Returns the threads that woke others, with their share of the waiting.
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

/// Returns the programs that the section lists: those in focus, or the one that is asked for.
fn shown_processes(common: &Common, wanted: Option<&str>) -> Vec<usize> {
    match wanted {
        Some(name) => {
            let own = |index: &usize| common.processes[*index].name == name;
            (0..common.processes.len()).filter(own).collect()
        }
        None => common.focus(),
    }
}

impl Section for WaitingReport {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> std::fmt::Result {
        text::write(self, common, options, out)
    }

    fn page(&self, common: &Common) -> Markup {
        page::page(self, common)
    }
}
