//! Follows each thread from state to state.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::{
    FutexWaits, Intervals, KernelEntry, ReasonWaits, Region, SchedulerLog, SwitchOut, ThreadWaits,
    Transition, WaitReason, WaitSite, WaitUse, Waits, Waker,
};
use crate::{ContextId, ProcessId, ThreadId};

/// A thread that lives.
struct LiveThread {
    /// The thread's number; `None` until it runs.
    thread: Option<ThreadId>,
    state: State,
    /// Cycle since which the thread is in `state`.
    since: u64,
    /// Who woke the thread while it still ran: the record of its switch, on another hart, comes later.
    woken: Option<Waker>,
}

#[derive(Clone, Copy)]
enum State {
    Unknown,
    Running,
    Ready,
    Waiting(Waiting),
}

/// How a waiting thread entered the kernel, and the kernel's calling context then.
#[derive(Clone, Copy)]
struct Waiting {
    entry: KernelEntry,
    context: Option<ContextId>,
}

/// A wait that a thread began to run after, without having been woken as far as was told by then.
struct Unwoken {
    thread: ThreadId,
    waiting: Waiting,
    cycles: u64,
}

#[derive(Default)]
struct ThreadTimes {
    running: Intervals,
    ready: Intervals,
    waits: BTreeMap<(WaitReason, Waker), Intervals>,
    unknown: u64,
}

#[derive(Default)]
struct FutexTimes {
    all: Intervals,
    pairs: BTreeMap<(ThreadId, Waker), Intervals>,
    sites: BTreeMap<WaitSite, Intervals>,
    operations: BTreeMap<u32, u64>,
}

struct ThreadTracker<'a> {
    region: Region,
    process: &'a dyn Fn(ThreadId) -> ProcessId,
    used_for: &'a dyn Fn(ProcessId, WaitSite) -> WaitUse,
    /// The living threads by the kernel's number.
    lives: HashMap<u32, LiveThread>,
    /// The kernel's number of the thread that runs on each hart.
    on_hart: HashMap<u32, u32>,
    /// Waits that were not told to have ended before their thread ran, by its kernel's number, in order.
    unwoken: HashMap<u32, Vec<Unwoken>>,
    times: BTreeMap<ThreadId, ThreadTimes>,
    futexes: HashMap<(ProcessId, u64), FutexTimes>,
}

pub(super) fn waits(
    log: &SchedulerLog,
    process: &dyn Fn(ThreadId) -> ProcessId,
    used_for: &dyn Fn(ProcessId, WaitSite) -> WaitUse,
) -> Waits {
    let mut follower = ThreadTracker {
        region: Region::new(&log.region),
        process,
        used_for,
        lives: HashMap::new(),
        on_hart: HashMap::new(),
        unwoken: HashMap::new(),
        times: BTreeMap::new(),
        futexes: HashMap::new(),
    };
    let end = follower.region.end();
    for event in log.events.iter().take_while(|event| event.cycle < end) {
        follower.change(event.cycle, event.hart, event.change, event.entry);
    }
    follower.finish(end)
}

impl ThreadTracker<'_> {
    fn change(&mut self, cycle: u64, hart: u32, change: Transition, context: Option<ContextId>) {
        match change {
            Transition::Begins(tid) => {
                let life =
                    LiveThread { thread: None, state: State::Ready, since: cycle, woken: None };
                self.lives.insert(tid, life);
            }
            Transition::Runs(tid, thread) => {
                // The thread before was not told to leave: what it does from here on is not known.
                if let Some(before) = self.on_hart.insert(hart, tid)
                    && before != tid
                    && matches!(self.state(before), Some(State::Running))
                {
                    self.enter(before, cycle, State::Unknown, Waker::Unknown);
                }
                // The idle thread is in no state: every hart has one of this number.
                if tid != 0 {
                    // What it did before it first ran is its own, too.
                    self.life(tid, cycle).thread.get_or_insert(thread);
                    self.enter(tid, cycle, State::Running, Waker::Unknown);
                    self.life(tid, cycle).thread = Some(thread);
                }
            }
            Transition::Leaves(tid, left) => {
                let state = match left {
                    SwitchOut::Runnable => State::Ready,
                    SwitchOut::Waits(entry) => State::Waiting(Waiting { entry, context }),
                    SwitchOut::Ended => State::Unknown,
                };
                self.enter(tid, cycle, state, Waker::Unknown);
                let woken = self.life(tid, cycle).woken.take();
                match (left, woken) {
                    (SwitchOut::Ended, _) => drop(self.lives.remove(&tid)),
                    (SwitchOut::Waits(_), Some(waker)) => {
                        self.enter(tid, cycle, State::Ready, waker)
                    }
                    _ => {}
                }
            }
            Transition::Wakes(tid, waker) => {
                let waker = match waker {
                    None => Waker::Interrupt,
                    Some(tid) => self
                        .lives
                        .get(&tid)
                        .and_then(|life| life.thread)
                        .map_or(Waker::Unknown, Waker::Thread),
                };
                self.wake(tid, cycle, waker);
            }
        }
    }

    fn wake(&mut self, tid: u32, cycle: u64, waker: Waker) {
        match self.state(tid) {
            Some(State::Waiting(_)) => self.enter(tid, cycle, State::Ready, waker),
            Some(State::Running) => match self.unwoken.get_mut(&tid).and_then(Vec::pop) {
                Some(wait) => {
                    self.waited(wait.thread, wait.waiting, wait.cycles, waker);
                }
                None => self.life(tid, cycle).woken = Some(waker),
            },
            // The thread is woken from no wait that is known.
            Some(State::Unknown) | None => self.enter(tid, cycle, State::Ready, waker),
            Some(State::Ready) => {}
        }
    }

    fn state(&self, tid: u32) -> Option<State> {
        self.lives.get(&tid).map(|life| life.state)
    }

    fn life(&mut self, tid: u32, cycle: u64) -> &mut LiveThread {
        self.lives.entry(tid).or_insert(LiveThread {
            thread: None,
            state: State::Unknown,
            since: cycle,
            woken: None,
        })
    }

    /// Brings a thread into another state, and counts its time in the state before; `waker` ends its wait, if it waited.
    fn enter(&mut self, tid: u32, cycle: u64, state: State, waker: Waker) {
        let life = self.life(tid, cycle);
        let before = std::mem::replace(&mut life.state, state);
        let since = std::mem::replace(&mut life.since, cycle);
        let Some(thread) = life.thread else {
            return;
        };
        let cycles = self.region.cycles(since, cycle);
        if cycles == 0 && !self.region.contains(cycle) {
            return;
        }
        let waiting = match before {
            State::Waiting(waiting) => waiting,
            other => return self.spent(thread, other, cycles),
        };
        match state {
            State::Running => {
                self.unwoken.entry(tid).or_default().push(Unwoken { thread, waiting, cycles })
            }
            _ => self.waited(thread, waiting, cycles, waker),
        }
    }

    fn spent(&mut self, thread: ThreadId, state: State, cycles: u64) {
        let times = self.times.entry(thread).or_default();
        match state {
            State::Running => times.running.add(cycles),
            State::Ready => times.ready.add(cycles),
            State::Unknown | State::Waiting(_) => {
                times.unknown = times.unknown.saturating_add(cycles);
            }
        }
    }

    fn waited(&mut self, thread: ThreadId, waiting: Waiting, cycles: u64, waker: Waker) {
        let Waiting { entry, context } = waiting;
        let process = (self.process)(thread);
        let used_for = match entry {
            KernelEntry::Syscall { pc, .. } if entry.may_be_of_runtime() => {
                (self.used_for)(process, WaitSite { pc, entry: context })
            }
            _ => WaitUse::Program,
        };
        let reason = entry.reason(used_for);
        let times = self.times.entry(thread).or_default();
        times.waits.entry((reason, waker)).or_default().add(cycles);
        if let (
            WaitReason::Futex | WaitReason::SharedFutex | WaitReason::Runtime,
            KernelEntry::Syscall { address, argument, pc, .. },
        ) = (reason, entry)
        {
            let futex = self.futexes.entry((process, address)).or_default();
            futex.all.add(cycles);
            futex.pairs.entry((thread, waker)).or_default().add(cycles);
            let site = WaitSite { pc, entry: context };
            futex.sites.entry(site).or_default().add(cycles);
            *futex.operations.entry(argument).or_default() += 1;
        }
    }

    fn finish(mut self, end: u64) -> Waits {
        for wait in std::mem::take(&mut self.unwoken).into_values().flatten() {
            self.waited(wait.thread, wait.waiting, wait.cycles, Waker::Unknown);
        }
        for life in std::mem::take(&mut self.lives).into_values() {
            let Some(thread) = life.thread else {
                continue;
            };
            let cycles = self.region.cycles(life.since, end);
            match life.state {
                State::Waiting(waiting) => self.waited(thread, waiting, cycles, Waker::Nobody),
                state => self.spent(thread, state, cycles),
            }
        }
        let threads = self.times.into_iter().map(|(thread, times)| ThreadWaits {
            thread,
            running: times.running,
            ready: times.ready,
            waits: by_reason(times.waits),
            unknown: times.unknown,
        });
        let mut futexes: Vec<FutexWaits> = self
            .futexes
            .into_iter()
            .map(|((process, address), futex)| FutexWaits {
                process,
                address,
                all: futex.all,
                pairs: longest_first(
                    futex
                        .pairs
                        .into_iter()
                        .map(|((thread, waker), stretches)| (thread, waker, stretches)),
                    |(.., stretches)| *stretches,
                ),
                sites: longest_first(futex.sites.into_iter(), |(_, stretches)| *stretches),
                operations: futex.operations.into_iter().collect(),
            })
            .collect();
        futexes.sort_by_key(|futex| (Reverse(futex.all.cycles), futex.process, futex.address));
        Waits { threads: threads.collect(), futexes }
    }
}

fn by_reason(waits: BTreeMap<(WaitReason, Waker), Intervals>) -> Vec<ReasonWaits> {
    let mut all: Vec<ReasonWaits> = Vec::new();
    for ((reason, waker), stretches) in waits {
        if all.last().is_none_or(|last| last.reason != reason) {
            all.push(ReasonWaits { reason, all: Intervals::default(), wakers: Vec::new() });
        }
        if let Some(last) = all.last_mut() {
            last.all.merge(stretches);
            last.wakers.push((waker, stretches));
        }
    }
    for waits in &mut all {
        let wakers = std::mem::take(&mut waits.wakers);
        waits.wakers = longest_first(wakers.into_iter(), |(_, stretches)| *stretches);
    }
    longest_first(all.into_iter(), |waits| waits.all)
}

fn longest_first<T>(all: impl Iterator<Item = T>, stretches: fn(&T) -> Intervals) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_by_key(|one| Reverse((stretches(one).cycles, stretches(one).count)));
    all
}
