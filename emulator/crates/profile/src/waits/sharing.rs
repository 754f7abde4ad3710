//! Elapsed time by thread: each cycle in equal shares to the harts that are busy.

use std::collections::{BTreeMap, HashMap};

use super::idle::IDLE_TID;
use super::{Region, SchedulerLog, Transition};
use crate::ThreadId;

/// The region's cycles by thread, as far as the kernel tells who runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElapsedByThread {
    /// Cycles in which no hart is busy.
    pub idle: u64,
    /// Cycles in which so many harts are busy, one at index 0. They are the region's cycles together with those in which none is.
    pub busy: Vec<u64>,
    /// Threads that ran in the region, by number. Their elapsed cycles are all cycles in which any hart is busy.
    pub threads: Vec<ThreadElapsed>,
}

/// A thread's part of the elapsed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadElapsed {
    /// The thread; [`ThreadId::NONE`] if it is not known.
    pub thread: ThreadId,
    /// Cycles in which the thread ran.
    pub running: u64,
    /// Cycles of elapsed time: a cycle in which so many harts are busy counts as one part in so many.
    pub elapsed: f64,
}

impl SchedulerLog {
    /// Returns the elapsed time of each thread in the region; `None` if the kernel does not tell who leaves a hart. The log has to be of all
    /// `harts`.
    pub fn elapsed_by_thread(&self, harts: usize) -> Option<ElapsedByThread> {
        if !self.events.iter().any(|event| event.change.tells_who_left()) {
            return None;
        }
        let next_runs = self.next_runs();
        let region = Region::new(&self.region);
        // The thread on each busy hart.
        let mut on_hart: HashMap<u32, ThreadId> = HashMap::new();
        for (hart, at) in self.first_changes() {
            if self.events[at].change.tells_who_left() {
                on_hart.insert(hart, next_runs[at].unwrap_or(ThreadId::NONE));
            }
        }
        let mut found = ElapsedByThread { busy: vec![0; harts], ..ElapsedByThread::default() };
        let mut threads: BTreeMap<ThreadId, (u64, f64)> = BTreeMap::new();
        let mut spend = |from: u64, to: u64, on_hart: &HashMap<u32, ThreadId>| {
            let cycles = region.cycles(from, to);
            let busy = on_hart.len();
            match busy.checked_sub(1) {
                None => found.idle += cycles,
                Some(at) => {
                    if found.busy.len() <= at {
                        found.busy.resize(busy, 0);
                    }
                    found.busy[at] += cycles;
                }
            }
            for thread in on_hart.values().filter(|_| cycles > 0) {
                let (running, elapsed) = threads.entry(*thread).or_default();
                *running += cycles;
                *elapsed += cycles as f64 / busy as f64;
            }
        };
        let mut since = 0;
        for event in self.events.iter().take_while(|event| event.cycle < region.end()) {
            if let Transition::Runs(tid, thread) = event.change {
                spend(since, event.cycle, &on_hart);
                since = event.cycle;
                match tid {
                    IDLE_TID => on_hart.remove(&event.hart),
                    _ => on_hart.insert(event.hart, thread),
                };
            }
        }
        spend(since, region.end(), &on_hart);
        let threads = threads.into_iter().map(|(thread, (running, elapsed))| ThreadElapsed {
            thread,
            running,
            elapsed,
        });
        found.threads = threads.collect();
        Some(found)
    }
}

#[cfg(test)]
mod tests;
