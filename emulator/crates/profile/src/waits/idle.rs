//! Why harts have no thread to run: what the threads of the program do meanwhile.

use std::collections::{HashMap, HashSet};

use super::{Region, SchedulerLog, SwitchOut, Transition, WaitReason, WaitUse};
use crate::ThreadId;

/// Numbers of the system calls that wait for the end of a process, `waitid` and `wait4`, in the kernel's table for RISC-V.
const CHILD_WAITS: [u16; 2] = [95, 260];

/// The kernel's number of all harts' idle threads.
pub(super) const IDLE_TID: u32 = 0;

/// Cycles of harts that run their idle thread, summed over the harts.
///
/// An idle hart stands for one thread of the program that is off the harts. If there are more of these threads than idle harts, those that
/// are ready come first, then those that wait for locks, then those with other waits. Harts that stand for none are idle for want of
/// threads; threads that wait for the end of others are not counted then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleHarts {
    /// Cycles in which a thread of the program is ready to run.
    pub ready: u64,
    /// Cycles in which a thread of the program waits for a futex of its own: a lock, a condition, a barrier.
    pub locks: u64,
    /// Cycles in which a thread of the program waits for anything else but the end of other threads or processes.
    pub other: u64,
    /// Cycles for want of threads in which one thread of the program runs alone, and no other one waits for its end or has ended beside it.
    pub serial: u64,
    /// Cycles for want of threads in which two threads of the program or more run, or one runs and another one waits for its end.
    pub imbalance: u64,
    /// Cycles for want of threads in any other case. No thread of the program runs; or one does, and since threads last began or were
    /// waited for, others have ended beside it: it may be the last one of an uneven parallel part, or have begun a serial part.
    pub no_thread: u64,
}

impl IdleHarts {
    /// Returns the cycles of all harts that are idle.
    pub fn total(&self) -> u64 {
        let parts = [self.locks, self.other, self.serial, self.imbalance, self.no_thread];
        parts.into_iter().fold(self.ready, u64::saturating_add)
    }
}

/// What a thread that is off the harts stands for; the order is the one in which idle harts are counted for them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Off {
    Ready,
    Lock,
    Other,
}

/// A thread's state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Off(Off),
    /// The thread waits for the end of others.
    Joins,
    /// Nothing is known of the thread.
    Unknown,
}

#[derive(Clone, Copy)]
struct LivingThread {
    state: State,
    /// Whether the thread is of the program.
    is_own: bool,
    /// Whether the thread woke one that waited for its end.
    is_joined: bool,
}

#[derive(Default)]
struct SchedulerState {
    /// The living threads by the kernel's number.
    threads: HashMap<u32, LivingThread>,
    /// The kernel's number of the thread that runs on each hart.
    on_hart: HashMap<u32, u32>,
    /// Number of harts that run their idle thread.
    idle: u64,
    /// Number of the program's threads in each state of [`Off`].
    off: [u64; 3],
    /// Number of the program's threads that run.
    running: u64,
    /// Number of the program's threads that wait for the end of others.
    joining: u64,
    /// Whether a thread of the program has ended that none waited for, since one last began or ceased to wait for the end of others.
    has_ended: bool,
}

impl SchedulerLog {
    /// Returns why harts had no thread to run in the region; `None` if the kernel does not tell. `is_own` says which threads are of the
    /// program. The log has to be of all `harts`.
    ///
    /// A switch tells who ran before, unless that was the idle thread. A hart whose first switch tells of nobody was idle until then, and so
    /// was a hart without any switch all the time.
    pub fn idle_harts(&self, harts: usize, is_own: impl Fn(ThreadId) -> bool) -> Option<IdleHarts> {
        if !self.tells() {
            return None;
        }
        let next_runs = self.next_runs();
        let over = self.waits_that_are_over();
        let region = Region::new(&self.region);
        let mut scheduler = SchedulerState::new(self, harts);
        let mut found = IdleHarts::default();
        let mut since = 0;
        let events = self.events.iter().zip(&next_runs).enumerate();
        for (at, (event, next)) in events.take_while(|(_, (event, _))| event.cycle < region.end()) {
            scheduler.spend(region.cycles(since, event.cycle), &mut found);
            since = event.cycle;
            let is_own = next.is_some_and(&is_own);
            let change = match event.change {
                Transition::Leaves(tid, _) if over.contains(&at) => {
                    Transition::Leaves(tid, SwitchOut::Runnable)
                }
                change => change,
            };
            scheduler.change(event.hart, change, is_own);
        }
        scheduler.spend(region.cycles(since, region.end()), &mut found);
        Some(found)
    }

    /// Returns the places of switches to waits that were over as they began. Such a thread was woken while it still ran: the record of
    /// its switch, on another hart, came later, and the thread ran again without another wakeup.
    fn waits_that_are_over(&self) -> HashSet<usize> {
        /// What the last record of a thread says.
        enum LastRecord {
            Runs,
            IsWoken,
            /// Goes to wait at this place, and was woken before.
            Waits(usize),
        }
        let mut last_records: HashMap<u32, LastRecord> = HashMap::new();
        let mut over = HashSet::new();
        for (at, event) in self.events.iter().enumerate() {
            match event.change {
                Transition::Runs(tid, _) => {
                    if let Some(LastRecord::Waits(at)) = last_records.insert(tid, LastRecord::Runs)
                    {
                        over.insert(at);
                    }
                }
                Transition::Leaves(tid, left) => {
                    let before = last_records.remove(&tid);
                    if let (Some(LastRecord::IsWoken), SwitchOut::Waits(_)) = (before, left) {
                        last_records.insert(tid, LastRecord::Waits(at));
                    }
                }
                Transition::Wakes(tid, _) => match last_records.remove(&tid) {
                    Some(LastRecord::Runs | LastRecord::IsWoken) => {
                        last_records.insert(tid, LastRecord::IsWoken);
                    }
                    Some(LastRecord::Waits(_)) | None => {}
                },
                Transition::Begins(tid) => {
                    last_records.remove(&tid);
                }
            }
        }
        let last = last_records.into_values().filter_map(|last| match last {
            LastRecord::Waits(at) => Some(at),
            LastRecord::Runs | LastRecord::IsWoken => None,
        });
        over.extend(last);
        over
    }

    /// Returns for each hart that switches the place of the first record of a switch in the log.
    pub(super) fn first_changes(&self) -> HashMap<u32, usize> {
        let mut first = HashMap::new();
        for (at, event) in self.events.iter().enumerate() {
            if matches!(event.change, Transition::Runs(..) | Transition::Leaves(..)) {
                first.entry(event.hart).or_insert(at);
            }
        }
        first
    }

    /// Returns for each event which thread its kernel's number stands for: the one that runs under that number in this event or next.
    pub(super) fn next_runs(&self) -> Vec<Option<ThreadId>> {
        let mut next: HashMap<u32, ThreadId> = HashMap::new();
        let mut found: Vec<Option<ThreadId>> = self
            .events
            .iter()
            .rev()
            .map(|event| match event.change {
                Transition::Runs(tid, thread) => {
                    next.insert(tid, thread);
                    Some(thread)
                }
                Transition::Begins(tid) => next.remove(&tid),
                Transition::Leaves(tid, _) | Transition::Wakes(tid, _) => next.get(&tid).copied(),
            })
            .collect();
        found.reverse();
        found
    }
}

impl SchedulerState {
    /// Returns the state before the first record: threads are not known, and some harts run their idle threads.
    fn new(log: &SchedulerLog, harts: usize) -> Self {
        let first = log.first_changes();
        let harts = 0..u32::try_from(harts).unwrap_or(u32::MAX);
        let leaves =
            |hart: &u32| first.get(hart).is_some_and(|at| log.events[*at].change.tells_who_left());
        let idle = harts.filter(|hart| !leaves(hart));
        let on_hart: HashMap<u32, u32> = idle.map(|hart| (hart, IDLE_TID)).collect();
        Self { idle: on_hart.len() as u64, on_hart, ..Self::default() }
    }

    /// Counts cycles in which no thread changes its state.
    fn spend(&self, cycles: u64, found: &mut IdleHarts) {
        let mut left = self.idle;
        let mut take = |threads: u64| {
            let harts = left.min(threads);
            left -= harts;
            harts.saturating_mul(cycles)
        };
        let [ready, locks, other] = self.off.map(&mut take);
        let for_want_of_threads = match (self.running, self.joining) {
            (0, _) => &mut found.no_thread,
            (1, 0) if self.has_ended => &mut found.no_thread,
            (1, 0) => &mut found.serial,
            _ => &mut found.imbalance,
        };
        for (sum, cycles) in [
            (for_want_of_threads, left.saturating_mul(cycles)),
            (&mut found.ready, ready),
            (&mut found.locks, locks),
            (&mut found.other, other),
        ] {
            *sum = sum.saturating_add(cycles);
        }
    }

    fn change(&mut self, hart: u32, change: Transition, is_own: bool) {
        match change {
            Transition::Begins(tid) => {
                self.has_ended &= !is_own;
                self.enter(tid, State::Off(Off::Ready), is_own);
            }
            Transition::Runs(tid, _) => {
                let before = self.on_hart.insert(hart, tid);
                self.idle += u64::from(tid == IDLE_TID);
                self.idle -= u64::from(before == Some(IDLE_TID));
                // The thread before was not told to leave: what it does from here on is not known.
                if let Some(before) = before
                    && before != tid
                    && self
                        .threads
                        .get(&before)
                        .is_some_and(|thread| thread.state == State::Running)
                {
                    let is_own = self.threads[&before].is_own;
                    self.enter(before, State::Unknown, is_own);
                }
                if tid != IDLE_TID {
                    self.enter(tid, State::Running, is_own);
                }
            }
            // The idle thread is in no state: every hart has one of this number.
            Transition::Leaves(IDLE_TID, _) => {}
            Transition::Leaves(tid, left) => {
                // A thread that does not run again in the log is known by what it was.
                let known = self.threads.get(&tid).copied();
                let is_own = known.map_or(is_own, |thread| thread.is_own);
                let is_joined = known.is_some_and(|thread| thread.is_joined);
                let state = match left {
                    SwitchOut::Runnable => State::Off(Off::Ready),
                    SwitchOut::Waits(entry) => match entry.reason(WaitUse::Program) {
                        WaitReason::Futex => State::Off(Off::Lock),
                        WaitReason::SharedFutex => State::Joins,
                        WaitReason::Syscall(number) if CHILD_WAITS.contains(&number) => {
                            State::Joins
                        }
                        _ => State::Off(Off::Other),
                    },
                    SwitchOut::Ended => State::Unknown,
                };
                self.enter(tid, state, is_own);
                if left == SwitchOut::Ended {
                    self.has_ended |= is_own && !is_joined;
                    self.threads.remove(&tid);
                }
            }
            Transition::Wakes(tid, waker) => match self.threads.get_mut(&tid) {
                Some(thread) if thread.state == State::Running => {}
                known => {
                    let known = known.copied();
                    let is_own = known.map_or(is_own, |thread| thread.is_own || is_own);
                    let has_joined = known.is_some_and(|thread| thread.state == State::Joins);
                    self.enter(tid, State::Off(Off::Ready), is_own);
                    if is_own && has_joined {
                        self.has_ended = false;
                        // The thread that ends does so after it has woken who waits for that.
                        let waker = waker.and_then(|waker| self.threads.get_mut(&waker));
                        waker.into_iter().for_each(|waker| waker.is_joined = true);
                    }
                }
            },
        }
    }

    /// Brings a thread into a state.
    fn enter(&mut self, tid: u32, state: State, is_own: bool) {
        let thread = LivingThread { state, is_own, is_joined: false };
        let before = self.threads.insert(tid, thread);
        if let Some(before) = before.filter(|before| before.is_own)
            && let Some(count) = self.count(before.state)
        {
            *count -= 1;
        }
        if let (true, Some(count)) = (is_own, self.count(state)) {
            *count += 1;
        }
    }

    /// Returns the number of the program's threads in a state, if they are counted.
    fn count(&mut self, state: State) -> Option<&mut u64> {
        match state {
            State::Running => Some(&mut self.running),
            State::Off(off) => Some(&mut self.off[off as usize]),
            State::Joins => Some(&mut self.joining),
            State::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests;
