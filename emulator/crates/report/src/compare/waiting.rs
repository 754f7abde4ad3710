//! What threads waited for before and after.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::renamed::now;
use super::run::{CountAndCycles, Futex, Run, Thread};
use crate::waiting::UNKNOWN;

/// Least share of a run's cycles for a program's waiting to be compared: the shell that waits for its commands has less.
const NOTICEABLE: f64 = 0.05;

/// What threads waited for in both runs. Lists begin with the largest change.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingChanges {
    /// Times of threads; the first row is of all threads together.
    pub threads: Vec<ThreadChange>,
    /// Waits by reason.
    pub reasons: Vec<WaitChange>,
    /// Waits by futex.
    pub futexes: Vec<WaitChange>,
}

/// The time of a thread in both runs. Threads of one name are told apart by their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadChange {
    /// The thread's program; "all" for the sum.
    pub process: String,
    /// The thread's name, with a number from the second thread of that name on; empty for the sum.
    pub name: String,
    /// The thread's time in the run before; `None` if that run has no such thread.
    pub before: Option<ThreadTime>,
    /// The thread's time in the run after; `None` if that run has no such thread.
    pub after: Option<ThreadTime>,
}

/// Cycles of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThreadTime {
    /// Cycles on a hart.
    pub running: u64,
    /// Cycles in which the thread was ready, but on no hart.
    pub ready: u64,
    /// Cycles in which the thread waited.
    pub waiting: u64,
}

/// Waits of a kind in both runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitChange {
    /// The program whose threads waited.
    pub process: String,
    /// What was waited for: a reason, or a futex, named by its data object, or else by the function of the program that waited
    /// or that of the system call.
    pub name: String,
    /// Waits of this kind in the run before.
    pub before: WaitTime,
    /// Waits of this kind in the run after.
    pub after: WaitTime,
}

/// Number and cycles of waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitTime {
    /// Number of waits.
    pub count: u64,
    /// Cycles that the waits took together.
    pub cycles: u64,
}

impl ThreadChange {
    /// Returns the cycles of waiting and being ready that were gained.
    fn delta(&self) -> i128 {
        let lost = |time: Option<ThreadTime>| {
            time.map_or(0, |t| i128::from(t.waiting.saturating_add(t.ready)))
        };
        lost(self.after) - lost(self.before)
    }
}

impl WaitChange {
    fn delta(&self) -> i128 {
        i128::from(self.after.cycles) - i128::from(self.before.cycles)
    }
}

impl WaitTime {
    fn add(&mut self, time: CountAndCycles) {
        self.count = self.count.saturating_add(time.count);
        self.cycles = self.cycles.saturating_add(time.cycles);
    }
}

impl ThreadTime {
    fn of(thread: &Thread) -> Self {
        let waits = thread.waits.iter().map(|wait| wait.time.cycles);
        Self {
            running: thread.running.cycles,
            ready: thread.ready.cycles,
            waiting: waits.fold(0, u64::saturating_add),
        }
    }

    fn add(&mut self, other: Self) {
        self.running = self.running.saturating_add(other.running);
        self.ready = self.ready.saturating_add(other.ready);
        self.waiting = self.waiting.saturating_add(other.waiting);
    }
}

/// What a futex is called in every run of its program: its address moves.
fn name(futex: &Futex) -> String {
    let caller = futex.callers.iter().find(|caller| caller.function != UNKNOWN);
    match (&futex.object, caller, futex.places.first()) {
        (Some(object), ..) => object.clone(),
        (None, Some(caller), _) => format!("in {}", caller.function),
        (None, None, Some(place)) => format!("in {}", place.label),
        (None, None, None) => futex.address.clone(),
    }
}

/// Rows of one kind in both runs, by program and name.
#[derive(Default)]
struct Waits(BTreeMap<(String, String), [WaitTime; 2]>);

impl Waits {
    fn add(&mut self, process: &str, name: String, side: usize, time: CountAndCycles) {
        self.0.entry((process.to_owned(), name)).or_default()[side].add(time);
    }

    fn ranked(self) -> Vec<WaitChange> {
        let rows = self.0.into_iter();
        let mut rows: Vec<WaitChange> = rows
            .map(|((process, name), [before, after])| WaitChange { process, name, before, after })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.delta().abs()));
        rows
    }
}

/// Compares the waiting of the programs that take a part of either run's cycles; `None` if a run does not tell, or nobody waited.
pub(super) fn changes(
    before: &Run,
    after: &Run,
    map: &[(String, String)],
) -> Option<WaitingChanges> {
    let runs = [(before, before.waiting.as_ref()?), (after, after.waiting.as_ref()?)];
    let today = |side: usize, process: usize| match side {
        0 => now(runs[0].0.command(process), map),
        _ => runs[1].0.command(process).to_owned(),
    };
    let mut shares: HashMap<String, [f64; 2]> = HashMap::new();
    for (side, (run, _)) in runs.iter().enumerate() {
        let whole = run.totals().busy().max(1) as f64;
        for process in 1..run.processes.len() {
            let share = run.processes[process].cycles / whole;
            shares.entry(today(side, process)).or_default()[side] += share;
        }
    }
    let counts = |process: &str| {
        let share = shares.get(process).copied().unwrap_or_default();
        share[0].max(share[1]) >= NOTICEABLE
    };
    let mut all = [ThreadTime::default(); 2];
    let mut threads: BTreeMap<(String, String, usize), ThreadChange> = BTreeMap::new();
    let (mut reasons, mut futexes) = (Waits::default(), Waits::default());
    for (side, (_, waiting)) in runs.iter().enumerate() {
        let mut order: Vec<&Thread> = waiting.threads.iter().collect();
        order.sort_by_key(|thread| thread.tid);
        let mut twins: HashMap<(String, String), usize> = HashMap::new();
        for thread in order {
            let process = today(side, thread.process);
            if !counts(&process) {
                continue;
            }
            // A program that is called differently has its main thread called so, too.
            let own = match side {
                0 => now(&thread.name, map),
                _ => thread.name.clone(),
            };
            let twin = twins.entry((process.clone(), own.clone())).or_default();
            *twin += 1;
            let row = threads.entry((process.clone(), own.clone(), *twin)).or_insert_with(|| {
                ThreadChange {
                    process: process.clone(),
                    name: match *twin {
                        1 => own,
                        twin => format!("{own} #{twin}"),
                    },
                    ..ThreadChange::default()
                }
            });
            let time = ThreadTime::of(thread);
            let of_side = if side == 0 { &mut row.before } else { &mut row.after };
            *of_side = Some(time);
            all[side].add(time);
            for wait in &thread.waits {
                reasons.add(&process, wait.reason.clone(), side, wait.time);
            }
        }
        for futex in &waiting.futexes {
            let process = today(side, futex.process);
            if counts(&process) {
                futexes.add(&process, name(futex), side, futex.time);
            }
        }
    }
    if all.iter().all(|time| time.ready == 0 && time.waiting == 0) {
        return None;
    }
    let mut threads: Vec<ThreadChange> = threads.into_values().collect();
    threads.sort_by_key(|row| std::cmp::Reverse(row.delta().abs()));
    let sum = ThreadChange {
        process: "all".to_owned(),
        name: String::new(),
        before: Some(all[0]),
        after: Some(all[1]),
    };
    threads.insert(0, sum);
    Some(WaitingChanges { threads, reasons: reasons.ranked(), futexes: futexes.ranked() })
}
