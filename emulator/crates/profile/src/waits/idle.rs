//! Why harts have no thread to run: what the threads of the program do meanwhile.

use std::collections::HashMap;

use super::{Region, SchedulerLog, SwitchOut, Transition, WaitReason, WaitUse};
use crate::ThreadId;

/// Numbers of the system calls that wait for the end of a process, `waitid` and `wait4`, in the kernel's table for RISC-V.
const CHILD_WAITS: [u16; 2] = [95, 260];

/// The kernel's number of all harts' idle threads.
const IDLE_TID: u32 = 0;

/// Cycles of harts that run their idle thread, summed over the harts.
///
/// An idle hart stands for one thread of the program that is off the harts. If there are more of these threads than idle harts, those that
/// are ready come first, then those that wait for locks, then those with other waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleHarts {
    /// Cycles in which a thread of the program is ready to run.
    pub ready: u64,
    /// Cycles in which a thread of the program waits for a futex of its own: a lock, a condition, a barrier.
    pub locks: u64,
    /// Cycles in which a thread of the program waits for anything else but the end of other threads or processes.
    pub other: u64,
    /// Cycles in which there is no such thread: the program has fewer threads than there are harts, or they wait for the end of others.
    pub no_thread: u64,
}

impl IdleHarts {
    /// Returns the cycles of all harts that are idle.
    pub fn total(&self) -> u64 {
        let parts = [self.locks, self.other, self.no_thread];
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
    /// The thread waits for the end of others, or nothing is known of it.
    Apart,
}

#[derive(Clone, Copy)]
struct LivingThread {
    state: State,
    /// Whether the thread is of the program.
    is_own: bool,
    /// Whether the thread was woken while it still ran: the record of its switch, on another hart, comes later.
    is_woken: bool,
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
        let region = Region::new(&self.region);
        let mut scheduler = SchedulerState::new(self, harts);
        let mut found = IdleHarts::default();
        let mut since = 0;
        let events = self.events.iter().zip(&next_runs);
        for (event, next) in events.take_while(|(event, _)| event.cycle < region.end()) {
            scheduler.spend(region.cycles(since, event.cycle), &mut found);
            since = event.cycle;
            let is_own = next.is_some_and(&is_own);
            scheduler.change(event.hart, event.change, is_own);
        }
        scheduler.spend(region.cycles(since, region.end()), &mut found);
        Some(found)
    }

    /// Returns for each event which thread its kernel's number stands for: the one that runs under that number in this event or next.
    fn next_runs(&self) -> Vec<Option<ThreadId>> {
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
        let mut was_idle: HashMap<u32, bool> = HashMap::new();
        for event in &log.events {
            match event.change {
                Transition::Runs(..) => _ = was_idle.entry(event.hart).or_insert(true),
                Transition::Leaves(..) => _ = was_idle.entry(event.hart).or_insert(false),
                Transition::Begins(_) | Transition::Wakes(..) => {}
            }
        }
        let harts = 0..u32::try_from(harts).unwrap_or(u32::MAX);
        let idle = harts.filter(|hart| *was_idle.get(hart).unwrap_or(&true));
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
        for (sum, cycles) in [
            (&mut found.ready, ready),
            (&mut found.locks, locks),
            (&mut found.other, other),
            (&mut found.no_thread, left.saturating_mul(cycles)),
        ] {
            *sum = sum.saturating_add(cycles);
        }
    }

    fn change(&mut self, hart: u32, change: Transition, is_own: bool) {
        match change {
            Transition::Begins(tid) => self.enter(tid, State::Off(Off::Ready), is_own),
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
                    self.enter(before, State::Apart, is_own);
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
                let is_woken = known.is_some_and(|thread| thread.is_woken);
                let state = match left {
                    SwitchOut::Runnable => State::Off(Off::Ready),
                    SwitchOut::Waits(_) if is_woken => State::Off(Off::Ready),
                    SwitchOut::Waits(entry) => match entry.reason(WaitUse::Program) {
                        WaitReason::Futex => State::Off(Off::Lock),
                        WaitReason::SharedFutex => State::Apart,
                        WaitReason::Syscall(number) if CHILD_WAITS.contains(&number) => {
                            State::Apart
                        }
                        _ => State::Off(Off::Other),
                    },
                    SwitchOut::Ended => State::Apart,
                };
                self.enter(tid, state, is_own);
                if left == SwitchOut::Ended {
                    self.threads.remove(&tid);
                }
            }
            Transition::Wakes(tid, _) => match self.threads.get_mut(&tid) {
                Some(thread) if thread.state == State::Running => thread.is_woken = true,
                known => {
                    let is_own = known.map_or(is_own, |thread| thread.is_own || is_own);
                    self.enter(tid, State::Off(Off::Ready), is_own);
                }
            },
        }
    }

    /// Brings a thread into a state.
    fn enter(&mut self, tid: u32, state: State, is_own: bool) {
        let thread = LivingThread { state, is_own, is_woken: false };
        let before = self.threads.insert(tid, thread);
        if let Some(LivingThread { state: State::Off(off), is_own: true, .. }) = before {
            self.off[off as usize] -= 1;
        }
        if let (State::Off(off), true) = (state, is_own) {
            self.off[off as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests;
