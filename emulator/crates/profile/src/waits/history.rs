//! What each thread did when: intervals in which it runs, is ready or waits, and who ended each wait.

use std::collections::HashMap;

use super::{
    KernelEntry, SchedulerLog, SwitchOut, Transition, WaitReason, WaitSite, WaitUse, Waker,
};
use crate::{ContextId, ProcessId, ThreadId};

/// A thread's place in [`Histories::threads`].
pub(super) type HistoryId = usize;

/// What all threads did, from the log's first record to `end`.
pub(super) struct Histories {
    /// The threads, in the order in which they were first told of. A kernel's number that is used anew is another thread.
    pub threads: Vec<ThreadHistory>,
    /// First cycle after the last interval.
    pub end: u64,
}

/// What a thread did.
#[derive(Default)]
pub(super) struct ThreadHistory {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// The thread that was running when this one was made, if the log has that.
    pub parent: Option<HistoryId>,
    /// Intervals without a gap, in order. One may be empty.
    pub intervals: Vec<ThreadInterval>,
    /// Whether the thread ended.
    pub has_ended: bool,
}

impl ThreadHistory {
    /// Returns the interval that has the cycle before this one, or the last interval before that.
    pub(super) fn at(&self, cycle: u64) -> Option<&ThreadInterval> {
        let begun = self.intervals.partition_point(|interval| interval.start < cycle);
        begun.checked_sub(1).map(|number| &self.intervals[number])
    }

    /// Returns whether the thread runs in the cycle before this one.
    pub(super) fn runs_before(&self, cycle: u64) -> bool {
        self.at(cycle)
            .is_some_and(|at| matches!(at.state, ThreadState::Running(_)) && at.end >= cycle)
    }

    /// Returns the cycles from `from` to before `to` in which the thread runs.
    pub(super) fn running(&self, from: u64, to: u64) -> u64 {
        let begun = self.intervals.partition_point(|interval| interval.end <= from);
        let inside = self.intervals[begun..].iter().take_while(|interval| interval.start < to);
        let running = inside.filter(|interval| matches!(interval.state, ThreadState::Running(_)));
        running.map(|own| own.end.min(to).saturating_sub(own.start.max(from))).sum()
    }
}

/// A stretch of time in which a thread is in one state.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadInterval {
    /// The first cycle.
    pub start: u64,
    /// The first cycle after the interval.
    pub end: u64,
    /// The thread's number then; `None` if the thread never ran.
    pub thread: Option<ThreadId>,
    /// What the thread does.
    pub state: ThreadState,
    /// The wakeup that ended a wait, if that was told.
    pub wakeup: Option<Wakeup>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// Nothing is known.
    Unknown,
    /// A hart of this number runs the thread.
    Running(u32),
    /// The thread could run.
    Ready,
    /// The thread waits.
    Waiting(Waiting),
}

/// How a waiting thread entered the kernel, and the kernel's calling context then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub entry: KernelEntry,
    pub context: Option<ContextId>,
}

impl Waiting {
    /// Returns what a thread waits for. `process` returns a thread's process, `used_for` what a process uses a futex or a sleep for.
    pub(super) fn reason(
        self,
        thread: ThreadId,
        process: &dyn Fn(ThreadId) -> ProcessId,
        used_for: &dyn Fn(ProcessId, WaitSite) -> WaitUse,
    ) -> WaitReason {
        let used_for = match self.entry {
            KernelEntry::Syscall { pc, .. } if self.entry.may_be_of_runtime() => {
                used_for(process(thread), WaitSite { pc, entry: self.context })
            }
            _ => WaitUse::Program,
        };
        self.entry.reason(used_for)
    }

    /// Returns the futex that a thread waits for, for this reason, and where it entered the kernel to do so.
    pub(super) fn futex(self, reason: WaitReason) -> Option<(u64, WaitSite)> {
        match (reason, self.entry) {
            (
                WaitReason::Futex | WaitReason::SharedFutex | WaitReason::Runtime,
                KernelEntry::Syscall { address, pc, .. },
            ) => Some((address, WaitSite { pc, entry: self.context })),
            _ => None,
        }
    }
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wakeup {
    /// Who ended the wait.
    pub waker: Waker,
    /// The history of the waking thread.
    pub by: Option<HistoryId>,
    /// The cycle of the wakeup; harts tell of theirs independently, so that it may lie before the wait or after.
    pub cycle: u64,
    /// The kernel's calling context as the waking thread entered the kernel.
    pub context: Option<ContextId>,
}

/// A living thread.
struct Life {
    history: HistoryId,
    /// The thread's number; `None` until it runs.
    thread: Option<ThreadId>,
    state: ThreadState,
    /// The first cycle in `state`.
    since: u64,
    /// The wakeup of a thread that still ran: the record of its switch, on another hart, comes later.
    woken: Option<Wakeup>,
    /// The wait that [`Self::woken`] is taken to have ended as it began. A thread that was about to wait and was woken before it did has that
    /// wakeup, too. In that case it belongs to no wait, and the next wakeup ends this one.
    doubtful: Option<ThreadState>,
    /// Intervals with waits that were not told to have ended before the thread ran, in order.
    unwoken: Vec<usize>,
}

#[derive(Default)]
struct HistoryBuilder {
    threads: Vec<ThreadHistory>,
    /// The living threads by the kernel's number.
    lives: HashMap<u32, Life>,
    /// The kernel's number of the thread that runs on each hart.
    on_hart: HashMap<u32, u32>,
}

impl Histories {
    /// Returns what all threads did before cycle `end`.
    pub(super) fn new(log: &SchedulerLog, end: u64) -> Self {
        let mut builder = HistoryBuilder::default();
        for event in log.events.iter().take_while(|event| event.cycle < end) {
            builder.change(event.cycle, event.hart, event.change, event.entry);
        }
        let tids: Vec<u32> = builder.lives.keys().copied().collect();
        for tid in tids {
            builder.enter(tid, end, ThreadState::Unknown, None);
        }
        Self { threads: builder.threads, end }
    }
}

impl HistoryBuilder {
    fn change(&mut self, cycle: u64, hart: u32, change: Transition, context: Option<ContextId>) {
        match change {
            Transition::Begins(tid) => {
                let parent = self.on_hart.get(&hart).and_then(|tid| self.lives.get(tid));
                let parent = parent.map(|life| life.history);
                self.lives.remove(&tid);
                let life = self.life(tid, cycle);
                life.state = ThreadState::Ready;
                let history = life.history;
                self.threads[history].parent = parent;
            }
            Transition::Runs(tid, thread) => {
                // The thread before was not told to leave: what it does from here on is not known.
                if let Some(before) = self.on_hart.insert(hart, tid)
                    && before != tid
                    && matches!(self.state(before), Some(ThreadState::Running(_)))
                {
                    self.enter(before, cycle, ThreadState::Unknown, None);
                }
                // The idle thread is in no state: every hart has one of this number.
                if tid != 0 {
                    // What it did before it first ran is its own, too.
                    self.life(tid, cycle).thread.get_or_insert(thread);
                    self.enter(tid, cycle, ThreadState::Running(hart), None);
                    self.life(tid, cycle).thread = Some(thread);
                }
            }
            Transition::Leaves(tid, left) => {
                let state = match left {
                    SwitchOut::Runnable => ThreadState::Ready,
                    SwitchOut::Waits(entry) => ThreadState::Waiting(Waiting { entry, context }),
                    SwitchOut::Ended => ThreadState::Unknown,
                };
                self.enter(tid, cycle, state, None);
                let life = self.life(tid, cycle);
                let (history, woken) = (life.history, life.woken.take());
                match (left, woken) {
                    (SwitchOut::Ended, _) => {
                        self.threads[history].has_ended = true;
                        self.lives.remove(&tid);
                    }
                    (SwitchOut::Waits(_), Some(wakeup)) => {
                        self.enter(tid, cycle, ThreadState::Ready, Some(wakeup));
                        self.life(tid, cycle).doubtful = Some(state);
                    }
                    _ => {}
                }
            }
            Transition::Wakes(tid, waker) => {
                let life = waker.and_then(|tid| self.lives.get(&tid));
                let wakeup = Wakeup {
                    waker: match waker {
                        None => Waker::Interrupt,
                        Some(_) => {
                            life.and_then(|life| life.thread).map_or(Waker::Unknown, Waker::Thread)
                        }
                    },
                    by: life.map(|life| life.history),
                    cycle,
                    context,
                };
                self.wake(tid, cycle, wakeup);
            }
        }
    }

    fn wake(&mut self, tid: u32, cycle: u64, wakeup: Wakeup) {
        match self.state(tid) {
            Some(ThreadState::Running(_)) => {
                let life = self.life(tid, cycle);
                match life.unwoken.pop() {
                    Some(wait) => {
                        let history = life.history;
                        self.threads[history].intervals[wait].wakeup = Some(wakeup);
                    }
                    None => life.woken = Some(wakeup),
                }
            }
            // A thread of which nothing is known is woken from no wait that is known.
            Some(ThreadState::Waiting(_) | ThreadState::Unknown) | None => {
                self.enter(tid, cycle, ThreadState::Ready, Some(wakeup));
            }
            // A thread that could run is not woken.
            Some(ThreadState::Ready) => {
                if let Some(wait) = self.life(tid, cycle).doubtful {
                    self.life(tid, cycle).state = wait;
                    self.enter(tid, cycle, ThreadState::Ready, Some(wakeup));
                }
            }
        }
    }

    fn state(&self, tid: u32) -> Option<ThreadState> {
        self.lives.get(&tid).map(|life| life.state)
    }

    fn life(&mut self, tid: u32, cycle: u64) -> &mut Life {
        let threads = &mut self.threads;
        self.lives.entry(tid).or_insert_with(|| {
            threads.push(ThreadHistory { tid, ..ThreadHistory::default() });
            Life {
                history: threads.len() - 1,
                thread: None,
                state: ThreadState::Unknown,
                since: cycle,
                woken: None,
                doubtful: None,
                unwoken: Vec::new(),
            }
        })
    }

    /// Brings a thread into another state; `wakeup` ends its wait, if it waited.
    fn enter(&mut self, tid: u32, cycle: u64, state: ThreadState, wakeup: Option<Wakeup>) {
        let life = self.life(tid, cycle);
        let before = std::mem::replace(&mut life.state, state);
        life.doubtful = None;
        let start = std::mem::replace(&mut life.since, cycle);
        let (history, thread) = (life.history, life.thread);
        let interval = ThreadInterval { start, end: cycle, thread, state: before, wakeup };
        let number = self.threads[history].intervals.len();
        self.threads[history].intervals.push(interval);
        if matches!((before, state), (ThreadState::Waiting(_), ThreadState::Running(_))) {
            self.life(tid, cycle).unwoken.push(number);
        }
    }
}
